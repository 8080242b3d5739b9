"""`atb setup`: what it writes, what it leaves alone, and that it gives everything back."""

from __future__ import annotations

import errno
import json
import os
import re
import stat
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import tomli_w
from hypothesis import assume, given
from hypothesis import strategies as st

from agent_task_board.setup import blocks, clients, files, hooks
from agent_task_board.setup.json_entries import Entry, JsonEntries
from tests.command_line import Terminal

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

ALL = list(clients.CLIENTS)
WITH_FILES_OF_A_USER = [name for name in ALL if name != "agents-md"]
JSON_FILES = [
    ("claude", ".mcp.json"),
    ("claude", ".claude/settings.json"),
    ("codex", ".codex/hooks.json"),
    ("gemini", ".gemini/settings.json"),
    ("cursor", ".cursor/mcp.json"),
    ("cursor", ".cursor/hooks.json"),
]
TEXT_FILES = [
    ("codex", ".codex/config.toml"),
    ("codex", "AGENTS.md"),
    ("gemini", "GEMINI.md"),
    ("agents-md", "AGENTS.md"),
]


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    """Return a terminal in whose PATH `atb` is this very program."""
    terminal = Terminal(tmp_path)
    terminal.environ["PATH"] = os.pathsep.join((os.path.dirname(sys.executable), terminal.environ["PATH"]))
    return terminal


def tree(terminal: Terminal) -> dict[str, bytes | None]:
    """Return every file with its bytes, and every directory, but for boards."""
    boards = {path.parent for path in terminal.directory.rglob("tasks.db")}
    found = sorted(path for path in terminal.directory.rglob("*") if not boards & {path, *path.parents})
    return {str(path.relative_to(terminal.directory)): path.read_bytes() if path.is_file() else None for path in found}


def put(terminal: Terminal, name: str, content: str | bytes) -> Path:
    path = terminal.directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def actions(terminal: Terminal, *words: str, **environ: str) -> dict[str, str]:
    """Run a setup that works and return what became of each file."""
    data = terminal.data("setup", *words, **environ)
    return {os.path.relpath(one["path"], terminal.directory): one["action"] for one in data["files"]}


def refused(terminal: Terminal, file: str, *words: str, code: str = "invalid_input") -> dict[str, Any]:
    """Run a setup that is refused for a file, and changes nothing."""
    before = tree(terminal), terminal.files()
    error = terminal.refused(code, "setup", *words)
    assert error["details"]["file"] == str(terminal.directory / file)
    assert file in error["message"]
    assert (tree(terminal), terminal.files()) == before
    return error


# What is written


@pytest.mark.parametrize("client", ALL)
def test_setup_creates_its_files_and_gives_back_an_empty_directory(terminal: Terminal, client: str) -> None:
    wanted = {project for _, project, _ in clients.CLIENTS[client] if project}
    assert actions(terminal, client) == dict.fromkeys(wanted, "create")
    assert wanted <= set(tree(terminal))
    assert actions(terminal, client, "--remove") == dict.fromkeys(wanted, "delete")
    assert tree(terminal) == {}


@pytest.mark.parametrize("client", ALL)
def test_removal_leaves_empty_directories_that_setup_did_not_create(terminal: Terminal, client: str) -> None:
    theirs = {os.path.dirname(project) for _, project, _ in clients.CLIENTS[client] if project} - {""}
    for folder in theirs:
        (terminal.directory / folder).mkdir(parents=True, exist_ok=True)
    before = tree(terminal)
    terminal.data("setup", client)
    terminal.data("setup", client, "--remove")
    assert tree(terminal) == before


@pytest.mark.parametrize("state", ["not json", "[]", '{"directories": 5}', "[" * 100_000])
def test_unreadable_list_of_created_directories_deletes_none(terminal: Terminal, state: str) -> None:
    terminal.data("setup", "cursor")
    listed = Path(terminal.environ["XDG_STATE_HOME"]) / "agent-task-board" / "setup.json"
    assert str(terminal.directory / ".cursor" / "rules") in listed.read_text()
    listed.write_text(state)
    terminal.data("setup", "cursor", "--remove")
    assert tree(terminal) == {".cursor": None, ".cursor/rules": None}


@pytest.mark.parametrize("first", ["codex", "agents-md"])
@pytest.mark.parametrize("text", [None, "# Rules\n", "# Rules\r\nmore\r\n"])
def test_block_that_two_clients_share_goes_with_the_last_of_them(
    terminal: Terminal, first: str, text: str | None
) -> None:
    if text is not None:
        put(terminal, "AGENTS.md", text)
    before = tree(terminal)
    other = {"codex": "agents-md", "agents-md": "codex"}[first]
    terminal.data("setup", first)
    alone = (terminal.directory / "AGENTS.md").read_bytes()
    terminal.data("setup", other)
    both = (terminal.directory / "AGENTS.md").read_bytes()
    assert b"`atb setup agents-md` and `atb setup codex`" in both
    assert terminal.atb("setup", other).warnings == ["already up to date"]
    removed = terminal.atb("setup", other, "--remove")
    assert [f"the guide is kept for {first}" in warning for warning in removed.warnings] == [True]
    assert (terminal.directory / "AGENTS.md").read_bytes() == alone
    assert terminal.atb("setup", other, "--remove").warnings == ["already up to date"]
    terminal.data("setup", first, "--remove")
    assert tree(terminal) == before


@pytest.mark.parametrize("client", ALL)
def test_setup_twice_changes_nothing_and_says_so(terminal: Terminal, client: str) -> None:
    first = terminal.atb("setup", client)
    assert first.warnings == [f"created a board at {terminal.directory / '.atb' / 'tasks.db'}"]
    before = tree(terminal)
    again = terminal.atb("setup", client)
    assert {one["action"] for one in again.data["files"]} == {"unchanged"}
    assert any("already up to date" in warning for warning in again.warnings)
    assert tree(terminal) == before
    terminal.data("setup", client, "--remove")
    assert {one["action"] for one in terminal.data("setup", client, "--remove")["files"]} == {"unchanged"}


@pytest.mark.parametrize("client", ALL)
def test_print_shows_what_would_be_written_and_writes_nothing(terminal: Terminal, client: str) -> None:
    shown = terminal.data("setup", client, "--print")
    assert terminal.files() == set()
    terminal.data("setup", client)
    for one in shown["files"]:
        assert one["action"] == "create"
        assert Path(one["path"]).read_text(encoding="utf-8") == one["content"]
    before = tree(terminal)
    gone = terminal.data("setup", client, "--print", "--remove")["files"]
    assert [(one["action"], one["content"]) for one in gone] == [("delete", one["content"]) for one in shown["files"]]
    assert tree(terminal) == before


def test_print_shows_nothing_of_what_others_wrote(terminal: Terminal) -> None:
    put(terminal, ".mcp.json", '{"mcpServers": {"other": {"env": {"KEY": "secret"}}}}')
    answer = terminal.atb("setup", "claude", "--print")
    assert "secret" not in answer.text
    assert answer.data["files"][0]["action"] == "update"
    terminal.data("setup", "claude")
    answer = terminal.atb("setup", "claude", "--print", "--remove")
    assert "secret" not in answer.text
    assert '"mcp"' in answer.data["files"][0]["content"]


def test_other_board_and_configuration_are_named_by_absolute_paths(terminal: Terminal) -> None:
    (terminal.directory / "sub").mkdir()
    terminal.data("setup", "claude", "--data-dir", "sub/../board", "--agent", "ada", "--config", put_config(terminal))
    server = json.loads((terminal.directory / ".mcp.json").read_text())["mcpServers"]["agent-task-board"]
    board, config = str(terminal.directory / "board"), str(terminal.directory / "my.toml")
    assert server["command"] == "atb"
    assert server["args"] == ["mcp", "--data-dir", board, "--config", config]
    assert server["env"] == {"ATB_AGENT": "ada"}
    asked = subprocess.run(
        ["atb", "--version"], cwd="/", env=terminal.environ, capture_output=True, timeout=60, check=True
    )
    assert json.loads(asked.stdout)["ok"]


def put_config(terminal: Terminal) -> str:
    put(terminal, "my.toml", "lease = '5m'\n")
    return "my.toml"


def test_program_is_named_without_a_script_where_there_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "argv", ["somewhere/pytest"])
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python3"))
    words = [str(tmp_path / "python3"), "-I", "-m", "agent_task_board"]
    for is_shared in (True, False):
        assert clients.program({"PATH": str(tmp_path)}, is_shared=is_shared) == (words, False)
    server = clients.Server(words, ["--data-dir", "/srv/board"], None)
    assert clients.is_our_server(server.entry())
    assert hooks.is_ours(server.hook("claude", "stop")["hooks"][0])
    assert hooks.is_ours(server.hook("cursor", "stop"))


def test_program_is_atb_in_shared_files_only_if_the_path_leads_to_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    scripts = [put(Terminal(tmp_path), f"{name}/atb", "#!/bin/sh\n") for name in ("bin", "other")]
    for script in scripts:
        script.chmod(0o755)
    mine = str(scripts[0])
    monkeypatch.setattr(sys, "argv", [mine])
    there, elsewhere = {"PATH": str(tmp_path / "bin")}, {"PATH": str(tmp_path / "other")}
    assert clients.program(there, is_shared=True) == (["atb"], True)
    assert clients.program(there, is_shared=False) == ([mine], False)
    assert clients.program(elsewhere, is_shared=True) == ([mine], False)
    (tmp_path / "other" / "atb").unlink()
    (tmp_path / "other" / "atb").symlink_to(mine)
    assert clients.program(elsewhere, is_shared=True) == (["atb"], True)
    server = clients.Server(["atb"], [], None)
    assert server.entry() == {"command": "atb", "args": ["mcp"]}
    assert clients.is_our_server(server.entry())
    assert hooks.is_ours(server.hook("claude", "stop")["hooks"][0])


def test_data_directory_is_that_of_the_project_named(terminal: Terminal) -> None:
    put(terminal, "app/atb.toml", 'data_dir = "tasks"\n')
    told = terminal.data("setup", "codex", "--project", "app")
    assert told["data_dir"] == str(terminal.directory / "app" / "tasks")
    assert (terminal.directory / "app" / "tasks" / "tasks.db").exists()
    table = tomllib.loads((terminal.directory / "app" / ".codex" / "config.toml").read_text())
    assert table["mcp_servers"]["agent-task-board"]["args"] == ["mcp"]


@pytest.mark.parametrize("client", WITH_FILES_OF_A_USER)
def test_files_of_a_user_lie_in_the_home_directory(terminal: Terminal, client: str) -> None:
    (terminal.directory / "work").mkdir()
    wanted = {home.removeprefix("~/") for _, _, home in clients.CLIENTS[client] if home}
    assert actions(terminal, client, "--user", "--data-dir", "board") == dict.fromkeys(wanted, "create")
    assert not list((terminal.directory / "work").iterdir())
    assert actions(terminal, client, "--user", "--remove", "--data-dir", "board") == dict.fromkeys(wanted, "delete")


def test_files_of_a_user_are_looked_for_where_the_client_was_told_to(terminal: Terminal) -> None:
    moved = {"CLAUDE_CONFIG_DIR": str(terminal.directory / "c"), "CODEX_HOME": str(terminal.directory / "x")}
    for folder in moved.values():
        Path(folder).mkdir()
    moved["ATB_DATA_DIR"] = str(terminal.directory / "board")
    assert set(actions(terminal, "claude", "--user", **moved)) == {
        *("c/.claude.json", "c/settings.json", "c/skills/agent-task-board/SKILL.md")
    }
    assert set(actions(terminal, "codex", "--user", **moved)) == {"x/config.toml", "x/hooks.json", "x/AGENTS.md"}
    for client in ("claude", "codex"):
        actions(terminal, client, "--user", "--remove", **moved)
    assert tree(terminal) == {"c": None, "x": None}


@pytest.mark.parametrize("client", WITH_FILES_OF_A_USER)
def test_setup_for_a_user_says_which_board_all_projects_share(terminal: Terminal, client: str) -> None:
    board = str(terminal.directory / "boards" / "mine")
    error = terminal.refused("invalid_input", "setup", client, "--user")
    assert "--data-dir" in error["hint"]
    assert terminal.files() == set()
    answer = terminal.atb("setup", client, "--user", ATB_DATA_DIR=board)
    assert board in answer.data["next"]
    assert [board in warning for warning in answer.warnings] == [True, True]
    told = b"".join(content or b"" for content in tree(terminal).values())
    assert b"this project" not in told
    assert client == "cursor" or b"all projects" in told
    named = terminal.atb("setup", client, "--user", "--data-dir", "boards/mine")
    assert named.warnings == ["already up to date"]
    assert board in named.data["next"]
    assert terminal.atb("setup", client, "--user", "--remove").warnings == []


@pytest.mark.parametrize("home", ["", "relative"])
def test_home_directory_that_is_nowhere_is_a_refusal(terminal: Terminal, home: str) -> None:
    for client in WITH_FILES_OF_A_USER:
        assert (
            terminal.refused("invalid_input", "setup", client, "--user", "--data-dir", "b", HOME=home)["details"][
                "field"
            ]
            == "user"
        )
    assert terminal.files() == set()


def test_wrong_calls_are_refused(terminal: Terminal) -> None:
    for words in (
        [],
        ["emacs"],
        ["agents-md", "--user"],
        ["claude", "--user", "--project", "."],
        ["claude", "--project", "missing"],
        ["claude", "--agent", "none"],
        ["claude", "--data-dir", "a\nb"],
        ["claude", "--config", "missing.toml"],
    ):
        terminal.refused("invalid_input", "setup", *words)
    assert tree(terminal) == {}


def test_hook_lines_run_in_a_shell_whatever_the_path(terminal: Terminal) -> None:
    board = terminal.directory / """it's a "board" $HOME `x` \\ ; true"""
    terminal.data("--data-dir", str(board), "add", "Write the parser")
    terminal.data("setup", "claude", "--data-dir", str(board), "--agent", "o'brien")
    for event, name in (("SessionStart", "started"), ("Stop", "stopped")):
        line = hook_line(terminal, event)
        asked = json.dumps({"session_id": "12345678-1234", "stop_hook_active": False}).encode()
        ran = subprocess.run(
            ["sh", "-c", line], input=asked, capture_output=True, timeout=60, cwd="/", env=terminal.environ
        )
        assert (ran.returncode, ran.stderr) == (0, b""), name
        if event == "SessionStart":
            text = json.loads(ran.stdout)["hookSpecificOutput"]["additionalContext"]
            assert "ready for you: 1" in text
            assert "o'brien" in text
        else:
            assert ran.stdout == b""
    gone = hook_line(terminal, "Stop").replace("atb prime", "gone prime", 1)
    assert subprocess.run(["sh", "-c", gone], capture_output=True, timeout=60).returncode == 0


def hook_line(terminal: Terminal, event: str) -> str:
    settings = json.loads((terminal.directory / ".claude" / "settings.json").read_text())
    line: str = settings["hooks"][event][0]["hooks"][0]["command"]
    return line


# What is left alone


@pytest.mark.parametrize(("client", "file"), [*JSON_FILES, *TEXT_FILES])
@pytest.mark.parametrize("nl", ["\n", "\r\n"])
def test_what_others_wrote_keeps_its_bytes(terminal: Terminal, client: str, file: str, nl: str) -> None:
    started = {
        "json": (
            '{\n\t"mcpServers": {\n\t\t"other": {"command": "x"}\n\t},\n'
            '\t"hooks": {"Stop": [ {"hooks": []} ]},\n\t"é": 1e3\n}\n\n'
        ),
        "toml": '# mine\n[mcp_servers.other]\ncommand = "x"  # why\n\n[a.b]\nc = 1',
        "md": "# Rules\n\nBe kind.\n",
    }[file.rpartition(".")[2]].replace("\n", nl)
    path = put(terminal, file, started)
    path.chmod(0o640)
    before = tree(terminal)
    assert actions(terminal, client)[file] == "update"
    changed = path.read_bytes().decode()
    assert changed != started
    assert nl == "\n" or "\n" not in changed.replace("\r\n", "")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert actions(terminal, client)[file] == "unchanged"
    actions(terminal, client, "--remove")
    assert tree(terminal) == before


def test_edits_of_others_stay_when_setup_is_removed(terminal: Terminal) -> None:
    start = '{\n  "mcpServers": {\n    "one": {"command": "x"}\n  }\n}\n'
    path = put(terminal, ".mcp.json", start)
    rules = put(terminal, "AGENTS.md", "first")
    terminal.data("setup", "claude")
    terminal.data("setup", "agents-md")
    edited = path.read_text().replace(
        '"one": {"command": "x"}', '"one": {"command": "y"},\n    "two": {"command": "z"}'
    )
    path.write_text(edited.replace("\n  }\n}", '\n  },\n  "last": true\n}'))
    rules.write_text("zeroth\n" + rules.read_text() + "\nlast\n")
    terminal.data("setup", "claude", "--remove")
    terminal.data("setup", "agents-md", "--remove")
    wanted = start.replace('"x"}', '"y"},\n    "two": {"command": "z"}').replace(
        "\n  }\n}", '\n  },\n  "last": true\n}'
    )
    assert path.read_text() == wanted
    assert rules.read_text() == "zeroth\nfirst\nlast\n"


def test_file_of_ours_that_somebody_added_to_stays_without_our_part(terminal: Terminal) -> None:
    terminal.data("setup", "cursor")
    path = terminal.directory / ".cursor" / "mcp.json"
    path.write_text(path.read_text().replace('"mcpServers": {', '"mcpServers": {\n    "other": {},'))
    assert actions(terminal, "cursor", "--remove")[".cursor/mcp.json"] == "update"
    assert json.loads(path.read_text()) == {"mcpServers": {"other": {}}}
    assert sorted(tree(terminal)) == [".cursor", ".cursor/mcp.json"]


def test_other_board_replaces_our_entries_in_their_place(terminal: Terminal) -> None:
    put(terminal, ".mcp.json", '{"mcpServers": {"one": {}}, "z": 1}\n')
    for client in WITH_FILES_OF_A_USER:
        terminal.data("setup", client, "--data-dir", "old", "--agent", "ada")
        assert set(actions(terminal, client, "--data-dir", "new").values()) == {"update"}
    for name, content in tree(terminal).items():
        if content is not None:
            assert str(terminal.directory / "old").encode() not in content, name
            assert str(terminal.directory / "new").encode() in content, name
    for client in WITH_FILES_OF_A_USER:
        terminal.data("setup", client, "--remove", "--data-dir", "yet another")
    assert tree(terminal) == {".mcp.json": b'{"mcpServers": {"one": {}}, "z": 1}\n'}


@pytest.mark.parametrize(("client", "file"), [one for one in JSON_FILES if "mcp" in one[1] or one[0] == "gemini"])
def test_entry_of_our_name_that_somebody_else_wrote_is_a_refusal(terminal: Terminal, client: str, file: str) -> None:
    path = put(terminal, file, '{"mcpServers": {"agent-task-board": {"command": "npx", "args": ["mcp"]}}}')
    error = refused(terminal, file, client)
    assert "agent-task-board" in json.loads(error["details"]["add"])["mcpServers"]
    terminal.data("setup", client, "--remove")
    assert b"npx" in path.read_bytes()


def test_table_of_our_name_that_somebody_else_wrote_is_a_refusal(terminal: Terminal) -> None:
    put(terminal, ".codex/config.toml", '[mcp_servers.agent-task-board]\ncommand = "npx"\n')
    refused(terminal, ".codex/config.toml", "codex")


def test_file_of_our_name_that_somebody_else_wrote_is_a_refusal_and_stays(terminal: Terminal) -> None:
    name = ".claude/skills/agent-task-board/SKILL.md"
    put(terminal, name, "mine\n")
    refused(terminal, name, "claude")
    assert actions(terminal, "claude", "--remove") == {
        ".mcp.json": "unchanged",
        ".claude/settings.json": "unchanged",
        name: "kept",
    }


def test_skill_that_was_edited_stays_while_the_rest_goes_on(terminal: Terminal) -> None:
    terminal.data("setup", "claude")
    name = ".claude/skills/agent-task-board/SKILL.md"
    path = terminal.directory / name
    path.write_text(path.read_text().replace("Only people", "Only bakers"))
    for words in (["--data-dir", "new"], ["--remove"]):
        before = path.read_bytes()
        answer = terminal.atb("setup", "claude", *words)
        assert [one["action"] for one in answer.data["files"]][2] == "kept"
        assert any(name in warning for warning in answer.warnings)
        assert path.read_bytes() == before
    assert not (terminal.directory / ".mcp.json").exists()


@pytest.mark.parametrize(
    ("client", "file", "content"),
    [
        ("claude", ".mcp.json", "{} // mine"),
        ("claude", ".mcp.json", '{"a": 1,}'),
        ("claude", ".mcp.json", "[]"),
        ("claude", ".mcp.json", '{"a": NaN}'),
        ("claude", ".mcp.json", "[" * 100_000),
        ("claude", ".mcp.json", '{"mcpServers": []}'),
        ("claude", ".mcp.json", '{"mcpServers": {}, "mcpServers": {}}'),
        ("claude", ".mcp.json", b'{"a": "\xff"}'),
        ("claude", ".claude/settings.json", '{"hooks": {"Stop": {}}}'),
        ("claude", ".claude/settings.json", '{"hooks": null}'),
        ("cursor", ".cursor/hooks.json", '{"version": 1, "hooks": {"stop": 1}}'),
        ("codex", ".codex/config.toml", "a = "),
        ("codex", ".codex/config.toml", "mcp_servers = { other = {} }"),
        ("codex", ".codex/config.toml", "mcp_servers = 1"),
        ("codex", ".codex/config.toml", b"# \xff\n"),
        ("codex", ".codex/config.toml", "# >>> agent-task-board >>>\n"),
        ("agents-md", "AGENTS.md", "<!-- <<< agent-task-board <<< -->\n"),
        ("agents-md", "AGENTS.md", "{1}\n{0}\n".format(*blocks.MARKDOWN)),
        ("agents-md", "AGENTS.md", "{0}\n{1}\n{0}\n{1}\n".format(*blocks.MARKDOWN)),
        ("agents-md", "AGENTS.md", b"\xff\xfe"),
    ],
)
def test_file_that_cannot_be_changed_safely_is_a_refusal(
    terminal: Terminal, client: str, file: str, content: str | bytes
) -> None:
    put(terminal, file, content)
    refused(terminal, file, client)


def test_nothing_is_written_when_the_last_file_is_refused(terminal: Terminal) -> None:
    put(terminal, "AGENTS.md", blocks.MARKDOWN[0])
    refused(terminal, "AGENTS.md", "codex")
    assert list(tree(terminal)) == ["AGENTS.md"]


def test_what_is_no_regular_file_is_a_refusal(terminal: Terminal) -> None:
    os.mkfifo(terminal.directory / "AGENTS.md")
    error = terminal.refused("invalid_input", "setup", "agents-md")
    assert error["details"]["file"] == str(terminal.directory / "AGENTS.md")
    (terminal.directory / ".mcp.json").mkdir()
    refused(terminal, ".mcp.json", "claude")
    put(terminal, ".gemini", "a file")
    refused(terminal, ".gemini/settings.json", "gemini", code="unusable")


def test_symbolic_links_are_followed_and_stay(terminal: Terminal) -> None:
    real = put(terminal, "shared/rules.md", "# Rules\n")
    link = terminal.directory / "AGENTS.md"
    link.symlink_to("shared/rules.md")
    terminal.data("setup", "agents-md")
    assert link.is_symlink()
    assert "Agent Task Board" in real.read_text()
    terminal.data("setup", "agents-md", "--remove")
    assert link.is_symlink()
    assert real.read_text() == "# Rules\n"


@pytest.mark.parametrize("link", [".claude", ".claude/settings.json"])
def test_symbolic_link_to_nothing_is_a_refusal(terminal: Terminal, link: str) -> None:
    path = terminal.directory / link
    path.parent.mkdir(exist_ok=True)
    path.symlink_to(terminal.directory / "nowhere")
    error = refused(terminal, ".claude/settings.json", "claude")
    assert str(path) in error["message"]
    assert set(actions(terminal, "claude", "--remove").values()) == {"unchanged"}
    assert path.is_symlink()


@pytest.mark.parametrize(("client", "file"), [*JSON_FILES, *TEXT_FILES])
@pytest.mark.parametrize("blank", ["", "\n", " \r\n\t", "\ufeff"])
def test_blank_file_is_as_good_as_a_missing_one_and_comes_back(
    terminal: Terminal, client: str, file: str, blank: str
) -> None:
    put(terminal, file, blank)
    assert actions(terminal, client, "--data-dir", "old")[file] == "update"
    assert actions(terminal, client)[file] == "update"
    assert actions(terminal, client)[file] == "unchanged"
    assert actions(terminal, client, "--remove")[file] == "update"
    assert (terminal.directory / file).read_bytes() == blank.encode()
    assert actions(terminal, client, "--remove")[file] == "unchanged"


# What others did to our part

CONFIG = ".codex/config.toml"
THEIRS = '\n# trusted\n[projects."/x"]  # [why]\ntrust_level = "trusted"\nlines = """\n[no.table]\n"""\n\n# end\n'


@pytest.mark.parametrize("start", ["", 'model = "x"', "[a]\nb = 1\n", "[a]\r\nb = 1\r\n"])
@pytest.mark.parametrize("words", [[], ["--data-dir", "new"], ["--remove"]])
def test_table_that_others_put_into_our_block_is_never_lost(terminal: Terminal, words: list[str], start: str) -> None:
    path, nl = put(terminal, CONFIG, start), "\r\n" if "\r\n" in start else "\n"
    terminal.data("setup", "codex")
    ours = path.read_bytes().decode()
    end = blocks.TOML[1]
    path.write_bytes(ours.replace(end, THEIRS.replace("\n", nl) + end).encode())
    meant = tomllib.loads(path.read_bytes().decode())
    answer = terminal.atb("setup", "codex", *words)
    assert any("block" in warning for warning in answer.warnings)
    left = path.read_bytes().decode()
    assert THEIRS.strip().replace("\n", nl) in left.partition(end)[2] or words == ["--remove"]
    assert THEIRS.strip().replace("\n", nl) in left
    assert tomllib.loads(left)["projects"] == meant["projects"]
    assert nl == "\n" or "\n" not in left.replace("\r\n", "")
    if words != ["--remove"]:
        assert actions(terminal, "codex", *words)[CONFIG] == "unchanged"
        terminal.data("setup", "codex", "--remove")
    rest = tomllib.loads(path.read_bytes().decode())
    assert rest == {key: value for key, value in meant.items() if key != "mcp_servers"}


def test_tables_of_others_around_ours_inside_the_block_move_out_in_their_order(terminal: Terminal) -> None:
    terminal.data("setup", "codex", "--agent", "ada")
    path = terminal.directory / CONFIG
    first, about, *table = path.read_text().splitlines(keepends=True)
    env = table.index("[mcp_servers.agent-task-board.env]\n")
    mixed = [first, 'model = "x"\n', about, *table[:env], "[one]\n", *table[env:-1], "[mcp_servers.two]\n", table[-1]]
    path.write_text("".join(mixed))
    assert actions(terminal, "codex", "--agent", "ada")[CONFIG] == "update"
    tidy = path.read_text()
    ours = "".join([first, about, *table]).replace("\n\n", "\n")  # an empty line goes with the table behind it
    assert tidy == f'model = "x"\n{ours}\n[one]\n[mcp_servers.two]\n'
    terminal.data("setup", "codex", "--remove")
    assert path.read_text() == 'model = "x"\n\n[one]\n[mcp_servers.two]\n'


def test_comment_of_others_at_the_end_of_our_block_moves_out(terminal: Terminal) -> None:
    terminal.data("setup", "codex")
    path = terminal.directory / CONFIG
    before = path.read_text()
    path.write_text(before.replace(blocks.TOML[1], f"\n# mine\n{blocks.TOML[1]}"))
    terminal.data("setup", "codex")
    assert path.read_text() == f"{before}\n# mine\n"
    terminal.data("setup", "codex", "--remove")
    assert path.read_text() == "\n# mine\n"


@pytest.mark.parametrize("words", [["--data-dir", "new"], ["--remove"]])
def test_comment_amid_our_table_is_told_when_it_goes(terminal: Terminal, words: list[str]) -> None:
    terminal.data("setup", "codex")
    path = terminal.directory / CONFIG
    path.write_text(path.read_text().replace("args =", "# the new one\nargs ="))
    assert actions(terminal, "codex")[CONFIG] == "unchanged"
    assert any("# the new one" in warning for warning in terminal.atb("setup", "codex", *words).warnings)


def test_order_of_tables_around_our_block_does_not_count(terminal: Terminal) -> None:
    path = put(terminal, CONFIG, "[mcp_servers.one]\nn = nan\n\n[a]\n")
    terminal.data("setup", "codex")
    path.write_text(path.read_text() + "\n[mcp_servers.two]\n\n[b]\n")
    assert actions(terminal, "codex")[CONFIG] == "unchanged"
    assert actions(terminal, "codex", "--data-dir", "new")[CONFIG] == "update"
    assert list(tomllib.loads(path.read_text())["mcp_servers"]) == ["one", "agent-task-board", "two"]


def test_table_below_ours_that_stands_outside_of_the_block_stays_with_a_warning(terminal: Terminal) -> None:
    terminal.data("setup", "codex")
    path = terminal.directory / CONFIG
    outside = '[mcp_servers.agent-task-board.env]\nTZ = "Europe/Berlin"\n'
    path.write_text(f"{path.read_text()}\n{outside}")
    assert actions(terminal, "codex", "--data-dir", "new")[CONFIG] == "update"
    answer = terminal.atb("setup", "codex", "--remove")
    assert any("[mcp_servers.agent-task-board]" in warning for warning in answer.warnings)
    assert path.read_text().strip() == outside.strip()


def test_keys_behind_the_block_are_not_handed_to_another_table(terminal: Terminal) -> None:
    path = put(terminal, CONFIG, "[a]\n")
    terminal.data("setup", "codex")
    path.write_text(path.read_text() + "b = 1\n")
    refused(terminal, CONFIG, "codex", "--data-dir", "new")
    refused(terminal, CONFIG, "codex", "--remove")


def entry_of(terminal: Terminal, file: str) -> Any:
    text = (terminal.directory / file).read_text()
    if file.endswith(".toml"):
        return tomllib.loads(text)["mcp_servers"]["agent-task-board"]
    return json.loads(text)["mcpServers"]["agent-task-board"]


def add_to_entry(terminal: Terminal, file: str, more: dict[str, Any]) -> None:
    path = terminal.directory / file
    key = "mcp_servers" if file.endswith(".toml") else "mcpServers"
    value = {key: {"agent-task-board": {**more, **entry_of(terminal, file)}}}
    if key == "mcp_servers":
        text = tomli_w.dumps(value)
        lines = path.read_text().splitlines()
        path.write_text(f"{lines[0]}\n{lines[1]}\n{text}{lines[-1]}\n")
    else:
        path.write_text(json.dumps({**json.loads(path.read_text()), **value}, indent=1))


SERVERS = [(client, file) for client, file in JSON_FILES if "mcp" in file or client == "gemini"] + [("codex", CONFIG)]


@pytest.mark.parametrize(("client", "file"), SERVERS)
def test_keys_that_others_added_to_our_entry_stay_and_are_named_when_they_go(
    terminal: Terminal, client: str, file: str
) -> None:
    terminal.data("setup", client)
    add_to_entry(terminal, file, {"env": {"LC_ALL": "C"}, "timeout": 5})
    assert actions(terminal, client)[file] == "unchanged"
    for words in (["--agent", "ada"], ["--data-dir", "new"]):
        assert actions(terminal, client, *words)[file] == "update"
        entry = entry_of(terminal, file)
        assert (entry["env"]["LC_ALL"], entry["timeout"]) == ("C", 5)
        assert entry["env"].get("ATB_AGENT") == ("ada" if "ada" in words else None)
    shown = terminal.atb("setup", client, "--remove", "--print")
    assert any("LC_ALL" in (one["content"] or "") for one in shown.data["files"]), "nothing is hidden"
    answer = terminal.atb("setup", client, "--remove")
    assert any("env" in warning and "timeout" in warning for warning in answer.warnings)
    assert tree(terminal) == {}


@pytest.mark.parametrize(("client", "file"), SERVERS)
def test_agent_that_our_entry_named_is_told_when_another_setup_takes_it_away(
    terminal: Terminal, client: str, file: str
) -> None:
    terminal.data("setup", client)
    add_to_entry(terminal, file, {"env": {"ATB_AGENT": "eve"}})
    answer = terminal.atb("setup", client)
    assert ["eve" in warning for warning in answer.warnings] == [True]
    assert "env" not in entry_of(terminal, file)


GROUPED = [("claude", ".claude/settings.json"), ("codex", ".codex/hooks.json"), ("gemini", ".gemini/settings.json")]


@pytest.mark.parametrize(("client", "file"), GROUPED)
def test_hook_in_a_group_that_others_added_to_is_ours_alone(terminal: Terminal, client: str, file: str) -> None:
    terminal.data("setup", client)
    path = terminal.directory / file
    document = json.loads(path.read_text())
    for groups in document["hooks"].values():
        groups[0]["hooks"].insert(0, {"type": "command", "command": "mine"})
        groups[0]["matcher"] = "startup"
    path.write_text(json.dumps(document, indent=1))
    assert actions(terminal, client)[file] == "unchanged"
    assert actions(terminal, client, "--data-dir", "new")[file] == "update"
    changed = json.loads(path.read_text())
    for event, groups in changed["hooks"].items():
        ((mine, ours),) = [group["hooks"] for group in groups]
        assert (mine, groups[0]["matcher"]) == ({"type": "command", "command": "mine"}, "startup")
        assert f"--data-dir {terminal.directory / 'new'}" in ours["command"], event
    terminal.data("setup", client, "--remove")
    left = json.loads(path.read_text())
    alone = {"hooks": [{"type": "command", "command": "mine"}], "matcher": "startup"}
    assert left == {"hooks": {event: [alone] for event in changed["hooks"]}}


@pytest.mark.parametrize(("client", "file"), [*GROUPED, ("cursor", ".cursor/hooks.json")])
def test_matcher_and_timeout_of_our_hook_are_as_others_set_them(terminal: Terminal, client: str, file: str) -> None:
    terminal.data("setup", client)
    path = terminal.directory / file
    document = json.loads(path.read_text())
    for groups in document["hooks"].values():
        groups[0]["matcher"] = "startup"
        groups[0].get("hooks", groups)[0]["timeout"] = 77
    path.write_text(json.dumps(document, indent=1))
    assert actions(terminal, client)[file] == "unchanged"
    assert actions(terminal, client, "--data-dir", "new")[file] == "update"
    for groups in json.loads(path.read_text())["hooks"].values():
        assert [group["matcher"] for group in groups] == ["startup"]
        assert groups[0].get("hooks", groups)[0]["timeout"] == 77
    terminal.data("setup", client, "--remove")
    assert tree(terminal) == {}


@pytest.mark.parametrize(("client", "file"), [*GROUPED, ("cursor", ".cursor/hooks.json")])
def test_hook_of_ours_in_a_line_of_others_is_refused_and_never_removed(
    terminal: Terminal, client: str, file: str
) -> None:
    terminal.data("setup", client)
    path = terminal.directory / file
    path.write_text(path.read_text().replace(" || true", " || notify-send oh"))
    for words in ([], ["--data-dir", "new"], ["--print"]):
        error = refused(terminal, file, client, *words)
        assert "|| notify-send oh" in error["message"]
        assert "|| notify-send oh" in str(error["details"]["foreign"])
    before = path.read_bytes()
    answer = terminal.atb("setup", client, "--remove")
    assert sum(str(path) in warning and "is kept" in warning for warning in answer.warnings) == 2
    left = path.read_text()
    assert left.count("notify-send") == left.count("prime --hook") == 2
    assert path.read_bytes() == before or client == "gemini"


@pytest.mark.parametrize(("client", "file"), [("codex", "AGENTS.md"), ("gemini", "GEMINI.md")])
def test_block_that_was_edited_stays(terminal: Terminal, client: str, file: str) -> None:
    path = put(terminal, file, "# Rules\n")
    terminal.data("setup", client)
    path.write_text(path.read_text().replace("- Only people", "- Be kind.\n- Only people"))
    before = path.read_bytes()
    for words in ([], ["--data-dir", "new"], ["--remove"]):
        answer = terminal.atb("setup", client, *words)
        assert [one["action"] for one in answer.data["files"] if one["path"] == str(path)] == ["kept"]
        assert any(str(path) in warning for warning in answer.warnings)
        assert path.read_bytes() == before


# When writing goes wrong


@pytest.mark.parametrize("call", ["fsync", "replace"])
@pytest.mark.parametrize("after", [0, 1, 2])
def test_file_that_cannot_be_written_leaves_all_as_they_were(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, call: str, after: int
) -> None:
    put(terminal, ".mcp.json", '{"mcpServers": {}}')
    before = tree(terminal)
    real, left = getattr(os, call), [after]

    def full(*arguments: Any, **named: Any) -> Any:
        left[0] -= 1
        if left[0] == -1:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(*arguments, **named)

    monkeypatch.setattr(os, call, full)
    error = terminal.refused("unusable", "setup", "claude")
    assert error["details"]["file"].startswith(str(terminal.directory))
    assert tree(terminal) == before
    left[0] = 1_000
    assert set(actions(terminal, "claude").values()) == {"create", "update"}


# For any file that there may be


def ours(**options: Any) -> JsonEntries:
    server = clients.Server(["/usr/bin/atb"], ["--data-dir", options.get("data_dir", "/srv/board")], None)
    return JsonEntries(
        "settings.json",
        "/",
        [
            clients.server_entry(("mcpServers",), server),
            clients.hook_entry("claude", "session-start", server),
            clients.hook_entry("claude", "stop", server),
            Entry((), "version", 1, lambda _: False, only_new=True),
        ],
    )


scalars = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
elements = st.lists(values, max_size=3)
hooked = st.fixed_dictionaries({}, optional={"SessionStart": elements, "Stop": elements, "Other": values})
documents = st.tuples(
    st.dictionaries(st.text(max_size=6), values, max_size=3),
    st.fixed_dictionaries(
        {},
        optional={
            "mcpServers": st.dictionaries(st.text(max_size=4), values, max_size=2),
            "hooks": hooked,
            "version": scalars,
        },
    ),
    st.randoms(use_true_random=False),
)


def written(value: Any, chance: random.Random, nl: str) -> str:
    """Return a value as JSON with white space anywhere that it may be."""

    def gap() -> str:
        return chance.choice(["", "", " ", nl, f"{nl}  ", f"{nl}\t", " \t "])

    if isinstance(value, dict):
        inner = ",".join(
            f"{gap()}{json.dumps(key)}{gap()}:{gap()}{written(one, chance, nl)}{gap()}" for key, one in value.items()
        )
        return "{" + (inner or gap()) + "}"
    if isinstance(value, list):
        return "[" + (",".join(f"{gap()}{written(one, chance, nl)}{gap()}" for one in value) or gap()) + "]"
    return json.dumps(value, ensure_ascii=chance.random() < 0.5)


def text_of(document: tuple[dict[str, Any], dict[str, Any], random.Random]) -> str:
    more, known, chance = document
    members = list({**more, **known}.items())
    chance.shuffle(members)
    nl = chance.choice(["\n", "\r\n"])
    ending = chance.choice(["", nl, f" {nl}{nl}"])
    return chance.choice(["", "\ufeff", nl]) + written(dict(members), chance, nl) + ending


@given(documents)
def test_any_json_comes_back_byte_for_byte(document: tuple[dict[str, Any], dict[str, Any], random.Random]) -> None:
    start = text_of(document)
    entries = ours()
    there = entries.put(start)
    assert entries.put(there) == there
    before, after = json.loads(start.lstrip("\ufeff")), json.loads(there.lstrip("\ufeff"))
    assert after["mcpServers"].pop(clients.NAME) == entries.entries[0].value
    for event in ("SessionStart", "Stop"):
        assert hooks.is_ours(after["hooks"][event].pop()["hooks"][0])
        assert after["hooks"][event] == before.get("hooks", {}).get(event, [])
    assert after["mcpServers"] == before.get("mcpServers", {})
    assert {key: one for key, one in after.items() if key not in ("hooks", "mcpServers")} == {
        key: one for key, one in before.items() if key not in ("hooks", "mcpServers")
    }
    assert entries.take(there) == start
    assert entries.take(start) == start
    assert ours(data_dir="/elsewhere").take(ours(data_dir="/elsewhere").put(there)) == start


def test_json_file_of_ours_goes_whole() -> None:
    assert ours().take(ours().own()) is None
    assert ours().take(ours(data_dir="/elsewhere").put(ours().own())) is None


keys = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
tables = st.dictionaries(
    keys,
    st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats()
    | keys
    | st.lists(st.integers(0, 9), max_size=3)
    | st.dictionaries(keys, st.integers(0, 9) | keys, max_size=3),
    max_size=4,
)


@given(
    tables,
    st.dictionaries(keys, st.just({"command": "x"}), max_size=2),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(["", "# end", "\n", "\n\n# end\n"]),
)
def test_any_toml_comes_back_byte_for_byte(
    table: dict[str, Any], servers: dict[str, Any], nl: str, ending: str
) -> None:
    assume("mcp_servers" not in table)
    start = tomli_w.dumps({**table, **({"mcp_servers": servers} if servers else {})}).rstrip("\n")
    start = (start + ending).replace("\r", "").replace("\n", nl)
    entry = Entry(("mcp_servers",), "agent-task-board", {"command": "y"}, lambda _: True)
    block = blocks.TomlBlock("config.toml", "/", ("mcp_servers", "agent-task-board"), entry)
    there = block.put(start)
    assert block.put(there) == there
    assert tomllib.loads(there)["mcp_servers"] == {**servers, "agent-task-board": {"command": "y"}}
    assert block.take(there) == start
    assert block.take(start) == start


@given(st.text() | st.lists(st.sampled_from(["a", "\n", "\r\n", "\r", " ", "#"])).map("".join))
def test_any_text_comes_back_byte_for_byte(start: str) -> None:
    block = blocks.Block("AGENTS.md", "/", blocks.MARKDOWN, "one\n\ntwo")
    there = block.put(start)
    assert block.put(there) == there
    assert start in there
    assert block.take(there) == start
    assert block.take(start) == start
    other = blocks.Block("AGENTS.md", "/", blocks.MARKDOWN, "three")
    assert other.take(other.put(there)) == start


@given(
    st.lists(st.sampled_from(["a\n", "b\r\n", "\n"])).map("".join),
    st.lists(st.sampled_from(["a\n", "b", "\n"])).map("".join),
)
def test_lines_added_around_a_block_stay_lines(above: str, below: str) -> None:
    block = blocks.Block("AGENTS.md", "/", blocks.MARKDOWN, "one")
    left = block.take(above + block.own() + below)
    assert "".join((left or "").split()) == "".join((above + below).split())
    assert len((left or "").split()) == len((above + below).split())


def test_file_of_ours_goes_whole_unless_it_was_edited() -> None:
    file = blocks.OwnFile("SKILL.md", "/", "one\n")
    assert file.put(None) == file.own()
    assert file.take(file.own()) is None
    assert file.take(file.own().replace("\n", "\r\n")) is None
    newer = blocks.OwnFile("SKILL.md", "/", "two\n")
    assert newer.put(file.own()) == newer.own()
    with pytest.raises(files.Kept):
        newer.take(file.own().replace("one", "three"))
    with pytest.raises(files.Unfit):
        newer.put("mine\n")


# Documents


def rows() -> Iterator[list[str]]:
    page = (Path(__file__).parent.parent / "docs" / "setup.md").read_text(encoding="utf-8")
    table = page.partition("## Files written")[2].partition("\n## ")[0]
    for line in table.splitlines():
        cells = re.findall(r"\| ([^|]*?) (?=\|)", line)
        if cells and cells[0].startswith("`"):
            yield [cell.strip("`\N{EN DASH}") for cell in cells]


def test_page_names_every_file_that_is_written() -> None:
    wanted = [
        [client, project or "", home or ""] for client, told in clients.CLIENTS.items() for _, project, home in told
    ]
    assert [row[:3] for row in rows()] == wanted


# Which board


def test_setup_creates_the_board_of_the_project_and_names_no_path_of_this_machine(terminal: Terminal) -> None:
    for client in ALL:
        answer = terminal.data("setup", client)
        assert answer["data_dir"] == str(terminal.directory / ".atb")
        assert answer["created"] == (client == ALL[0])
    for name, content in tree(terminal).items():
        assert str(terminal.directory).encode() not in (content or b""), name
        assert os.path.dirname(sys.executable).encode() not in (content or b""), name
    assert entry_of(terminal, ".mcp.json") == {"command": "atb", "args": ["mcp"]}
    line = hook_line(terminal, "SessionStart")
    ran = subprocess.run(
        ["sh", "-c", line], input=b"{}", capture_output=True, timeout=60, cwd=terminal.directory, env=terminal.environ
    )
    assert "ready for you: 0" in json.loads(ran.stdout)["hookSpecificOutput"]["additionalContext"]


def test_program_that_the_path_does_not_lead_to_is_named_with_a_warning(terminal: Terminal) -> None:
    answer = terminal.atb("setup", "claude", PATH="/nowhere")
    assert any("name its path on this machine" in warning for warning in answer.warnings)
    assert os.path.isabs(entry_of(terminal, ".mcp.json")["command"])


def test_setup_below_a_project_or_in_a_worktree_is_for_the_project(terminal: Terminal) -> None:
    put(terminal, "app/.git/HEAD", "ref: refs/heads/main\n")
    put(terminal, "app/.git/worktrees/feature/commondir", "../..\n")
    put(terminal, "feature/.git", f"gitdir: {terminal.directory}/app/.git/worktrees/feature\n")
    (terminal.directory / "app" / "src").mkdir()
    for name in ("app/src", "feature"):
        below = Terminal(terminal.directory / name)
        below.environ.update(terminal.environ)
        answer = below.data("setup", "claude")
        assert answer["project"] == str(terminal.directory / "app")
        assert answer["data_dir"] == str(terminal.directory / "app" / ".atb")
        assert below.data("setup", "claude", "--remove")["project"] == answer["project"]
    assert [name for name in tree(terminal) if "claude" in name or "mcp" in name] == []


def test_variable_that_names_another_board_is_warned_of_and_not_written(terminal: Terminal) -> None:
    other = str(terminal.directory / "other")
    answer = terminal.atb("setup", "claude", ATB_DATA_DIR=other)
    assert any(other in warning and "ATB_DATA_DIR" in warning for warning in answer.warnings)
    assert answer.data["data_dir"] == str(terminal.directory / ".atb")
    assert entry_of(terminal, ".mcp.json")["args"] == ["mcp"]
    assert not Path(other).exists()
    own = terminal.atb("setup", "claude", ATB_DATA_DIR=answer.data["data_dir"])
    assert own.warnings == ["already up to date"]


def test_board_that_is_not_the_project_s_own_is_warned_of(terminal: Terminal) -> None:
    answer = terminal.atb("setup", "claude", "--data-dir", "shared")
    assert any("not the project's own board" in warning for warning in answer.warnings)
    assert terminal.atb("setup", "claude", "--data-dir", ".atb").warnings == [
        f"created a board at {terminal.directory / '.atb' / 'tasks.db'}"
    ]
    assert entry_of(terminal, ".mcp.json")["args"] == ["mcp"]


def test_temporary_directory_and_board_of_another_project_are_never_written(terminal: Terminal) -> None:
    for name in ("scratch", "app", "theirs"):
        (terminal.directory / name).mkdir()
    put(terminal, "theirs/.git/HEAD", "ref: refs/heads/main\n")
    app = Terminal(terminal.directory / "app")
    app.environ.update(terminal.environ, TMPDIR=str(terminal.directory / "scratch"))
    before = terminal.files()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tempfile.tempdir", None)
        for words in (["--data-dir", "../scratch/board"], ["--data-dir", "../theirs/.atb"]):
            for scope in ([], ["--user"]):
                error = app.refused("invalid_input", "setup", "claude", *words, *scope)
                assert error["details"]["field"] == "data_dir"
                assert terminal.files() == before
    answer = app.data("setup", "claude", ATB_DATA_DIR=str(terminal.directory / "scratch" / "board"))
    assert answer["data_dir"] == str(app.directory / ".atb")


def test_board_that_cannot_be_created_leaves_the_files_as_they_were(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agent_task_board.storage import filesystem

    put(terminal, ".mcp.json", '{"mcpServers": {}}')
    before = tree(terminal), terminal.files()
    monkeypatch.setattr(filesystem, "shared_type", lambda directory: "nfs4")
    terminal.refused("unusable", "setup", "claude")
    assert (tree(terminal), terminal.files()) == before
