"""What a program gets from ``import agent_task_board``."""

from __future__ import annotations

import inspect
import subprocess
import sys
from importlib import resources
from typing import get_type_hints

import pytest

import agent_task_board

PUBLIC = ["Actor", "Board", "BoardError", "Grant", "Lease", "Receipt", "Settings", "Task", "__version__"]
VERBS = """
    add claim resume heartbeat release complete fail handoff approve reject reassign retry cancel update comment
    tick import_tasks export list_tasks show events agents stats nothing_ready briefing
    archive unarchive backup doctor
    add_schedule schedules schedule preview_schedule pause_schedule resume_schedule remove_schedule
""".split()


def run(program: str) -> str:
    """Run a program in a fresh interpreter; return what it prints."""
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_package_exports_what_it_names() -> None:
    assert sorted(agent_task_board.__all__) == PUBLIC
    for name in PUBLIC:
        assert getattr(agent_task_board, name) is not None
    assert run("from agent_task_board import *; print(Board.__name__, Task.__name__)") == "Board Task\n"


def test_public_names_live_where_the_core_keeps_them() -> None:
    from agent_task_board.errors import BoardError
    from agent_task_board.service import Board

    assert agent_task_board.Board is Board
    assert agent_task_board.BoardError is BoardError


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Bord'"):
        _ = agent_task_board.Bord  # type: ignore[attr-defined]


def test_import_alone_loads_no_part_of_the_package() -> None:
    program = """
import sys
before = set(sys.modules)
import agent_task_board
print(sorted(set(sys.modules) - before - {"__future__"}))
agent_task_board.Settings
print("agent_task_board.settings" in sys.modules, "sqlite3" in sys.modules)
agent_task_board.Board
print("agent_task_board.service" in sys.modules)
"""
    assert run(program).splitlines() == [
        "['agent_task_board']",
        "True False",
        "True",
    ]


def test_every_verb_is_a_method_of_the_board_with_types_and_a_docstring() -> None:
    for verb in VERBS:
        method = getattr(agent_task_board.Board, verb)
        assert inspect.getdoc(method), verb
        signature = inspect.signature(method)
        assert signature.return_annotation is not inspect.Signature.empty, verb
        for parameter in list(signature.parameters.values())[1:]:
            assert parameter.annotation is not inspect.Parameter.empty, (verb, parameter.name)


def test_options_are_keywords_only() -> None:
    for verb in VERBS:
        for parameter in inspect.signature(getattr(agent_task_board.Board, verb)).parameters.values():
            if parameter.default is not inspect.Parameter.empty and parameter.name not in ("to", "error"):
                assert parameter.kind is inspect.Parameter.KEYWORD_ONLY, (verb, parameter.name)


def test_type_checkers_are_told_that_the_package_is_typed() -> None:
    assert resources.files(agent_task_board).joinpath("py.typed").is_file()


def test_fields_of_a_task_are_typed() -> None:
    source = inspect.getsource(agent_task_board.Task)
    for key in agent_task_board.Task.__slots__:
        assert f"    {key}: " in source, key
    assert get_type_hints(agent_task_board.Settings.__init__)["lease"] is int


def test_version_is_the_one_installed() -> None:
    assert run("import importlib.metadata as m; print(m.version('atb-board'))").strip() == (
        agent_task_board.__version__
    )


def test_task_token_and_lease_say_little_in_a_log() -> None:
    lease = agent_task_board.Lease("secret token", 3, "2026-11-30T00:53:20.000+00:00")
    assert "secret" not in repr(lease)
    assert lease.to_dict() == {"token": "secret token", "fence": 3, "expires_at": "2026-11-30T00:53:20.000+00:00"}
    assert repr(agent_task_board.Actor("maria", "human")) == "<Actor 'maria' human>"
