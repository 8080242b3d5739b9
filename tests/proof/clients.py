"""Clients of the four surfaces. ``ask`` makes one call and returns what the journal keeps of its answer.

A call is a dictionary: ``verb``, ``task``, ``agent`` or ``person``, ``args`` (lengths in milliseconds) and ``mark``, a
text that the call leaves in the board's history, so that what a call did can be found there. ``Lost`` means that no
answer came: nobody knows whether the call was done. With ``cut`` the client itself sees to that, after so many
seconds, by killing its process or closing its connection.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

from agent_task_board import Actor, Board, BoardError
from tests.proof.journal import from_data, from_error, instant, told

if TYPE_CHECKING:
    from collections.abc import Iterator

LIMIT = 60.0
"""Seconds after which an answer is taken for lost."""

_KEPT = ("PATH", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "HOME", "TMPDIR")

ENDINGS = ("complete", "release", "handoff")


class Lost(Exception):
    """The answer did not arrive."""


def environment(**more: str) -> dict[str, str]:
    """Return what a process of the board needs, without what the caller's own shell says about boards and agents."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return {**kept, **more}


def fields(call: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call by the names that HTTP and ``Board`` share; lengths are seconds."""
    verb, args, mark = call["verb"], dict(call["args"]), call["mark"]
    for name in ("lease", "retry_in", "after"):
        if args.get(name) is not None:
            args[name] = args[name] / 1_000
    if verb in ("add", "update"):
        args["title"] = mark
    elif verb == "claim":
        args["comment"] = mark
    elif verb == "fail":
        args["error"] = mark
    elif verb == "comment":
        args["text"] = mark
    elif verb in (*ENDINGS, "done", "approve", "reject", "reassign", "cancel") or args.pop("noted", False):
        args["note"] = mark
    args.pop("noted", None)
    return args


class Python:
    """``Board`` in this process."""

    def __init__(self, data_dir: str, ports: list[int], name: str) -> None:
        self._board = Board(data_dir)
        self._name = name

    def ask(self, call: dict[str, Any], *, cut: float | None = None) -> dict[str, Any]:
        """Make one call; it cannot be cut off but by killing this process."""
        verb, args = call["verb"], fields(call)
        if call["agent"] is None:
            args["actor"] = Actor(call["person"], "human")
        elif verb in ("claim", "resume"):
            args["agent"] = call["agent"]
        else:
            args["actor"] = Actor(call["agent"], "agent")
            if args.get("claim"):
                args["agent"] = call["agent"]
        if verb == "claim":
            args["queues"] = []
            args["task"] = call["task"]
        elif call["task"] is not None:
            args["task"] = call["task"]
        try:
            if verb == "show":
                return {"code": "ok", "task": told(dict(self._board.show(args["task"])["task"]))}
            answer = getattr(self._board, verb)(**args)
        except BoardError as refusal:
            return from_error(refusal.to_dict())
        if verb == "comment":
            return {"code": "ok"}
        return from_data(None if answer is None else answer.to_dict())


class Http:
    """One of several servers, by turns, over a connection that is kept."""

    def __init__(self, data_dir: str, ports: list[int], name: str) -> None:
        self._ports = ports
        self._turn = sum(name.encode())
        self._connection: http.client.HTTPConnection | None = None

    def ask(self, call: dict[str, Any], *, cut: float | None = None) -> dict[str, Any]:
        """Send one request; ``cut`` closes the connection instead of waiting for the answer any longer."""
        verb, task, args = call["verb"], call["task"], fields(call)
        if verb != "show":
            args["agent" if call["agent"] else "actor"] = call["agent"] or call["person"]
        method, path = "POST", f"/api/tasks/{task}/{verb}"
        if verb == "add":
            path = "/api/tasks"
            if "depends_on" in args:
                args["blocked_by"] = args.pop("depends_on")
        elif verb == "claim" and task is None:
            path = "/api/claim"
        elif verb == "comment":
            path = f"/api/tasks/{task}/comments"
        elif verb == "update":
            method, path = "PATCH", f"/api/tasks/{task}"
        elif verb == "show":
            method, path = "GET", f"/api/tasks/{task}"
        envelope = self._send(method, path, None if verb == "show" else args, cut)
        if not envelope["ok"]:
            return from_error(envelope["error"])
        return {"code": "ok"} if verb == "comment" else from_data(envelope["data"])

    def _send(self, method: str, path: str, body: dict[str, Any] | None, cut: float | None) -> dict[str, Any]:
        if self._connection is None:
            self._turn += 1
            port = self._ports[self._turn % len(self._ports)]
            self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT)
        try:
            headers = {} if body is None else {"Content-Type": "application/json"}
            self._connection.request(method, path, None if body is None else json.dumps(body), headers)
            if cut is not None and self._connection.sock is not None:
                self._connection.sock.settimeout(max(cut, 0.0005))
            envelope: dict[str, Any] = json.loads(self._connection.getresponse().read())
        except (OSError, http.client.HTTPException, ValueError) as error:
            self._connection.close()
            self._connection = None
            raise Lost from error
        if self._connection.sock is not None:
            self._connection.sock.settimeout(LIMIT)
        return envelope


class Cli:
    """One ``atb`` process a call."""

    def __init__(self, data_dir: str, ports: list[int], name: str) -> None:
        self._data_dir = data_dir

    def ask(self, call: dict[str, Any], *, cut: float | None = None) -> dict[str, Any]:
        """Run one command; ``cut`` kills it."""
        more = {"ATB_AGENT": call["agent"]} if call["agent"] else {"ATB_ACTOR": call["person"]}
        process = subprocess.Popen(
            [sys.executable, "-m", "agent_task_board", "--data-dir", self._data_dir, *self._arguments(call)],
            env=environment(**more),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        try:
            out, _ = process.communicate(timeout=cut or LIMIT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise Lost from None
        if process.returncode < 0:
            raise Lost
        envelope = json.loads(out)
        if not envelope["ok"]:
            return from_error(envelope["error"])
        return {"code": "ok"} if call["verb"] == "comment" else from_data(envelope["data"])

    @staticmethod
    def _arguments(call: dict[str, Any]) -> list[str]:
        verb, args = call["verb"], fields(call)
        words = [verb] if call["task"] is None else [verb, call["task"]]
        if verb == "add":
            words.append(args.pop("title"))
        if verb == "comment":
            words.append(args.pop("text"))
        if verb == "reassign":
            args["to"] = args["to"] or "none"
        for name, value in args.items():
            option = "--" + name.replace("_", "-")
            if value is True:
                words.append(option)
            elif isinstance(value, list):
                for one in value:
                    words += [option, one]
            elif value is not None and value is not False:
                words += [option, f"{value:g}" if isinstance(value, float) else str(value)]
        return words


class Mcp:
    """One ``atb mcp`` process, spoken to over its raw pipe."""

    TOOLS = {  # noqa: RUF012
        "add": "create_task", "claim": "claim_task", "resume": "resume_task", "heartbeat": "heartbeat",
        "complete": "complete_task", "fail": "fail_task", "release": "release_task", "handoff": "handoff_task",
        "show": "get_task", "comment": "add_comment",
    }  # fmt: skip

    def __init__(self, data_dir: str, ports: list[int], name: str) -> None:
        self._data_dir = data_dir
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = 0

    def ask(self, call: dict[str, Any], *, cut: float | None = None) -> dict[str, Any]:
        """Call one tool; ``cut`` kills the server."""
        arguments = {name: value for name, value in fields(call).items() if value is not None}
        arguments["agent"] = call["agent"]
        if call["task"] is not None:
            arguments["task_id"] = call["task"]
        with self._ended_after(cut):
            answer = self._request("tools/call", {"name": self.TOOLS[call["verb"]], "arguments": arguments})
        text = answer["content"][0]["text"]
        if answer.get("isError"):
            return _refusal(text)
        return _receipt(text)

    @contextlib.contextmanager
    def _ended_after(self, cut: float | None) -> Iterator[None]:
        if cut is None:
            yield
            return
        self._start()
        assert self._process is not None
        timer = threading.Timer(cut, self._process.kill)
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()

    def _start(self) -> None:
        if self._process is not None:
            return
        self._process = subprocess.Popen(
            [sys.executable, "-m", "agent_task_board", "--data-dir", self._data_dir, "mcp"],
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "proof", "version": "1"}}
        self._request("initialize", hello)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def _request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._start()
        assert self._process is not None
        assert self._process.stdout is not None
        self._numbers += 1
        self._send({"jsonrpc": "2.0", "id": self._numbers, "method": method, "params": params})
        while True:
            line = self._process.stdout.readline()
            if not line:
                self._process.kill()
                self._process.communicate()
                self._process = None
                raise Lost
            message = json.loads(line)
            if message.get("id") == self._numbers:
                result: dict[str, Any] = message["result"]
                return result

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # the end of its output tells
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()


def _refusal(text: str) -> dict[str, Any]:
    lines = dict(line.partition(" ")[::2] for line in text.splitlines())
    details = json.loads(lines.get("details", "{}"))
    code = text.partition("\n")[0].split(" ")[2]
    return from_error({"code": code, "message": lines.get("message", ""), "details": details})


def _receipt(text: str) -> dict[str, Any]:
    """Read a compact receipt or task: instants are cut to the second there."""
    head, *lines = text.splitlines()
    words = head.split(" ")[1:]
    answer: dict[str, Any] = {"code": "ok"}
    if words[0] == "nothing":
        return {**answer, "nothing": True}
    if words[0] == "commented":
        return answer
    line = next(line for line in lines if re.match(r"[0-9A-Z]{6,26} \"", line))
    parts = re.sub(r'"(?:[^"\\]|\\.)*"', '""', line).split(" ")[2:]
    pairs = dict(part.split("=", 1) for part in parts if "=" in part)
    facts = dict(part.split("=", 1) for part in next(line for line in lines if line.startswith("id=")).split(" "))
    task: dict[str, Any] = {
        "id": facts["id"],
        "status": parts[0].partition("+")[0],
        "version": int(facts["version"]),
        "attempts": int(pairs.get("attempt", "0/").partition("/")[0]),
        "claimed_by": pairs.get("by"),
        "assignee": pairs.get("for"),
        "ends": None,
    }
    if "lease" in pairs:
        second = instant(pairs["lease"])
        task["ends"] = (second, second + 999)
    if "fence" in facts:
        task["fence"] = int(facts["fence"])
    answer["task"] = task
    if "token" in facts:
        answer["lease"] = {"token": facts["token"], "fence": task.get("fence")}
    if words[0] == "created":
        answer["created"] = "existing" not in words
    if "replayed" in words:
        answer["replayed"] = True
    return answer


Client = Cli | Http | Mcp | Python


def make_client(surface: str, data_dir: str, ports: list[int], name: str) -> Client:
    """Return a client of a surface for the caller of that name."""
    kinds: dict[str, type[Client]] = {"cli": Cli, "http": Http, "mcp": Mcp, "python": Python}
    return kinds[surface](data_dir, ports, name)


def die() -> None:
    """End this process as a crash would."""
    os.kill(os.getpid(), signal.SIGKILL)
