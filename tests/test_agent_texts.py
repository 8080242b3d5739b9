"""What an agent is told works as it stands: every command line of every text is run, every call is made."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from agent_task_board import Board
from agent_task_board.mcp_server import definitions
from agent_task_board.mcp_server.definitions import TOOLS
from agent_task_board.mcp_server.tools import Tools
from agent_task_board.setup import texts
from agent_task_board.text import briefing
from tests.command_line import LIMIT, PASSED_ON, read_envelope
from tests.mcp_client import Said
from tests.support import MARIA

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

BASH = shutil.which("bash") or "/bin/bash"
VERBS = "prime claim heartbeat complete fail release handoff resume add update show list".split()
UNDER_LEASE = ("heartbeat", "complete", "fail", "release", "handoff", "resume", "update")


class Shell:
    """Bash in a project: its commands, its environment, its directory."""

    def __init__(self, home: Path, *, on_path: bool, **environ: str) -> None:
        self.project = home / "pro ject"
        (self.project / ".git").mkdir(parents=True)
        (self.project / "src").mkdir()
        self.directory = self.project
        self.program = home / "bin" / "atb"
        self.program.parent.mkdir()
        self.program.write_text(f"#!{sys.executable}\nfrom agent_task_board.cli import run\nrun()\n")
        self.program.chmod(0o755)
        path = os.environ.get("PATH", os.defpath)
        others = os.pathsep.join(one for one in path.split(os.pathsep) if not os.path.exists(f"{one}/atb"))
        self.environ = {
            "PATH": f"{self.program.parent}{os.pathsep}{others}" if on_path else others,
            "HOME": str(home),
            **{name: value for name, value in os.environ.items() if name in PASSED_ON},
            **environ,
        }

    def run(self, script: str, **environ: str) -> subprocess.CompletedProcess[str]:
        """Run a script in a new shell."""
        return subprocess.run(
            [BASH, "-c", script],
            cwd=self.directory,
            env={**self.environ, **environ},
            capture_output=True,
            text=True,
            timeout=LIMIT,
            stdin=subprocess.DEVNULL,
        )

    def board(self) -> Board:
        """Open the project's board."""
        return Board(self.project / "data", actor=MARIA)


def verb_of(line: str) -> str:
    """Return the verb of a command line: the first word that is one."""
    return next(word for word in shlex.split(line) if word in VERBS)


def filled(line: str, values: Mapping[str, str]) -> str:
    """Return a command line with values for its placeholders."""
    return re.sub(r"\b(ID|AGENT|NEW|OTHER)\b", lambda found: values[found[0]], line)


def run_every(shell: Shell, lines: list[str], before: str, agent: str) -> set[str]:
    """Run each line in a shell of its own, on tasks that suit it; return the verbs."""
    for line in lines:
        verb = verb_of(line)
        with shell.board() as board:
            task, other = (board.add(title).task.id for title in ("mine", "other"))
        if verb in UNDER_LEASE:  # each call in a shell of its own, as a coding agent makes them
            claimed = shell.run(f"{before}{line[: line.index(verb)]}claim {task} --save")
            assert claimed.returncode == 0, claimed
        values = {"ID": task, "AGENT": "bob", "NEW": other, "OTHER": other}
        ran = shell.run(before + filled(line, values))
        assert (ran.returncode, ran.stderr) == (0, ""), (line, ran)
        if verb == "prime" or "--format compact" in line:
            assert ran.stdout
            continue
        answer = read_envelope(ran.stdout)
        assert answer["ok"], (line, answer)
        if verb == "claim":
            assert answer["data"]["task"]["claimed_by"] == agent
        if verb == "handoff":
            assert answer["data"]["task"]["assignee"] == "bob"
        if verb in ("add", "update"):
            with shell.board() as board:
                last = board.events(task=answer["data"]["task"]["id"])["events"][-1]
            assert (last["actor"], last["actor_kind"]) == (agent, "agent"), line
    return {verb_of(line) for line in lines}


# The text of `atb prime`


def told_by_prime(shell: Shell, call: str, **environ: str) -> str:
    ran = shell.run(call, **environ)
    assert (ran.returncode, ran.stderr) == (0, ""), ran
    assert len(ran.stdout) <= briefing.LIMIT
    return ran.stdout


def lines_of(told: str) -> tuple[str, list[str]]:
    """Return what a new shell needs first, and the command lines of a briefing."""
    quoted = re.findall(r"`([^`]+)`", told)
    before = "".join(f"{line}\n" for line in quoted if line.startswith("board() {"))
    start = (
        "board "
        if before
        else next(line for line in quoted if line.endswith(" claim --save")).removesuffix("claim --save")
    )
    lines = [line for line in quoted if line.startswith(start) and verb_of_or_none(line)]
    other = [line for line in quoted if " " in line and line not in (*lines, before.rstrip("\n"))]
    assert {line.split()[0] for line in other} <= {"data:", "--depends-on"}, other
    return before, lines


def verb_of_or_none(line: str) -> str | None:
    return next((word for word in shlex.split(line) if word in VERBS), None)


@pytest.mark.parametrize(
    ("on_path", "where", "environ", "called"),
    [
        (True, "project", {"ATB_AGENT": "ada"}, "ATB_SESSION=[0-9a-f]{4} atb"),
        (True, "project", {"ATB_AGENT": "ada", "ATB_SESSION": "x"}, "atb"),
        (True, "project", {"ATB_AGENT": "ada", "CODEX_THREAD_ID": "x"}, "atb"),
        (True, "project/src", {}, "ATB_AGENT=ada ATB_SESSION=[0-9a-f]{4} atb"),
        (False, "project", {"ATB_AGENT": "ada"}, None),
        (True, "elsewhere", {"ATB_AGENT": "ada"}, None),
        (False, "elsewhere", {}, None),
    ],
)
def test_commands_of_prime_run_as_they_stand(
    tmp_path: Path, on_path: bool, where: str, environ: dict[str, str], called: str | None
) -> None:
    shell = Shell(tmp_path, on_path=on_path, **environ)
    with shell.board() as board:
        board.add("first")
    options = ["--agent", "ada"]
    if where == "project/src":
        shell.directory = shell.project / "src"
    if where == "elsewhere":
        shell.directory = tmp_path / "else where"
        shell.directory.mkdir()
        options += ["--data-dir", str(shell.project / "data")]
    told = told_by_prime(shell, shlex.join([str(shell.program), "prime", *options]))
    before, lines = lines_of(told)
    if called is not None:
        assert not before
        assert re.search(rf"`{called} claim --save`", told)
    assert ("--data-dir" in told) == (where == "elsewhere")
    assert (str(shell.program) in told) == (not on_path)
    assert run_every(shell, lines, before, "ada") == set(VERBS) - {"prime", "show", "list"}


def test_commands_of_prime_give_a_name_to_an_agent_without_one(tmp_path: Path) -> None:
    shell = Shell(tmp_path, on_path=True)
    with shell.board() as board:
        board.add("first")
    told = told_by_prime(shell, "atb prime")
    found = re.search(r"`ATB_AGENT=(agent-[0-9a-f]{4}) ATB_SESSION=[0-9a-f]{4} atb claim --save`", told)
    assert found is not None
    before, lines = lines_of(told)
    run_every(shell, lines, before, found[1])
    assert found[1] not in told_by_prime(shell, "atb prime")  # two agents get two names


def test_commands_of_a_session_run_in_the_shells_of_that_session(tmp_path: Path) -> None:
    shell = Shell(tmp_path, on_path=True)
    with shell.board() as board:
        board.add("first")
    file = tmp_path / "env"
    ask = json.dumps({"session_id": "1f0c22d9-2b0a-4a3e-9a53-6a1c2f9e5d77"})
    start = f"printf %s {shlex.quote(ask)} | atb prime --hook session-start"
    plain = json.loads(told_by_hook(shell, start))["hookSpecificOutput"]["additionalContext"]
    before, lines = lines_of(plain)
    assert re.search(r"`ATB_AGENT=claude-1f0c22d9 ATB_SESSION=1f0c22d9 atb claim --save`", plain)
    run_every(shell, lines[:1], before, "claude-1f0c22d9")
    kept = json.loads(told_by_hook(shell, start, CLAUDE_ENV_FILE=str(file)))["hookSpecificOutput"]["additionalContext"]
    before, lines = lines_of(kept)
    assert "`atb claim --save`" in kept
    run_every(shell, lines, f". {shlex.quote(str(file))}\n{before}", "claude-1f0c22d9")


def told_by_hook(shell: Shell, call: str, **environ: str) -> str:
    ran = shell.run(call, **environ)
    assert (ran.returncode, ran.stderr) == (0, ""), ran
    return ran.stdout


def test_very_long_command_is_left_to_the_json() -> None:
    lines = briefing._definition("x" * 600)
    assert len(lines) == 1
    assert len(lines[0]) < 120
    assert "--json" in lines[0]


# The guide: skill, rule, block


@pytest.mark.parametrize("user", [False, True])
@pytest.mark.parametrize("form", [texts.skill, texts.rule, texts.block])
def test_commands_of_the_guide_run_as_they_stand(tmp_path: Path, form: Any, user: bool) -> None:
    shell = Shell(tmp_path, on_path=not user)
    with shell.board() as board:
        board.add("first")
    command = "atb"
    if user:
        command = shlex.join([str(shell.program), "--data-dir", str(shell.project / "data")])
        shell.directory = tmp_path
    told = form(command, user=user)
    (block,) = re.findall(r"^```sh\n(.*?)^```$", told, re.MULTILINE | re.DOTALL)
    first, *lines = block.splitlines()
    assert first == "export ATB_AGENT=NAME ATB_SESSION=WORD"
    assert run_every(shell, lines, "export ATB_AGENT=ada ATB_SESSION=s\n", "ada") == set(VERBS)
    assert run_every(shell, [f"ATB_AGENT=ada {line}" for line in lines[:2]], "", "ada") == {"prime", "claim"}


EXPLAINED = ("+blocked", "needs=1", "attempt=1/3", "!", "larger", "never an instruction", "lease_lost")


def test_texts_explain_what_the_board_prints(board: Board) -> None:
    told: Mapping[str, str] = {
        "guide": texts.guide("atb", user=False),
        "instructions": definitions.instructions("ada"),
        "prime": briefing.text(board.briefing(agent="ada")),
    }
    for name, text in told.items():
        for word in EXPLAINED:
            assert word in text, (name, word)
        assert re.search(r"[Nn]othing ready", text), name


# The instructions of the MCP server


def test_calls_of_the_instructions_name_all_required_arguments_and_work(board: Board) -> None:
    told = definitions.instructions("ada")
    calls = re.findall(r"\b(\w+)\(([\w, ]*)\)", told)
    assert {name for name, _ in calls} == set(TOOLS) - {"list_tasks", "get_task", "wait", "why", "cancel_task"}
    tools = Tools(board, lambda: "ada")

    def call(name: str, **given: Any) -> Said:
        answer = tools.call(name, given)
        said = Said(answer.text, answer.is_refusal)
        assert not said.refused, said
        return said

    for name, words in calls:
        names = words.split(", ") if words else []
        assert set(TOOLS[name].required) <= set(names) <= set(TOOLS[name].parameters)
        task = call("create_task", title="mine")
        other = call("create_task", title="other")
        token = call("claim_task", task_id=task.id).token if "task_id" in names else ""
        values = {"task_id": task.id, "token": token, "to": "bob", "depends_on": [other.id], "wait": "1s"}
        call(name, **{one: values.get(one, "some words") for one in names})
