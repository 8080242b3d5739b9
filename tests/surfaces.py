"""The surfaces on which scenarios run, each behind one method; where their fields differ is written here alone.

A further surface needs a subclass of ``Surface`` and a line in ``SURFACES``.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
from typing import TYPE_CHECKING, Any
from unittest.mock import patch
from urllib.parse import urlencode

from agent_task_board.board.core import Core
from agent_task_board.errors import Conflict, InvalidInput
from agent_task_board.identity import Actor
from agent_task_board.mcp_server import tools
from agent_task_board.mcp_server.definitions import TOOLS
from agent_task_board.model import AGENT, HUMAN
from tests.command_line import EXIT_CODES, Terminal
from tests.mcp_client import Said
from tests.scenarios import at
from tests.serving import serving
from tests.support import Clock, open_board

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from agent_task_board.service import Board
    from tests.scenarios import Step
    from tests.serving import Answer, InThread

PERSON = "carla"
"""Who acts where a call does not say: the person at the terminal, and at the server."""

STATUS = {"invalid_input": 400, "not_found": 404, "conflict": 409, "lease_lost": 409, "not_permitted": 403}
"""The HTTP status of each refusal that a scenario meets."""

OPTIONS = {"tags": "--tag", "blocked_by": "--depends-on", "artifacts": "--artifact", "due_at": "--due"}
"""Options of the command line that are not named after the field."""

POSITIONAL = {"add": ("title",), "comment": ("task", "text"), "events": ()}
"""Arguments of the command line without an option, where it is not the task alone."""

RENAMED = {"depends_on": "blocked_by"}
"""Fields that refusals of the command line name after its options."""

TOOL = {
    "add": "create_task",
    "claim": "claim_task",
    "resume": "resume_task",
    "heartbeat": "heartbeat",
    "complete": "complete_task",
    "fail": "fail_task",
    "release": "release_task",
    "handoff": "handoff_task",
    "list": "list_tasks",
    "show": "get_task",
    "update": "update_task",
    "comment": "add_comment",
    "cancel": "cancel_task",
    "why": "why",
}
"""The tool of each verb that has one."""

ARGUMENTS = {"task": "task_id", "blocked_by": "depends_on"}
"""Arguments of tools that are not named after the field."""

SERVICE_HINTS = {tools.HELD_BY_ANOTHER: Conflict.hint}
"""Hints that tools word otherwise than the service does, with what it says."""

NAMES_AGENT = ("add", "claim", "resume", "done")
"""Commands with an option for the agent; any other takes it from the environment."""

_EXAMPLE = re.compile(r" ?Example: \w+ \{.*\}\.$")
"""What the adapter of tools adds to the hint of a fault that it finds itself."""

_ULID = re.compile(r"\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b")
_TOKEN = re.compile(r"\b[0-9a-f]{32}\b")


class Surface:
    """One way to the board: ``call`` makes one call and returns its envelope, checked in the surface's own terms."""

    def __init__(self, directory: Path, clock: Clock) -> None:
        self.directory = directory
        self.clock = clock
        self._boards = 0

    def begin(self) -> None:
        """Put an empty board in the place of the one before, and set the clock back."""
        data = self.directory / "data"
        if data.exists():
            data.rename(self.directory / f"data-{self._boards}")
        self._boards += 1
        self.clock.now = Clock().now
        with open_board(data, self.clock) as board:
            board.create()

    def call(self, verb: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Make a call of a verb with the arguments of a scenario."""
        raise NotImplementedError

    def prepare(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Import tasks, which not every surface can, through the service."""
        with open_board(self.directory / "data", self.clock) as board:
            board.import_tasks(arguments["tasks"])
        return {"ok": True, "data": None, "warnings": []}


class CommandLine(Surface):
    """``atb``, each call a command."""

    def __init__(self, directory: Path, clock: Clock) -> None:
        super().__init__(directory, clock)
        self._terminal = Terminal(directory)

    def call(self, verb: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Run a command; its exit code belongs to its envelope."""
        words, environ = self.words(verb, dict(arguments))
        with patch.dict(Core.__init__.__kwdefaults__, {"clock": self.clock}):
            answer = self._terminal.atb(*words, **environ)
        envelope = answer.envelope
        assert answer.code == (0 if envelope["ok"] else EXIT_CODES[envelope["error"]["code"]])
        field = "" if envelope["ok"] else envelope["error"]["details"].get("field")
        if field in RENAMED:
            envelope["error"]["details"]["field"] = RENAMED[field]
            envelope["error"]["message"] = envelope["error"]["message"].replace(field, RENAMED[field], 1)
        return envelope

    @staticmethod
    def words(verb: str, arguments: dict[str, Any]) -> tuple[list[str], dict[str, str]]:
        """Return the words of a command, and its environment."""
        environ = {}
        if "agent" in arguments and verb not in NAMES_AGENT:
            environ["ATB_AGENT"] = arguments.pop("agent")
        positional = [arguments.pop(name) for name in POSITIONAL.get(verb, ("task",)) if name in arguments]
        words = [verb]
        for name, value in arguments.items():
            option = OPTIONS.get(name) or f"--{name.replace('_', '-')}"
            if name in ("params", "result"):
                words.append(f"{option}={'' if value is None and verb == 'update' else json.dumps(value)}")
            elif isinstance(value, bool):
                words.append(option if value else option.replace("--", "--no-", 1))
            elif value is None:
                words.append(f"{option}=")
            elif isinstance(value, list):
                replaces = verb == "update"  # on the command line these options add
                words += [f"{option}={item}" for item in ([""] if replaces else []) + value]
            else:
                words.append(f"{option}={value}")
        return ([*words, "--", *positional] if positional else words), environ


class Http(Surface):
    """A server, each call a request."""

    def __init__(self, directory: Path, clock: Clock, server: InThread) -> None:
        super().__init__(directory, clock)
        self._server = server
        self._client = server.client()

    def begin(self) -> None:
        """Put an empty board in the place of the one before, and come by a new connection."""
        super().begin()
        self.close()
        self._client = self._server.client()

    def close(self) -> None:
        """Close the connection."""
        self._client.__exit__()

    def call(self, verb: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Send a request; its status belongs to its envelope."""
        method, path, body = self.request(verb, dict(arguments))
        answer = self._fetch(method, path, body)
        envelope = answer.envelope
        if envelope["ok"]:
            assert answer.status == (201 if verb == "add" and envelope["data"]["created"] else 200)
        else:
            assert answer.status == STATUS[envelope["error"]["code"]], envelope
        return envelope

    def _fetch(self, method: str, path: str, body: dict[str, Any] | None) -> Answer:
        return self._client.fetch(method, path, body)

    def request(self, verb: str, arguments: dict[str, Any]) -> tuple[str, str, dict[str, Any] | None]:
        """Return method, path and body of a request."""
        of_board = f"/api/{verb}"
        path = "/api/tasks"
        if "task" in arguments:
            path += "/" + urlencode({"": arguments.pop("task")})[1:].replace("+", "%20")
            of_board = f"{path}/{verb}"
        if verb in ("list", "show", "events", "agents", "stats", "why"):
            query = {name: str(value).lower() if value is True else value for name, value in arguments.items()}
            target = path if verb in ("list", "show") else of_board
            return "GET", target + (f"?{urlencode(query, doseq=True)}" if query else ""), None
        if verb == "add":
            return "POST", path, arguments
        if verb == "update":
            return "PATCH", path, arguments
        return "POST", f"{path}/comments" if verb == "comment" else of_board, arguments


class Keyed(Http):
    """A server that asks for keys: agents call with their key and need not say who they are, people with a session."""

    def __init__(self, directory: Path, clock: Clock, server: InThread) -> None:
        super().__init__(directory, clock, server)
        self._keys: dict[str, str] = {}
        self._cookie = ""

    def begin(self) -> None:
        """Put an empty board in the place of the one before, for which there are no keys yet."""
        super().begin()
        access = self._server.server.access
        access.__dict__["_credentials"] = None
        self._keys = {}
        answer = self._client.fetch("POST", "/api/session", {"code": access.credentials.new_code()})
        self._cookie = (answer.header("Set-Cookie") or "").partition(";")[0]

    def _fetch(self, method: str, path: str, body: dict[str, Any] | None) -> Answer:
        agent = (body or {}).get("agent")
        if body is None or not isinstance(agent, str) or "actor" in body or not self._has_key(agent):
            return self._client.fetch(method, path, body, {"Cookie": self._cookie})
        said = {name: value for name, value in body.items() if name != "agent"}
        return self._client.fetch(method, path, said, {"Authorization": f"Bearer {self._keys[agent]}"})

    def _has_key(self, agent: str) -> bool:
        if agent not in self._keys:
            with contextlib.suppress(InvalidInput):
                self._keys[agent] = self._server.server.access.credentials.add_key(agent)[1]
        return agent in self._keys


class Patching(Http):
    """A server, on which tasks that are named are claimed by a compare-and-set."""

    def request(self, verb: str, arguments: dict[str, Any]) -> tuple[str, str, dict[str, Any] | None]:
        """Return method, path and body of a request."""
        if verb == "claim" and "task" in arguments:
            _, path, body = super().request("update", arguments)
            return "PATCH", path, {"status": "claimed", **(body or {})}
        return super().request(verb, arguments)


class Mcp(Surface):
    """The tools, in this process; what they do not offer goes by the command line."""

    def __init__(self, directory: Path, clock: Clock) -> None:
        super().__init__(directory, clock)
        self._others = CommandLine(directory, clock)
        self._board: Board | None = None

    def begin(self) -> None:
        """Put an empty board in the place of the one before."""
        self.close()
        super().begin()
        self._board = open_board(self.directory / "data", self.clock)

    def close(self) -> None:
        """Close the board."""
        if self._board is not None:
            self._board.close()

    def call(self, verb: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Call a tool, and make an envelope of its text; what the text leaves out is read from the board."""
        given = self.given(verb, arguments)
        if given is None:
            return self._others.call(verb, arguments)
        assert self._board is not None
        # Tools act for agents. The person of the scenarios makes some of the same calls: here under a tool's roof.
        kind = AGENT if "agent" in arguments else HUMAN
        with patch.object(tools, "AGENT", kind):
            answer = tools.Tools(self._board, lambda: PERSON).call(TOOL[verb], given)
        said = Said(answer.text, answer.is_refusal)
        return self._refusal(said) if said.refused else self._success(self._board, verb, said, arguments)

    @staticmethod
    def given(verb: str, arguments: dict[str, Any]) -> dict[str, Any] | None:
        """Return the arguments of the tool; ``None`` where it does not take them, or would mean another caller."""
        given = {ARGUMENTS.get(name, name): value for name, value in arguments.items()}
        if verb == "cancel":
            given["confirm"] = True
        if verb == "update" and ("blocked_by" in arguments or None in arguments.values()):
            return None  # the tool adds dependencies and resets nothing
        if verb in TOOL and any(given[name] == "" for name in given.keys() - set(TOOLS[TOOL[verb]].required)):
            return None  # to a tool, an empty text means not given
        names_nobody = "agent" not in given and (verb in ("claim", "resume") or given.get("claim"))
        if verb not in TOOL or names_nobody or not isinstance(given.get("result", {}), dict):
            return None
        return given if given.keys() <= TOOLS[TOOL[verb]].parameters.keys() else None

    @staticmethod
    def _refusal(said: Said) -> dict[str, Any]:
        details = said.line("details") or {}
        message = said.line("message")
        for field, argument in (("id", "task_id"), ("blocked_by", "depends_on")):
            if details.get("field") == argument:
                details["field"] = field
                message = message.replace(f"{argument}:", f"{field}:", 1)
        hint = _EXAMPLE.sub("", said.line("hint") or "")
        error = {"code": said.code, "message": message, "hint": SERVICE_HINTS.get(hint, hint), "details": details}
        return {"ok": False, "error": error, "warnings": said.notes}

    def _success(self, board: Board, verb: str, said: Said, arguments: dict[str, Any]) -> dict[str, Any]:
        data: Any = None
        if verb == "list":
            page = board.list_tasks(**arguments)
            shown = board.list_tasks(**arguments, hide_finished=True)
            titles = [json.loads(title) for title in re.findall(r'^\w+ ("(?:[^"\\]|\\.)*") ', said.text, re.MULTILINE)]
            assert titles == [task.title for task in shown.tasks], said
            assert f"+ more count={shown.more} after={shown.next}\n" in said.text or shown.next is None, said
            assert f"+ finished count={shown.hidden}\n" in said.text or not shown.hidden, said
            return {"ok": True, "data": page.to_dict(), "warnings": page.warnings()}
        if verb == "why":
            return {"ok": True, "data": board.why(re.findall(r"task=(\w+)", said.text)[0]), "warnings": []}
        if verb == "show":
            data = board.show(said.word("id"))
            assert said.word("version") == str(data["task"]["version"])
            return {"ok": True, "data": data, "warnings": []}
        if verb == "comment":
            data = {"event": board.events(task=said.id)["events"][-1]}
            assert said.word("seq") == str(data["event"]["seq"])
        elif said.head != ["nothing"]:
            data = self._receipt(board.show(said.id)["task"], said, created=verb == "add")
            if said.left:
                data["notes"] = self._notes(board.events(task=said.id)["events"], said)
        return {"ok": True, "data": data, "warnings": said.notes}

    @staticmethod
    def _notes(events: list[Any], said: Said) -> list[dict[str, Any]]:
        """Return the notes of a claim in JSON: the text has all but the whole instant."""
        ((kind, actor, text, actor_kind),) = said.left
        event = next(one for one in reversed(events) if (one["kind"], one["data"].get("note")) == (kind, text))
        return [{"kind": kind, "actor": actor, "actor_kind": actor_kind, "at": event["at"], "text": text}]

    @staticmethod
    def _receipt(task: dict[str, Any], said: Said, *, created: bool) -> dict[str, Any]:
        assert said.word("version") == str(task["version"])
        data: dict[str, Any] = {"task": task}
        if created:
            data["created"] = "existing" not in said.head
        if " token=" in said.text:
            assert said.word("lease_end") == f"{task['lease_expires_at'][:19]}Z"
            fence = int(said.word("fence"))
            data["lease"] = {"token": said.token, "fence": fence, "expires_at": task["lease_expires_at"]}
        if "replayed" in said.head:
            data["replayed"] = True
        return data


@contextlib.contextmanager
def _command_line(directory: Path) -> Iterator[Surface]:
    yield CommandLine(directory, Clock())


@contextlib.contextmanager
def _http(directory: Path, kind: type[Http] = Http) -> Iterator[Surface]:
    clock = Clock()
    with serving(directory / "data", clock=clock, person=Actor(PERSON, "human"), auth=kind is Keyed) as server:
        surface = kind(directory, clock, server)
        try:
            yield surface
        finally:
            surface.close()


@contextlib.contextmanager
def _mcp(directory: Path) -> Iterator[Surface]:
    with contextlib.closing(Mcp(directory, Clock())) as surface:
        yield surface


SURFACES: dict[str, Callable[[Path], AbstractContextManager[Surface]]] = {
    "command line": _command_line,
    "http": _http,
    "http by key": lambda directory: _http(directory, Keyed),
    "http by patch": lambda directory: _http(directory, Patching),
    "mcp": _mcp,
}


@contextlib.contextmanager
def opened(directory: Path) -> Iterator[dict[str, Surface]]:
    """Open every surface, each on a board of its own."""
    with contextlib.ExitStack() as stack:
        found = {}
        for name, surface in SURFACES.items():
            (directory / name).mkdir()
            found[name] = stack.enter_context(surface(directory / name))
        yield found


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What a step left behind, with names for ids and tokens that are the same on every surface."""

    step: Step
    envelope: dict[str, Any]

    def comparable(self) -> dict[str, Any]:
        """Return what must be the same everywhere; what is missing is asked for in the words of each surface."""
        if self.envelope["ok"] or self.envelope["error"]["details"].get("field") in ("id", *self.step.arguments):
            return self.envelope
        if "field" not in self.envelope["error"]["details"]:
            return self.envelope
        error = {key: value for key, value in self.envelope["error"].items() if key not in ("message", "hint")}
        return {**self.envelope, "error": error}


class Run:
    """A scenario on one surface: what its answers held, by name."""

    def __init__(self, surface: Surface) -> None:
        self._surface = surface
        self._answers: dict[str, Any] = {}
        self._known: dict[str, str] = {}

    def play(self, steps: tuple[Step, ...]) -> list[Outcome]:
        """Make every call, hold each against what it must give, and return what came."""
        self._surface.begin()
        return [outcome for step in steps if (outcome := self._play(step)) is not None]

    def _play(self, step: Step) -> Outcome | None:
        if step.verb == "wait":
            self._surface.clock.advance(**step.arguments)
            return None
        arguments = self._resolve(dict(step.arguments))
        call = self._surface.prepare if step.verb == "import" else None
        envelope = call(arguments) if call else self._surface.call(step.verb, arguments)
        code = "" if envelope["ok"] else envelope["error"]["code"]
        assert code == step.code, (step, envelope)
        found = envelope["data"] if envelope["ok"] else envelope["error"]["details"]
        for path, expected in step.facts.items():
            assert (at(path, found) if path else found) == self._resolve(expected), (path, step, envelope)
        if step.name:
            self._answers[step.name] = found
        return Outcome(step, self._named(envelope))

    def _resolve(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._resolve(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._resolve(item) for item in value]
        if not isinstance(value, str) or not value.startswith("@"):
            return value
        name, _, what = value[1:].partition(":")
        answer = self._answers[name]
        if what == "token":
            return answer["lease"]["token"]
        if what == "next":
            return answer["next"]
        return answer["task"]["id"][-6 if what == "ending" else None :]

    def _named(self, value: Any) -> Any:
        """Replace ids and tokens by the order in which they appeared."""
        if isinstance(value, dict):
            return {key: self._named(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._named(item) for item in value]
        if not isinstance(value, str):
            return value
        for pattern, kind in ((_ULID, "id"), (_TOKEN, "token")):
            for found in pattern.findall(value):
                if found not in self._known:
                    number = sum(name.startswith(f"<{kind}") for name in self._known.values())
                    self._known[found] = f"<{kind} {number}>"
        for found, name in self._known.items():
            value = value.replace(found, name).replace(f"({found[-6:]})", f"({name})")
        return value


def differences(one: Any, other: Any, path: str = "") -> Iterator[str]:
    """Yield the places where two JSON values differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        if list(one) != list(other):
            yield f"{path}: keys {list(one)} and {list(other)}"
        for key in one.keys() & other.keys():
            yield from differences(one[key], other[key], f"{path}.{key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for number, (item, another) in enumerate(zip(one, other, strict=True)):
            yield from differences(item, another, f"{path}.{number}")
    elif one != other or type(one) is not type(other):
        yield f"{path}: {one!r} and {other!r}"
