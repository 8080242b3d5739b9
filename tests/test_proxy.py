"""The server behind nginx as most people configure it: events arrive when they happen."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.serving import Wire, serving
from tests.waiting import LIMIT, eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.serving import InThread

NGINX = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")

if NGINX is None and not os.environ.get("ATB_REQUIRE_BROWSER"):
    pytest.skip("tests behind a proxy left out: no nginx", allow_module_level=True)

CONFIGURATION = """
daemon off;
pid {directory}/nginx.pid;
error_log stderr;
worker_processes 1;
{user}
events {{ }}
http {{
  access_log off;
  client_body_temp_path {directory}/body;
  proxy_temp_path {directory}/proxy;
  fastcgi_temp_path {directory}/fastcgi;
  uwsgi_temp_path {directory}/uwsgi;
  scgi_temp_path {directory}/scgi;
  server {{
    listen 127.0.0.1:{port};
    location / {{ proxy_pass {url}; }}
  }}
}}
"""


@contextlib.contextmanager
def proxied(server: InThread, directory: Path) -> Iterator[int]:
    """Run nginx in front of a server; yield its port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    user = "user root;" if os.getuid() == 0 else ""
    text = CONFIGURATION.format(directory=directory, port=port, url=server.url.rstrip("/"), user=user)
    (directory / "nginx.conf").write_text(text)
    assert NGINX is not None
    with subprocess.Popen(
        [NGINX, "-p", str(directory), "-c", str(directory / "nginx.conf")], stderr=subprocess.PIPE
    ) as process:
        try:
            eventually(lambda: answers(port) or process.poll() is not None, "the start of nginx")
            assert process.poll() is None, process.stderr and process.stderr.read()
            yield port
        finally:
            process.terminate()
            process.wait(LIMIT)


def answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), LIMIT):
        return True
    return False


def test_events_pass_a_plain_proxy_as_they_happen(tmp_path: Path) -> None:
    with serving(tmp_path / "data") as server, proxied(server, tmp_path) as port, Wire(("127.0.0.1", port)) as wire:
        # The proxy sends the name of its upstream as Host, as it does unless it is told otherwise.
        wire.send(b"GET /api/stream HTTP/1.1\r\nHost: proxy\r\n\r\n")
        head = wire.until(b"retry: 2000\n\n")
        assert b"X-Accel-Buffering" not in head  # for the proxy alone, which has understood it
        assert b"no-transform" in head
        for title in ("first", "second"):  # each arrives before the next one is added
            server.board.add(title)
            assert title.encode() in wire.until(f'"to":"{title}"'.encode())


def test_other_requests_pass_a_plain_proxy(tmp_path: Path) -> None:
    with serving(tmp_path / "data") as server, proxied(server, tmp_path) as port, Wire(("127.0.0.1", port)) as wire:
        answer = wire.ask(b"GET /healthz HTTP/1.1\r\nHost: proxy\r\n\r\n")
        assert answer.data["status"] == "ok"
