"""How files for this user alone are created."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

from agent_task_board.files import create_file

if TYPE_CHECKING:
    from pathlib import Path


def test_created_file_is_new_private_and_not_inherited(tmp_path: Path) -> None:
    path = tmp_path / "new"
    descriptor = create_file(str(path))
    try:
        assert not os.get_inheritable(descriptor)
        assert stat.S_IMODE(os.fstat(descriptor).st_mode) == 0o600
        assert os.write(descriptor, b"\n") == 1
    finally:
        os.close(descriptor)
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "nowhere")
    for taken in (path, link):
        with pytest.raises(FileExistsError):
            create_file(str(taken))
    assert not (tmp_path / "nowhere").exists()
    assert path.read_bytes() == b"\n"
