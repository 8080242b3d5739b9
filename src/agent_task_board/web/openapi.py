"""The OpenAPI 3.1 description of the API, generated from the routes (https://spec.openapis.org/oas/v3.1.0)."""

from __future__ import annotations

from .. import errors
from .._version import __version__
from ..board.why import REASONS
from ..model import ACTOR_KINDS, EVENT_KINDS, JSON_KEYS, OUTCOMES, STATUSES
from .documentation import MEANINGS, anchor
from .routes import ANSWERS, ROUTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .routes import Route


def description(url: str) -> dict[str, Any]:
    """Return the OpenAPI description for a server at a URL."""
    paths: dict[str, Any] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Agent Task Board",
            "version": __version__,
            "summary": "A local task board shared by several agents.",
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": url}],
        "paths": paths,
        "security": [{}, {"key": []}, {"session": []}],
        "components": {"schemas": _schemas(), "securitySchemes": _SECURITY},
    }


_SECURITY = {
    "key": {
        "type": "http",
        "scheme": "bearer",
        "description": "The key of an agent, which a server started with --auth or --allow-remote asks for.",
    },
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": "atb_session_BOARD",
        "description": "The session of a browser that signed in by a link; BOARD is the id of the board.",
    },
}


def _operation(route: Route) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": anchor(route),
        "summary": route.summary,
        "description": route.details.replace("\n", " ") or route.summary,
        "parameters": _parameters(route),
        "responses": _responses(route),
    }
    if route.writes:
        schema = {
            "type": "object",
            "properties": {name: {**schema, "description": text} for name, (schema, text) in route.fields().items()},
            "additionalProperties": False,
        }
        if route.required:
            schema["required"] = list(route.required)
        operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    return operation


def _parameters(route: Route) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    if "{id}" in route.path:
        found.append(
            {
                "name": "id",
                "in": "path",
                "required": True,
                "description": "a full task id, or its last characters: at least 4, and unique",
                "schema": {"type": "string", "minLength": 4, "maxLength": 26},
            }
        )
    for name, (schema, text) in route.parameters().items():
        found.append({"name": name, "in": "query", "description": text, "schema": schema})
    return found


def _responses(route: Route) -> dict[str, Any]:
    responses: dict[str, Any] = {"200": _response(route)}
    if route.answer == "created":
        responses["201"] = _response(route)
    if route.answer == "board":
        responses["304"] = {"description": "the board has not changed"}
    codes = {"invalid_input", "not_permitted", "internal", "unusable", "busy", *route.refusals}
    statuses = {refusal.http_status for refusal in errors.REFUSALS if refusal.code in codes}
    if route.writes:
        statuses |= {411, 413, 415}
    for status in sorted(status for status in statuses | {401, 405, 408, 414, 421, 431} if status):
        responses[str(status)] = {
            "description": "; ".join(
                f"{code}: {text}" if code else text for at, code, text in MEANINGS if at == status
            ),
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Refusal"}}},
        }
    return responses


def _response(route: Route) -> dict[str, Any]:
    _, about = ANSWERS[route.answer]
    if route.answer in ("markdown", "stream"):
        kind = ANSWERS[route.answer][0]
        return {"description": about, "content": {kind: {"schema": {"type": "string"}}}}
    if route.answer == "openapi":
        return {"description": about, "content": {"application/json": {"schema": {"type": "object"}}}}
    schema = {
        "type": "object",
        "required": ["ok", "data", "warnings"],
        "additionalProperties": False,
        "properties": {
            "ok": {"const": True},
            "data": _DATA[route.answer],
            "warnings": {"type": "array", "items": {"type": "string"}},
        },
    }
    content: dict[str, Any] = {"application/json": {"schema": schema}}
    if route.has_text:
        content["text/plain"] = {"schema": {"type": "string"}}
    return {"description": about, "content": content}


def _object(required: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        "type": "object",
        "required": list(required),
        "properties": {**required, **(optional or {})},
        "additionalProperties": False,
    }


def _list_of(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": schema}


def _ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}


_INTEGER = {"type": "integer"}
_COUNT = {"type": "integer", "minimum": 0}
_INSTANT = {"type": "string", "format": "date-time"}
_INSTANT_OR_NULL = {"type": ["string", "null"], "format": "date-time"}
_TEXT = {"type": "string"}
_TEXT_OR_NULL = {"type": ["string", "null"]}
_FLAG = {"type": "boolean"}
_IMPORTED = {"imported": {"const": True}}
_REPLAYED = {"replayed": {"const": True}}
_NOTES = {"notes": _list_of(_ref("Note"))}
_GRANT = _object({"task": _ref("Task"), "lease": _ref("Lease")}, {**_NOTES, **_REPLAYED})
_ANYTHING = {"type": "object"}
_WHY: dict[str, Any] = {"type": "object", "required": ["reason", "text", "change", "chain"]}

_DATA: dict[str, dict[str, Any]] = {
    "task": _object({"task": _ref("Task")}, _REPLAYED),
    "created": _object({"task": _ref("Task"), "created": _FLAG}, {"lease": _ref("Lease"), **_NOTES, **_REPLAYED}),
    "lease": _GRANT,
    "next": {"anyOf": [_GRANT, {"type": "null"}]},
    "changed": _object({"task": _ref("Task")}, {"lease": _ref("Lease"), **_NOTES, **_REPLAYED}),
    "event": _object({"event": _ref("Event")}),
    "tasks": _object({"tasks": _list_of(_ref("Listed")), "next": _TEXT_OR_NULL}),
    "details": _object(
        {
            "task": _ref("Task"),
            "attempts": _list_of(_ref("Attempt")),
            "dependencies": _list_of(_ref("Link")),
            "dependents": _list_of(_ref("Link")),
            "comments": _list_of(_ref("Event")),
        },
        {"archived_at": _INSTANT, "returned": _ref("Returned"), "stuck_by": _ref("Link"), "why": _TEXT},
    ),
    "why": _object({"task": _ref("Task"), "why": _ref("Why")}),
    "why_nothing": _object({"why": _object({"text": _TEXT, "reasons": _list_of(_ANYTHING)})}),
    "events": _object({"events": _list_of(_ref("Event")), "next": _COUNT}),
    "board": _object(
        {
            "tasks": _list_of(_ref("Task")),
            "counts": _object(dict.fromkeys(STATUSES, _COUNT)),
            "truncated": _FLAG,
            "revision": _COUNT,
            "timezone": _TEXT,
        },
        {"stuck": _ANYTHING, "returned": _ANYTHING},
    ),
    "agents": _object({"agents": _list_of(_ref("Agent"))}),
    "stats": _object(
        {
            "tasks": _COUNT,
            "archived": _COUNT,
            "by_status": _object(dict.fromkeys(STATUSES, _COUNT)),
            "by_queue": _ANYTHING,
            "ready": _COUNT,
            "blocked": _COUNT,
            "stuck": _COUNT,
            "lease_expired": _COUNT,
            "days": _COUNT,
            "finished": _list_of(_ANYTHING),
            "lead_time": _ref("Spread"),
            "cycle_time": _ref("Spread"),
            "running": _list_of(_ANYTHING),
            "by_agent": _list_of(_ANYTHING),
        }
    ),
    "schedules": _object({"schedules": _list_of(_ref("Schedule"))}),
    "health": _object({"status": {"const": "ok"}, "version": _TEXT, "read_only": _FLAG, "data_dir": _TEXT_OR_NULL}),
}


def _schemas() -> dict[str, Any]:
    integers = ("priority", "attempts", "max_attempts", "fence", "version")
    flags = ("needs_approval", "ready", "blocked", "stuck", "delayed", "lease_expired", "overdue")
    lists = ("tags", "blocked_by", "artifacts")
    instants = ("due_at", "not_before", "lease_expires_at", "occurrence_at", "claimed_at", "finished_at")
    task: dict[str, Any] = dict.fromkeys(JSON_KEYS, _TEXT_OR_NULL)
    task |= dict.fromkeys(("id", "title", "body", "queue", "created_by"), _TEXT)
    task |= dict.fromkeys(integers, _INTEGER)
    task |= dict.fromkeys(flags, _FLAG)
    task |= {name: _list_of(_TEXT) for name in lists}
    task |= dict.fromkeys(instants, _INSTANT_OR_NULL)
    task |= dict.fromkeys(("created_at", "updated_at"), _INSTANT)
    task |= {
        "status": {"enum": list(STATUSES)},
        "params": _ANYTHING,
        "result": {},
        "progress": {"type": ["integer", "null"], "minimum": 0, "maximum": 100},
        "max_runtime": {"type": ["integer", "null"]},
    }
    left_out = ("body", "params", "result", "error")
    shown = {key: schema for key, schema in task.items() if key not in left_out}
    rest = {key: task[key] for key in left_out}
    return {
        "Task": _object(shown, rest),
        "Listed": _object(shown, {**rest, "snippet": _TEXT}),
        "Lease": _object({"token": _TEXT, "fence": _COUNT, "expires_at": _INSTANT}),
        "Link": _object({"id": _TEXT, "title": _TEXT, "status": {"enum": list(STATUSES)}}),
        "Returned": _object({"by": _TEXT, "at": _INSTANT, "note": _TEXT_OR_NULL}, _IMPORTED),
        "Attempt": _object(
            {
                "number": _COUNT,
                "agent": _TEXT,
                "fence": _COUNT,
                "claimed_at": _INSTANT,
                "ended_at": _INSTANT_OR_NULL,
                "outcome": {"enum": [*OUTCOMES, None]},
                "error": _TEXT_OR_NULL,
                "note": _TEXT_OR_NULL,
                "result": {},
            },
            {"returned": {"const": True}, "output": _TEXT},
        ),
        "Why": _object(
            {"reason": {"enum": list(REASONS)}, "text": _TEXT, "change": _TEXT, "chain": _list_of(_ref("Link"))}
        ),
        "Event": _object(
            {
                "seq": _COUNT,
                "task_id": _TEXT,
                "kind": {"enum": list(EVENT_KINDS)},
                "actor": _TEXT,
                "actor_kind": {"enum": list(ACTOR_KINDS)},
                "at": _INSTANT,
                "data": _ANYTHING,
            },
            _IMPORTED,
        ),
        "Note": _object(
            {
                "kind": {"enum": list(EVENT_KINDS)},
                "actor": _TEXT,
                "actor_kind": {"enum": list(ACTOR_KINDS)},
                "at": _INSTANT,
                "text": _TEXT,
            },
            _IMPORTED,
        ),
        "Agent": _object(
            {
                "name": _TEXT,
                "first_seen_at": _INSTANT,
                "last_seen_at": _INSTANT_OR_NULL,
                "completed": _COUNT,
                "failed": _COUNT,
                "expired": _COUNT,
                "holds": _list_of(_ANYTHING),
            }
        ),
        "Schedule": _object(
            {
                **dict.fromkeys(("id", "name", "cron", "zone"), _TEXT),
                "task": _ANYTHING,
                "catch_up": {"type": ["integer", "null"]},
                "paused": _FLAG,
                **dict.fromkeys(("paused_at", "next_at", "last_at"), _INSTANT_OR_NULL),
                "made": _COUNT,
                "created_by": _TEXT,
                **dict.fromkeys(("created_at", "updated_at"), _INSTANT),
            }
        ),
        "Spread": _object(
            {"tasks": _COUNT, "median": {"type": ["number", "null"]}, "p90": {"type": ["number", "null"]}}
        ),
        "Refusal": _object(
            {
                "ok": {"const": False},
                "error": _object(
                    {
                        "code": {"enum": [refusal.code for refusal in errors.REFUSALS if refusal.http_status]},
                        "message": _TEXT,
                        "hint": _TEXT,
                        "details": _ANYTHING,
                    }
                ),
                "warnings": _list_of(_TEXT),
            }
        ),
    }
