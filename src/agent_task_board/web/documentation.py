"""The API as people and agents read about it: Markdown, made from the table of routes.

``docs/http.md`` is the same page, for a server at the usual address.
"""

from __future__ import annotations

from .. import inputs
from ..board.queries import EVENT_LIMIT
from ..model import JSON_KEYS
from .routes import ANSWERS, ROUTES
from .stream import STREAMS
from .wire import BODY, BODY_TIME, HEADER, HEADER_TIME, IDLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from .fields import Schema
    from .routes import Route

USUAL = "127.0.0.1:8765"
"""The address in ``docs/http.md``."""

_HEAD = """\
# HTTP API of Agent Task Board

The board at `http://{host}/`, for programs. Everything that the command line can do to a task, a request
can do, with the same guarantees: one statement in the database decides who gets a task, however many ask, through
however many servers.

```sh
B=http://{host}
curl "$B/api/tasks?ready=true"
curl "$B/api/claim" -H 'Content-Type: application/json' -d '{{"agent": "ada", "lease": "15m"}}'
```

## An agent at work

1. `POST /api/claim` with your name. `data` is `null`: nothing is ready, `warnings` say why; come back later. Otherwise
   keep `data.task.id` and `data.lease.token`; read `data.task.body` and `params`, and `warnings`, where a note of
   whoever had the task before may stand.
2. `POST /api/tasks/ID/heartbeat` with the token, at least every third of the lease.
3. `POST /api/tasks/ID/complete` with the token and a result. Or `fail`, `release`, `handoff`.

To take one certain task: `PATCH` it with `{{"if_status": "queued", "status": "claimed", "agent": "ada"}}`. One caller
gets it; everybody else gets 409. That is not an error to repeat: choose another task.

## Requests

- A body is one JSON object in UTF-8, `Content-Type: application/json`, with a `Content-Length` of at most {body}
  bytes. Unknown fields and parameters are refused by name. `null` clears a field of a task, and means "not given"
  elsewhere.
- ID is a whole task id, or an ending of at least 4 characters that fits one task only.
- Lengths of time are seconds or text: `90`, `"90s"`, `"15m"`, `"1h30m"`, `"2d"`. Instants are ISO 8601; without an
  offset they are in the board's zone; a bare date is the end of that day for `due_at`, its beginning for `not_before`.
- Whoever sends `agent` speaks as an agent, and may not do what is for people. `actor` names a person; otherwise it is
  the person who started the server.
- `curl` and other programs need nothing more. Browsers are let in from the board's own page only: a write with an
  `Origin` or `Sec-Fetch-Site` of another origin is refused, and so is every request for a host that the server does not
  know (`--allow-host` adds one).
- HTTP/1.1 with keep-alive. {header_time:g} seconds for a header of at most {header} bytes, {body_time:g} for a body,
  {idle:g} between two requests.

## Answers

```json
{{"ok": true, "data": {{}}, "warnings": []}}
{{"ok": false, "error": {{"code": "", "message": "", "hint": "", "details": {{}}}}, "warnings": []}}
```

Branch on the status or on `error.code`, never on a message. Instants are UTC: `2026-11-30T06:14:05.123+00:00`.

| status | code | what it means |
|---|---|---|
{statuses}

A conflict has `details.reason` (`status version blocked delayed assigned cycle dedupe request_id`), and
`details.actual` tells the state as it is: `status`, `version`, `claimed_by`, `claimed_at`, `lease_expires_at`.

## A task

`{keys}`.

`ready`, `blocked`, `delayed`, `lease_expired` and `overdue` are derived. Lists leave out `body`, `params`, `result` and
`error`. No answer has a token but the one that grants or renews a lease.

## Compact text

For agents that pay for each token, `GET /api/tasks`, `/api/tasks/ID` and `/api/board` answer in a tenth of the
characters, one line a task, where `Accept` names `text/plain` and values it more than JSON and `*/*`. `budget` cuts
the answer to so many tokens, and its last lines tell what was cut and how to go on. Refusals stay as they are, in
JSON. The grammar is in `docs/compact.md`.

```sh
curl "$B/api/tasks?ready=true&budget=500" -H 'Accept: text/plain'
```
"""

MEANINGS = (
    (200, "", "it worked"),
    (201, "", "a task was made; `Location` names it"),
    (304, "", "the board is as `If-None-Match` says"),
    (400, "invalid_input", "malformed, out of range, an unknown field; `details.field` names it"),
    (403, "not_permitted", "for people only, another origin, or a server for reading only"),
    (404, "not_found", "no such task, no such route"),
    (405, "invalid_input", "the route has other methods: `Allow`"),
    (408, "invalid_input", "the request did not arrive in time"),
    (409, "conflict", "the task is not as expected"),
    (409, "lease_lost", "the token is wrong, expired, spent or replaced: stop working on the task"),
    (411, "invalid_input", "a write without a `Content-Length`, or in chunks"),
    (413, "invalid_input", "the body is too large"),
    (414, "invalid_input", "the address is too long"),
    (415, "invalid_input", "a write that is not `application/json`"),
    (421, "not_permitted", "the `Host` is not one of this server"),
    (431, "invalid_input", "the header is too large"),
    (500, "internal", "a bug"),
    (500, "unusable", "the board cannot be used: disk, permissions, not a board"),
    (503, "busy", "no write lock, or too many connections: the same call again after `Retry-After` seconds"),
)


def markdown(host: str = USUAL) -> str:
    """Return the whole documentation, its examples for a server at ``host``."""
    statuses = "\n".join(f"| {status} | {f'`{code}`' if code else ''} | {text} |" for status, code, text in MEANINGS)
    lines = [
        _HEAD.format(
            host=host,
            body=f"{BODY:,}",
            header=f"{HEADER:,}",
            header_time=HEADER_TIME,
            body_time=BODY_TIME,
            idle=IDLE,
            statuses=statuses,
            keys=" ".join(JSON_KEYS),
        )
    ]
    lines += ["## Routes", ""]
    lines += [f"- [`{route.method} {_shown(route.path)}`](#{anchor(route)}): {route.summary}" for route in ROUTES]
    for route in ROUTES:
        lines += ["", *_section(route)]
    lines += ["", "## Limits", ""]
    lines += [
        f"`title` {inputs.TITLE} characters, `body` {inputs.BODY:,}; `note`, `comment`, `text`, `error`",
        f"{inputs.TEXT:,}; names {inputs.NAME}, keys {inputs.KEY}; `params` and `result` {inputs.JSON_BYTES:,} bytes",
        f"as JSON and {inputs.JSON_DEPTH} levels deep; {inputs.TAGS} tags of {inputs.TAG} characters;",
        f"{inputs.DEPENDENCIES:,} dependencies; {inputs.ARTIFACTS:,} artifacts. {STREAMS} streams at once,",
        f"{EVENT_LIMIT:,} events a page.",
    ]
    return "\n".join(lines) + "\n"


def _section(route: Route) -> Iterable[str]:
    yield f"### {route.method} {_shown(route.path)}"
    yield ""
    yield route.summary
    if route.details:
        yield route.details
    taken = {**route.parameters(), **route.fields()}
    if taken:
        yield ""
        yield f"| {'field' if route.writes else 'parameter'} | | meaning |"
        yield "|---|---|---|"
        for name, (schema, text) in taken.items():
            required = "required" if name in route.required else ""
            yield f"| `{name}` | {required or _type(schema)} | {text} |"
    data, about = ANSWERS[route.answer]
    yield ""
    yield f"Answers `{data}`: {about}."
    if route.has_text:
        yield "Or compact text, with `Accept: text/plain`."
    if route.refusals:
        yield f"Refuses with {', '.join(f'`{code}`' for code in route.refusals)}, beside `invalid_input`."
    yield ""
    yield "```sh"
    yield _example(route)
    yield "```"


def _type(schema: Schema) -> str:
    kinds = schema.get("type", "any")
    kinds = kinds if isinstance(kinds, list) else [kinds]
    return " or ".join(kind for kind in kinds if kind != "null") if "enum" not in schema else "word"


def _example(route: Route) -> str:
    path = _shown(route.path)
    if not route.writes:
        query = {"tasks": "?ready=true&limit=20", "stats": "?days=30", "events": "?after=0"}.get(route.answer, "")
        return f'curl {"-N " if route.answer == "stream" else ""}"$B{path}{query}"'
    method = "" if route.method == "POST" else f"-X {route.method} "
    return f"curl {method}\"$B{path}\" -H 'Content-Type: application/json' -d '{route.example}'"


def _shown(path: str) -> str:
    return path.replace("{id}", "ID")


def anchor(route: Route) -> str:
    """Return what names a route in a link: `post-apiclaim`."""
    return f"{route.method} {_shown(route.path)}".lower().replace("/", "").replace(".", "").replace(" ", "-")
