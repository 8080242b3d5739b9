"""Where a board may lie."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_task_board.storage import filesystem
from agent_task_board.storage.filesystem import SHARED, shared_type
from tests.support import open_board, refused

if TYPE_CHECKING:
    from pathlib import Path

MOUNTS = r"""22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:25 / /srv/team rw,relatime shared:2 - nfs4 server:/team rw,vers=4.2
31 30 254:1 / /srv/team/local rw,relatime - xfs /dev/vdb rw
32 22 0:26 / /srv/with\040space rw,relatime - 9p host rw
33 22 0:27 / /srv/twice rw - cifs //server/share rw
34 22 254:2 / /srv/twice rw - ext4 /dev/vdc rw
"""


@pytest.fixture
def mounts(tmp_path: Path) -> str:
    """Return a file that describes some mounts."""
    file = tmp_path / "mountinfo"
    file.write_text(MOUNTS)
    return str(file)


@pytest.mark.parametrize(
    ("directory", "kind"),
    [
        ("/var/data", None),
        ("/srv/team", "nfs4"),
        ("/srv/team/data", "nfs4"),
        ("/srv/teammate", None),
        ("/srv/team/local/data", None),
        ("/srv/with space/data", "9p"),
        ("/srv/twice/data", None),
    ],
)
def test_longest_and_latest_mount_point_above_a_directory_decides(
    mounts: str, directory: str, kind: str | None
) -> None:
    assert shared_type(directory, mounts) == kind


def test_nothing_is_refused_where_mounts_are_not_told(tmp_path: Path) -> None:
    assert shared_type("/srv/team", str(tmp_path / "missing")) is None


@pytest.mark.parametrize("kind", sorted(SHARED))
def test_board_is_refused_on_a_shared_file_system_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(filesystem, "shared_type", lambda directory: kind)
    board = open_board(tmp_path / "data")
    with refused("unusable"):
        board.add("task")
    assert not (tmp_path / "data").exists()


def test_board_that_was_moved_to_a_shared_file_system_is_refused_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_board(tmp_path) as board:
        board.add("made on a local disk")
    monkeypatch.setattr(filesystem, "shared_type", lambda directory: "nfs")
    with open_board(tmp_path) as board:
        with refused("unusable"):
            board.claim("ada")
        assert board.list_tasks().tasks[0].status == "queued"
