"""The user's state directory: where it is, who may enter it, and that no link and no other user decides its content."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from threading import Thread

import pytest

from agent_task_board import state
from tests.support import refused

as_root = pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="needs root: it changes owners")
SOMEBODY = 65_533


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path)}


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def put(environ: dict[str, str], name: str, content: bytes, below: str | None = None) -> Path:
    with state.opened(environ, below=below) as folder:
        folder.replace(name, content)
    return Path(folder.path) / name


def test_it_is_where_the_standard_says(tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path)}
    assert state.directory(home) == str(tmp_path / ".local" / "state" / "agent-task-board")
    assert state.directory({**home, "XDG_STATE_HOME": "/var/mine"}) == "/var/mine/agent-task-board"
    assert state.directory({**home, "XDG_STATE_HOME": "relative"}) == state.directory(home)


def test_files_are_private_whatever_the_umask(home: dict[str, str]) -> None:
    before = os.umask(0)
    try:
        file = put(home, "leases.json", b"{}", below="leases")
    finally:
        os.umask(before)
    assert state.read("leases.json", home, below="leases") == b"{}"
    assert [mode_of(path) for path in (file, file.parent, file.parent.parent)] == [0o600, 0o700, 0o700]


def test_reading_creates_nothing(home: dict[str, str]) -> None:
    assert state.read("trust.json", home) is None
    assert os.listdir(home["HOME"]) == []


def test_access_of_others_is_taken_away_before_anything_is_written(home: dict[str, str]) -> None:
    top = Path(state.directory(home))
    top.mkdir(parents=True)
    top.chmod(0o777)
    (top / "trust.json").write_bytes(b"evil")
    assert state.read("trust.json", home) is None, "others may have written it"
    put(home, "trust.json", b"mine")
    assert (mode_of(top), state.read("trust.json", home)) == (0o700, b"mine")


def test_file_that_others_may_write_counts_for_nothing(home: dict[str, str]) -> None:
    put(home, "trust.json", b"{}").chmod(0o666)
    assert state.read("trust.json", home) is None


@pytest.mark.parametrize("what", ["the directory", "a subdirectory", "a file"])
def test_no_link_is_followed(home: dict[str, str], tmp_path: Path, what: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "name").write_bytes(b"theirs")
    top = Path(state.directory(home))
    top.parent.mkdir(parents=True)
    if what == "the directory":
        top.symlink_to(elsewhere)
    else:
        top.mkdir(0o700)
        name, target = ("sub", elsewhere) if what == "a subdirectory" else ("name", elsewhere / "name")
        (top / name).symlink_to(target)
    below = "sub" if what == "a subdirectory" else None
    if what == "a file":
        assert state.read("name", home) is None
        put(home, "name", b"mine")
    else:
        with refused("unusable"):
            put(home, "name", b"mine", below)
    assert sorted(os.listdir(elsewhere)) == ["name"]
    assert (elsewhere / "name").read_bytes() == b"theirs"


@as_root
def test_directory_of_another_user_is_refused(home: dict[str, str]) -> None:
    put(home, "trust.json", b"{}")
    os.chown(state.directory(home), SOMEBODY, -1)
    assert state.read("trust.json", home) is None
    with refused("unusable"):
        put(home, "trust.json", b"mine")


def test_changes_wait_for_each_other(home: dict[str, str]) -> None:
    def count() -> None:
        for _ in range(20):
            with state.opened(home) as folder:
                found = state.read("count", home) or b"0"
                folder.replace("count", b"%d" % (int(found) + 1))

    threads = [Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert state.read("count", home) == b"80"
