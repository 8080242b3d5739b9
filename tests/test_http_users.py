"""Who may connect on loopback: processes of this user and of root, and of users that were let in; nobody else."""

from __future__ import annotations

import contextlib
import gc
import os
import socket
import sys
from typing import TYPE_CHECKING

import pytest

from agent_task_board.web import peers
from agent_task_board.web import server as web_server
from tests.command_line import Terminal
from tests.other_user import NOBODY, ask_as_nobody, needs_another_user
from tests.serving import InThread, Wire, process, serving
from tests.support import refused
from tests.waiting import LIMIT, eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who opened a connection")


@pytest.fixture
def own(tmp_path: Path) -> Iterator[InThread]:
    """Return a server for one test."""
    with serving(tmp_path / "data") as server:
        yield server


@pytest.fixture(params=["kernel", "tables"])
def lookup(request: pytest.FixtureRequest) -> Iterator[peers.Lookup]:
    """Return each way to look up a connection."""
    found = peers.Kernel() if request.param == "kernel" else peers.read_tables
    yield found
    peers.close(found)


@contextlib.contextmanager
def connected(address: str, through: str | None = None) -> Iterator[tuple[socket.socket, socket.socket]]:
    """Yield both ends of a connection, the client's first; ``through`` is the address that it connects to."""
    to = through or address
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as listener:
        listener.bind((address, 0))
        listener.listen(1)
        with socket.socket(socket.AF_INET6 if ":" in to else socket.AF_INET) as client:
            client.connect((to, listener.getsockname()[1]))
            accepted, _ = listener.accept()
            with accepted:
                yield client, accepted


def owner(lookup: peers.Lookup, end: socket.socket) -> int | None:
    return lookup(end.getpeername()[:2], end.getsockname()[:2])


# The other end of a connection


@linux
@pytest.mark.parametrize(
    ("address", "through"), [("127.0.0.1", None), ("::1", None), ("127.0.0.1", "::ffff:127.0.0.1")]
)
def test_the_owner_of_the_other_end_is_told(lookup: peers.Lookup, address: str, through: str | None) -> None:
    try:
        with connected(address, through) as (client, accepted):
            assert owner(lookup, accepted) == os.geteuid()
            assert owner(lookup, client) == os.geteuid()
    except OSError:
        pytest.skip("this machine has no IPv6")


@linux
def test_a_sender_that_has_closed_is_nobody(lookup: peers.Lookup) -> None:
    with connected("127.0.0.1") as (client, accepted):
        client.sendall(b"GET / HTTP/1.1\r\n\r\n")
        client.close()
        eventually(lambda: owner(lookup, accepted) is None, "the end of the connection")
        assert accepted.recv(100) == b"GET / HTTP/1.1\r\n\r\n", "what was sent arrived all the same"


@linux
def test_only_a_line_with_both_ends_counts(lookup: peers.Lookup) -> None:
    with connected("127.0.0.1") as (client, accepted), connected("127.0.0.1") as (another, _):
        ends = client.getsockname(), accepted.getsockname()
        assert lookup(*ends) == os.geteuid()
        assert lookup(another.getsockname(), ends[1]) is None
        assert lookup(ends[0], another.getpeername()) is None
        assert lookup(("127.0.0.1", accepted.getsockname()[1]), ends[0]) == os.geteuid(), "the other direction"
        assert lookup(("127.0.0.2", ends[0][1]), ends[1]) is None


@linux
def test_a_socket_that_listens_owns_no_connection(lookup: peers.Lookup) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(1)
        assert lookup(listener.getsockname(), ("127.0.0.1", 9)) is None


@linux
@pytest.mark.parametrize(
    "lines",
    [
        [],
        ["0: ENDS 01 00000000:00000000 00:00000000 00000000     0        0 0 1"],
        ["0: ENDS 01 00000000:00000000 00:00000000 00000000  UID        0 0 1"],
        [
            "0: ENDS 01 00000000:00000000 00:00000000 00000000  UID        0 77 1",
            "1: ENDS 01 00000000:00000000 00:00000000 00000000 4242        0 78 1",
        ],
    ],
    ids=["none", "closed", "no inode", "two owners"],
)
def test_a_line_without_an_inode_and_a_doubtful_one_are_nobody(
    tmp_path: Path, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "tcp"
    ends = "0100007F:0009 0100007F:1F90"
    table.write_text("".join(f"{line}\n" for line in lines).replace("ENDS", ends).replace("UID", str(os.geteuid())))
    whole = peers._owners_in
    monkeypatch.setattr(peers, "_owners_in", lambda _, *two: whole(str(table), *two))
    assert peers.read_tables(("127.0.0.1", 9), ("127.0.0.1", 8080)) is None


@linux
def test_where_the_kernel_takes_no_questions_the_tables_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object) -> int | None:
        raise PermissionError

    monkeypatch.setattr(peers.Kernel, "__call__", unknown)
    assert peers.find_lookup() is peers.read_tables
    monkeypatch.setattr(peers, "read_tables", lambda *_: 4_242)
    assert peers.find_lookup() is None, "what does not know our own connection is not to be believed"


@linux
def test_an_answer_that_came_too_late_for_one_question_is_none_to_the_next() -> None:
    kernel = peers.Kernel()
    with contextlib.closing(kernel), connected("127.0.0.1") as (client, accepted):
        nobody = socket.inet_aton("127.0.0.2").ljust(16, b"\0") * 2
        question = b"\2\6\0\0\xff\xff\xff\xff" + b"\0" * 4 + nobody + b"\0" * 4 + b"\xff" * 8
        late = (len(question) + 16).to_bytes(4, sys.byteorder) + b"\x14\0\1\0" + b"\xff" * 4 + b"\0" * 4
        kernel._socket.sendto(late + question, (0, 0))
        assert owner(kernel, accepted) == os.geteuid()
        assert owner(kernel, client) == os.geteuid()


# The server


@linux
def test_a_process_of_another_user_reads_and_writes_nothing(own: InThread, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own.server.access, "_users", {4_242})
    before = own.board.revision()
    for path in ("/", "/api", "/healthz", "/api/board", "/static/favicon.svg", "/nothing"):
        with own.wire() as client:
            answer = client.get(path)
            assert (answer.status, answer.code) == (403, "not_permitted")
            assert answer.header("Connection") == "close"
            assert client.is_closed()
    with own.wire() as client:
        assert client.post("/api/tasks", {"title": "t"}).status == 403
    assert own.board.revision() == before
    assert all(line.startswith("connection refused 403") for line in own.log)
    assert len(own.log) == 7


@linux
def test_who_may_not_come_in_is_told_before_anything_was_sent(own: InThread, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own.server.access, "_users", {4_242})
    with own.wire() as client:
        assert client.read().status == 403


@linux
def test_a_client_that_left_before_it_was_met_changes_nothing(
    own: InThread, monkeypatch: pytest.MonkeyPatch, lookup: peers.Lookup
) -> None:
    found: list[int | None] = []

    def late(other: peers.End, ours: peers.End) -> int | None:
        eventually(lambda: lookup(other, ours) is None, "the end of the connection")
        found.append(lookup(other, ours))
        return found[-1]

    _answer_lookups_by(own, late, monkeypatch)
    before = own.board.revision()
    with own.wire() as client:
        client.send(client.posting("/api/tasks", {"title": "sent and gone"}))
    _wait_for_end(own)
    assert found == [None]
    assert own.log == [], "a client that left is not worth a line"
    assert own.board.revision() == before


def _wait_for_end(server: InThread) -> None:
    """Wait until the only connection so far has ended."""
    eventually(lambda: server.server.threads, "the connection")
    server.server.threads[0].join(LIMIT)


def _answer_lookups_by(server: InThread, lookup: peers.Lookup, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let another lookup answer, and release the server's own."""
    server.server.access.close()
    monkeypatch.setattr(server.server.access, "_lookup", lookup)


@linux
def test_connections_of_others_take_no_places(own: InThread, monkeypatch: pytest.MonkeyPatch) -> None:
    with own.wire() as kept:
        assert kept.get("/healthz").status == 200
        monkeypatch.setattr(own.server, "connection_limit", 1)
        users = own.server.access._users
        monkeypatch.setattr(own.server.access, "_users", {4_242})
        for _ in range(3):
            with own.wire() as other:
                assert other.read().status == 403
        monkeypatch.setattr(own.server.access, "_users", users)
        assert kept.get("/healthz").status == 200, "it was not closed to make room"


@linux
def test_connections_of_others_beyond_a_few_are_closed_without_a_word(
    own: InThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own.server.access, "_users", {4_242})
    for _ in range(web_server.REFUSALS_AT_ONCE):
        assert own.server.turning_away.acquire(blocking=False)
    with own.wire() as client:
        assert client.is_closed()
    for _ in range(web_server.REFUSALS_AT_ONCE):
        own.server.turning_away.release()
    with own.wire() as client:
        assert client.read().status == 403


@linux
@pytest.mark.parametrize(
    ("error", "status"), [(OSError(24, "Too many open files"), 503), (OSError(13, "Permission denied"), 503)]
)
def test_nobody_comes_in_while_the_system_cannot_be_asked(
    own: InThread, monkeypatch: pytest.MonkeyPatch, error: OSError, status: int
) -> None:
    def fails(*_: object) -> int | None:
        raise error

    _answer_lookups_by(own, fails, monkeypatch)
    with own.wire() as client:
        assert client.get("/api/board").status == status


@linux
def test_the_log_names_who_called(own: InThread) -> None:
    name = peers.user_name(os.geteuid())
    with own.wire() as client:
        assert client.post("/api/tasks", {"title": "t"}).status == 201
        assert client.ask(b"what\r\n\r\n").status == 400
    assert own.log == [f"POST /api/tasks 201 (user {name})", f"malformed request 400 (user {name})"]


def test_where_the_system_does_not_tell_everyone_comes_in_and_the_command_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "find_lookup", lambda: None)
    with serving(tmp_path / "data") as server, server.wire() as client:
        assert not server.server.access.tells_users
        assert client.post("/api/tasks", {"title": "t"}).status == 201
        assert server.log == ["POST /api/tasks 201 (127.0.0.1)"]


@linux
def test_the_users_let_in_are_users_of_this_machine(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)
    refusal = terminal.refused("invalid_input", "serve", "--port", "0", "--allow-user", "no-such-user")
    assert refusal["details"]["field"] == "allow_user"
    for name in ("", "-1", "\u0661", "root\n", "root:x", "9" * 400):
        with refused("invalid_input"), serving(tmp_path / "data", allow_users=[name]):
            pass
    gc.collect()


@needs_another_user
@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "::ffff:127.0.0.1"])
def test_another_user_is_refused_until_let_in(tmp_path: Path, host: str) -> None:
    text = b"POST /api/tasks HTTP/1.1\r\nHost: localhost:PORT\r\nConnection: close\r\n"
    text += b'Content-Type: application/json\r\nContent-Length: 13\r\n\r\n{"title":"t"}'
    for names, status, made in (((), b"403", 0), ((NOBODY,), b"201", 1), (("65534",), b"201", 1)):
        listens = "::1" if host == "::1" else "127.0.0.1"
        with serving(tmp_path / f"data{names}", host=listens, allow_users=names) as server:
            answer = ask_as_nobody(host, server.port, text.replace(b"PORT", str(server.port).encode()))
            assert answer.split(b" ")[1] == status, answer
            assert len(server.board.list_tasks().tasks) == made
            assert "nobody" in server.log[0], server.log
            with Wire((listens, server.port)) as client:
                assert client.get("/api/board").status == 200, "this user needs no more than before"


@needs_another_user
def test_another_user_that_sends_and_closes_at_once_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody owns a closed connection any more; the tables show it as one of root, without an inode."""
    with serving(tmp_path / "data") as server:

        def late(*ends: peers.End) -> int | None:
            eventually(lambda: peers.read_tables(*ends) is None, "the end of the connection")
            return peers.read_tables(*ends)

        _answer_lookups_by(server, late, monkeypatch)
        host = f"Host: localhost:{server.port}\r\n".encode()
        body = b'Content-Type: application/json\r\nContent-Length: 13\r\n\r\n{"title":"t"}'
        ask_as_nobody("127.0.0.1", server.port, b"POST /api/tasks HTTP/1.1\r\n" + host + body, leave=True)
        _wait_for_end(server)
        assert server.board.list_tasks().tasks == []


@needs_another_user
def test_the_command_lets_in_whom_it_is_told(tmp_path: Path) -> None:
    text = b"GET /api HTTP/1.1\r\nHost: localhost:PORT\r\nConnection: close\r\n\r\n"
    for words, status in (((), b"403"), (("--allow-user", NOBODY), b"200")):
        with process(tmp_path / "data", *words) as server:
            answer = ask_as_nobody("127.0.0.1", server.port, text.replace(b"PORT", str(server.port).encode()))
            assert answer.split(b" ")[1] == status
