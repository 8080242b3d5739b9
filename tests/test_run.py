"""`atb run`: what a command is given, how its end becomes that of the attempt, and what it may not outlive."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent_task_board.run import output
from tests.command_line import Terminal
from tests.waiting import LIMIT, eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at processes in /proc")

ATB = f"{sys.executable} -m agent_task_board"


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    return Terminal(tmp_path)


def run(terminal: Terminal, script: str, *options: str) -> list[dict[str, Any]]:
    """Run a shell script for one task; return the events."""
    ran = terminal.process("run", "--agent", "ada", "--once", *options, "--", "sh", "-c", script)
    assert ran.code == 0, ran
    return [json.loads(line) for line in ran.text.splitlines()]


@contextlib.contextmanager
def running(terminal: Terminal, script: str, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start `atb run` with a shell script; at the end, nothing that it started may be left."""
    with terminal.started("run", "--agent", "ada", *options, "--", "sh", "-c", script) as process:
        yield process


def show(terminal: Terminal, task: str) -> dict[str, Any]:
    found: dict[str, Any] = terminal.data("show", task, "--output")
    return found


def written(terminal: Terminal, name: str = "pid") -> int:
    """Wait until the command has written its process number into a file; return it."""
    path = terminal.directory / name
    return int(eventually(lambda: path.exists() and path.read_text().strip(), f"the file {name}"))


def is_gone(pid: int) -> bool:
    """Say whether a process has ended; a zombie has."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


# What a command is given


def test_command_gets_the_task_and_what_it_needs_to_act_on_it(terminal: Terminal) -> None:
    task = terminal.add("Say $HOME {brief}", "--body", "the body")
    run(
        terminal,
        'cat > in.json; env > env.txt; printf "%s\\n" "$1" "$2" > arguments; cat "$ATB_BRIEF_FILE" > brief; exit 0',
    )
    given = json.loads((terminal.directory / "in.json").read_text())
    assert given["task"]["id"] == task
    assert "the body" in given["brief"]
    assert (terminal.directory / "brief").read_text() == given["brief"]
    environ = dict(
        line.split("=", 1) for line in (terminal.directory / "env.txt").read_text().splitlines() if "=" in line
    )
    assert (environ["ATB_TASK_ID"], environ["ATB_AGENT"]) == (task, "ada")
    assert (environ["ATB_ATTEMPT"], environ["ATB_FENCE"]) == ("1", "1")
    assert len(environ["ATB_TOKEN"]) == 32
    assert environ["ATB_DATA_DIR"] == str(terminal.directory / "data")


def test_places_in_arguments_are_replaced_once_and_stay_one_argument(terminal: Terminal) -> None:
    task = terminal.add("two words {id} $(touch pwned)")
    script = "import json, sys; json.dump(sys.argv[1:], open('arguments', 'w'))"
    ran = terminal.process("run", "--once", "--", sys.executable, "-c", script, "{title}", "x{id}y", "{other}", "{}")
    assert ran.code == 0, ran
    assert json.loads((terminal.directory / "arguments").read_text()) == [
        "two words {id} $(touch pwned)", f"x{task}y", "{other}", "{}",
    ]  # fmt: skip
    assert not (terminal.directory / "pwned").exists()


# How it ends


@pytest.mark.parametrize(
    ("left", "result"),
    [('{"n": [1, 2]}', {"n": [1, 2]}), ("just words", {"text": "just words"}), ("", None), ('{"n": NaN}', ...)],
)
def test_exit_code_0_completes_with_the_result_and_the_artifacts(terminal: Terminal, left: str, result: object) -> None:
    task = terminal.add("a task")
    script = f"printf '%s' '{left}' > $ATB_RESULT_FILE; printf 'a.md\\nb c.md\\n' > $ATB_ARTIFACTS_FILE"
    assert [event["event"] for event in run(terminal, script)] == ["started", "completed"]
    found = show(terminal, task)["task"]
    assert found["status"] == "done"
    assert found["result"] == ({"text": left} if result is ... else result)
    assert found["artifacts"] == ["a.md", "b c.md"]


def test_exit_code_75_releases_the_task_for_later(terminal: Terminal) -> None:
    task = terminal.add("a task")
    run(terminal, "echo not yet >&2; exit 75")
    found = show(terminal, task)
    assert (found["task"]["status"], found["task"]["delayed"], found["task"]["attempts"]) == ("queued", True, 0)
    assert found["attempts"][0]["note"] == "not yet"


@pytest.mark.parametrize(
    ("script", "error"),
    [
        ("echo first; echo second >&2; exit 3", "exit code 3: second"),
        ("exit 1", "exit code 1"),
        ("kill -9 $$", "killed by signal 9"),
        ("mkfifo pipe; ln -s /dev/zero $ATB_RESULT_FILE; exit 0", None),
        ("head -c 3000000 /dev/zero > $ATB_RESULT_FILE", "result: too large (limit 2,097,152 bytes)"),
    ],
)
def test_any_other_end_fails_the_task_with_what_was_said_last(
    terminal: Terminal, script: str, error: str | None
) -> None:
    task = terminal.add("a task")
    events = run(terminal, script)
    found = show(terminal, task)
    assert found["task"]["error"] == error
    assert events[-1]["event"] == ("failed" if error else "completed")


def test_command_that_cannot_be_started_fails_the_task(terminal: Terminal) -> None:
    task = terminal.add("a task")
    terminal.process("run", "--once", "--", str(terminal.directory / "nowhere"))
    assert "No such file" in show(terminal, task)["task"]["error"]


@pytest.mark.parametrize(
    ("verb", "status"),
    [("complete", "done"), ('fail --error "no network" --no-retry', "failed"), ("release", "queued"),
     ("handoff --to bob", "queued")],
)  # fmt: skip
def test_attempt_that_the_command_has_ended_itself_stands(terminal: Terminal, verb: str, status: str) -> None:
    task = terminal.add("a task")
    word, _, options = verb.partition(" ")
    events = run(terminal, f"{ATB} {word} $ATB_TASK_ID {options} > answer; exit 7")
    assert events[-1]["reason"].endswith("by the command itself")
    found = show(terminal, task)
    assert found["task"]["status"] == status
    assert len(found["attempts"]) == 1


def test_messages_of_the_command_reach_the_board(terminal: Terminal) -> None:
    task = terminal.add("a task")
    run(terminal, "echo ::progress 40 half way; echo '::note look here' >&2; echo ::progress 140; echo :: no message")
    notes = [event["data"].get("note", "") for event in terminal.data("events", "--task", task)["events"]]
    assert any("half way" in note and "look here" in note for note in notes)


def test_end_of_the_output_is_kept_without_the_token(terminal: Terminal) -> None:
    task = terminal.add("a task")
    run(terminal, "head -c 100000 /dev/zero | tr '\\0' x; echo; printf 'a\\033[31mb %s\\n' $ATB_TOKEN")
    kept = show(terminal, task)["attempts"][0]["output"]
    assert kept.endswith("b [lease token]\n")
    assert "\x1b" not in kept
    assert 60_000 < len(kept) <= 65_536
    assert "output" not in terminal.data("show", task)["attempts"][0]


# Nothing outlives its lease


TREE = "echo $$ > pid; (setsid sh -c 'echo $$ > far; sleep 1000' &) ; sleep 1000"
"""A command that waits, with a descendant in a session of its own that has lost its parent."""


def test_all_that_a_command_left_in_the_background_ends_with_it(terminal: Terminal) -> None:
    terminal.add("a task")
    run(terminal, "(setsid sh -c 'trap \"\" HUP; echo $$ > far; sleep 1000' &) ; while [ ! -s far ]; do :; done")
    eventually(lambda: is_gone(written(terminal, "far")), "the end of the descendant")


@pytest.mark.parametrize("verb", ["cancel", "reassign"])
def test_lost_lease_ends_the_command_and_its_descendants(terminal: Terminal, verb: str) -> None:
    task = terminal.add("a task")
    with running(terminal, TREE, "--once") as process:
        pids = [written(terminal), written(terminal, "far")]
        terminal.task(verb, task, *(["--to", "bob"] if verb == "reassign" else []), "--note", "not needed")
        out, _ = process.communicate(timeout=LIMIT)
    assert all(map(is_gone, pids))
    last = json.loads(out.decode().splitlines()[-1])
    assert last["event"] == "lost"
    assert last["reason"].endswith("carla: not needed")


def test_lease_is_renewed_while_the_command_keeps_a_processor_busy(terminal: Terminal) -> None:
    task = terminal.add("a task")
    with running(terminal, "echo $$ > pid; while [ ! -e go ]; do :; done", "--once", "--lease", "1s") as process:
        written(terminal)
        first = terminal.data("show", task)["task"]["lease_expires_at"]
        eventually(lambda: terminal.data("show", task)["task"]["lease_expires_at"] > first, "a renewal")
        second = terminal.data("show", task)["task"]["lease_expires_at"]
        eventually(lambda: terminal.data("show", task)["task"]["lease_expires_at"] > second, "another renewal")
        (terminal.directory / "go").touch()
        assert process.wait(LIMIT) == 0
    assert show(terminal, task)["task"]["attempts"] == 1


def test_command_ends_when_its_runner_is_killed(terminal: Terminal) -> None:
    terminal.add("a task")
    with running(terminal, TREE) as process:
        pids = [written(terminal), written(terminal, "far")]
        process.kill()
        process.wait()
        eventually(lambda: all(map(is_gone, pids)), "the end of the command")


def test_command_of_a_frozen_runner_ends_before_its_successor_begins(terminal: Terminal) -> None:
    task = terminal.add("a task")
    with running(terminal, f"trap '' TERM; {TREE}", "--once", "--lease", "2s") as process:
        pids = [written(terminal), written(terminal, "far")]
        process.send_signal(signal.SIGSTOP)
        claimed = eventually(lambda: terminal.atb("claim", task, "--agent", "bob").code == 0, "the end of the lease")
        assert claimed
        assert all(map(is_gone, pids))
        process.send_signal(signal.SIGCONT)
        out, _ = process.communicate(timeout=LIMIT)
    assert json.loads(out.decode().splitlines()[-1])["event"] == "lost"
    assert show(terminal, task)["task"]["claimed_by"] == "bob"


# Signals


def test_terminated_runner_completes_what_ends_in_time_and_releases_the_rest(terminal: Terminal) -> None:
    tasks = [terminal.add("quick"), terminal.add("slow")]
    script = """
        trap 'test $ATB_TASK_ID = %s && exit 0; exit 143' TERM
        echo $$ > pid-$ATB_TASK_ID; while :; do sleep 0.05; done
    """
    with running(terminal, script % tasks[0], "--jobs", "2") as process:
        pids = [written(terminal, f"pid-{task}") for task in tasks]
        process.terminate()
        process.communicate(timeout=LIMIT)
    assert process.returncode == -signal.SIGTERM
    assert all(map(is_gone, pids))
    assert [show(terminal, task)["task"]["status"] for task in tasks] == ["done", "queued"]
    assert show(terminal, tasks[1])["task"]["attempts"] == 0


def test_second_interrupt_kills(terminal: Terminal) -> None:
    task = terminal.add("stubborn")
    with running(
        terminal, "trap 'echo $$ > asked' TERM; trap '' INT; echo $$ > pid; while :; do sleep 0.05; done"
    ) as process:
        pid = written(terminal)
        process.send_signal(signal.SIGINT)
        written(terminal, "asked")  # two signals at once would be one
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=LIMIT)
    assert process.returncode == 130
    assert err == b""
    assert is_gone(pid)
    assert show(terminal, task)["task"]["status"] == "queued"
    assert b'"released"' in out


# One after another


def test_drain_works_until_nothing_is_left(terminal: Terminal) -> None:
    first = terminal.add("first")
    terminal.add("second", "--depends-on", first)
    terminal.add("third")
    ran = terminal.process("run", "--drain", "--jobs", "3", "--", "true")
    assert (ran.code, ran.err) == (0, "")
    assert {task["status"] for task in terminal.data("list", "--all")["tasks"]} == {"done"}


def test_runner_without_work_says_why(terminal: Terminal) -> None:
    terminal.add("a task", "--assignee", "bob")
    ran = terminal.process("run", "--once", "--agent", "ada", "--", "true")
    assert ran.code == 9
    assert "assigned to other agents" in ran.warnings[0]


@pytest.mark.parametrize(
    "words",
    [["run"], ["run", "--jobs", "0", "--", "true"], ["run", "--once", "--drain", "--", "true"], ["run", "--", ""],
     ["run", "--lease", "0s", "--", "true"], ["run", "--queue", " ", "--", "true"]],
)  # fmt: skip
def test_bad_call_is_refused_and_claims_nothing(terminal: Terminal, words: list[str]) -> None:
    terminal.add("a task")
    terminal.refused("invalid_input", *words)
    assert terminal.data("list")["tasks"][0]["status"] == "queued"


def test_failures_in_a_row_make_it_wait(terminal: Terminal) -> None:
    for number in range(6):
        terminal.add(f"task {number}")
    with running(terminal, "exit 1") as process:
        assert process.stdout is not None
        events: list[dict[str, Any]] = []
        while not events or events[-1]["event"] != "waits":
            events.append(json.loads(process.stdout.readline()))
        process.terminate()
        process.communicate(timeout=LIMIT)
    assert [event["event"] for event in events].count("failed") == 5
    assert events[-1]["seconds"] == 10


# Worktrees


@pytest.fixture
def repository(terminal: Terminal) -> Terminal:
    def git(*words: str) -> None:
        who = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
        subprocess.run(["git", *who, *words], cwd=terminal.directory, check=True, capture_output=True)

    git("init", "--quiet", "--initial-branch", "main")
    (terminal.directory / "file").write_text("before\n")
    git("add", "file")
    git("commit", "--quiet", "--message", "first")
    return terminal


def test_worktree_with_changes_is_left_and_named(repository: Terminal) -> None:
    task = repository.add("change it")
    run(repository, "echo after > file; pwd > $ATB_RESULT_FILE", "--worktree")
    found = show(repository, task)["task"]
    name = f"{task[-6:].lower()}-1"
    path = repository.directory / ".atb" / "worktrees" / name
    assert found["artifacts"] == [str(path), f"branch atb/{name}"]
    assert found["result"] == {"text": str(path)}
    assert (path / "file").read_text() == "after\n"
    assert (repository.directory / "file").read_text() == "before\n"


def test_worktree_without_changes_is_removed(repository: Terminal) -> None:
    task = repository.add("look only")
    run(repository, "cat file", "--worktree")
    assert show(repository, task)["task"]["artifacts"] == []
    assert list((repository.directory / ".atb" / "worktrees").iterdir()) == []
    branches = subprocess.run(
        ["git", "branch", "--list", "atb/*"], cwd=repository.directory, capture_output=True, check=True
    )
    assert branches.stdout == b""


def test_worktree_that_git_refuses_fails_the_task_with_its_text(repository: Terminal) -> None:
    task = repository.add("change it")
    name = f"atb/{task[-6:].lower()}-1"
    subprocess.run(["git", "branch", name], cwd=repository.directory, check=True)
    run(repository, "true", "--worktree")
    assert "already exists" in show(repository, task)["task"]["error"]


def test_worktree_outside_a_repository_is_refused(terminal: Terminal) -> None:
    terminal.add("a task")
    terminal.refused("invalid_input", "run", "--worktree", "--", "true")


# Output


def test_token_at_the_cut_is_not_shown_in_part() -> None:
    token = "0123456789abcdef" * 2
    for length in range(output.KEPT - 40, output.KEPT + 1):
        tail = output.Tail(token)
        tail.add(b"x" * 100 + token.encode())
        tail.add(b"y" * length)
        assert not any(char in tail.text() for char in "0123456789")


@pytest.mark.parametrize(
    ("line", "progress", "note"),
    [
        ("::progress 40", 40, None),
        ("::progress 40% half way", 40, "half way"),
        ("::note a  word ", None, "a  word"),
    ],
)
def test_line_is_a_message(line: str, progress: int | None, note: str | None) -> None:
    found = output.message(line.rstrip())
    assert found is not None
    assert (found.progress, found.note) == (progress, note)


@pytest.mark.parametrize(
    "line", ["::progress", "::progress x", "::progress 101", "::progress -1", "::note", "::", "::other x"]
)
def test_other_line_is_none(line: str) -> None:
    assert output.message(line) is None


def test_command_that_takes_too_long_is_ended_and_fails(terminal: Terminal) -> None:
    task = terminal.add("slow", "--max-runtime", "1s")
    with running(terminal, TREE, "--once") as process:
        pids = [written(terminal), written(terminal, "far")]
        process.communicate(timeout=LIMIT)
    assert all(map(is_gone, pids))
    assert show(terminal, task)["task"]["error"] == "max_runtime is over (1 seconds)"
    assert terminal.task("update", task, "--max-runtime", "")["max_runtime"] is None
    assert terminal.task("update", task, "--max-runtime", "90m")["max_runtime"] == 5400
    terminal.refused("invalid_input", "update", task, "--max-runtime", "0s")
