"""A remembered lease: no token on the command line, and never another worker's."""

from __future__ import annotations

import json
import os
import shlex
import stat
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from agent_task_board import Board
from agent_task_board.cli import remembered
from tests.command_line import LIMIT, PASSED_ON
from tests.support import refused
from tests.waiting import eventually

if TYPE_CHECKING:
    from pathlib import Path

ATB = f"{shlex.quote(sys.executable)} -m agent_task_board"


class Machine:
    """A board and a home directory; each call is a process of its own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.data = home / "data"
        self.state = home / "state" / "agent-task-board" / "leases"
        self.environ = {
            **{name: value for name, value in os.environ.items() if name in PASSED_ON},
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(home),
            "XDG_STATE_HOME": str(home / "state"),
            "ATB_DATA_DIR": str(self.data),
            "ATB_AGENT": "ada",
        }

    def run(self, script: str, *, own_session: bool = False, **environ: str) -> subprocess.CompletedProcess[str]:
        """Run a script in bash."""
        return subprocess.run(
            ["bash", "-c", script.replace("atb ", f"{ATB} ")],
            env={**self.environ, **environ},
            capture_output=True,
            text=True,
            timeout=LIMIT,
            stdin=subprocess.DEVNULL,
            start_new_session=own_session,
        )

    def atb(self, words: str, **more: Any) -> dict[str, Any]:
        """Run one command and return its envelope."""
        answer: dict[str, Any] = json.loads(self.run(f"atb {words}", **more).stdout)
        return answer

    def task(self) -> str:
        with Board(self.data) as board:
            return board.add("a task").task.id

    def status(self, task: str) -> str:
        with Board(self.data, create=False) as board:
            return str(board.show(task)["task"]["status"])

    def kept(self) -> list[dict[str, Any]]:
        if not self.state.is_dir():
            return []
        return [json.loads(file.read_text()) for file in sorted(self.state.iterdir())]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def missing(answer: dict[str, Any]) -> str:
    assert (answer["ok"], answer["error"]["code"]) == (False, "invalid_input"), answer
    assert answer["error"]["details"]["field"] == "token"
    message: str = answer["error"]["message"]
    return message


def test_lease_is_remembered_for_every_verb_and_forgotten_at_its_end(machine: Machine) -> None:
    for end in ("complete", 'fail --error "no" --no-retry', "release", "handoff --to bob"):
        task = machine.task()
        claimed = machine.atb(f"claim {task} --save")["data"]
        (kept,) = machine.kept()
        assert kept["token"] == claimed["lease"]["token"]
        assert (kept["task"], kept["fence"]) == (task, claimed["lease"]["fence"])
        beat = machine.atb(f"heartbeat {task[-6:]} --lease 2h")["data"]
        assert machine.kept()[0]["expires_at"] == beat["lease"]["expires_at"]
        verb, _, options = end.partition(" ")
        assert machine.atb(f"{verb} {task[-6:]} {options}")["ok"]
        assert machine.kept() == []
        assert "remembers no lease" in missing(machine.atb(f"complete {task}"))


def test_file_is_private_and_its_name_tells_nothing(machine: Machine) -> None:
    machine.atb(f"claim {machine.task()} --save")
    (file,) = machine.state.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in (machine.state, machine.state.parent)} == {0o700}
    assert "ada" not in file.name
    with Board(machine.data) as board:
        assert json.loads(file.read_text())["token"] not in json.dumps(board.events()["events"])


def test_without_save_nothing_is_kept_and_nothing_is_created(machine: Machine) -> None:
    task = machine.task()
    machine.atb(f"claim {task}")
    missing(machine.atb(f"complete {task}"))
    assert not machine.state.parent.parent.exists()


def test_token_that_is_given_goes_before_the_remembered_one(machine: Machine) -> None:
    task = machine.task()
    token = machine.atb(f"claim {task} --save")["data"]["lease"]["token"]
    assert machine.atb(f"complete {task}", ATB_TOKEN="0" * 32)["error"]["code"] == "lease_lost"
    assert machine.kept()[0]["token"] == token
    assert machine.atb(f"complete {task}", ATB_TOKEN=token)["ok"]


@pytest.mark.parametrize(
    "other",
    [
        {"ATB_SESSION": "two"},
        {"own_session": True},
        {"ATB_AGENT": "bob"},
        {"ATB_AGENT": ""},
        {"CODEX_THREAD_ID": "one"},
    ],
)
def test_other_session_or_agent_never_presents_the_token(machine: Machine, other: dict[str, Any]) -> None:
    task = machine.task()
    machine.atb(f"claim {task} --save")
    missing(machine.atb(f"complete {task}", **other))
    assert machine.status(task) == "claimed"
    assert machine.atb(f"complete {task}", ATB_AGENT="ADA")["ok"]


def test_named_session_spans_shells_and_sessions(machine: Machine) -> None:
    task = machine.task()
    machine.atb(f"claim {task} --save", own_session=True, ATB_SESSION="one")
    assert machine.atb(f"complete {task}", own_session=True, ATB_SESSION="one")["ok"]


def test_two_shells_of_one_session_with_one_name_do_not_use_each_others_token(machine: Machine) -> None:
    task = machine.task()
    shell = subprocess.Popen(
        ["bash", "-c", f"{ATB} claim {task} --save >claimed; read line; {ATB} complete {task}; true"],
        env=machine.environ,
        cwd=machine.home,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    eventually(lambda: machine.kept() != [])
    eventually(lambda: (machine.home / "claimed").stat().st_size > 0)
    assert "another shell" in missing(machine.atb(f"complete {task}"))
    assert machine.status(task) == "claimed"
    answer, _ = shell.communicate("go on\n", timeout=LIMIT)
    assert json.loads(answer)["data"]["task"]["status"] == "done"


def test_shell_that_ended_leaves_its_lease_to_its_session(machine: Machine) -> None:
    task = machine.task()
    machine.run(f"atb claim {task} --save; true")
    assert machine.atb(f"complete {task}")["ok"]


def test_token_of_an_older_fence_is_refused_and_forgotten(machine: Machine) -> None:
    task = machine.task()
    machine.atb(f"claim {task} --save", ATB_SESSION="one")
    with Board(machine.data) as board:
        board.reassign(task, None)
        assert board.claim("ada", task=task) is not None  # its successor, elsewhere
    assert machine.atb(f"complete {task}", ATB_SESSION="one")["error"]["code"] == "lease_lost"
    assert machine.status(task) == "claimed"
    assert machine.kept() == []


def test_late_worker_does_not_present_the_token_of_its_successor_in_the_same_session(machine: Machine) -> None:
    task = machine.task()
    machine.atb(f"claim {task} --save", ATB_SESSION="one")
    with Board(machine.data) as board:
        board.reassign(task, None)
    second = machine.atb(f"claim {task} --save", ATB_SESSION="one")
    assert "not remembered" in second["warnings"][0]
    assert [kept["token"] for kept in machine.kept()] == [None]
    assert "never ended" in missing(machine.atb(f"complete {task}", ATB_SESSION="one"))  # either of the two
    assert machine.status(task) == "claimed"
    assert machine.atb(f"complete {task}", ATB_SESSION="one", ATB_TOKEN=second["data"]["lease"]["token"])["ok"]


def test_worker_that_learned_of_its_loss_is_remembered_again(machine: Machine) -> None:
    task = machine.task()
    machine.atb(f"claim {task} --save")
    with Board(machine.data) as board:
        board.reassign(task, None)
    assert machine.atb(f"heartbeat {task}")["error"]["code"] == "lease_lost"
    assert machine.atb(f"claim {task} --save")["warnings"] == []
    assert machine.atb(f"complete {task}")["ok"]


def test_resume_remembers_the_new_token(machine: Machine) -> None:
    task = machine.task()
    machine.atb(f"claim {task}")
    resumed = machine.atb(f"resume {task} --save")["data"]["lease"]
    again = machine.atb(f"resume {task} --save")["data"]["lease"]
    assert (machine.kept()[0]["token"], machine.kept()[0]["fence"]) == (again["token"], resumed["fence"] + 1)
    assert machine.atb(f"complete {task}")["ok"]


def test_token_is_removed_at_the_end_of_the_lease(machine: Machine) -> None:
    task = machine.task()
    machine.atb(f"claim {task} --save --lease 1s")
    with Board(machine.data, create=False) as board:
        eventually(lambda: board.show(task)["task"]["lease_expired"])
    machine.atb(f"claim {machine.task()} --save")
    assert {kept["task"] == task: kept["token"] is None for kept in machine.kept()} == {True: True, False: False}
    assert machine.atb(f"heartbeat {task}")["error"]["code"] == "lease_lost"  # of a removed token, as of a dead one
    assert [kept["task"] for kept in machine.kept() if kept["task"] == task] == []


def test_state_directory_of_others_is_not_used_and_the_claim_still_holds(machine: Machine) -> None:
    machine.state.parent.parent.mkdir()
    machine.state.parent.write_text("not a directory")
    task = machine.task()
    answer = machine.atb(f"claim {task} --save")
    assert answer["ok"]
    assert "not remembered" in answer["warnings"][0]
    missing(machine.atb(f"complete {task}"))


@pytest.mark.parametrize(
    "content", ["", "{}", "[1]", '{"task": 5}', '{"task":"x","token":1,"fence":"y"}', "\x00" * 20_000]
)
def test_damaged_file_is_as_none(machine: Machine, content: str) -> None:
    task = machine.task()
    machine.atb(f"claim {task} --save")
    (file,) = machine.state.iterdir()
    file.write_text(content)
    missing(machine.atb(f"complete {task}"))


@pytest.fixture
def no_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "getsid")


@pytest.mark.usefixtures("no_sessions")
def test_where_sessions_cannot_be_told_apart_save_is_refused() -> None:
    with refused("invalid_input") as caught:
        remembered.require_session({})
    assert "ATB_SESSION" in caught.value.hint
    assert remembered.require_session({"ATB_SESSION": "one"}) == "ATB_SESSION=one"
