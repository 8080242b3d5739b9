"""Servers for tests, each on a free port and stopped at the end of its block, and two clients to talk to them.

``serving`` runs one in a thread of this process, ``process`` starts ``atb serve``. Both yield something with a
``port``, a ``url``, ``client()`` for JSON calls over one connection that is kept, and ``wire()`` for raw bytes::

    with serving(tmp_path / "data") as server, server.client() as client:
        status, envelope = client.call("POST", "/api/tasks", {"title": "Write the parser"})
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import zlib
from typing import TYPE_CHECKING, Any, NamedTuple

from agent_task_board.inputs import parse_json
from agent_task_board.instants import now
from agent_task_board.service import Board
from agent_task_board.web.server import Server
from tests.command_line import PASSED_ON, read_envelope
from tests.support import MARIA
from tests.waiting import LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Self

    from agent_task_board.identity import Actor
    from agent_task_board.web.connection import Connection


class Answer(NamedTuple):
    """One response: status, header fields in their order, and the body as it was sent."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def all(self, name: str) -> list[str]:
        """Return every value of a header field."""
        return [value for known, value in self.headers if known.lower() == name.lower()]

    def header(self, name: str) -> str | None:
        """Return the value of a header field that is there once at most."""
        values = self.all(name)
        assert len(values) <= 1, self
        return values[0] if values else None

    @property
    def content(self) -> bytes:
        """The body, unpacked where it was compressed."""
        return zlib.decompress(self.body, 31) if self.header("Content-Encoding") == "gzip" else self.body

    @property
    def envelope(self) -> dict[str, Any]:
        """The body as the envelope that it must be, its ``ok`` in accord with the status."""
        envelope = read_envelope(self.content.decode())
        assert envelope["ok"] == (self.status < 400), self
        return envelope

    @property
    def data(self) -> Any:
        """``data`` of a call that worked."""
        assert self.envelope["ok"], self
        return self.envelope["data"]

    @property
    def code(self) -> str:
        """The error's ``code`` of a call that was refused."""
        code: str = self.envelope["error"]["code"]
        return code


class Wire:
    """One connection, byte by byte. What arrives after a response stays for the next ``read``."""

    def __init__(self, address: tuple[str, int], *, buffer: int | None = None) -> None:
        self.host, self.port = address
        self.socket = socket.socket(socket.AF_INET6 if ":" in self.host else socket.AF_INET)
        self.socket.settimeout(LIMIT)
        if buffer is not None:  # before the connection, or it comes too late
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        try:
            self.socket.connect(address)
        except OSError:
            self.socket.close()
            raise
        self._pending = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    @property
    def host_field(self) -> bytes:
        """The ``Host`` line that the server expects, with its line end."""
        name = f"[{self.host}]" if ":" in self.host else self.host
        return f"Host: {name}:{self.port}\r\n".encode()

    def send(self, data: bytes) -> None:
        """Send bytes as they are; a server that has hung up already is no error."""
        with contextlib.suppress(ConnectionError):
            self.socket.sendall(data)

    def ask(self, data: bytes, *, method: str = "GET") -> Answer:
        """Send bytes and read one response."""
        self.send(data)
        return self.read(method)

    def get(self, path: str, *fields: bytes, method: str = "GET") -> Answer:
        """Send a request without a body, with a good ``Host`` and further header lines (no line ends)."""
        lines = [f"{method} {path} HTTP/1.1\r\n".encode(), self.host_field, *(field + b"\r\n" for field in fields)]
        return self.ask(b"".join(lines) + b"\r\n", method=method)

    def post(self, path: str, body: object, *fields: bytes, method: str = "POST") -> Answer:
        """Send a good request with a JSON body (or bytes), and further header lines (no line ends)."""
        return self.ask(self.posting(path, body, *fields, method=method))

    def posting(self, path: str, body: object, *fields: bytes, method: str = "POST") -> bytes:
        """Return the bytes that ``post`` would send."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        lines = [
            f"{method} {path} HTTP/1.1\r\n".encode(),
            self.host_field,
            b"Content-Type: application/json\r\n",
            f"Content-Length: {len(content)}\r\n".encode(),
            *(field + b"\r\n" for field in fields),
        ]
        return b"".join(lines) + b"\r\n" + content

    def read(self, method: str = "GET") -> Answer:
        """Read one whole response.

        Its body is as long as ``Content-Length`` says; without that field (a stream) it is left on the connection,
        for ``until`` to read. Fails if the server hangs up before the end.
        """
        while True:
            head = self.until(b"\r\n\r\n")
            line, *lines = head[:-4].decode("latin-1").split("\r\n")
            version, status, _ = line.split(" ", 2)
            assert version == "HTTP/1.1", head
            if status != "100":
                break
        headers = [(name, value) for name, _, value in (text.partition(": ") for text in lines)]
        answer = Answer(int(status), headers, b"")
        length = answer.header("Content-Length")
        body = self._exactly(int(length)) if length and method != "HEAD" else b""
        return answer._replace(body=body)

    def until(self, end: bytes) -> bytes:
        """Return what comes up to and with some bytes; fails if the server hangs up before."""
        while end not in self._pending:
            self._more()
        at = self._pending.index(end) + len(end)
        found, self._pending = self._pending[:at], self._pending[at:]
        return found

    def rest(self) -> bytes:
        """Return what comes until the server hangs up, orderly or not; fails if it does not hang up."""
        found, self._pending = self._pending, b""
        while True:
            try:
                part = self.socket.recv(65_536)
            except ConnectionError:
                return found
            if not part:
                return found
            found += part

    def is_closed(self) -> bool:
        """Say that the server hung up and sent nothing more; fails if it does neither."""
        return self.rest() == b""

    def leave(self) -> None:
        """Reset the connection, as a client that was killed may do."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.socket.close()

    def _exactly(self, size: int) -> bytes:
        while len(self._pending) < size:
            self._more()
        found, self._pending = self._pending[:size], self._pending[size:]
        return found

    def _more(self) -> None:
        part = self.socket.recv(65_536)
        assert part, f"the server hung up after {self._pending!r}"
        self._pending += part


class Client:
    """Calls of the API over one connection, which is kept as long as the server keeps it."""

    def __init__(self, host: str, port: int) -> None:
        self._connection = http.client.HTTPConnection(host, port, timeout=LIMIT)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def call(self, method: str, path: str, body: object = None) -> tuple[int, dict[str, Any]]:
        """Send a call and return its status and its envelope. A write without a body sends ``{}``."""
        answer = self.fetch(method, path, {} if body is None and method not in ("GET", "HEAD") else body)
        return answer.status, answer.envelope

    def data(self, method: str, path: str, body: object = None) -> Any:
        """Send a call that works and return its ``data``."""
        _, envelope = self.call(method, path, body)
        assert envelope["ok"], envelope
        return envelope["data"]

    def refused(self, code: str, method: str, path: str, body: object = None) -> dict[str, Any]:
        """Send a call that is refused with this code and return its error."""
        _, envelope = self.call(method, path, body)
        assert not envelope["ok"], envelope
        assert envelope["error"]["code"] == code, envelope
        error: dict[str, Any] = envelope["error"]
        return error

    def fetch(self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None) -> Answer:
        """Send a request and return the whole response; a body that is no bytes is sent as JSON."""
        content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        given = {"Content-Type": "application/json"} if content is not None else {}
        self._connection.request(method, path, content, {**given, **(headers or {})})
        response = self._connection.getresponse()
        return Answer(response.status, response.getheaders(), response.read())


class Running:
    """A server that runs."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.host, self.port = _address(url)

    def client(self) -> Client:
        """Return a new client; close it, as by ``with``."""
        return Client(self.host, self.port)

    def wire(self, *, buffer: int | None = None) -> Wire:
        """Return a new connection; close it, as by ``with``. ``buffer``: bytes that wait unread for the client."""
        return Wire((self.host, self.port), buffer=buffer)


class InThread(Running):
    """A server in a thread of this process; ``log`` holds the lines that it would have logged."""

    def __init__(self, server: Watched, board: Board, log: list[str]) -> None:
        super().__init__(server.url)
        self.server = server
        self.board = board
        self.log = log
        self.may_fail = False
        """Whether internal errors are what the test is after; else one in the log fails it."""


class InProcess(Running):
    """``atb serve`` as a process: its one ``envelope``, and what it wrote to standard error."""

    def __init__(self, popen: subprocess.Popen[bytes], envelope: dict[str, Any], errors: Any) -> None:
        super().__init__(envelope["data"]["url"])
        self.popen = popen
        self.envelope = envelope
        self._errors = errors

    def stop(self, how: int = signal.SIGTERM) -> int:
        """Send the process a signal, and return its exit code."""
        self.popen.send_signal(how)
        return self.popen.wait(LIMIT)

    @property
    def errors(self) -> str:
        """Standard error so far."""
        self._errors.seek(0)
        text: str = self._errors.read().decode()
        return text


class Watched(Server):
    """A server that knows its threads, so that a test can wait for their end."""

    def __init__(self, board: Board, **options: Any) -> None:
        self.threads: list[threading.Thread] = []
        self.entered = 0
        """Connections that were taken in so far."""
        super().__init__(board, **options)

    def register(self, connection: Connection) -> None:
        """Count the connection."""
        super().register(connection)
        self.entered += 1

    def idle(self) -> int:
        """Count the connections that wait for a request."""
        with self._changed:
            return sum(connection.is_waiting for connection in self._open)

    def process_request_thread(self, *request: Any) -> None:
        """Note the thread of a connection."""
        self.threads.append(threading.current_thread())
        super().process_request_thread(*request)


@contextlib.contextmanager
def serving(
    directory: object,
    *,
    clock: Callable[[], int] = now,
    host: str = "127.0.0.1",
    person: Actor = MARIA,
    **options: Any,
) -> Iterator[InThread]:
    """Serve the board of a directory, made if there is none, from a thread of this process.

    ``person`` acts where a request names nobody. ``options`` are those of ``Server`` (``read_only``, ``allow_hosts``
    …). What the test itself does with ``.board`` goes past the server. An internal error in the log fails the test,
    unless ``may_fail`` is set.
    """
    read_only = bool(options.get("read_only"))
    log: list[str] = []
    with Board(str(directory), create=not read_only, read_only=read_only, actor=person, clock=clock) as board:
        if not read_only:
            board.create()
        server = Watched(board, **{"host": host, "port": 0, "log": log.append, **options})
        thread = threading.Thread(target=server.run, kwargs={"pause": 0.01})
        thread.start()
        running = InThread(server, board, log)
        try:
            yield running
        finally:
            server.shutdown()
            for one in (thread, *server.threads):
                one.join(LIMIT)
        assert not [one for one in (thread, *server.threads) if one.is_alive()]
        assert running.may_fail or not [line for line in log if "internal error" in line], log


@contextlib.contextmanager
def process(
    directory: object, *words: str, files: str | None = None, deaf: bool = False, **environ: str
) -> Iterator[InProcess]:
    """Start ``atb serve --port 0`` with further words, on the board of a directory; its envelope has been read.

    It is stopped by SIGTERM at the end of the block, if ``stop`` has not done so before.

    Args:
        directory: the data directory.
        words: further words of the command line.
        files: how many files the process may have open, as the words of ``ulimit``: ``-S -n 1024``.
        deaf: whether whoever should read its standard error has left.
        environ: further variables.
    """
    command = [sys.executable, "-m", "agent_task_board", "serve", "--port", "0", "--data-dir", str(directory), *words]
    if files is not None:
        command = ["sh", "-c", f'ulimit {files}; exec "$@"', "sh", *command]
    with tempfile.TemporaryFile() as errors:  # a pipe that nobody reads would hold the server up
        popen = subprocess.Popen(
            command,
            env={
                "PATH": os.environ.get("PATH", os.defpath),
                "LOGNAME": "carla",
                "XDG_STATE_HOME": f"{directory}-state",
                **{name: value for name, value in os.environ.items() if name in PASSED_ON},
                **environ,
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if deaf else errors,
        )
        if popen.stderr is not None:
            popen.stderr.close()
        watchdog = threading.Timer(LIMIT, popen.kill)
        watchdog.start()
        try:
            assert popen.stdout is not None
            line = popen.stdout.readline()
            envelope = parse_json(line.decode(), "envelope", depth=10) if line else {"ok": False}
            assert envelope["ok"], (envelope, _whole(errors))
            yield InProcess(popen, envelope, errors)
            if popen.poll() is None:
                popen.terminate()
            popen.wait(LIMIT)
            assert popen.stdout.read() == b"", "the envelope is all that it prints"
        finally:
            watchdog.cancel()
            popen.kill()
            popen.wait()
            if popen.stdout is not None:
                popen.stdout.close()


def _whole(file: Any) -> str:
    file.seek(0)
    text: str = file.read().decode()
    return text


def _address(url: str) -> tuple[str, int]:
    host, _, port = url.removeprefix("http://").rstrip("/").rpartition(":")
    return host.strip("[]"), int(port)
