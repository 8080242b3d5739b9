"""The server as a hostile or broken client meets it: every rule of its hardening, by raw socket."""

from __future__ import annotations

import contextlib
import gc
import os
import random
import re
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent_task_board import Board, exhaustion
from agent_task_board.errors import BoardError
from agent_task_board.web import pages, routes, stream, wire
from agent_task_board.web import server as web_server
from agent_task_board.web.connection import Connection
from tests.command_line import Terminal, program, read_envelope
from tests.serving import Answer, InThread, Wire, process, serving
from tests.support import MARIA, bring_to, hold, refused
from tests.waiting import LIMIT, eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

NEXT = b"GET /healthz HTTP/1.1\r\nHOST\r\n"
"""A good request; HOST stands for the line that names the server."""
TASK = b'{"title": "Write the parser"}'
ALLOWED = ("Board.Example", "forwarded.example:9000")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InThread]:
    """Return a server that the tests share; none of them changes it."""
    with serving(tmp_path_factory.mktemp("wire") / "data", allow_hosts=ALLOWED) as server:
        yield server


@pytest.fixture
def own(tmp_path: Path) -> Iterator[InThread]:
    """Return a server for one test."""
    with serving(tmp_path / "data") as server:
        yield server


def request(server: InThread, text: bytes) -> bytes:
    """Fill in HOST, the line that names the server, and PORT."""
    text = text.replace(b"HOST", f"Host: 127.0.0.1:{server.port}\r\n".encode())
    return text.replace(b"PORT", str(server.port).encode())


def write(*lines: bytes, path: bytes = b"/api/tasks", method: bytes = b"POST") -> bytes:
    """Return the head of a write with these header lines and no others but HOST."""
    return b"%s %s HTTP/1.1\r\nHOST" % (method, path) + b"".join(line + b"\r\n" for line in lines) + b"\r\n"


JSON = b"Content-Type: application/json"
LENGTH = b"Content-Length: %d" % len(TASK)


def safe(answer: Answer) -> Answer:
    """Check what every response must have, and must not have."""
    names = [name.lower() for name, _ in answer.headers]
    assert len(names) == len(set(names)), answer
    assert not [name for name in names if name.startswith("access-control-")], answer
    assert "server" not in names
    assert "x-powered-by" not in names
    policy = answer.header("Content-Security-Policy") or ""
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert answer.header("X-Content-Type-Options") == "nosniff"
    assert answer.header("X-Frame-Options") == "DENY"
    assert answer.header("Referrer-Policy") == "no-referrer"
    assert answer.header("Cross-Origin-Resource-Policy") == "same-origin"
    assert answer.header("Connection") in ("close", "keep-alive")
    for name, value in answer.headers:
        assert re.fullmatch(r"[A-Za-z-]+", name), answer
        assert value.isascii(), answer
        assert value.isprintable(), answer
    assert b"Traceback" not in answer.content
    return answer


def only_answer(server: InThread, text: bytes, status: int, code: str = "invalid_input") -> Answer:
    """Send a request with another one right behind it: the first is refused, and the second never answered."""
    with server.wire() as client:
        answer = safe(client.ask(request(server, text + NEXT)))
        assert (answer.status, answer.code) == (status, code), answer
        assert answer.header("Connection") == "close"
        assert client.is_closed()
        return answer


# Host


STRANGERS = [
    b"evil.example",
    b"evil.example:PORT",
    b"127.0.0.1.evil.example:PORT",
    b"localhost.evil.example:PORT",
    b"localhost",
    b"127.0.0.1",
    b"127.0.0.1:80",
    b"127.0.0.1:1PORT",
    b"127.0.0.1:0PORT",
    b"127.0.0.1:PORTx",
    b"127.0.0.1:PORT@evil.example",
    b"evil@127.0.0.1:PORT",
    b"127.0.0.1:PORT/",
    b"127.0.0.1:PORT?",
    b"127.0.0.1:PORT evil.example",
    b"127.0.0.1:PORT,evil.example",
    b"127.0.0.1:PORT:PORT",
    b"127.0.0.1:PORT\xb9",
    b"127.1:PORT",
    b"0:PORT",
    b"0.0.0.0:PORT",
    b"2130706433:PORT",
    b"localhost.:PORT",
    b"[::1]",
    b"[::1]:PORTx",
    b"[::1]PORT",
    b"[0:0:0:0:0:0:0:1]:PORT",
    b"::1:PORT",
    b"http://127.0.0.1:PORT",
    b"",
    b":PORT",
    b"%31%32%37.0.0.1:PORT",
    b"\xff\xfe:PORT",
]


@pytest.mark.parametrize("host", STRANGERS, ids=repr)
def test_a_name_that_is_not_ours_reads_and_writes_nothing(server: InThread, host: bytes) -> None:
    line = b"Host: " + host + b"\r\n"
    for path in (b"/", b"/static/favicon.svg", b"/api", b"/api/board", b"/api/stream", b"/healthz", b"/nothing"):
        with server.wire() as client:
            answer = safe(client.ask(request(server, b"GET " + path + b" HTTP/1.1\r\n" + line + b"\r\n")))
            assert (answer.status, answer.code) == (421, "not_permitted"), path
            assert "--allow-host" in answer.envelope["error"]["hint"]
    text = write(JSON, LENGTH).replace(b"HOST", line) + TASK
    with server.wire() as client:
        answer = client.ask(request(server, text))
        assert (answer.status, answer.code) == (421, "not_permitted")


@pytest.mark.parametrize(
    "lines",
    [
        b"",
        b"Host: 127.0.0.1:PORT\r\nHost: 127.0.0.1:PORT\r\n",
        b"Host: 127.0.0.1:PORT\r\nhost: evil.example\r\n",
        b"HOST: evil.example\r\nHost: 127.0.0.1:PORT\r\n".replace(b"HOST", b"hOST"),
    ],
    ids=["missing", "twice", "ours first", "theirs first"],
)
@pytest.mark.parametrize("path", [b"/", b"/static/favicon.svg", b"/api/board", b"/nothing"])
def test_a_request_names_exactly_one_host(server: InThread, path: bytes, lines: bytes) -> None:
    with server.wire() as client:
        answer = safe(client.ask(request(server, b"GET " + path + b" HTTP/1.1\r\n" + lines + b"\r\n" + NEXT)))
        assert (answer.status, answer.code) == (421, "not_permitted")
        assert "--allow-host" in answer.envelope["error"]["hint"]
        assert answer.header("Connection") == "close"
        assert client.is_closed(), "what follows is not read"


@pytest.mark.parametrize("host", [b"127.0.0.1", b"localhost", b"LocalHost", b"[::1]"])
def test_every_name_of_this_machine_is_ours(server: InThread, host: bytes) -> None:
    with server.wire() as client:
        assert client.ask(request(server, b"GET / HTTP/1.1\r\nHost:\t " + host + b":PORT \r\n\r\n")).status == 200


def test_a_server_on_ipv6_answers_for_its_own_address(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        try:
            server = stack.enter_context(serving(tmp_path / "data", host="::1"))
        except BoardError:
            pytest.skip("this machine has no IPv6")
        assert server.url == f"http://[::1]:{server.port}/"
        with server.wire() as client:
            assert client.get("/").status == 200
            assert client.post("/api/tasks", TASK, f"Origin: http://[::1]:{server.port}".encode()).status == 201


@pytest.mark.parametrize(
    ("host", "is_ours"),
    [
        (b"board.example", True),
        (b"BOARD.example", True),
        (b"board.example:80", True),
        (b"board.example:443", True),
        (b"board.example:PORT", True),
        (b"board.example:81", False),
        (b"www.board.example", False),
        (b"board.example.evil.example", False),
        (b"forwarded.example:9000", True),
        (b"forwarded.example", False),
        (b"forwarded.example:PORT", False),
        (b"forwarded.example:9001", False),
    ],
)
def test_a_host_that_was_allowed_is_ours(server: InThread, host: bytes, is_ours: bool) -> None:
    for path in (b"/", b"/api/board"):
        with server.wire() as client:
            answer = client.ask(request(server, b"GET " + path + b" HTTP/1.1\r\nHost: " + host + b"\r\n\r\n"))
            assert answer.status == (200 if is_ours else 421)


def test_what_is_no_host_cannot_be_allowed(tmp_path: Path) -> None:
    for host in [
        "",
        "http://x",
        "x/y",
        "a b",
        "x:",
        "x:0",
        "x:65536",
        "x:1_0",
        "x:+1",
        "*",
        "*.x",
        "[::1",
        "::1",
        "x\r\ny",
    ]:
        with refused("invalid_input"), serving(tmp_path / "data", allow_hosts=[host]):
            pass
    gc.collect()  # a socket that was left open would be told now, as a warning


# Origin, and what the browser says of a page


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        ([], 201),
        ([b"Origin: http://127.0.0.1:PORT"], 201),
        ([b"Origin: http://127.0.0.1:PORT", b"Sec-Fetch-Site: same-origin"], 201),
        ([b"Sec-Fetch-Site: same-origin"], 201),
        ([b"Origin: http://board.example"], 201),
        ([b"Origin: https://board.example"], 201),
        ([b"Origin: https://board.example:PORT"], 201),
        ([b"Origin: https://forwarded.example:9000"], 201),
        ([b"Origin: http://forwarded.example:9000"], 201),
        ([b"Origin: https://forwarded.example"], 403),
        ([b"Origin: https://board.example:81"], 403),
        ([b"Origin: ftp://board.example"], 403),
        ([b"Origin: http://board.example.evil.example"], 403),
        ([b"Origin: null"], 403),
        ([b"Origin: "], 403),
        ([b"Origin: http://evil.example"], 403),
        ([b"Origin: http://127.0.0.1"], 403),
        ([b"Origin: http://127.0.0.1:1"], 403),
        ([b"Origin: http://localhost:1"], 403),
        ([b"Origin: https://127.0.0.1:PORT"], 403),
        ([b"Origin: ws://127.0.0.1:PORT"], 403),
        ([b"Origin: 127.0.0.1:PORT"], 403),
        ([b"Origin: http://127.0.0.1:PORT/"], 403),
        ([b"Origin: http://127.0.0.1:PORT.evil.example"], 403),
        ([b"Origin: http://evil.example@127.0.0.1:PORT"], 403),
        ([b"Origin: http://127.0.0.1:PORT http://evil.example"], 403),
        ([b"Origin: http://evil.example", b"Sec-Fetch-Site: same-origin"], 403),
        ([b"Origin: http://127.0.0.1:PORT", b"Sec-Fetch-Site: cross-site"], 403),
        ([b"Sec-Fetch-Site: same-site"], 403),
        ([b"Sec-Fetch-Site: cross-site"], 403),
        ([b"Sec-Fetch-Site: none"], 403),
        ([b"Sec-Fetch-Site: "], 403),
        ([b"Sec-Fetch-Site: same-origin, same-origin"], 403),
        ([b"Origin: http://127.0.0.1:PORT", b"Origin: http://127.0.0.1:PORT"], 400),
        ([b"Origin: http://127.0.0.1:PORT", b"origin: http://evil.example"], 400),
        ([b"Sec-Fetch-Site: same-origin", b"Sec-Fetch-Site: cross-site"], 400),
    ],
    ids=repr,
)
def test_only_our_own_page_and_programs_may_write(server: InThread, lines: list[bytes], status: int) -> None:
    for method, path in ((b"POST", b"/api/tasks"), (b"PATCH", f"/api/tasks/{_some_task(server)}".encode())):
        before = server.board.revision()
        with server.wire() as client:
            text = write(JSON, LENGTH, *lines, path=path, method=method) + TASK
            answer = safe(client.ask(request(server, text)))
        assert answer.status == (200 if status == 201 and method == b"PATCH" else status), method
        if status != 201:
            assert answer.code == ("not_permitted" if status == 403 else "invalid_input")
            assert server.board.revision() == before


def _some_task(server: InThread) -> str:
    tasks = server.board.list_tasks(limit=1).tasks
    return tasks[0].id if tasks else server.board.add("a task").task.id


# Content type


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        ([b"Content-Type: application/json"], 201),
        ([b"Content-Type: application/json; charset=utf-8"], 201),
        ([b"Content-Type: Application/JSON;charset=UTF-8"], 201),
        ([b'Content-Type: application/json; charset="utf-8"', b"Content-Encoding: identity"], 201),
        ([b"Content-Type: application/json; charset=latin-1"], 415),
        ([b"Content-Type: application/json", b"Content-Encoding: gzip"], 415),
        ([], 415),
        ([b"Content-Type: "], 415),
        ([b"Content-Type: text/plain"], 415),
        ([b"Content-Type: text/plain; application/json"], 415),
        ([b"Content-Type: application/x-www-form-urlencoded"], 415),
        ([b"Content-Type: multipart/form-data; boundary=x"], 415),
        ([b"Content-Type: application/json, text/plain"], 415),
        ([b"Content-Type: text/plain, application/json"], 415),
        ([b"Content-Type: application/jsonx"], 415),
        ([b"Content-Type: application/json", b"Content-Type: application/json"], 415),
        ([b"Content-Type: application/json", b"content-type: text/plain"], 415),
    ],
    ids=repr,
)
def test_a_write_says_once_that_it_is_json(server: InThread, lines: list[bytes], status: int) -> None:
    if status == 415:
        only_answer(server, write(LENGTH, *lines) + TASK, 415)
    else:
        with server.wire() as client:
            assert client.ask(request(server, write(LENGTH, *lines) + TASK)).status == status


# The length of a body, and where a request ends


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        ([], 411),
        ([b"Content-Length: -1"], 400),
        ([b"Content-Length: +2"], 400),
        ([b"Content-Length: 1_0"], 400),
        ([b"Content-Length: 0x10"], 400),
        ([b"Content-Length: 2.0"], 400),
        ([b"Content-Length: 2e1"], 400),
        ([b"Content-Length: "], 400),
        ([b"Content-Length: 5 5"], 400),
        ([b"Content-Length: 29, 29"], 400),
        ([b"Content-Length: 29;"], 400),
        ([b"Content-Length: \xb2"], 400),
        ([b"Content-Length: \xd9\xa2"], 400),
        ([b"Content-Length: 29", b"Content-Length: 29"], 400),
        ([b"Content-Length: 29", b"content-length: 0"], 400),
        ([b"Content-Length: 2097153"], 413),
        ([b"Content-Length: 99999999999999999999"], 413),
        ([b"Content-Length: " + b"9" * 5_000], 413),
        ([b"Transfer-Encoding: chunked"], 411),
        ([b"Transfer-Encoding: identity"], 411),
        ([b"Transfer-Encoding: "], 411),
        ([b"Transfer-Encoding: chunked", b"Content-Length: 29"], 400),
        ([b"Content-Length: 0", b"transfer-encoding: gzip, chunked"], 400),
        ([b"Transfer-Encoding: xchunked", b"Content-Length: 29"], 400),
    ],
    ids=repr,
)
def test_after_a_length_that_can_be_read_in_two_ways_nothing_more_is_read(
    server: InThread, lines: list[bytes], status: int
) -> None:
    before = server.board.revision()
    only_answer(server, write(JSON, *lines), status)
    only_answer(server, write(JSON, *lines) + TASK, status)
    if lines:
        only_answer(server, write(*lines, path=b"/api/board", method=b"GET"), status)
        only_answer(server, write(*lines, path=b"/", method=b"GET"), status)
        only_answer(server, write(JSON, *lines, path=b"/nothing"), 404, "not_found")
        only_answer(server, write(JSON, *lines, path=b"/api/board"), 405)
        only_answer(server, write(JSON, *lines, path=b"/"), 405)
    assert server.board.revision() == before


def test_leading_zeros_of_a_length_are_plain_digits(server: InThread) -> None:
    with server.wire() as client:
        assert client.ask(request(server, write(JSON, b"Content-Length: 0029") + TASK + NEXT)).status == 201
        assert client.read().status == 200


@pytest.mark.parametrize("path", [b"/", b"/static/favicon.svg", b"/api/board", b"/api/stream"])
def test_a_read_with_a_body_is_refused_and_its_body_never_taken_for_a_request(server: InThread, path: bytes) -> None:
    only_answer(server, write(b"Content-Length: 29", path=path, method=b"GET") + TASK, 400)
    with server.wire() as client:
        client.send(request(server, write(b"Content-Length: 0", path=b"/healthz", method=b"GET") + NEXT))
        assert (client.read().status, client.read().status) == (200, 200)


def test_the_largest_body_is_taken_and_a_larger_one_is_not(server: InThread) -> None:
    filler = b" " * (wire.BODY_LIMIT - len(TASK))
    with server.wire() as client:
        assert client.post("/api/tasks", TASK + filler).status == 201
        answer = client.post("/api/tasks", TASK + filler + b" ")
        assert (answer.status, answer.code) == (413, "invalid_input")
        assert client.is_closed()


def test_a_body_that_is_not_read_is_never_taken_for_a_request(server: InThread) -> None:
    smuggled = request(server, NEXT)
    for lines in ([JSON, b"Origin: http://evil.example"], [b"Content-Type: text/plain"], [JSON, b"Host: evil.example"]):
        text = write(*lines, b"Content-Length: %d" % len(smuggled)) + smuggled
        with server.wire() as client:
            assert client.ask(request(server, text)).status in (403, 415, 421)
            assert client.is_closed()


def test_a_body_that_is_read_and_refused_leaves_the_connection_usable(server: InThread) -> None:
    smuggled = request(server, NEXT)
    with server.wire() as client:
        for _ in range(3):
            answer = client.post("/api/tasks", smuggled)
            assert (answer.status, answer.code) == (400, "invalid_input")
            assert answer.header("Connection") == "keep-alive"
        assert client.get("/healthz").status == 200


@pytest.mark.parametrize(
    "body", [b"\xff\xfe", b"[]", b"null", b"{", b'{"title": NaN}', b'{"title": "x", "title": "y"}', b"[" * 100_000],
    ids=lambda body: repr(body[:12]),
)  # fmt: skip
def test_a_body_that_is_no_object_is_refused(server: InThread, body: bytes) -> None:
    with server.wire() as client:
        answer = safe(client.post("/api/tasks", body))
        assert (answer.status, answer.code) == (400, "invalid_input")
        assert client.get("/healthz").status == 200


# One connection, many requests


def test_requests_in_one_packet_are_answered_in_their_order(server: InThread) -> None:
    with server.wire() as client:
        post = client.posting("/api/tasks", TASK)
        client.send(request(server, NEXT + post + b"GET /nothing HTTP/1.1\r\nHOST\r\n" + post + NEXT))
        assert [client.read().status for _ in range(5)] == [200, 201, 404, 201, 200]


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_request_may_come_byte_by_byte(server: InThread, method: str) -> None:
    with server.wire() as client:
        client.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        text = request(server, NEXT) if method == "GET" else client.posting("/api/tasks", TASK)
        for byte in text * 2:
            client.send(bytes([byte]))
        assert [client.read().status for _ in range(2)] == [200 if method == "GET" else 201] * 2


def test_empty_lines_before_a_request_are_passed_over(server: InThread) -> None:
    with server.wire() as client:
        client.send(request(server, b"\r\n\r\n" + NEXT + b"\r\n" + NEXT))
        assert [client.read().status for _ in range(2)] == [200, 200]


@pytest.mark.parametrize("line", [b"Connection: close", b"connection: Keep-Alive, CLOSE"])
def test_a_client_may_ask_to_close(server: InThread, line: bytes) -> None:
    with server.wire() as client:
        client.send(request(server, b"GET /healthz HTTP/1.1\r\nHOST" + line + b"\r\n\r\n" + NEXT))
        answer = client.read()
        assert (answer.status, answer.header("Connection")) == (200, "close")
        assert client.is_closed()


def test_http_1_0_gets_one_answer(server: InThread) -> None:
    with server.wire() as client:
        client.send(request(server, b"GET /healthz HTTP/1.0\r\nHOSTConnection: keep-alive\r\n\r\n" + NEXT))
        answer = safe(client.read())
        assert (answer.status, answer.header("Connection")) == (200, "close")
        assert client.is_closed()


def test_a_client_that_waits_for_100_gets_it_only_where_the_body_is_wanted(server: InThread) -> None:
    with server.wire() as client:
        expecting = write(JSON, LENGTH, b"Expect: 100-continue")
        client.send(request(server, expecting))
        assert client.until(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        assert client.ask(TASK).status == 201
        client.send(request(server, write(LENGTH, b"Expect: 100-continue")))
        assert client.until(b"\r\n").startswith(b"HTTP/1.1 415 ")


def test_http_1_0_knows_no_100(server: InThread) -> None:
    with server.wire() as client:
        text = write(JSON, LENGTH, b"Expect: 100-continue").replace(b"HTTP/1.1", b"HTTP/1.0")
        client.send(request(server, text) + TASK)
        assert client.until(b"\r\n").startswith(b"HTTP/1.1 201 ")


# What is no request


@pytest.mark.parametrize(
    "text",
    [
        b"GET /\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / \r\nHOST\r\n",
        b"GET  / HTTP/1.1\r\nHOST\r\n",
        b"GET / HTTP/1.1 \r\nHOST\r\n",
        b" GET / HTTP/1.1\r\nHOST\r\n",
        b"GET\t/\tHTTP/1.1\r\nHOST\r\n",
        b"GET / x HTTP/1.1\r\nHOST\r\n",
        b"GET / HTTP/2.0\r\nHOST\r\n",
        b"GET / HTTP/0.9\r\nHOST\r\n",
        b"GET / HTTP/1\r\nHOST\r\n",
        b"GET / HTTP/1.10\r\nHOST\r\n",
        b"GET / HTTP/\xb9.1\r\nHOST\r\n",
        b"GET / http/1.1\r\nHOST\r\n",
        b"GET / HTTPS/1.1\r\nHOST\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(64)) + b"\r\n\r\n",
        b"G\xcbT / HTTP/1.1\r\nHOST\r\n",
        b"G(T / HTTP/1.1\r\nHOST\r\n",
        b"* HTTP/1.1\r\nHOST\r\n",
        b"OPTIONS * HTTP/1.1\r\nHOST\r\n",
        b"CONNECT 127.0.0.1:PORT HTTP/1.1\r\nHOST\r\n",
        b"GET healthz HTTP/1.1\r\nHOST\r\n",
        b"GET ?x HTTP/1.1\r\nHOST\r\n",
        b"GET \\healthz HTTP/1.1\r\nHOST\r\n",
        b"GET /healthz#x HTTP/1.1\r\nHOST\r\n",
        b"GET /a\0b HTTP/1.1\r\nHOST\r\n",
        b"GET /a\x1bb HTTP/1.1\r\nHOST\r\n",
        b"GET /a\x7fb HTTP/1.1\r\nHOST\r\n",
        b"GET /\xc3\xa9 HTTP/1.1\r\nHOST\r\n",
        b"GET /a\rb HTTP/1.1\r\nHOST\r\n",
        b"GET https://127.0.0.1:PORT/ HTTP/1.1\r\nHOST\r\n",
        b"GET file:///etc/passwd HTTP/1.1\r\nHOST\r\n",
        b"GET javascript:alert(1) HTTP/1.1\r\nHOST\r\n",
        b"GET /% HTTP/1.1\r\nHOST\r\n",
        b"GET /%2 HTTP/1.1\r\nHOST\r\n",
        b"GET /%zz HTTP/1.1\r\nHOST\r\n",
        b"GET /%u0041 HTTP/1.1\r\nHOST\r\n",
        b"GET /%+1 HTTP/1.1\r\nHOST\r\n",
        b"GET /%ff HTTP/1.1\r\nHOST\r\n",
        b"GET /%c0%af HTTP/1.1\r\nHOST\r\n",
        b"GET /%ed%a0%80 HTTP/1.1\r\nHOST\r\n",
        b"GET / HTTP/1.1\nHOST\n",
        b"GET / HTTP/1.1\nHost: 127.0.0.1:PORT\n\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1:PORT\n\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1:PORT\n\r\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n\n",
        b"GET / HTTP/1.1\r\nX: y\nHOST\r\n",
        b"\nGET / HTTP/1.1\r\nHOST\r\n",
        b"\rGET / HTTP/1.1\r\nHOST\r\n",
        b"\r\n\n\r\nGET / HTTP/1.1\r\nHOST\r\n",
        b"GET / HTTP/1.1\r\nX: y\rZ: 1\r\nHOST\r\n",
        b"GET / HTTP/1.1\r\nHOST\rX: y\r\n\r\n",
        b"GET / HTTP/1.1\r\nHOST continued\r\n\r\n",
        b"GET / HTTP/1.1\r\nHOST\tcontinued\r\n\r\n",
        b"GET / HTTP/1.1\r\n X: y\r\nHOST\r\n",
        b"GET / HTTP/1.1\r\nHOSTX : y\r\n\r\n",
        b"GET / HTTP/1.1\r\nHOSTTransfer-Encoding : chunked\r\n\r\n",
        b"GET / HTTP/1.1\r\nHOSTX\t: y\r\n\r\n",
        b"GET / HTTP/1.1\r\nHOSTX y\r\n\r\n",
        b"GET / HTTP/1.1\r\nHOST: y\r\n\r\n",
        b"GET / HTTP/1.1\r\nHOSTX\0: y\r\n\r\n",
        b"GET / HTTP/1.1\r\nHOSTX: a\0b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHOSTX: a\x1bb\r\n\r\n",
        b"GET / HTTP/1.1\r\nHOSTX: a\x7fb\r\n\r\n",
        b"GET / HTTP/1.1\r\nHOST\xc3\x84: y\r\n\r\n",
        b"GET / HTTP/1.1\r\nHOST(X): y\r\n\r\n",
    ],
    ids=repr,
)
def test_what_is_no_plain_request_is_refused_once_for_all(server: InThread, text: bytes) -> None:
    only_answer(server, text, 400)


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (b"GET http://127.0.0.1:PORT/healthz HTTP/1.1\r\nHOST\r\n", 200),
        (b"GET HTTP://127.0.0.1:PORT/healthz HTTP/1.1\r\nHOST\r\n", 200),
        (b"GET http://board.example/healthz HTTP/1.1\r\nHost: Board.example\r\n\r\n", 200),
        (b"GET http://localhost:PORT/healthz HTTP/1.1\r\nHOST\r\n", 400),
        (b"GET http://evil.example/healthz HTTP/1.1\r\nHOST\r\n", 421),
        (b"GET http://evil.example:PORT/ HTTP/1.1\r\nHOST\r\n", 421),
        (b"GET http://evil@127.0.0.1:PORT/ HTTP/1.1\r\nHOST\r\n", 421),
        (b"GET http://127.0.0.1:PORT/ HTTP/1.1\r\nHost: evil.example\r\n\r\n", 421),
        (b"GET http://127.0.0.1:PORT/ HTTP/1.1\r\n\r\n", 421),
        (b"GET http:///healthz HTTP/1.1\r\nHOST\r\n", 421),
        (b"GET http://127.0.0.1:PORT HTTP/1.1\r\nHOST\r\n", 400),
    ],
    ids=repr,
)
def test_an_absolute_address_must_agree_with_the_host(server: InThread, text: bytes, status: int) -> None:
    with server.wire() as client:
        assert safe(client.ask(request(server, text))).status == status


@pytest.mark.parametrize(
    "path",
    [
        "//",
        "///",
        "//evil.example/",
        "//evil.example/%2e%2e",
        "/..",
        "/../x",
        "/../../../../etc/passwd",
        "/static/../server.py",
        "/static/%2e%2e/server.py",
        "/static/..%2fserver.py",
        "/static/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "/static/..%5c..%5cserver.py",
        "/static//etc/passwd",
        "/static/%2fetc/passwd",
        "/static/js/../favicon.svg",
        "/static/./favicon.svg",
        "/static/favicon.svg/",
        "/static/favicon.svg%00.js",
        "/static/favicon.svg;x",
        "/static/",
        "/static",
        "/static/index.html",
        "/index.html",
        "/favicon.svg%20",
        "/api/",
        "/api//board",
        "/api/board/",
        "/API/board",
        "/api/board%00",
        "/api/%2e/board",
        "/api/tasks/",
        "/api/tasks//events",
        "/%0d%0aSet-Cookie:%20x=1",
        "/%250d%250aX:%201",
        "/%c2%85%e2%80%a8",
        "/%1b[31mred",
        "/.git/config",
        "/wp-login.php",
    ],
)
def test_a_path_that_is_no_route_leads_nowhere(server: InThread, path: str) -> None:
    for method in ("GET", "HEAD", "POST", "DELETE"):
        with server.wire() as client:
            answer = safe(client.get(path, b"Content-Length: 0", method=method))
            assert answer.status == (400 if "%2f" in path else 404), method
            assert answer.header("Location") is None
            assert method == "HEAD" or answer.code == ("invalid_input" if "%2f" in path else "not_found")


@pytest.mark.parametrize(
    "path", ["/api%2fboard", "/api/tasks%2F0000", "/static%2ffavicon.svg", "/%2f", "/api%2Fboard?x=1"]
)
def test_an_encoded_slash_parts_nothing(server: InThread, path: str) -> None:
    with server.wire() as client:
        answer = safe(client.get(path))
        assert (answer.status, answer.code) == (400, "invalid_input")


@pytest.mark.parametrize(
    "task",
    [
        "..",
        "%2e%2e",
        "....",
        "%00%00%00%00",
        "0000%0d%0aX:%201",
        "%1b[2J",
        "%27%20OR%201=1",
        "%25%25%25%25",
        "____",
        "%F0%9F%92%A9",
        "x" * 5_000,
    ],
)
def test_an_id_that_is_none_is_told_back_harmlessly(server: InThread, task: str) -> None:
    _some_task(server)
    with server.wire() as client:
        for method, path in (
            ("GET", ""),
            ("PATCH", ""),
            ("POST", "/cancel"),
            ("POST", "/comments"),
            ("GET", "/events"),
        ):
            body = {"text": "x"} if path == "/comments" else {}
            full = f"/api/tasks/{task}{path}"
            answer = safe(client.get(full) if method == "GET" else client.post(full, body, method=method))
            assert (answer.status, answer.code) == (400, "invalid_input"), path
            assert answer.header("Location") is None
            assert len(answer.envelope["error"]["message"]) < 1_000


@pytest.mark.parametrize("path", ["/api/tasks", "/api/events", "/api/board", "/api/stream", "/api", "/healthz"])
@pytest.mark.parametrize(
    "query",
    ["x%0d%0aSet-Cookie:%20a=1", "%0d%0a%0d%0a", "%00=1", "%1b[31m", "limit=1%0d%0aX:", "%ff", "after=%f0", "a&" * 300],
)  # fmt: skip
def test_a_query_that_is_none_is_told_back_harmlessly(server: InThread, path: str, query: str) -> None:
    with server.wire() as client:
        answer = safe(client.get(f"{path}?{query}"))
        assert (answer.status, answer.code) == (400, "invalid_input")
        assert client.get("/healthz").status == 200


def test_text_of_a_task_never_reaches_a_header(server: InThread) -> None:
    with server.wire() as client:
        text = "x\r\nSet-Cookie: a=1\r\n\r\n<script>"
        answer = safe(client.post("/api/tasks", {"title": "t", "body": text, "dedupe_key": "k"}))
        assert answer.status == 201
        assert re.fullmatch(r"/api/tasks/[0-9A-Z]{26}", answer.header("Location") or "")
        for name in ("title", "queue", "assignee", "actor"):
            assert safe(client.post("/api/tasks", {"title": "t", name: text})).status == 400
        assert safe(client.post("/api/tasks", {"title": "t", text: 1})).status == 400


# Sizes


def test_a_request_line_that_is_too_long_is_414(server: InThread) -> None:
    longest = b"/healthz?" + b"x" * (wire.LINE_LIMIT - len(b"GET /healthz? HTTP/1.1"))
    with server.wire() as client:
        assert client.ask(request(server, b"GET " + longest + b" HTTP/1.1\r\nHOST\r\n")).status == 400  # no parameter
        assert client.get("/healthz").status == 200
    only_answer(server, b"GET " + longest + b"x HTTP/1.1\r\nHOST\r\n", 414)
    only_answer(server, b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\nHOST\r\n", 414)
    only_answer(server, b"x" * (wire.LINE_LIMIT + 1), 414)


@pytest.mark.parametrize(
    "lines",
    [
        b"X: y\r\n" * 101,
        b"X: " + b"y" * wire.HEADER_LIMIT + b"\r\n",
        b"X" * wire.HEADER_LIMIT + b": y\r\n",
        b"".join(b"X%d: %s\r\n" % (number, b"y" * 400) for number in range(50)),
        b"X: " + b"y" * 500_000 + b"\r\n",
    ],
    ids=["many", "long", "long name", "together", "endless"],
)
def test_too_much_header_is_431(server: InThread, lines: bytes) -> None:
    only_answer(server, b"GET /healthz HTTP/1.1\r\nHOST" + lines + b"\r\n", 431)


def test_a_hundred_fields_are_not_too_many(server: InThread) -> None:
    with server.wire() as client:
        assert client.get("/healthz", *[b"X: y"] * 99).status == 200


def test_a_header_without_an_end_is_refused_while_it_comes(server: InThread) -> None:
    with server.wire() as client:
        client.send(request(server, b"GET /healthz HTTP/1.1\r\nHOST" + b"X: y\r\n" * 3_000))
        assert client.read().status == 431
        assert client.is_closed()


def test_a_header_field_cannot_keep_the_server_busy() -> None:
    """A value of spaces with a control character at its end was once tried at every space anew."""
    head = b"GET / HTTP/1.1\r\nX:" + b" " * 40_000 + b"\0"
    before = time.process_time()
    with refused("invalid_input"):
        wire.parse_head(head)
    assert time.process_time() - before < 5  # it takes a millisecond, and took half a minute


# Methods


def _allowed() -> dict[str, set[str]]:
    table = {
        path: set(by_method) | ({"HEAD"} if "GET" in by_method else set()) for path, by_method in routes.table().items()
    }
    return {**table, **{path: {"GET", "HEAD"} for path in pages.load()}}


@pytest.mark.parametrize(("path", "allowed"), _allowed().items(), ids=_allowed())
def test_a_method_that_a_path_does_not_have_is_405_and_tells_those_that_it_has(
    server: InThread, path: str, allowed: set[str]
) -> None:
    path = path.replace("{id}", _some_task(server))
    with server.wire() as client:
        for method in ("GET", "POST", "PATCH", "PUT", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "get", "X" * 200):
            if method in allowed:
                continue
            answer = safe(client.get(path, b"Content-Length: 0", method=method))
            assert (answer.status, answer.code) == (405, "invalid_input"), method
            assert set((answer.header("Allow") or "").split(", ")) == allowed
        if "HEAD" not in allowed:
            assert client.get(path, b"Content-Length: 0", method="HEAD").status == 405


def test_a_preflight_gets_no_permission(server: InThread) -> None:
    lines = (
        b"Origin: http://evil.example",
        b"Access-Control-Request-Method: POST",
        b"Access-Control-Request-Private-Network: true",
    )
    for path in ("/", "/api/tasks", "/api/board", "/nothing"):
        with server.wire() as client:
            assert safe(client.get(path, *lines)).status in (200, 404)
            assert safe(client.get(path, *lines, method="OPTIONS")).status in (404, 405)
    with server.wire() as client:
        origin = f"Origin: {server.url.rstrip('/')}".encode()
        assert safe(client.post("/api/tasks", TASK, origin)).status == 201


@pytest.mark.parametrize(
    "path", ["/", "/static/favicon.svg", "/api", "/api/openapi.json", "/api/board", "/api/tasks", "/nothing"]
)
def test_head_is_get_without_the_body(server: InThread, path: str) -> None:
    with server.wire() as client:
        whole, head = client.get(path), safe(client.get(path, method="HEAD"))
        assert head.status == whole.status
        assert [pair for pair in head.headers if pair[0] != "Date"] == [
            pair for pair in whole.headers if pair[0] != "Date"
        ]
        assert client.get("/healthz").status == 200


def test_the_head_of_a_stream_ends(server: InThread) -> None:
    with server.wire() as client:
        answer = safe(client.get("/api/stream", method="HEAD"))
        assert (answer.status, answer.header("Content-Type")) == (200, "text/event-stream")
        assert client.get("/healthz").status == 200


# What every response says


def test_every_kind_of_response_is_guarded(own: InThread, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise RuntimeError("a secret of /some/path")

    own.may_fail = True
    monkeypatch.setattr(own.board, "agents", fail)
    with own.wire() as client:
        page, board = client.get("/"), client.get("/api/board")
        seen = [
            page,
            board,
            client.get("/", b"If-None-Match: " + (page.header("ETag") or "").encode()),
            client.get("/api/board", b"If-None-Match: " + (board.header("ETag") or "").encode()),
            client.get("/static/favicon.svg", b"Accept-Encoding: gzip"),
            client.get("/api"),
            client.get("/api/openapi.json", b"Accept-Encoding: gzip"),
            client.get("/api/tasks", method="HEAD"),
            client.get("/nothing"),
            client.get("/api/tasks", b"Content-Length: 0", method="PUT"),
            client.post("/api/tasks", {"title": "t"}),
            client.post("/api/tasks", {}),
            client.get("/api/agents"),
        ]
        assert [safe(answer).status for answer in seen] == [
            200,
            200,
            304,
            304,
            200,
            200,
            200,
            200,
            404,
            405,
            201,
            400,
            500,
        ]
    with own.wire() as client:
        answer = client.get("/api/stream")
        assert answer.header("Content-Type") == "text/event-stream"
        assert safe(answer).status == 200


def test_no_traceback_and_no_path_leaves_the_process(own: InThread, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("a secret of /some/path")

    own.may_fail = True
    for name in ("agents", "stats", "add", "revision", "snapshot", "events", "list_tasks"):
        monkeypatch.setattr(own.board, name, fail)
    paths = ["/api/agents", "/api/stats", "/healthz", "/api/board", "/api/events", "/api/tasks", "/api/stream"]
    for path in [*paths, "POST"]:
        with own.wire() as client:
            answer = safe(client.post("/api/tasks", TASK) if path == "POST" else client.get(path))
            assert (answer.status, answer.code) == (500, "internal")
            assert b"secret" not in answer.body
            assert b".py" not in answer.body
            assert client.is_closed()
    assert len([line for line in own.log if line.startswith("internal error") and "a secret of" in line]) == 8


# Slow clients, silent clients, clients that leave


def _trickle(client: Wire, byte: bytes) -> None:
    """Send one byte again and again, until an answer comes; each would start the server's clock anew, if it could."""

    def is_answered() -> bool:
        client.send(byte)
        return bool(select.select([client.socket], [], [], 0)[0])

    eventually(is_answered, "the end of the server's patience")


@pytest.mark.parametrize("is_trickling", [False, True])
def test_a_header_that_does_not_come_in_time_is_408(
    server: InThread, monkeypatch: pytest.MonkeyPatch, is_trickling: bool
) -> None:
    monkeypatch.setattr(wire, "HEADER_TIMEOUT", 0.5)
    with server.wire() as client:
        client.send(b"GET /healthz HTTP/1.1\r\nX: ")
        if is_trickling:
            _trickle(client, b"y")
        answer = safe(client.read())
        assert (answer.status, answer.code) == (408, "invalid_input")
        client.send(request(server, b"\r\nHOST\r\n"))
        assert client.is_closed()


@pytest.mark.parametrize("is_trickling", [False, True])
def test_a_body_that_does_not_come_in_time_is_408_and_its_rest_never_taken_for_a_request(
    server: InThread, monkeypatch: pytest.MonkeyPatch, is_trickling: bool
) -> None:
    monkeypatch.setattr(wire, "BODY_TIMEOUT", 0.5)
    before = server.board.revision()
    with server.wire() as client:
        client.send(request(server, write(JSON, b"Content-Length: 100000")) + b'{"title": "')
        if is_trickling:
            _trickle(client, b"y")
        answer = safe(client.read())
        assert (answer.status, answer.code) == (408, "invalid_input")
        assert answer.header("Connection") == "close"
        client.send(request(server, NEXT))
        assert client.is_closed()
    assert server.board.revision() == before


def test_an_idle_connection_is_closed_without_a_word(own: InThread, monkeypatch: pytest.MonkeyPatch) -> None:
    with own.wire() as client:
        assert client.get("/healthz").status == 200
        monkeypatch.setattr(wire, "IDLE_TIMEOUT", 0.1)
        assert client.get("/healthz").status == 200  # it waits for this one already, for a minute
        assert client.is_closed()
    with own.wire() as silent:
        assert silent.is_closed()
    assert own.log == []


@pytest.mark.parametrize("how", ["close", "reset", "half"])
def test_a_client_that_leaves_in_the_middle_leaves_no_trace(own: InThread, how: str) -> None:
    post = b"POST /api/tasks HTTP/1.1\r\nHOST" + JSON + b"\r\nContent-Length: 500\r\n\r\n"
    parts = [
        b"",
        b"G",
        b"GET /healthz HTTP/1.1\r\n",
        b"GET /healthz HTTP/1.1\r\nHOST",
        post,
        post + TASK,
        NEXT,
        NEXT * 20,
    ]
    before = own.board.revision()
    for part in parts:
        with own.wire() as client:
            client.send(request(own, part))
            if how == "reset":
                client.leave()
            elif how == "half":
                client.socket.shutdown(socket.SHUT_WR)
                assert client.rest().count(b"HTTP/1.1 200 OK") == part.count(b"HOST\r\n")
    eventually(lambda: len(own.server.threads) == len(parts), "the last connection")
    for thread in own.server.threads:
        thread.join(LIMIT)
    assert own.log == []
    assert own.board.revision() == before


def _put_big_page(server: InThread) -> bytes:
    content = random.Random(1).randbytes(6 * 1_048_576)
    server.server.pages["/big"] = pages.Page(content, "image/svg+xml")
    return content


def test_a_client_that_does_not_read_its_answer_is_left(own: InThread, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "SEND_TIMEOUT", 0.2)
    content = _put_big_page(own)
    with own.wire(buffer=4_096) as deaf, own.wire() as other:
        deaf.send(b"GET /big HTTP/1.1\r\n" + deaf.host_field + b"\r\n")
        assert other.get("/healthz").status == 200
        own.server.threads[0].join(LIMIT)
        assert not own.server.threads[0].is_alive()
        assert len(deaf.rest()) < len(content)
        assert other.get("/healthz").status == 200
    assert own.log == []


# Many clients


def test_300_half_open_connections_do_not_keep_the_board_from_answering(
    own: InThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "HEADER_TIMEOUT", 10 * LIMIT)  # whoever had to wait for them would wait too long
    monkeypatch.setattr(wire, "BODY_TIMEOUT", 10 * LIMIT)
    halves = [b"", b"GET / HTTP/1.1\r\nHost: ", write(JSON, b"Content-Length: 500") + b"{"]
    with contextlib.ExitStack() as stack:
        for number in range(300):
            _enter(own, stack, halves[number % 3])
        with own.wire() as client:
            assert client.get("/api/board").status == 200
    assert own.log == []


def test_hundreds_of_connections_that_all_wrote_fit_into_the_usual_number_of_files(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(process(tmp_path / "data", files="-S -n 512"))
        for _ in range(150):
            answer = stack.enter_context(server.wire()).post("/api/tasks", TASK)
            assert answer.status == 201, answer


def test_a_server_without_files_to_spare_makes_room(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(process(tmp_path / "data", files="-n 40"))
        for _ in range(60):
            stack.enter_context(server.wire())
        with server.wire() as client:
            assert client.get("/").status == 200


@pytest.mark.parametrize(
    ("files", "connections", "streams", "waiting"),
    [(10_000, 256, 32, 64), (160, 19, 9, 4), (40, 4, 2, 1), (32, 3, 1, 1)],
)
def test_limits_follow_the_files_that_the_process_may_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: int, connections: int, streams: int, waiting: int
) -> None:
    monkeypatch.setattr(exhaustion, "raise_file_limit", lambda wanted: min(wanted, files))
    monkeypatch.setattr(exhaustion, "open_files", lambda: 6)
    with serving(tmp_path / "data") as server:
        own = server.server
        assert (own.connection_limit, own.stream_limit, own.waiting_limit) == (connections, streams, waiting)
        assert own.connection_limit > own.stream_limit + own.waiting_limit, "other requests have a place"


def test_stream_wait_and_other_requests_work_where_the_server_may_open_few_files(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(process(tmp_path / "data", files="-n 40"))
        streams = [stack.enter_context(server.wire()) for _ in range(3)]
        assert [client.get("/api/stream").status for client in streams] == [200, 200, 503]
        waiting = stack.enter_context(server.wire())
        waiting.send(waiting.posting("/api/claim?wait=60", {"agent": "ada", "queue": "rare"}))
        for _ in range(20):
            with server.wire() as client:
                assert client.post("/api/tasks", {"title": "x"}).status == 201
        with server.wire() as client:
            assert client.post("/api/tasks", {"title": "x", "queue": "rare"}).status == 201
        assert waiting.read().data["task"]["queue"] == "rare"


@pytest.mark.parametrize("command", ["serve --port 0", "mcp"])
def test_server_that_may_open_too_few_files_says_so_and_does_not_start(tmp_path: Path, command: str) -> None:
    terminal = Terminal(tmp_path)
    ran = subprocess.run(
        ["sh", "-c", 'ulimit -n 20; exec "$@"', "sh", *program(None), *command.split()],
        cwd=tmp_path,
        env=terminal.environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=LIMIT,
    )
    assert ran.returncode == 8
    error = read_envelope(ran.stdout.decode())["error"]
    assert error["message"].startswith("too few open files are allowed: 20 (at least ")
    assert "ulimit -n" in error["hint"]


def test_streams_leave_places_for_other_requests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_server, "CONNECTION_LIMIT", 4)
    with serving(tmp_path / "data") as server, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(server.wire()) for _ in range(3)]
        assert [client.get("/api/stream").status for client in clients] == [200, 200, 503]
        with server.wire() as client:
            assert client.get("/healthz").status == 200


@pytest.fixture
def four(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[InThread]:
    """Return a server that takes four connections at once."""
    monkeypatch.setattr(web_server, "CONNECTION_LIMIT", 4)
    with serving(tmp_path / "data") as server:
        yield server


def _enter(server: InThread, stack: contextlib.ExitStack, text: bytes = b"", **options: Any) -> Wire:
    """Connect, and wait until the server has taken the connection in."""
    before = server.server.entered
    client = stack.enter_context(server.wire(**options))
    client.send(request(server, text))
    eventually(lambda: server.server.entered > before, "the connection")
    return client


def test_the_oldest_connection_without_a_request_makes_room_for_a_new_one(four: InThread) -> None:
    with contextlib.ExitStack() as stack:
        halves = [
            b"",
            b"GET / HTTP/1.1\r\n",
            b"POST /api/tasks HTTP/1.1\r\nHOST" + JSON + b"\r\nContent-Length: 9\r\n\r\n",
        ]
        oldest, *others = [_enter(four, stack, half) for half in [b"", *halves]]
        assert others[0].get("/healthz").status == 200  # which makes it the youngest
        first = _enter(four, stack)
        assert oldest.is_closed()
        second = _enter(four, stack)
        assert others[1].is_closed()
        for client in (first, second, others[0]):
            assert client.get("/healthz").status == 200
        assert others[2].ask(b'{"a": 1 }').status == 400
    assert [line for line in four.log if "400" not in line] == []


def test_a_request_that_is_being_answered_never_makes_room(four: InThread, monkeypatch: pytest.MonkeyPatch) -> None:
    started, go = threading.Semaphore(0), threading.Event()

    def slow() -> list[object]:
        started.release()
        assert go.wait(LIMIT)
        return []

    monkeypatch.setattr(four.board, "agents", slow)
    with contextlib.ExitStack() as stack:
        try:
            busy = [_enter(four, stack, b"GET /api/agents HTTP/1.1\r\nHOST\r\n") for _ in range(3)]
            assert all(started.acquire(timeout=LIMIT) for _ in busy)
            for _ in range(5):
                idle = _enter(four, stack)
            assert idle.get("/healthz").status == 200
            eventually(lambda: four.server.idle() == 1, "the pause after the answer")
            busy.append(_enter(four, stack, b"GET /api/agents HTTP/1.1\r\nHOST\r\n"))
            assert started.acquire(timeout=LIMIT)
            assert idle.is_closed()
            with four.wire() as client:  # nobody can go, so the new one must
                answer = safe(client.read())
                assert (answer.status, answer.code, answer.header("Retry-After")) == (503, "busy", "1")
                assert client.is_closed()
        finally:
            go.set()
        assert [client.read().status for client in busy] == [200] * 4


def test_a_file_that_is_being_sent_never_makes_room(four: InThread) -> None:
    content = _put_big_page(four)
    with contextlib.ExitStack() as stack:
        slow = _enter(four, stack, b"GET /big HTTP/1.1\r\nHOST\r\n", buffer=4_096)
        assert slow.socket.recv(1, socket.MSG_PEEK)
        for _ in range(5):
            assert _enter(four, stack).get("/healthz").status == 200
        slow.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, len(content))  # it may be quick from now on
        assert slow.read().body == content


# Streams


def _events(client: Wire, count: int) -> list[int]:
    """Return the ids of the next events of a stream."""
    found: list[int] = []
    while len(found) < count:
        message = client.until(b"\n\n").decode()
        found += [int(line.removeprefix("id: ")) for line in message.splitlines() if line.startswith("id: ")]
    return found


@pytest.mark.parametrize(
    ("query", "lines"),
    [
        ("?after=2", []),
        ("", [b"Last-Event-ID: 2"]),
        ("?after=0", [b"last-event-id: 2"]),
        ("?after=2", [b"Last-Event-ID: "]),
    ],
)
def test_a_stream_resumes_where_it_broke_off(own: InThread, query: str, lines: list[bytes]) -> None:
    for number in range(4):
        own.board.add(f"task {number}")
    with own.wire() as client:
        assert client.get(f"/api/stream{query}", *lines).header("Content-Length") is None
        assert _events(client, 2) == [3, 4]
        own.board.add("one more")
        assert _events(client, 1) == [5]


def test_a_stream_begins_now_unless_told_otherwise(own: InThread) -> None:
    own.board.add("before")
    with own.wire() as client:
        client.get("/api/stream")
        assert client.until(b"\n\n").startswith(b"retry: ")
        own.board.add("after")
        assert _events(client, 1) == [2]


@pytest.mark.parametrize("last", [b"x", b"-1", b"1.5", b"\xb2", b"9" * 30, b"1, 2"])
def test_a_stream_resumes_from_a_number_only(server: InThread, last: bytes) -> None:
    with server.wire() as client:
        answer = safe(client.get("/api/stream", b"Last-Event-ID: " + last))
        assert (answer.status, answer.code) == (400, "invalid_input")
        assert client.get("/api/stream", b"Last-Event-ID: 1", b"Last-Event-ID: 1").status == 400


@pytest.mark.parametrize("after", ["-1", "99999999999999999999", "x", ""])
def test_a_stream_that_cannot_begin_is_refused_before_it_begins(server: InThread, after: str) -> None:
    with server.wire() as client:
        answer = safe(client.get(f"/api/stream?after={after}"))
        assert (answer.status, answer.code) == (400, "invalid_input")
        assert client.get("/healthz").status == 200


def test_there_are_32_streams_at_most_and_one_that_was_left_makes_room(
    own: InThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "KEEP_ALIVE_INTERVAL", 3_600.0)  # else a failed sign of life would tell
    with contextlib.ExitStack() as stack:
        streams = [stack.enter_context(own.wire()) for _ in range(stream.STREAM_LIMIT)]
        assert [client.get("/api/stream").status for client in streams] == [200] * 32
        with own.wire() as client:
            answer = safe(client.get("/api/stream"))
            assert (answer.status, answer.code, answer.header("Retry-After")) == (503, "busy", "1")
            assert client.get("/healthz").status == 200
            streams[5].leave()
            streams[6].socket.close()
            for _ in range(2):  # each goes in its own time
                eventually(lambda: client.get("/healthz").status == 200 and _frees(own, stack), "room")
            assert client.get("/api/stream").status == 503
        own.board.add("for all that are left")
        assert [_events(client, 1) for client in streams[:5]] == [[1]] * 5


def test_a_stream_ends_with_a_reset_when_another_board_takes_the_place(own: InThread, tmp_path: Path) -> None:
    with own.wire() as client:
        assert client.get("/api/stream").status == 200
        with Board(str(tmp_path / "other"), actor=MARIA) as other:
            other.add("from a backup")
        for name in ("tasks.db-wal", "tasks.db-shm"):
            Path(own.board.path).with_name(name).unlink(missing_ok=True)
        os.replace(tmp_path / "other" / "tasks.db", own.board.path)
        assert b"event: reset\nid:\n" in client.rest()


def _frees(server: InThread, stack: contextlib.ExitStack) -> bool:
    client = stack.enter_context(server.wire())
    if client.get("/api/stream").status == 200:
        return True
    client.socket.close()
    return False


def test_a_stream_that_breaks_says_nothing_that_is_no_event(own: InThread, monkeypatch: pytest.MonkeyPatch) -> None:
    """After its header nothing may come but events: a refusal in the middle would be read as one."""
    own.may_fail = True
    own.board.add("one")
    with own.wire() as client:
        client.get("/api/stream?after=0")
        assert _events(client, 1) == [1]

        def fail(**_: object) -> None:
            raise BoardError("a secret")

        monkeypatch.setattr(own.board, "events", fail)
        assert client.rest() == b""


def test_streams_end_when_the_server_stops(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(serving(tmp_path / "data"))
        clients = [stack.enter_context(Wire((server.host, server.port))) for _ in range(3)]
        for client in clients:
            assert client.get("/api/stream").status == 200
        server.server.shutdown()
        for client in clients:
            client.rest()


# The process


@pytest.mark.parametrize(("how", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_ends_the_process_at_once_whatever_is_connected(
    tmp_path: Path, how: signal.Signals, code: int
) -> None:
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(process(tmp_path / "data"))
        streams = [stack.enter_context(server.wire()) for _ in range(5)]
        for client in streams:
            assert client.get("/api/stream").status == 200
        idle = [stack.enter_context(server.wire()) for _ in range(5)]
        for client in idle[:3]:
            assert client.get("/api/board").status == 200
        idle[3].send(b"GET / HTTP/1.1\r\nX: ")
        before = time.monotonic()
        assert server.stop(how) == code
        assert time.monotonic() - before < 45  # idle connections and streams would hold it for a minute, or for ever
        for client in (*streams, *idle):
            client.rest()
        assert server.errors == ""
        with pytest.raises(ConnectionRefusedError):
            server.wire()


def test_nothing_of_a_request_can_forge_the_log(tmp_path: Path) -> None:
    with process(tmp_path / "data") as server:
        forged = "2026-01-01 00:00:00 POST /forged 201"
        for text in (
            "GET /%1b[31mred%07 HTTP/1.1\r\nHOST\r\n",
            f"GET /x%0a{forged.replace(' ', '%20')} HTTP/1.1\r\nHOST\r\n",
            "GET /%c2%9b31m%e2%80%a8%e2%80%ae HTTP/1.1\r\nHOST\r\n",
            "GET /x HTTP/1.1\r\nHOSTX: \x1b[31m\r\n\r\n",
            "GET /x HTTP/1.1\r\nHost: \x9b31m\r\n\r\n",
            "POST /api/tasks/%0d%0a%1b/cancel HTTP/1.1\r\nHOSTContent-Length: 0\r\n\r\n",
            "\x1b]0;x\x07 / HTTP/1.1\r\n\r\n",
        ):
            with server.wire() as client:
                host = f"Host: 127.0.0.1:{server.port}\r\n"
                assert client.ask(text.replace("HOST", host).encode("latin-1")).status >= 400
        assert server.stop() == 0
        assert server.errors.endswith("\n")
        lines = server.errors[:-1].split("\n")
        assert len(lines) == 7
        for line in lines:
            assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \S", line)
            assert line.isprintable()
        assert not [line for line in lines if line.startswith(forged)]


def test_a_token_never_reaches_the_log(tmp_path: Path) -> None:
    with process(tmp_path / "data") as server, server.client() as client:
        client.data("POST", "/api/tasks", {"title": "t"})
        data = client.data("POST", "/api/claim", {"agent": "ada"})
        path, token = f"/api/tasks/{data['task']['id']}", data["lease"]["token"]
        client.data("POST", f"{path}/heartbeat", {"token": token})
        client.refused("invalid_input", "POST", f"{path}/heartbeat", {"token": token, "progress": 500})
        client.refused("invalid_input", "POST", f"{path}/heartbeat", {"token": token, token: 1})
        client.refused("invalid_input", "POST", f"{path}/heartbeat?token={token}")
        client.refused("invalid_input", "GET", f"{path}?token={token}")
        client.refused("lease_lost", "POST", f"{path}/complete", {"token": token[::-1]})
        client.data("POST", f"{path}/complete", {"token": token, "result": {}})
        client.refused("lease_lost", "POST", f"{path}/release", {"token": token})
        assert server.stop() == 0
        assert server.errors.count("\n") >= 9
        assert token not in server.errors
        assert token[::-1] not in server.errors


def test_a_log_that_nobody_takes_costs_no_answer(tmp_path: Path) -> None:
    with process(tmp_path / "data", deaf=True) as server, server.client() as client:
        for _ in range(3):
            assert client.call("POST", "/api/tasks", {"title": "t"})[0] == 201
        assert client.call("GET", "/nothing")[0] == 404


def test_a_port_in_use_is_unusable(server: InThread, tmp_path: Path) -> None:
    answer = Terminal(tmp_path).process("serve", "--port", str(server.port))
    assert answer.error["code"] == "unusable"
    assert str(server.port) in answer.error["message"]
    with refused("unusable"), serving(tmp_path / "data", port=server.port):
        pass
    gc.collect()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "::ffff:0.0.0.0"])
def test_other_machines_are_let_in_on_demand_only(tmp_path: Path, host: str) -> None:
    if ":" in host and not socket.has_ipv6:
        pytest.skip("this Python has no IPv6")
    with refused("not_permitted"), serving(tmp_path / "data", host=host):
        pass
    gc.collect()


def test_the_command_warns_of_other_machines(tmp_path: Path) -> None:
    answer = Terminal(tmp_path).process("serve", "--port", "0", "--host", "0.0.0.0")
    assert answer.error["code"] == "not_permitted"
    assert "--allow-remote" in (answer.error["hint"] or "")
    with process(tmp_path / "data", "--host", "0.0.0.0", "--allow-remote") as server:
        assert any("other machines" in warning for warning in server.envelope["warnings"])
        with Wire(("127.0.0.1", server.port)) as client:
            assert client.get("/healthz").status == 200
            answer_for_stranger = client.ask(b"GET / HTTP/1.1\r\nHost: evil.example:%d\r\n\r\n" % server.port)
            assert answer_for_stranger.status == 421


# For reading only


def test_a_server_for_reading_refuses_every_writing_route(tmp_path: Path) -> None:
    with Board(tmp_path / "data", actor=MARIA) as board:
        task = bring_to(board, "review").id
        held = hold(board, task=board.add("held").task.id)
        revision = board.revision()
    bodies: dict[str, Any] = {"heartbeat": {"token": held.token}, "approve": {}, "comments": {"text": "x"}}
    with serving(tmp_path / "data", read_only=True) as server, server.client() as client:
        writing = [route for route in routes.ROUTES if route.writes]
        assert len(writing) == 17
        for route in writing:
            verb = route.path.rpartition("/")[2]
            path = route.path.replace("{id}", held.id if verb == "heartbeat" else task)
            client.refused("not_permitted", route.method, path, bodies.get(verb, {"title": "t", "agent": "ada"}))
        for route in routes.ROUTES:
            if not route.writes and route.answer != "stream":
                assert client.fetch("GET", route.path.replace("{id}", task)).status == 200, route.path
        assert client.fetch("GET", "/").status == 200
        assert client.data("GET", "/healthz")["read_only"] is True
        assert server.board.revision() == revision
        with refused("unusable"):
            server.board.add("past the server")


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_server_for_reading_opens_the_database_for_reading(tmp_path: Path) -> None:
    def modes(pid: int) -> set[int]:
        found = set()
        for file in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):
                if os.readlink(file).endswith("/tasks.db"):
                    text = Path(f"/proc/{pid}/fdinfo/{file.name}").read_text()
                    found.add(int(text.split("flags:")[1].split()[0], 8) & os.O_ACCMODE)
        return found

    for words, mode in (((), os.O_RDWR), (("--read-only",), os.O_RDONLY)):
        with process(tmp_path / "data", *words) as server, server.client() as client:
            assert client.call("GET", "/api/board")[0] == 200
            assert server.envelope["data"]["read_only"] == bool(words)
            assert modes(server.popen.pid) == {mode}


def test_a_server_for_reading_makes_no_board(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)
    terminal.refused("not_found", "serve", "--read-only", "--port", "0", "--data-dir", "data")
    terminal.write("atb.toml", "[serve]\nread_only = true\nport = 0\n")
    terminal.refused("not_found", "serve", "--config", "atb.toml")
    assert terminal.files() == {"atb.toml"}


# Chance


def _mutations(chance: random.Random, good: list[bytes]) -> Iterator[bytes]:
    junk = [
        b"\r",
        b"\n",
        b"\r\n",
        b"\r\n\r\n",
        b"\0",
        b" ",
        b"\t",
        b":",
        b"%",
        b"/",
        b"..",
        b"?",
        b"\xff",
        b"\x1b",
        b"0",
        b"-",
    ]
    lines = [
        b"Content-Length: 3\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Host: x\r\n",
        b" x\r\n",
        b"Expect: 100-continue\r\n",
    ]
    while True:
        text = bytearray(chance.choice(good))
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(text) + 1)
            end = min(len(text), at + chance.choice((1, 1, 2, 10)))
            change = chance.randrange(6)
            if change == 0:
                text[at:at] = chance.choice(junk)
            elif change == 1:
                del text[at:end]
            elif change == 2:
                text[at:end] = chance.randbytes(end - at)
            elif change == 3:
                text[at:at] = text[at:end] * chance.randint(1, 50)
            elif change == 4:
                text[at:at] = chance.choice(lines)
            else:
                text[at:end] = chance.choice(junk)
            if not text:
                text = bytearray(b"\r\n")
        yield bytes(text)


def test_no_mutation_of_a_request_gets_more_than_answers(own: InThread) -> None:
    """Whatever comes, what goes back is a row of well formed responses, and then the end."""
    chance = random.Random(20_261_130)
    task = own.board.add("a task").task.id
    with own.wire() as client:
        good = [
            client.posting("/api/tasks", TASK, b"Origin: http://127.0.0.1:%d" % own.port),
            client.posting(f"/api/tasks/{task}", {"if_status": "queued", "comment": "x"}, method="PATCH"),
            client.posting(f"/api/tasks/{task}/comments", {"text": "x"}),
            request(own, b"GET /api/tasks?limit=2&status=queued HTTP/1.1\r\nHOSTAccept-Encoding: gzip;q=1, br\r\n\r\n"),
            request(own, f"GET /api/tasks/{task[-6:]}/events?after=0 HTTP/1.1\r\nHOST\r\n".encode()),
            request(own, b'GET / HTTP/1.1\r\nHOSTIf-None-Match: W/"x", "y"\r\n\r\n'),
        ]
    statuses = set()
    for text, _ in zip(_mutations(chance, good), range(2_000), strict=False):
        with own.wire() as client:
            client.send(text)
            client.socket.shutdown(socket.SHUT_WR)
            for answer in _answers(client.rest(), text):
                statuses.add(safe(answer).status)
                assert answer.status < 500, (text, answer)
                if answer.status >= 400:
                    assert answer.code != "internal"
    assert {200, 201, 400, 404, 405, 415, 421} <= statuses
    with own.client() as client_:
        assert client_.call("GET", "/healthz")[0] == 200
        assert client_.call("POST", "/api/tasks", {"title": "still here"})[0] == 201


def _answers(found: bytes, text: bytes) -> Iterator[Answer]:
    """Take a row of responses apart; one without a length that a HEAD or a 304 explains is malformed."""
    while found:
        head, end, found = found.partition(b"\r\n\r\n")
        assert end, (text, head)
        line, *lines = head.decode("ascii").split("\r\n")
        if line == "HTTP/1.1 100 Continue":
            continue
        match = re.fullmatch(r"HTTP/1\.1 ([2-5]\d\d) [A-Za-z -]+", line)
        assert match, (text, line)
        headers = [(name, value) for name, _, value in (field.partition(": ") for field in lines)]
        answer = Answer(int(match[1]), headers, b"")
        length = int(answer.header("Content-Length") or "0")
        assert length <= len(found), text
        yield answer._replace(body=found[:length])
        found = found[length:]


def test_a_connection_that_was_closed_before_its_thread_began_is_no_error(own: InThread) -> None:
    """A server that stops closes what it has accepted, at whatever point its thread is."""
    ours, theirs = socket.socketpair()
    with ours:
        theirs.close()
        Connection(theirs, ("127.0.0.1", 1), own.server)
