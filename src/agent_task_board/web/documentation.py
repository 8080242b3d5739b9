"""The documentation of the API for people and agents: Markdown, generated from the table of routes.

``docs/http.md`` is the same page, for a server at the default address.
"""

from __future__ import annotations

from .. import inputs
from ..board.queries import EVENT_LIMIT
from ..model import FRAMING, JSON_KEYS
from . import room
from .api import SEARCH_TIME
from .routes import ANSWERS, ROUTES
from .stream import STREAM_LIMIT
from .wire import BODY_LIMIT, BODY_TIMEOUT, HEADER_LIMIT, HEADER_TIMEOUT, IDLE_TIMEOUT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from .fields import Schema
    from .routes import Route

DEFAULT_HOST = "127.0.0.1:8765"
"""The address in ``docs/http.md``."""

_HEAD = """\
# HTTP API of Agent Task Board

This API gives programs access to the board at `http://{host}/`. It can do everything to a task that
the command line can, with the same guarantees: a single database statement decides who gets a task, however many
callers and servers there are.

```sh
curl "http://{host}/api/tasks?ready=true"
curl "http://{host}/api/claim" -H 'Content-Type: application/json' -d '{{"agent": "ada", "lease": "15m"}}'
```

## The agent loop

1. Send `POST /api/claim` with your name. If `data` is `null`, no task is ready: `warnings` say why, so ask again later.
   Otherwise keep `data.task.id` and `data.lease.token`. Read `data.task.body`, `params` and `data.notes` (what others
   left for the next holder). {framing}
2. Send `POST /api/tasks/ID/heartbeat` with the token at least every third of the lease.
3. Send `POST /api/tasks/ID/complete` with the token and a result; or `fail`, `release` or `handoff`.

To claim one particular task, `PATCH` it with `{{"if_status": "queued", "status": "claimed", "agent": "ada"}}`. One
caller gets the task; all others get 409. Do not repeat the call after a 409: choose another task.

## Requests

- A body is one JSON object in UTF-8, with `Content-Type: application/json` and a `Content-Length` of at most {body}
  bytes. Unknown fields and parameters are refused by name. In an update, `null` clears a field; elsewhere it means
  "not given".
- ID is a full task id, or its last characters: at least 4, and unique.
- Durations are seconds or text: `90`, `"90s"`, `"15m"`, `"1h30m"`, `"2d"`. Instants are ISO 8601; without an offset,
  they are in the board's time zone. A date without a time is the end of that day for `due_at`, and its start for
  `not_before`.
- A request with `agent` acts as that agent and cannot do what only people can. `actor` names a person; the default is
  the person who started the server.
- `curl` and other programs need nothing else. Browsers can read and write only from the board's own page: the server
  refuses requests whose `Origin` or `Sec-Fetch-Site` names another origin; a link from elsewhere can open the page. It
  also refuses every request for an unknown, missing or second `Host`; `--allow-host` adds a host.
- On Linux, connections of other users of the machine are refused with 403, unless `--allow-user` lets them in. Keep the
  connection open until the response has arrived: a sender that has closed it is nobody.
- The server uses HTTP/1.1 with keep-alive. A header may have {header} bytes and take {header_time:g} seconds to
  arrive; a body may take {body_time:g} seconds. A connection may be idle for {idle:g} seconds.
- An answer has at most {answer:g} MiB: a page that would be longer ends early, and `next` continues it. A search may
  take {search:g} seconds, and ends when the client disconnects. At most {large} answers of more than 1 MiB are made or
  sent at the same time; others wait for {patience:g} seconds, then get 503.

## Keys

A server that was started with `--auth` or `--allow-remote` asks everyone for a key; without one, the status is 401. A
person makes a key for an agent with `atb key add NAME`. Send it in each request:

```text
Authorization: Bearer KEY
```

A request with a key acts as the key's agent and cannot do what only people can. `agent` can be left out; another name
in `agent` or `actor` is refused with 403. Never put a key into a URL. A revoked key gets 401, and its streams end.
After 20 different wrong keys within a minute, unknown ones get 503 until the minute is over. `/healthz`, `/api`,
`/api/openapi.json` and the page's files need no key.

The page signs in with `POST /api/session` and `{{"code": "…"}}`, the one-time code of a link from `atb open`. The
answer sets a cookie, a session, which acts as a person. `POST /api/session/end` ends it.

## Responses

```json
{{"ok": true, "data": {{}}, "warnings": []}}
{{"ok": false, "error": {{"code": "", "message": "", "hint": "", "details": {{}}}}, "warnings": []}}
```

Branch on the status or on `error.code`, never on a message. Instants are UTC: `2026-11-30T06:14:05.123+00:00`.

| status | code | meaning |
|---|---|---|
{statuses}

The details of a conflict have a `reason` (`status version blocked delayed assigned cycle dedupe request_id`) and
`actual`, the current state: `status`, `version`, `claimed_by`, `claimed_at`, `lease_expires_at`.

## Task fields

`{keys}`.

`ready`, `blocked`, `stuck`, `delayed`, `lease_expired` and `overdue` are derived. Lists leave out `body`, `params`,
`result` and `error`. Only a response that grants or renews a lease contains its token.

## Compact text

For agents that pay per token, `GET /api/tasks`, `/api/tasks/ID` and `/api/board` can return compact text: one line per
task, about a tenth of the characters. To get it, give `text/plain` a higher weight in `Accept` than JSON and `*/*`.
`budget` limits the number of tokens; the last lines then say what was cut and how to continue. Errors are always JSON.
The grammar is in `docs/compact.md`.

```sh
curl "http://{host}/api/tasks?ready=true&budget=500" -H 'Accept: text/plain'
```
"""

MEANINGS = (
    (200, "", "success"),
    (201, "", "a task was created; `Location` is its path"),
    (304, "", "the board has not changed since the response with the `If-None-Match` tag"),
    (400, "invalid_input", "malformed request, value out of range, or unknown field; `details.field` names the field"),
    (401, "not_permitted", "the server asks for a key or a session; there is none, or it is wrong or revoked"),
    (403, "not_permitted", "only people can do this; another origin or another user; or the server is read-only"),
    (404, "not_found", "no such task or route"),
    (405, "invalid_input", "the route does not have this method; `Allow` lists its methods"),
    (408, "invalid_input", "the request did not arrive in time"),
    (409, "conflict", "the task does not have the expected state"),
    (409, "lease_lost", "the token is wrong, expired, used or replaced: stop working on the task"),
    (411, "invalid_input", "a write has no `Content-Length`, or a chunked body"),
    (413, "invalid_input", "the body is too large"),
    (414, "invalid_input", "the request line is too long"),
    (415, "invalid_input", "a write is not `application/json`"),
    (421, "not_permitted", "the `Host` is unknown to this server, missing or repeated"),
    (431, "invalid_input", "the header is too large"),
    (500, "internal", "a bug"),
    (500, "unusable", "the board is unusable: disk error, missing permissions, or not a board"),
    (503, "busy", "no write lock, too many connections, a slow search: repeat the call after `Retry-After` seconds"),
)


def markdown(host: str = DEFAULT_HOST) -> str:
    """Return the whole documentation, with examples for a server at ``host``."""
    statuses = "\n".join(f"| {status} | {f'`{code}`' if code else ''} | {text} |" for status, code, text in MEANINGS)
    lines = [
        _HEAD.format(
            host=host,
            framing=FRAMING,
            body=f"{BODY_LIMIT:,}",
            header=f"{HEADER_LIMIT:,}",
            header_time=HEADER_TIMEOUT,
            body_time=BODY_TIMEOUT,
            idle=IDLE_TIMEOUT,
            answer=room.ANSWER_LIMIT / 1_048_576,
            search=SEARCH_TIME,
            large=room.LARGE_AT_ONCE,
            patience=room.PATIENCE,
            statuses=statuses,
            keys=" ".join(JSON_KEYS),
        )
    ]
    lines += ["## Routes", ""]
    lines += [f"- [`{route.method} {_with_id(route.path)}`](#{anchor(route)}): {route.summary}" for route in ROUTES]
    for route in ROUTES:
        lines += ["", *_section(route, host)]
    lines += ["", "## Limits", ""]
    lines += [
        f"`title` {inputs.TITLE} characters, `body` {inputs.BODY:,}; `note`, `comment`, `text`, `error`",
        f"{inputs.TEXT:,}; names {inputs.NAME}, keys {inputs.KEY}; `params` and `result` {inputs.JSON_BYTES:,} bytes",
        f"of JSON, {inputs.JSON_DEPTH} levels deep; {inputs.TAGS} tags of {inputs.TAG} characters;",
        f"{inputs.DEPENDENCIES:,} dependencies; {inputs.ARTIFACTS:,} artifacts. {STREAM_LIMIT} open streams,",
        f"{EVENT_LIMIT:,} events per page.",
    ]
    return "\n".join(lines) + "\n"


def _section(route: Route, host: str) -> Iterable[str]:
    yield f"### {route.method} {_with_id(route.path)}"
    yield ""
    yield route.summary
    if route.details:
        yield route.details
    accepted = {**route.parameters(), **route.fields()}
    if accepted:
        yield ""
        yield f"| {'field' if route.writes else 'parameter'} | | meaning |"
        yield "|---|---|---|"
        for name, (schema, text) in accepted.items():
            required = "required" if name in route.required else ""
            yield f"| `{name}` | {required or _type(schema)} | {text} |"
    data, about = ANSWERS[route.answer]
    yield ""
    yield f"Returns `{data}`: {about}."
    if route.has_text:
        yield "With `Accept: text/plain`, returns compact text."
    if route.refusals:
        yield f"Errors: {', '.join(f'`{code}`' for code in ('invalid_input', *route.refusals))}."
    yield ""
    yield "```sh"
    yield _example(route, host)
    yield "```"


def _type(schema: Schema) -> str:
    kinds = schema.get("type", "any")
    kinds = kinds if isinstance(kinds, list) else [kinds]
    return " or ".join(kind for kind in kinds if kind != "null") if "enum" not in schema else "word"


def _example(route: Route, host: str) -> str:
    path = _with_id(route.path)
    if not route.writes:
        query = {"tasks": "?ready=true&limit=20", "stats": "?days=30", "events": "?after=0"}.get(route.answer, "")
        return f'curl {"-N " if route.answer == "stream" else ""}"http://{host}{path}{query}"'
    method = "" if route.method == "POST" else f"-X {route.method} "
    return f"curl {method}\"http://{host}{path}\" -H 'Content-Type: application/json' -d '{route.example}'"


def _with_id(path: str) -> str:
    return path.replace("{id}", "ID")


def anchor(route: Route) -> str:
    """Return the anchor of a route in a link: `post-apiclaim`."""
    return f"{route.method} {_with_id(route.path)}".lower().replace("/", "").replace(".", "").replace(" ", "-")
