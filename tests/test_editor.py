"""`atb edit`: a task as one text in an editor. The editors here are programs that change the file as a person would."""

from __future__ import annotations

import json
import stat
import sys
from typing import TYPE_CHECKING, Any

import pytest

from agent_task_board import Board
from agent_task_board.cli import editor
from tests.command_line import Terminal
from tests.support import MARIA

if TYPE_CHECKING:
    from pathlib import Path

BODY = "# Heading\n\nowner: not a field\n\ntext"


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    (tmp_path / "tmp").mkdir()
    return Terminal(tmp_path)


class Desk:
    """A terminal with an editor: a line of shell, run with the file's path in ``$1``."""

    def __init__(self, terminal: Terminal) -> None:
        self.terminal = terminal
        self.id = terminal.add("Write the parser", "--body", BODY, "--tag", "a, b", "--tag", "c", "--due", "2026-12-24")

    def edit(self, script: str, **environ: str) -> Any:
        """Edit the task with a script as the editor."""
        program = self.terminal.write("editor", f"#!/bin/sh\nset -eu\n{script}\n")
        (self.terminal.directory / program).chmod(0o700)
        environ = {"EDITOR": f"'{self.terminal.directory / program}'", **environ}
        return self.terminal.process("edit", self.id, TMPDIR=str(self.terminal.directory / "tmp"), **environ)

    def left(self) -> list[Path]:
        """Return the files that are left in the directory for temporary ones."""
        return [path for path in (self.terminal.directory / "tmp").rglob("*") if path.is_file()]

    def kept(self, answer: Any) -> str:
        """Return the text that a refusal kept, from the path that it says."""
        (path,) = self.left()
        assert answer.error["details"]["file"] == str(path)
        assert str(path) in answer.error["hint"]
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        return path.read_text()

    def version(self) -> int:
        return int(self.terminal.data("show", self.id)["task"]["version"])


@pytest.fixture
def desk(terminal: Terminal) -> Desk:
    return Desk(terminal)


def test_text_has_every_field_and_the_body_and_is_for_its_owner_only(desk: Desk) -> None:
    answer = desk.edit('cp "$1" seen; stat -c %a "$1" "$(dirname "$1")" > mode; echo talk')
    assert answer.warnings == ["nothing was changed"]
    assert "talk" in answer.err
    seen = (desk.terminal.directory / "seen").read_text()
    header, _, body = seen.partition("\n\n")
    assert body == BODY + "\n"
    lines = [line for line in header.splitlines() if not line.startswith("#")]
    assert lines == [
        "title: Write the parser", "queue: default", "priority: 0", "assignee:", "due: 2026-12-24T23:59:59.999+08:00",
        "not-before:", "tag: a, b", "tag: c", "depends-on:", "params:", "dedupe-key:", "max-attempts: 3",
        "max-runtime:", "needs-approval: no",
    ]  # fmt: skip
    assert (desk.terminal.directory / "mode").read_text().split() == ["600", "700"]
    assert desk.left() == []
    assert desk.version() == 1


def test_what_changed_is_written_in_one_update(desk: Desk) -> None:
    other = desk.terminal.add("First")
    script = f"""
        sed -i -e 's/^title:.*/title:  New title /' -e 's/^priority:.*/Priority: 7/' -e 's/^due:.*/due: +2d/' \\
               -e 's/^tag: c/tag: d/' -e 's/^depends-on:.*/depends-on: {other}/' -e 's/^queue:.*/queue:/' \\
               -e 's/^params:.*/params: {{"a": [1]}}/' -e 's/^needs-approval:.*/needs-approval: yes/' \\
               -e 's/^max-attempts:.*/max-attempts: 5/' -e 's/^assignee:.*/assignee: bob/' "$1"
        echo 'more' >> "$1"
        touch "$1~"
    """
    task = desk.edit(script).data["task"]
    assert (task["title"], task["priority"], task["tags"], task["blocked_by"]) == (
        *("New title", 7, ["a, b", "d"], [other]),
    )
    assert (task["params"], task["needs_approval"], task["max_attempts"], task["assignee"]) == (
        {"a": [1]},
        True,
        5,
        "bob",
    )
    assert task["body"] == BODY + "\nmore"
    assert task["version"] == 2
    assert desk.left() == []
    cleared = desk.edit(
        "sed -i -e 's/^due:.*/due:/' -e '/^tag:/d' -e '/^priority:/d' -e 's/^params:.*/params:/' \"$1\""
    )
    task = cleared.data["task"]
    assert (task["due_at"], task["tags"], task["priority"], task["params"]) == (None, [], 7, {})


def test_task_that_changed_meanwhile_is_not_overwritten_and_the_text_is_kept(desk: Desk) -> None:
    board = Board(desk.terminal.directory / "data", actor=MARIA)
    script = f"""
        sed -i 's/^title:.*/title: Mine/' "$1"
        chmod 644 "$1"
        '{sys.executable}' -m agent_task_board update {desk.id} --priority 3 > /dev/null
    """
    answer = desk.edit(script)
    assert (answer.error["code"], answer.error["details"]["reason"]) == ("conflict", "version")
    assert "title: Mine" in desk.kept(answer)
    task = board.show(desk.id)["task"]
    board.close()
    assert (task["title"], task["priority"], task["version"]) == ("Write the parser", 3, 2)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("s/^priority:/prioritaet:/", "line 6"),
        ("s/^priority:.*/no field/", "line 6"),
        ("s/^queue:/title:/", "line 5"),
        ("s/^priority:.*/priority: high/", "priority"),
        ("s/^params:.*/params: {/", "params"),
        ("s/^needs-approval:.*/needs-approval: perhaps/", "needs-approval"),
        ("s/^title:.*/title:/", "title"),
        ("s/^due:.*/due: someday/", "due_at"),
    ],
)
def test_malformed_text_is_refused_with_its_place_and_kept(desk: Desk, change: str, told: str) -> None:
    answer = desk.edit(f"sed -i '{change}' \"$1\"")
    assert answer.error["code"] == "invalid_input"
    assert told in answer.error["message"]
    assert BODY in desk.kept(answer)
    assert desk.version() == 1


def test_editor_that_fails_changes_nothing_and_loses_nothing(desk: Desk) -> None:
    answer = desk.edit("exit 3")
    assert "exited with 3" in answer.error["message"]
    assert desk.left() == []
    answer = desk.edit("sed -i 's/^title:.*/title: Mine/' \"$1\"; exit 1")
    assert "title: Mine" in desk.kept(answer)
    assert desk.version() == 1


def test_editor_that_was_killed_or_took_the_file_away_is_told(desk: Desk) -> None:
    answer = desk.edit("kill -9 $$")
    assert "signal 9" in answer.error["message"]
    answer = desk.edit('rm "$1"')
    assert answer.error["code"] == "invalid_input"
    assert desk.left() == []
    assert desk.version() == 1


@pytest.mark.parametrize("environ", [{"EDITOR": ""}, {"EDITOR": "no-such-editor"}, {"EDITOR": "'"}])
def test_editor_that_is_not_there_is_told(desk: Desk, environ: dict[str, str]) -> None:
    answer = desk.edit("true", **environ)
    assert answer.error["code"] == "invalid_input"
    assert "EDITOR" in answer.error["message"] + answer.error["hint"]
    assert desk.left() == []


def test_visual_goes_before_editor_and_either_may_have_arguments(desk: Desk) -> None:
    answer = desk.edit("exit 9", VISUAL="sed -i 's/^title:.*/title: By visual/'")
    assert answer.data["task"]["title"] == "By visual"


def test_agent_cannot_lift_the_need_for_approval_in_an_editor(desk: Desk) -> None:
    desk.terminal.data("update", desk.id, "--needs-approval")
    answer = desk.edit("sed -i 's/^needs-approval:.*/needs-approval: no/' \"$1\"", ATB_AGENT="ada")
    assert answer.error["code"] == "not_permitted"
    assert desk.kept(answer)


@pytest.mark.parametrize("body", ["", "\n", "a", "a\n\n", "\n\na", "# x", "title: y", "a\r\nb\r\n", "\u2028x"])
def test_every_body_comes_back_as_it_was(body: str) -> None:
    task: dict[str, Any] = {"assignee": "", "dedupe_key": "", "title": "t", "queue": "q", "priority": 0}
    task |= {
        "due_at": None,
        "not_before": None,
        "tags": [],
        "blocked_by": [],
        "params": {},
        "max_attempts": 3,
        "max_runtime": None,
    }
    text = editor.write({**task, "needs_approval": False, "body": body}, "UTC")
    assert editor.changes(text, text) == {}
    assert editor.changes(text, text.replace("title: t", "title: u", 1)) == {"title": "u"}
    assert editor.changes(text, text + "more")["body"] == f"{body}\nmore"
    assert json.dumps(editor.changes(text, text.replace("tag:", "tag: x"))) == '{"tags": ["x"]}'
