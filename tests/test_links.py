"""Nothing is written through a symbolic link that leads out of the project or of the data directory."""

from __future__ import annotations

import ctypes
import os
import stat
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import pytest

from agent_task_board.folder import Folder, LeadsOut
from agent_task_board.reach import reach, reach_folder
from agent_task_board.setup import clients
from agent_task_board.storage import copies
from tests.command_line import Terminal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CLIENTS = sorted(clients.CLIENTS)


class Victim:
    """What a link leads to: a file and a directory outside of the project, which must stay as they are."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory / "victim"
        self.file = self.directory / "bashrc"
        (self.directory / "folder").mkdir(parents=True)
        self.file.write_text("mine\n")
        self.file.chmod(0o644)
        (self.directory / "empty").touch()
        (self.directory / "folder").chmod(0o777)
        self.before = self.state()

    def state(self) -> dict[str, tuple[int, bytes]]:
        return {
            str(path): (path.lstat().st_mode, path.read_bytes() if path.is_file() else b"")
            for path in self.directory.rglob("*")
        }


@pytest.fixture
def victim(tmp_path: Path) -> Iterator[Victim]:
    victim = Victim(tmp_path)
    yield victim
    assert victim.state() == victim.before


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    (tmp_path / "app" / ".git").mkdir(parents=True)
    (tmp_path / "app" / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    return Terminal(tmp_path / "app")


# The way to a file


def test_links_that_stay_inside_count_and_all_others_are_refused(tmp_path: Path) -> None:
    top = tmp_path / "top"
    (top / "sub" / "deep").mkdir(parents=True)
    (tmp_path / "out").mkdir()
    (top / "sub" / "file").write_text("x")
    for name, target in {
        "relative": "sub/file",
        "absolute": str(top / "sub" / "file"),
        "around": "sub/../sub/./file",
        "twice": "relative",
        "sub/deep/back": "../../sub/file",
        "folder": "sub",
        "loop": "loop",
        "out": "../out/file",
        "far": "/etc/hostname",
        "sly": "sub/../../out/file",
        "beside": f"{top}-not/file",
        "dots": f"{top}/../out/file",
        "sub/deep/up": "../../../out",
        "top": ".",
    }.items():
        (top / name).symlink_to(target)
    for path in ("relative", "absolute", "around", "twice", "folder/file", "top/sub/file"):
        with reach(str(top / path), str(top)) as spot:
            assert os.path.samefile(spot.path, top / "sub" / "file"), path
            assert (spot.name, spot.is_linked) == ("file", not path.endswith("file")), path
    for path in ("out", "far", "sly", "beside", "dots", "sub/deep/up/x"):
        with pytest.raises(LeadsOut):
            reach(str(top / path), str(top))
    with pytest.raises(LeadsOut):
        reach(str(tmp_path / "out" / "x"), str(top))
    for path in ("loop", "top", "sub/file/x"):
        with pytest.raises(OSError, match=r".") as caught:
            reach(str(top / path), str(top))
        assert not isinstance(caught.value, LeadsOut), path
    with reach_folder(str(top / "new" / "deep"), str(top), create=True) as made:
        assert stat.S_IMODE(os.stat(made.path).st_mode) == 0o700


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "out").symlink_to("/")
    before = os.listdir("/dev/fd")
    for _ in range(3):
        reach(str(tmp_path / "a" / "b" / "c"), str(tmp_path)).close()
        reach_folder(str(tmp_path / "a" / "b"), str(tmp_path)).close()
        for path in ("a/out/x", "a/b/c/d"):
            with pytest.raises(OSError, match=r"."):
                reach(str(tmp_path / path), str(tmp_path))
    assert os.listdir("/dev/fd") == before


def test_created_file_is_new_private_and_not_inherited(tmp_path: Path) -> None:
    with Folder(str(tmp_path)) as folder:
        descriptor = folder.create("new")
        try:
            assert not os.get_inheritable(descriptor)
            assert stat.S_IMODE(os.fstat(descriptor).st_mode) == 0o600
        finally:
            os.close(descriptor)
        (tmp_path / "link").symlink_to(tmp_path / "nowhere")
        for taken in ("new", "link"):
            with pytest.raises(FileExistsError):
                folder.create(taken)
        for name in ("", ".", "..", "a/b"):
            with pytest.raises(ValueError, match="single name"):
                folder.create(name)
    assert not (tmp_path / "nowhere").exists()


# Setup


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("kind", ["file", "missing file", "directory"])
def test_setup_writes_through_no_link_of_a_checkout(terminal: Terminal, victim: Victim, client: str, kind: str) -> None:
    for _, name, _ in clients.CLIENTS[client]:
        path = terminal.directory / str(name)
        link = path if "file" in kind else terminal.directory / str(name).split("/")[0]
        if kind == "directory" and link == path:
            continue
        link.parent.mkdir(parents=True, exist_ok=True)
        target = {"file": victim.file, "missing file": victim.directory / "new", "directory": victim.directory}[kind]
        link.symlink_to(target)
        for words in ([], ["--print"], ["--remove"]):
            error = terminal.refused("invalid_input", "setup", client, *words)
            assert str(link) in error["message"]
            assert "leads out" in error["message"]
        assert not (terminal.directory / ".atb").exists()
        link.unlink()
    if "file" in kind:
        terminal.data("setup", client)


def test_setup_writes_through_a_link_that_stays_in_the_project(terminal: Terminal) -> None:
    (terminal.directory / "CLAUDE.md").write_text("# Rules\n")
    (terminal.directory / "AGENTS.md").symlink_to("CLAUDE.md")
    (terminal.directory / "config" / "codex").mkdir(parents=True)
    (terminal.directory / ".codex").symlink_to("config/codex")
    terminal.data("setup", "codex")
    assert (terminal.directory / "AGENTS.md").is_symlink()
    assert "agent-task-board" in (terminal.directory / "CLAUDE.md").read_text()
    assert (terminal.directory / "config" / "codex" / "hooks.json").is_file()
    terminal.data("setup", "codex", "--remove")
    assert (terminal.directory / "CLAUDE.md").read_text() == "# Rules\n"


def test_links_of_a_user_may_lead_anywhere(terminal: Terminal, tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    (terminal.directory / ".claude").symlink_to(tmp_path / "dotfiles")
    terminal.data("setup", "claude", "--user", "--data-dir", "board")
    assert (tmp_path / "dotfiles" / "settings.json").is_file()


# Commands that write


def board(terminal: Terminal) -> Path:
    terminal.data("init")
    terminal.add()
    return terminal.directory / ".atb"


def test_backups_go_through_no_link_and_none_of_another_board_is_removed(terminal: Terminal, victim: Victim) -> None:
    data = board(terminal)
    (data / "backups").symlink_to(victim.directory / "folder")
    for words in (["backup"], ["backup", "--keep", "1"], ["doctor", "--fix", "permissions"]):
        answer = terminal.atb(*words)
        assert words[0] == "doctor" or "leads out" in answer.error["message"], answer
    (data / "backups").unlink()
    (terminal.directory / "out").symlink_to(victim.directory / "folder")
    for words in (["backup", "--output", "out"], ["backup", "--output", str(terminal.directory / "out" / "deep")]):
        assert "leads out" in terminal.refused("unusable", *words)["message"]
    (data / "real").mkdir()
    (data / "backups").symlink_to("real")
    assert terminal.data("backup")["path"].startswith(str(data / "real"))


def test_data_directory_that_is_reached_by_a_link_works(terminal: Terminal, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (terminal.directory / "link").symlink_to(tmp_path / "elsewhere")
    terminal.data("init", "--data-dir", "link/board")
    terminal.data("add", "t", "--data-dir", "link/board")
    assert os.path.realpath(terminal.data("backup", "--data-dir", "link/board")["path"]).startswith(
        str(tmp_path / "elsewhere" / "board" / "backups")
    )
    assert terminal.data("doctor", "--data-dir", "link/board")["healthy"]


def test_export_replaces_no_file_behind_a_link_that_leads_out(
    terminal: Terminal, victim: Victim, tmp_path: Path
) -> None:
    board(terminal)
    (terminal.directory / "tasks.json").symlink_to(victim.file)
    (terminal.directory / "out").symlink_to(victim.directory)
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    (shared / "tasks.json").symlink_to(victim.file)
    (shared / "new.json").symlink_to(victim.directory / "new")
    for output in ("tasks.json", "out/bashrc", "out/new", str(shared / "tasks.json"), str(shared / "new.json")):
        assert "leads out" in terminal.refused("invalid_input", "export", "--output", output)["message"], output
    (terminal.directory / "latest.json").symlink_to("first.json")
    terminal.data("export", "--output", "latest.json")
    assert (terminal.directory / "first.json").is_file()
    assert terminal.data("export", "--output", str(shared / "mine.json"))["tasks"] == 1
    (tmp_path / "to-shared").symlink_to(shared)
    terminal.data("export", "--output", str(tmp_path / "to-shared" / "more.json"))


def test_doctor_takes_no_permission_from_a_file_behind_a_link(terminal: Terminal, victim: Victim) -> None:
    data = board(terminal)
    (data / "config.toml").write_text("[hooks]\nwebhook_secret = 'hush'\n")
    for name in ("turnstile.queue", "turnstile.turn", "tasks.db-shm", "backups"):
        (data / name).unlink(missing_ok=True)
        (data / name).symlink_to(victim.file if name != "backups" else victim.directory / "folder")
    (data / "config.toml").chmod(0o644)
    found = terminal.atb("doctor", "--fix", "permissions").envelope
    said = str(found)
    assert "leads out" in said
    for name in ("turnstile.queue", "turnstile.turn", "backups"):
        (data / name).unlink()
    (data / "tasks.db-shm").unlink()
    terminal.data("doctor", "--fix", "permissions")
    assert stat.S_IMODE((data / "config.toml").stat().st_mode) == 0o600


def test_locks_create_and_lock_no_file_behind_a_link(terminal: Terminal, victim: Victim) -> None:
    data = board(terminal)
    for name in ("turnstile.queue", "turnstile.turn", "hooks.lock"):
        (data / name).unlink(missing_ok=True)
        (data / name).symlink_to(victim.directory / f"new-{name}")
    terminal.add("works without them")


def test_init_and_config_init_write_through_no_link(terminal: Terminal, victim: Victim) -> None:
    for name in (".atb", "data", "config"):
        (terminal.directory / name).symlink_to(victim.directory / "folder")
    assert "leads out" in terminal.refused("unusable", "init")["message"]
    for words in (["add", "t"], ["setup", "claude"], ["mcp"], ["import", "/dev/null"]):
        terminal.refused("unusable", *words)
    assert "leads out" in terminal.refused("invalid_input", "config", "init", "config/atb.toml")["message"]
    (terminal.directory / "atb.toml").symlink_to(victim.directory / "new")
    terminal.refused("invalid_input", "config", "init")


def test_settings_beside_a_linked_board_do_not_rule_it(terminal: Terminal, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    terminal.data("init", "--data-dir", str(mine))
    planted = terminal.directory / ".atb"
    planted.mkdir()
    (planted / "tasks.db").symlink_to(mine / "tasks.db")
    (planted / "config.toml").write_text("lease = '1s'\n")
    found = terminal.data("where")
    assert found["exists"] is False
    assert any("leads out" in one for one in found["ignored"])


def test_restore_writes_through_no_link(terminal: Terminal, victim: Victim) -> None:
    board(terminal)
    packed = terminal.data("backup")["path"]
    (terminal.directory / "new").symlink_to(victim.directory / "folder")
    assert "leads out" in terminal.refused("unusable", "restore", packed, "--data-dir", "new")["message"]
    open_to_all = terminal.directory / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    assert "other users" in terminal.refused("unusable", "restore", packed, "--data-dir", "open")["message"]
    assert list(open_to_all.iterdir()) == []


def test_directory_that_somebody_links_to_outside_of_a_project_takes_backups(
    terminal: Terminal, tmp_path: Path
) -> None:
    board(terminal)
    (tmp_path / "disk").mkdir()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "backups").symlink_to(tmp_path / "disk" / "board")
    (tmp_path / "disk" / "board").mkdir()
    found = terminal.data("backup", "--output", str(tmp_path / "mine" / "backups"))
    assert os.listdir(tmp_path / "disk" / "board") == [os.path.basename(found["path"])]
    if os.getuid() == 0:
        os.chown(tmp_path / "mine" / "backups", 65_533, -1, follow_symlinks=False)
        assert (
            "leads out"
            in terminal.refused("unusable", "backup", "--output", str(tmp_path / "mine" / "backups"))["message"]
        )


def test_no_board_is_created_behind_a_link(terminal: Terminal, victim: Victim) -> None:
    planted = terminal.directory / "planted"
    planted.mkdir()
    for target in (victim.directory / "new.db", victim.directory / "empty"):
        (planted / "tasks.db").symlink_to(target)
        for words in (["add", "t"], ["init"]):
            terminal.refused("unusable", *words, "--data-dir", "planted")
        (planted / "tasks.db").unlink()


def test_backup_into_a_directory_that_others_can_change_is_copied_elsewhere(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = board(terminal)
    copied: list[str] = []
    open_copy = copies.open_copy

    def note(path: str) -> Any:
        copied.append(path)
        return open_copy(path)

    monkeypatch.setattr(copies, "open_copy", note)
    shared = terminal.directory / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    found = terminal.data("backup", "--output", "shared")
    assert [path.name for path in shared.iterdir()] == [os.path.basename(found["path"])]
    assert [os.path.dirname(os.path.dirname(path)) for path in copied] == [str(data)]
    terminal.data("restore", found["path"], "--data-dir", "restored")


# Races


EXCHANGE = 2
"""The flag of ``renameat2`` with which two names are exchanged in one step."""


class Swapper:
    """Exchanges a directory with a link that leads out, again and again, as fast as it can."""

    def __init__(self, directory: Path, target: Path) -> None:
        try:
            self._rename = ctypes.CDLL(None).renameat2
        except AttributeError:
            pytest.skip("needs renameat2")
        self._names = [os.fsencode(directory), os.fsencode(directory.with_name("link"))]
        os.symlink(target, self._names[1])
        self._over = Event()
        self._thread = Thread(target=self._run)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        here = -100  # AT_FDCWD
        while not self._over.is_set():
            self._rename(here, self._names[0], here, self._names[1], EXCHANGE)


@pytest.mark.parametrize("client", ["claude", "cursor"])
def test_directory_that_becomes_a_link_in_between_receives_nothing(
    terminal: Terminal, victim: Victim, client: str
) -> None:
    board(terminal)
    folder = terminal.directory / f".{client}"
    folder.mkdir()
    (folder / "keep").write_text("")
    with Swapper(folder, victim.directory / "folder"):
        for _ in range(40):
            terminal.atb("setup", client)
            terminal.atb("setup", client, "--remove")


def test_backups_that_become_a_link_in_between_receive_nothing(terminal: Terminal, victim: Victim) -> None:
    data = board(terminal)
    (data / "backups").mkdir()
    with Swapper(data / "backups", victim.directory / "folder"):
        for _ in range(20):
            terminal.atb("backup", "--keep", "1")
            terminal.atb("doctor", "--fix", "permissions")
