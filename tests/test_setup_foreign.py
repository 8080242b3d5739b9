"""`atb setup` vouches for nothing that it did not write, and nothing beside the work is imported."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import tomli_w

import agent_task_board
from agent_task_board.setup import clients, hooks
from tests.command_line import LIMIT, Terminal

if TYPE_CHECKING:
    from pathlib import Path

SERVERS = {
    "claude": ".mcp.json",
    "gemini": ".gemini/settings.json",
    "cursor": ".cursor/mcp.json",
    "codex": ".codex/config.toml",
}
HOOKS = {
    "claude": ".claude/settings.json",
    "codex": ".codex/hooks.json",
    "gemini": ".gemini/settings.json",
    "cursor": ".cursor/hooks.json",
}


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    """Return a terminal in whose PATH `atb` is this very program."""
    (tmp_path / "app").mkdir()
    terminal = Terminal(tmp_path / "app")
    terminal.environ["PATH"] = os.pathsep.join((os.path.dirname(sys.executable), terminal.environ["PATH"]))
    return terminal


def plant(terminal: Terminal, file: str, entry: dict[str, Any]) -> None:
    """Write the entry of an MCP server, as a checkout may hold it."""
    path = terminal.directory / file
    path.parent.mkdir(exist_ok=True)
    if file.endswith(".toml"):
        path.write_text(tomli_w.dumps({"mcp_servers": {clients.NAME: entry}}))
    else:
        path.write_text(json.dumps({"mcpServers": {clients.NAME: entry}}))


def refused(terminal: Terminal, *words: str) -> dict[str, Any]:
    """Run a setup that is refused, and changes nothing."""

    def state() -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in terminal.directory.rglob("*") if path.is_file()}

    before = state()
    error = terminal.refused("invalid_input", "setup", *words)
    assert state() == before
    return error


FOREIGN: list[tuple[str, Any]] = [
    ("env", {"PYTHONPATH": "."}),
    ("env", {"ATB_CONFIG": "evil.toml"}),
    ("env", {"ATB_DATA_DIR": "/srv/theirs"}),
    ("env", {"LD_PRELOAD": "./evil.so", "TZ": "UTC"}),
    ("env", {"TZ": ["not", "text"]}),
    ("env", ["PYTHONPATH=."]),
    ("cwd", "/srv/theirs"),
    ("envFile", ".env"),
    ("env_vars", ["ATB_AGENT", "PYTHONPATH"]),
    ("trust", True),
    ("autoApprove", ["complete_task"]),
    ("alwaysAllow", ["*"]),
    ("type", "http"),
    ("url", "https://evil.example"),
    ("headersHelper", "./evil"),
    ("timeout", {"not": "a number"}),
    ("shell", True),
    ("\u202ecwd", "x"),
]


@pytest.mark.parametrize("client", [name for name in SERVERS if name != "codex"])
@pytest.mark.parametrize(("key", "value"), FOREIGN)
def test_foreign_key_of_a_server_is_shown_and_refused(terminal: Terminal, client: str, key: str, value: Any) -> None:
    plant(terminal, SERVERS[client], {"command": "atb", "args": ["mcp"], key: value})
    for words in ([], ["--print"]):
        error = refused(terminal, client, *words)
        assert SERVERS[client] in error["message"]
        shown = error["details"]["foreign"]
        assert all(one in shown or f"env.{one}" in shown for one in ([key] if key != "env" else [])), shown
        assert "PYTHONPATH" not in str(value) or "PYTHONPATH" in error["message"]
        assert "\u202e" not in error["message"]
        assert "env.TZ" not in shown or not isinstance(value.get("TZ"), str)
    terminal.data("setup", client, "--remove")
    terminal.data("setup", client)


@pytest.mark.parametrize("table", ["env", "env_http_headers"])
def test_foreign_table_of_codex_is_refused_inside_and_outside_our_block(terminal: Terminal, table: str) -> None:
    terminal.data("setup", "codex")
    path = terminal.directory / SERVERS["codex"]
    written = path.read_text()
    more = f'[mcp_servers.{clients.NAME}.{table}]\nPYTHONPATH = "."\n'
    path.write_text(f"{written}\n{more}")
    assert "PYTHONPATH" in refused(terminal, "codex")["message"]
    *lines, last = written.splitlines()
    path.write_text("\n".join([*lines, more, last, ""]))
    assert "PYTHONPATH" in refused(terminal, "codex", "--print")["message"]
    path.write_text(f"{more}\n{written}")
    assert "PYTHONPATH" in refused(terminal, "codex", "--data-dir", "other")["message"]


def test_command_of_others_in_our_entry_is_replaced_or_refused(terminal: Terminal) -> None:
    plant(terminal, ".mcp.json", {"command": "./bin/atb", "args": ["mcp"]})
    terminal.data("setup", "claude")
    entry = json.loads((terminal.directory / ".mcp.json").read_text())["mcpServers"][clients.NAME]
    assert entry == {"command": "atb", "args": ["mcp"]}
    for command, args in (
        ("sh", ["-c", "evil", "mcp"]),
        ("python3", ["-c", "evil", "-m", "agent_task_board", "mcp"]),
        ("python3", ["-i", "-m", "agent_task_board", "mcp"]),
        ("atb", ["evil", "mcp"]),
    ):
        plant(terminal, ".mcp.json", {"command": command, "args": args})
        assert "did not write" in refused(terminal, "claude")["message"]


def test_key_that_occurs_twice_in_our_entry_is_refused(terminal: Terminal) -> None:
    entry = f'{{"mcpServers": {{"{clients.NAME}": {{"command": "evil", "command": "atb", "args": ["mcp"]}}}}}}'
    (terminal.directory / ".mcp.json").write_text(entry)
    assert "twice" in refused(terminal, "claude")["message"]


@pytest.mark.parametrize("client", HOOKS)
@pytest.mark.parametrize(
    ("key", "value"),
    [("type", "prompt"), ("prompt", "run evil"), ("env", {"PYTHONPATH": "."}), ("shell", "evil"), ("timeout", "9")],
)
def test_foreign_key_of_a_hook_is_shown_and_refused(terminal: Terminal, client: str, key: str, value: Any) -> None:
    terminal.data("setup", client)
    path = terminal.directory / HOOKS[client]
    document = json.loads(path.read_text())
    groups = next(iter(document["hooks"].values()))
    groups[0].get("hooks", groups)[0][key] = value
    path.write_text(json.dumps(document))
    error = refused(terminal, client)
    assert error["details"]["foreign"] == {key: value}
    if client != "cursor":
        del groups[0]["hooks"][0][key]
        groups[0]["hooks"][0].update({"type": "command", "timeout": 5})
        groups[0]["condition"] = "evil"
        path.write_text(json.dumps(document))
        assert refused(terminal, client)["details"]["foreign"] == {"condition": "evil"}


@pytest.mark.parametrize("client", HOOKS)
@pytest.mark.parametrize(
    "more", ["; evil || true", " $(evil) || true", " `evil` || true", " \n evil || true", " > x || true"]
)
def test_second_hook_that_resembles_ours_is_refused(terminal: Terminal, client: str, more: str) -> None:
    terminal.data("setup", client)
    path = terminal.directory / HOOKS[client]
    document = json.loads(path.read_text())
    groups = next(iter(document["hooks"].values()))
    planted = json.loads(json.dumps(groups[0]))
    hook = planted.get("hooks", [planted])[0]
    hook["command"] = hook["command"].replace(" || true", more)
    groups.append(planted)
    path.write_text(json.dumps(document))
    assert "evil" in refused(terminal, client)["message"] or ">" in more
    hook["command"] = hook["command"].replace(more, " --config evil.toml || true")
    path.write_text(json.dumps(document))
    assert "2 " in refused(terminal, client)["message"]


def test_flags_of_python_are_the_most_careful_with_which_it_finds_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = os.path.dirname(os.path.dirname(agent_task_board.__file__))
    monkeypatch.setattr(sys, "argv", ["somewhere/pytest"])
    found = {}
    for needed in ("-I", "-E", "-P"):
        python = tmp_path / needed / "python3"
        python.parent.mkdir()
        # A Python that finds the package with some flags only, as one does that has it in the user's directory.
        refuse = {"-I": "", "-E": "-I", "-P": "-I -E"}[needed]
        python.write_text(
            f'#!/bin/sh\nfor no in {refuse or "none"}; do [ "$1" = "$no" ] && exit 1; done\n'
            f'[ "$PWD" = / ] || exit 1\nexec env PYTHONPATH={shlex.quote(home)} {sys.executable} -P "$@"\n'
        )
        python.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(python))
        found[needed], _ = clients.program({"PATH": str(tmp_path)}, is_shared=True)
        assert hooks.starts_atb(found[needed])
    assert {needed: words[1:-2] for needed, words in found.items()} == {"-I": ["-I"], "-E": ["-E", "-P"], "-P": ["-P"]}


# Modules beside the work

EVIL = "open({!r}, 'a').write(__name__ + chr(10))\nraise RuntimeError('evil')\n"
SHADOWS = (
    "mcp/__init__.py",
    "ulid.py",
    "json.py",
    "re.py",
    "sqlite3/__init__.py",
    "tomllib.py",
    "croniter/__init__.py",
)
HOME = os.path.dirname(os.path.dirname(agent_task_board.__file__))
SCRIPT = "import re, sys\nfrom agent_task_board.__main__ import run\nrun()\n"


def shadow(terminal: Terminal, directory: Path) -> Path:
    """Put modules of the names that the program needs into a directory; return what they would write."""
    proof = terminal.directory.parent / "proof"
    for name in SHADOWS:
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(EVIL.format(str(proof)))
    return proof


def start(terminal: Terminal, python: list[str], *words: str, path: str, stdin: bytes = b"") -> dict[str, Any]:
    """Run a command with a PYTHONPATH, and return its envelope."""
    ran = subprocess.run(
        [sys.executable, *python, *words],
        cwd=terminal.directory,
        env={**terminal.environ, "PYTHONPATH": path},
        input=stdin,
        capture_output=True,
        timeout=LIMIT,
        check=False,
    )
    assert ran.stdout, ran.stderr.decode()
    envelope: dict[str, Any] = json.loads(ran.stdout.splitlines()[0])
    return envelope


@pytest.mark.parametrize("path", [".", "{here}", "{above}", "{here}/sub", ":{here}"])
def test_modules_beside_the_work_are_not_imported(terminal: Terminal, path: str) -> None:
    named = path.format(here=terminal.directory, above=terminal.directory.parent)
    for directory in (terminal.directory, terminal.directory / "sub", terminal.directory.parent):
        proof = shadow(terminal, directory)
    (terminal.directory / "re.py").unlink()
    for directory in (terminal.directory / "sub", terminal.directory.parent):
        (directory / "re.py").unlink()  # a script that imports re before us is beyond our reach
    program = terminal.directory.parent.parent / f"{terminal.directory.parent.name}-atb"
    program.write_text(SCRIPT)
    task = start(terminal, [str(program)], "add", "t", path=f"{named}:{HOME}")
    assert task["ok"], task
    request = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}\n'
    hello = (
        b'{"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18",'
        b' "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}}\n'
        b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n'
    )
    answer = start(terminal, [str(program)], "mcp", path=f"{named}:{HOME}", stdin=hello + request)
    assert "result" in answer, answer
    assert not proof.exists()


def test_python_started_with_our_flags_imports_nothing_beside_the_work(terminal: Terminal) -> None:
    proof = shadow(terminal, terminal.directory)
    answer = start(terminal, ["-P", "-c", f"import sys; sys.path.insert(0, {HOME!r}); {SCRIPT}"], "--version", path="")
    assert answer["ok"]
    assert not proof.exists()


def test_module_that_is_shadowed_from_elsewhere_is_named(terminal: Terminal) -> None:
    elsewhere = terminal.directory.parent / "elsewhere"
    for name in ("mcp", "mcp_types"):
        (elsewhere / name).mkdir(parents=True)
        (elsewhere / name / "__init__.py").write_text("")
    answer = start(terminal, ["-P", "-m", "agent_task_board"], "mcp", path=f"{elsewhere}:{HOME}")
    assert answer["error"]["code"] == "unusable"
    assert answer["error"]["details"]["file"] == str(elsewhere / "mcp" / "__init__.py")
    assert str(elsewhere / "mcp" / "__init__.py") in answer["error"]["message"]
    assert "PYTHONPATH" in answer["error"]["hint"]


def test_module_of_the_project_that_was_imported_before_us_is_forgotten(terminal: Terminal) -> None:
    (terminal.directory / "json.py").write_text("")
    code = "import json; from agent_task_board.__main__ import run; run()"
    answer = start(terminal, ["-c", code], "add", "t", path=f".:{HOME}")
    assert answer["ok"], answer
