"""Detect file systems on which a board loses data: WAL needs memory that all processes share, on one machine."""

from __future__ import annotations

import os

SHARED = frozenset(
    (
        *("nfs", "nfs4", "cifs", "smb3", "smbfs", "ncpfs", "afs", "ceph", "lustre", "gpfs", "gfs2", "ocfs2"),
        *("9p", "virtiofs", "drvfs", "vboxsf", "prl_fs", "fuse.sshfs", "fuse.glusterfs", "fuse.vmhgfs-fuse"),
        *("fuse.osxfs", "fuse.grpcfuse", "fuse.rclone", "fuse.s3fs", "fuse.gcsfuse"),
    )
)
"""Linux names of network file systems, and of folders that a virtual machine shares with its host."""


def shared_type(directory: str, mounts: str = "/proc/self/mountinfo") -> str | None:
    """Return the type of the shared file system that a directory is on; ``None`` if it is local or unknown.

    ``mounts`` is a file in the format of proc(5), mountinfo.
    """
    try:
        with open(mounts, encoding="utf-8", errors="surrogateescape") as source:
            lines = source.read().splitlines()
    except OSError:  # not Linux
        return None
    path = os.path.realpath(directory)
    longest, found = "", None
    for line in lines:
        before, _, after = line.partition(" - ")
        point = before.split(" ")[4].replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\")
        under = path == point or path.startswith(point.rstrip("/") + "/")
        if under and len(point) >= len(longest):  # of two mounts on one point, the later hides the earlier
            longest, found = point, after.split(" ")[0]
    return found if found in SHARED else None
