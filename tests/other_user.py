"""Requests by another user of this machine: by a child process that gives up its rights, which takes root."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.waiting import LIMIT

NOBODY = "nobody"

needs_another_user = pytest.mark.skipif(
    not (sys.platform == "linux" and os.geteuid() == 0), reason="needs root, to act as another user"
)

_SCRIPT = """
import os, socket, sys
os.setgroups([]), os.setgid(65534), os.setuid(65534)
client = socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET)
client.settimeout(60)
client.connect((sys.argv[1], int(sys.argv[2])))
try:
    client.sendall(sys.stdin.buffer.read())
    while len(sys.argv) == 3 and (part := client.recv(65536)):
        sys.stdout.buffer.write(part)
except ConnectionError:
    pass
"""


def ask_as_nobody(host: str, port: int, text: bytes, *, leave: bool = False) -> bytes:
    """Send bytes as the user ``nobody``, and return everything that comes back until the server hangs up.

    With ``leave``, the connection is closed as soon as the bytes are sent.
    """
    return subprocess.run(
        [sys.executable, "-I", "-c", _SCRIPT, host, str(port), *(["leave"] if leave else [])],
        input=text,
        stdout=subprocess.PIPE,
        check=True,
        timeout=LIMIT,
        cwd="/",
    ).stdout
