"""What counts although nobody named it: a checkout runs nothing, opens nothing and settles nothing for other boards."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from agent_task_board import config, state
from agent_task_board.trust import Trust, trust_file
from tests.command_line import Terminal
from tests.waiting import eventually

as_root = pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="needs root: it changes owners")
SOMEBODY = 65_533


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    return Terminal(tmp_path)


def at(terminal: Terminal, name: str) -> Terminal:
    """Return a terminal in a directory below, with the same home."""
    inner = terminal.directory / name
    inner.mkdir(parents=True, exist_ok=True)
    other = Terminal(inner)
    other.environ = terminal.environ
    return other


def settings(terminal: Terminal, *words: str, **environ: str) -> dict[str, Any]:
    """Return every setting that differs from its default, but for the data directory."""
    found = terminal.data("config", "show", *words, **environ)["values"]
    return {key: one["value"] for key, one in found.items() if one["source"] != "default" and key != "data_dir"}


def hook_that_writes(file: Path) -> str:
    return f'[hooks]\nenabled = true\ncommand = ["/bin/sh", "-c", "echo ran >> {file}"]\n'


SERVE = '[serve]\nhost = "0.0.0.0"\nport = 1\nallow_hosts = ["evil.example"]\n'
APPLIED = {"serve.host": "0.0.0.0", "serve.port": 1, "serve.allow_hosts": ["evil.example"]}

FILES = ("atb.toml", "data/config.toml", ".atb/config.toml")
WAYS: dict[str, tuple[int, tuple[str, ...], dict[str, str]]] = {
    "as it was cloned": (0o755, (), {}),
    "under umask 077": (0o700, (), {}),
    "with the directory named by an option": (0o700, ("--data-dir", "{}"), {}),
    "with the directory named by a variable": (0o755, (), {"ATB_DATA_DIR": "{}"}),
}


def clone(terminal: Terminal, file: str, text: str, mode: int) -> tuple[Terminal, str]:
    """Return a terminal in a clone with a configuration file of others, and the data directory of its board."""
    work = at(terminal, "clone")
    directory = (work.directory / file).parent if file != "atb.toml" else work.directory / ".atb"
    work.data("init", "--data-dir", str(directory))
    (directory / "config.toml").unlink(missing_ok=True)
    (work.directory / file).write_text(text)
    directory.chmod(mode)
    return work, str(directory)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("file", FILES)
def test_checkout_runs_and_opens_nothing(terminal: Terminal, file: str, way: str) -> None:
    mode, words, environ = WAYS[way]
    proof = terminal.directory / "proof"
    work, directory = clone(terminal, file, f"lease = '5m'\n{hook_that_writes(proof)}{SERVE}", mode)
    words = tuple(word.format(directory) for word in words)
    environ = {name: value.format(directory) for name, value in environ.items()}
    is_named = bool(words or environ)
    shown = settings(work, *words, **environ)
    assert shown == ({} if is_named and file == "atb.toml" else {"lease": "5m"})
    work.data("done", work.data("add", "t", *words, **environ)["task"]["id"], *words, **environ)
    assert work.data("hooks", "list", *words, **environ) == {"targets": [], "deliveries": []}
    work.data("tick", *words, **environ)
    if not (is_named and file == "atb.toml"):
        for command in (("where",), ("config", "show"), ("doctor",)):
            answer = work.atb(*command, *words, **environ)
            said = str(answer.envelope)
            assert all(f"{work.directory / file}: {part} is ignored" in said for part in ("[hooks]", "[serve]")), answer
    assert not proof.exists()


@pytest.mark.parametrize("file", FILES)
def test_trust_shows_what_would_run_and_makes_it_count_until_the_file_changes(terminal: Terminal, file: str) -> None:
    proof = terminal.directory / "proof"
    text = hook_that_writes(proof) + "webhook_url = 'https://hook.example/path'\nwebhook_secret = 'hush'\n" + SERVE
    work, _ = clone(terminal, file, text, 0o755)
    answer = work.atb("trust")
    assert answer.warnings == []
    assert answer.data["trusted"] is True
    assert answer.data["file"] == str(work.directory / file)
    assert answer.data["hooks"]["command"] == ["/bin/sh", "-c", f"echo ran >> {proof}"]
    assert (answer.data["hooks"]["webhook_url"], answer.data["hooks"]["webhook_secret"]) == (
        "https://hook.example/…",
        config.HIDDEN,
    )
    assert answer.data["serve"] == {"host": "0.0.0.0", "port": 1, "allow_hosts": ["evil.example"]}
    assert work.atb("where").data["ignored"] == []
    assert APPLIED.items() <= settings(work).items()
    work.process("done", work.add())
    eventually(proof.exists, "the hook has run")
    proof.unlink()

    with (work.directory / file).open("a") as changed:
        changed.write("# one more line\n")
    done = work.process("done", work.add())
    assert any("[hooks] is ignored: the file changed since it was trusted" in one for one in done.warnings)
    assert work.data("hooks", "list")["targets"] == []
    assert not proof.exists()
    work.data("trust", "--remove", str(work.directory / file))
    assert str(work.directory / file) not in [one["path"] for one in work.data("trust", "--list")["files"]]


def test_delivery_that_starts_later_takes_no_file_that_changed_meanwhile(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, _ = clone(terminal, "atb.toml", hook_that_writes(terminal.directory / "proof"), 0o755)
    work.data("trust")
    started: list[list[str]] = []
    monkeypatch.setattr(os, "posix_spawn", lambda _, words, *rest, **named: started.append(words))
    work.data("done", work.add())
    assert [words[words.index("hooks") :] for words in started] == [["hooks", "deliver"]]


def test_trust_is_for_people_only(terminal: Terminal) -> None:
    work, _ = clone(terminal, "atb.toml", SERVE, 0o755)
    for words, environ in ((("--agent", "ada"), {}), ((), {"ATB_AGENT": "ada"}), (("--yes",), {"ATB_AGENT": "ada"})):
        error = work.refused("not_permitted", "trust", *words, **environ)
        assert "person" in error["hint"]
    for words in (("--list",), ("--remove", "atb.toml"), (".",)):
        work.refused("not_permitted", "trust", *words, ATB_AGENT="ada")
    assert settings(work) == {}


@pytest.mark.parametrize(("typed", "is_trusted"), [("y\n", True), ("\n", False), ("no\n", False), ("", False)])
def test_at_a_terminal_it_asks(terminal: Terminal, typed: str, is_trusted: bool) -> None:
    work, _ = clone(terminal, "atb.toml", SERVE, 0o755)
    code = (
        "import sys; from agent_task_board.cli import main; sys.stdout.isatty = lambda: True;"
        "sys.stdin.isatty = lambda: True; raise SystemExit(main(sys.argv[1:]))"
    )
    asked = work.process("trust", "--format", "table", stdin=typed, code=code)
    assert "evil.example" in asked.err
    assert "[y/N]" in asked.err
    assert asked.code == 0
    assert (settings(work) == APPLIED) is is_trusted
    assert "[y/N]" not in work.process("trust", "--format", "table", "--yes", code=code).err
    assert settings(work) == APPLIED


def test_what_init_writes_is_recorded_and_asks_again_once_it_is_edited(terminal: Terminal) -> None:
    written = [terminal.data("init")["config"], terminal.data("config", "init", "own.toml")["path"]]
    assert [one["path"] for one in terminal.data("trust", "--list")["files"]] == sorted(written)
    with Path(written[0]).open("a") as file:  # its last section is [hooks]
        file.write("enabled = true\ncommand = ['true']\n")
    assert settings(terminal).get("hooks.command") is None


def test_link_is_another_file_than_its_target(terminal: Terminal) -> None:
    mine = at(terminal, "mine")
    mine.data("init")
    file = mine.directory / ".atb" / "config.toml"
    file.write_text(hook_that_writes(terminal.directory / "proof"))
    mine.data("trust")
    work, directory = clone(terminal, ".atb/config.toml", "", 0o755)
    (Path(directory) / "config.toml").unlink()
    (Path(directory) / "config.toml").symlink_to(file)
    assert settings(work) == {}
    assert len(settings(mine)) == 2


def test_damaged_decisions_trust_nothing(terminal: Terminal) -> None:
    work, _ = clone(terminal, "atb.toml", SERVE, 0o755)
    work.data("trust")
    file = Path(state.directory(work.environ)) / "trust.json"
    for content in (b"", b"[]", b"{", b'{"files": 1}', b'{"files": {"/x": 1}}', b"[" * 100_000, b"\xff"):
        file.write_bytes(content)
        assert settings(work) == {}, content
    assert work.data("trust")["trusted"] is True
    assert settings(work) == APPLIED


def test_nothing_to_trust_is_said(terminal: Terminal) -> None:
    assert "config init" in terminal.refused("not_found", "trust")["hint"]
    terminal.data("init")
    assert terminal.atb("trust").warnings == ["nothing in this file needs trust"]
    terminal.refused("invalid_input", "trust", "nowhere")
    terminal.refused("invalid_input", "trust", "/")
    terminal.refused("invalid_input", "trust", "/tmp")
    terminal.refused("not_found", "trust", "--remove", "nowhere")
    terminal.refused("invalid_input", "trust", ".", "--list")
    own = terminal.directory / ".config" / "agent-task-board" / "config.toml"
    own.parent.mkdir(parents=True)
    own.write_text(SERVE)
    (terminal.directory / ".atb" / "config.toml").unlink()
    assert settings(terminal) == APPLIED, "your own file always counts"
    project = terminal.directory / "agent-task-board" / "config.toml"
    project.parent.mkdir()
    project.write_text("lease = '1s'\n")
    assert settings(terminal, XDG_CONFIG_HOME=".") == APPLIED, "a relative variable names no file of a project"
    terminal.refused("invalid_input", "trust")


# Settings that were found do not rule a board that was named

RULES = "lease = '1s'\narchive_after = '0s'\n"


def test_checkout_settles_nothing_for_a_board_that_is_named_in_the_own_file(terminal: Terminal) -> None:
    own = terminal.directory / ".config" / "agent-task-board" / "config.toml"
    own.parent.mkdir(parents=True)
    own.write_text(f"data_dir = '{terminal.directory}/mine'\nlease = '20m'\n")
    work = at(terminal, "clone")
    (work.directory / "atb.toml").write_text(RULES + SERVE)
    assert settings(work) == {"lease": "20m"}
    assert settings(work, "--data-dir", "../mine") == {"lease": "20m"}


def test_checkout_that_leads_to_a_board_elsewhere_settles_nothing_for_it(terminal: Terminal) -> None:
    mine = at(terminal, "mine")
    mine.data("init", "--data-dir", ".")
    (mine.directory / "config.toml").unlink()
    work = at(terminal, "clone")
    (work.directory / "atb.toml").write_text(f"data_dir = '../mine'\n{RULES}{SERVE}")
    shown = work.atb("config", "show")
    assert shown.data["values"]["data_dir"]["value"] == str(mine.directory)
    assert settings(work) == {}
    assert [
        part for part in ("lease", "archive_after", "[serve]") if f": {part} is ignored" in str(shown.warnings)
    ] == [
        "lease",
        "archive_after",
        "[serve]",
    ]
    assert work.data("trust")["settings"] == {"lease": "1s", "archive_after": "0s"}
    assert settings(work) == {"lease": "1s", "archive_after": "0s", **APPLIED}
    (work.directory / "atb.toml").write_text(f"data_dir = 'inside'\n{RULES}")
    assert settings(work) == {"lease": "1s", "archive_after": "0s"}, "its own board"


@as_root
def test_file_of_another_user_redirects_nothing(terminal: Terminal) -> None:
    shared = terminal.directory / "tmp"
    work = at(terminal, "tmp/work")
    shared.chmod(0o1777)
    (shared / "atb.toml").write_text("data_dir = 'theirs'\n")
    for owner in (SOMEBODY, 0):
        os.chown(shared / "atb.toml", owner, -1)
        found = work.data("where")
        assert found["data_dir"] == str(work.directory / "data")
        assert len(found["ignored"]) == 1
        assert f"trust: {found['ignored'][0]}" in str(doctor(work, "--data-dir", "x")) or not found["exists"]


def doctor(terminal: Terminal, *words: str) -> list[str]:
    answer = terminal.atb("doctor", *words).envelope
    findings = answer["data"]["findings"] if answer["ok"] else answer["error"]["details"].get("findings", [])
    return [f"{one['check']}: {one['message']}" for one in findings if one["level"] != "ok"]


def test_file_that_all_can_write_in_a_directory_that_all_can_write_counts_for_nothing(terminal: Terminal) -> None:
    terminal.data("init", "--data-dir", "open")
    directory = terminal.directory / "open"
    file = directory / "config.toml"
    file.write_text(RULES)
    for file_mode, directory_mode in ((0o666, 0o777), (0o644, 0o777), (0o666, 0o700), (0o664, 0o755)):
        file.chmod(file_mode)
        directory.chmod(directory_mode)
        if file_mode == 0o664:
            os.chown(file, -1, SOMEBODY) if os.getuid() == 0 else file.chmod(0o666)
        assert settings(terminal, "--data-dir", "open") == {}, (file_mode, directory_mode)
        assert any(f"trust: {file} is ignored" in one for one in doctor(terminal, "--data-dir", "open"))
    file.chmod(0o644)
    assert len(settings(terminal, "--data-dir", "open")) == 2


@as_root
def test_link_is_judged_by_the_directory_that_it_leads_to(terminal: Terminal) -> None:
    terminal.data("init")
    open_to_all = terminal.directory / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    (open_to_all / "real.toml").write_text(RULES)
    file = terminal.directory / ".atb" / "config.toml"
    file.unlink()
    file.symlink_to(open_to_all / "real.toml")
    assert settings(terminal) == {}
    open_to_all.chmod(0o755)
    assert len(settings(terminal)) == 2


# Directories of other users


@as_root
def test_trusted_directory_of_another_user_counts_until_its_owner_or_its_permissions_change(terminal: Terminal) -> None:
    work = at(terminal, "mount")
    work.data("init")
    board = work.directory / ".atb"
    for path in (work.directory, board, *board.iterdir()):
        os.chown(path, SOMEBODY, -1)
    assert work.data("where")["exists"] is False
    work.refused("unusable", "init")
    answer = work.data("trust", str(work.directory))
    assert (answer["trusted"], answer["owner"], answer["others_write"]) == (True, str(SOMEBODY), False)
    assert work.data("where")["data_dir"] == str(board)
    assert work.data("where")["exists"] is True
    assert not [one for one in doctor(work) if one.startswith(("permissions", "trust"))]
    assert work.data("init")["created"] is False

    os.chown(board / "tasks.db", SOMEBODY - 1, -1)
    assert work.data("where")["exists"] is False, "a file of a third user"
    os.chown(board / "tasks.db", SOMEBODY, -1)
    board.chmod(0o777)
    assert work.data("where")["exists"] is False, "others can write now"
    board.chmod(0o700)
    assert work.data("where")["exists"] is True
    assert work.data("trust", "--remove", str(work.directory))["removed"] == str(work.directory)
    assert work.data("where")["exists"] is False


@as_root
def test_trusted_directory_makes_no_hook_run(terminal: Terminal) -> None:
    work, directory = clone(terminal, ".atb/config.toml", SERVE, 0o755)
    for path in (work.directory, Path(directory), *Path(directory).iterdir()):
        os.chown(path, SOMEBODY, -1)
    work.data("trust", ".")
    assert settings(work) == {}
    work.data("trust")
    assert settings(work) == APPLIED


def test_decisions_of_another_home_do_not_count(terminal: Terminal, tmp_path: Path) -> None:
    work, _ = clone(terminal, "atb.toml", SERVE, 0o755)
    file = work.directory / "atb.toml"
    trust_file(str(file), file.read_bytes(), {"HOME": str(tmp_path / "other")})
    assert settings(work) == {}
    assert Trust({"HOME": str(tmp_path / "other")}).knows(str(file), file.read_bytes())
    shutil.copytree(work.directory, terminal.directory / "copy")
    work.data("trust")
    assert settings(at(terminal, "copy")) == {}, "another path"
