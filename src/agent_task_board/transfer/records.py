"""Check the records of an imported file (tasks, attempts, events, comments, schedules), and stage them."""

from __future__ import annotations

import json

from .. import inputs, instants
from ..board import fields
from ..board.core import is_ulid
from ..errors import BoardError, InvalidInput, Unusable
from ..model import ACTOR_KINDS, EVENT_KINDS, FINAL, JSON_KEYS, LEASED, OUTCOMES, QUEUED, STATUSES
from .staging import COLUMNS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..board.core import Core
    from ..identity import Actor
    from .staging import Staging

    ScheduleChecker = Callable[[Core, dict[str, Any]], dict[str, Any]]

_INSTANTS = ("occurrence_at", "created_at", "updated_at", "claimed_at", "finished_at")
_KEYS = {
    "tasks": frozenset(JSON_KEYS),
    "attempts": frozenset("task_id number agent fence claimed_at ended_at outcome result error note".split()),
    "events": frozenset("seq task_id kind actor actor_kind at data imported".split()),
    "comments": frozenset("task_id actor actor_kind at text imported".split()),
    "schedules": frozenset(
        """
        id name cron zone task catch_up paused paused_at next_at last_at made created_by created_at updated_at
        """.split()
    ),
    "archived": frozenset(("task_id", "archived_at")),
}
_SINGULAR = {
    "tasks": "a task",
    "attempts": "an attempt",
    "events": "an event",
    "comments": "a comment",
    "schedules": "a schedule",
    "archived": "an archive entry",
}
_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class RecordStager:
    """Checks records one by one and adds them to the staging tables.

    ``check_schedule`` returns the checked fields of a schedule. ``json_is_checked`` is false if the file's JSON was
    not read by our strict reader.
    """

    def __init__(
        self, core: Core, actor: Actor, staging: Staging, check_schedule: ScheduleChecker, *, json_is_checked: bool
    ) -> None:
        self._core = core
        self._check_schedule = check_schedule
        self._zone = core.settings.timezone
        self._actor_name = actor.name
        self._staging = staging
        self._json_is_checked = json_is_checked
        self._tasks = 0
        self._comments = 0
        self._agents: dict[str, str] = {}
        self._schedules: set[str] = set()

    def add_element(self, array: str, index: int, value: Any) -> None:
        """Stage an element of an export."""
        _name_place(f"{array}[{index}]", self._add_element, array, index, value)

    def add_task(self, place: str, task: dict[str, Any], names: dict[str, str]) -> None:
        """Stage a task; ``names`` are another tracker's names of the ids in ``blocked_by``."""
        _name_place(place, self._add_task, place, task, names)

    def add_comment(self, place: str, comment: dict[str, Any]) -> None:
        """Stage a comment."""
        _name_place(place, self._add_comment, comment)

    def finish(self) -> None:
        """Stage the agents that the records name."""
        for key, name in self._agents.items():
            self._staging.add("staged_agent", (key, name, name))

    def _add_element(self, array: str, index: int, value: Any) -> None:
        if not isinstance(value, dict):
            raise InvalidInput(f"{_SINGULAR[array]} must be a JSON object")
        unknown = next((key for key in value if key not in _KEYS[array]), None)
        if unknown is not None:
            raise InvalidInput(f"{str(unknown)[:60]}: unknown field", field=str(unknown)[:60])
        match array:
            case "tasks":
                self._add_task(f"tasks[{index}]", value, {})
            case "attempts":
                self._add_attempt(index, value)
            case "events":
                self._add_event(index, value)
            case "comments":
                self._add_comment(value)
            case "archived":
                task, at = _task_id(value), self._instant(value, "archived_at", required=True)
                self._staging.add("staged_archived", (index, task, at))
            case _:
                self._add_schedule(value)

    def _add_task(self, place: str, given: dict[str, Any], names: dict[str, str]) -> None:
        editable = {key: given.get(key, default) for key, default in fields.settable(fields.IMPORT).items()}
        error, result = given.get("error"), given.get("result")
        columns: dict[str, Any] = {
            **fields.stored(editable, fields.Context(self._core.settings, self._core.clock(), old=True)),
            "status": inputs.one_of(given.get("status", QUEUED), "status", STATUSES),
            "result": None if result is None else inputs.json_text(result, "result"),
            "artifacts": inputs.json_text(inputs.artifacts(given.get("artifacts", ())), "artifacts"),
            "error": None if error is None else inputs.text(error, "error", inputs.TEXT) or None,
            "attempts": inputs.integer(given.get("attempts", 0), "attempts", 0, inputs.MAX_ATTEMPTS),
            "fence": inputs.integer(given.get("fence", 0), "fence", 0, 2**53),
            "version": inputs.integer(given.get("version", 1), "version", 1, 2**53),
            "progress": None,
            "claimed_by": inputs.assignee(given.get("claimed_by"), "claimed_by", old=True),
            "created_by": inputs.name(given.get("created_by", self._actor_name), "created_by"),
            "schedule_id": inputs.key(given.get("schedule_id"), "schedule_id"),
        }
        if given.get("progress") is not None:
            columns["progress"] = inputs.percentage(given["progress"], "progress")
        for field in _INSTANTS:
            columns[field] = self._instant(given, field)
        _reconcile(columns)
        for field in ("assignee", "claimed_by"):
            columns[field] = self._agent_key(columns[field])
        ids = given.get("blocked_by", [])
        if not isinstance(ids, list):
            raise InvalidInput("blocked_by: must be a list of ids", field="blocked_by")
        dependencies = list(dict.fromkeys(read_id(str(id_), "blocked_by") for id_ in ids))
        if len(dependencies) > inputs.DEPENDENCIES:
            raise InvalidInput(
                f"blocked_by: too many dependencies: {len(dependencies):,} (limit {inputs.DEPENDENCIES:,})",
                field="blocked_by",
            )
        id_ = None if given.get("id") is None else read_id(given["id"], "id")
        self._tasks += 1
        position, is_final = self._tasks, columns["status"] in FINAL
        self._staging.add(
            "staged_key",
            (
                position,
                id_ or self._core.new_id(),
                None if is_final else columns["dedupe_key"],
                columns["schedule_id"],
                columns["occurrence_at"],
                id_ is None,
                is_final,
                place,
            ),
        )
        self._staging.add("staged_task", (position, *(columns[column] for column in COLUMNS)))
        for number, other in enumerate(dependencies, 1):
            self._staging.add("staged_dependency", (position, number, other, names.get(other)))

    def _add_attempt(self, index: int, given: dict[str, Any]) -> None:
        outcome, ended_at = given.get("outcome"), self._instant(given, "ended_at")
        if (outcome is None) != (ended_at is None):
            raise InvalidInput("outcome: requires ended_at, and ended_at requires outcome", field="outcome")
        result = given.get("result")
        row = (
            index,
            _task_id(given),
            inputs.integer(given.get("number"), "number", 1, 2**53),
            self._agent_key(inputs.agent_name(given.get("agent"), "agent", old=True)),
            inputs.integer(given.get("fence"), "fence", 0, 2**53),
            self._instant(given, "claimed_at", required=True),
            ended_at,
            None if outcome is None else inputs.one_of(outcome, "outcome", OUTCOMES),
            None if result is None else inputs.json_text(result, "result"),
            _optional_text(given, "error"),
            _optional_text(given, "note"),
        )
        self._staging.add("staged_attempt", row)

    def _add_event(self, index: int, given: dict[str, Any]) -> None:
        kind, data = inputs.one_of(given.get("kind"), "kind", EVENT_KINDS), given.get("data")
        if not isinstance(data, dict):
            raise InvalidInput("data: must be a JSON object", field="data")
        if not self._json_is_checked:
            inputs.check_json(data, "data")
        changes = data.get("changes", {})
        if not isinstance(changes, dict) or not all(
            isinstance(change, dict) and "from" in change and "to" in change for change in changes.values()
        ):
            raise InvalidInput("data: each value in changes must be an object with from and to", field="data")
        if kind == "commented":
            inputs.text(data.get("text"), "text", inputs.TEXT)
        at = self._instant(given, "at", required=True)
        self._staging.add("staged_event", (index, _task_id(given), kind, *_actor(given), at, _json(data)))

    def _add_comment(self, given: dict[str, Any]) -> None:
        text = inputs.text(given.get("text"), "text", inputs.TEXT, required=True)
        at = self._instant(given, "at", required=True)
        row = (self._comments, _task_id(given), "commented", *_actor(given), at, _json({"text": text}))
        self._comments += 1
        self._staging.add("staged_comment", row)

    def _add_schedule(self, given: dict[str, Any]) -> None:
        checked = self._check_schedule(self._core, given)
        id_, key = read_id(given.get("id"), "id"), inputs.name_key(checked["name"])
        is_paused = inputs.boolean(given.get("paused", False), "paused")
        paused_at = self._instant(given, "paused_at") or instants.to_text(self._core.clock())
        last_at = self._instant(given, "last_at")
        next_at = self._instant(given, "next_at") if "next_at" in given else checked["next_at"]
        if next_at is not None and last_at is not None and next_at <= last_at:
            raise InvalidInput("next_at: must be after last_at", field="next_at")
        row = (
            id_,
            key,
            checked["name"],
            checked["cron"],
            checked["zone"],
            checked["task"],
            checked["catch_up"],
            paused_at if is_paused else None,
            next_at,
            last_at,
            inputs.integer(given.get("made", 0), "made", 0, 2**53),
            inputs.name(given.get("created_by", self._actor_name), "created_by"),
            self._instant(given, "created_at"),
            self._instant(given, "updated_at"),
        )
        if {id_, key} & self._schedules:
            raise InvalidInput("name: the file already has a schedule with this name or id", field="name")
        self._schedules |= {id_, key}
        self._staging.add("staged_schedule", row)

    # Fields

    def _agent_key(self, name: str | None) -> str | None:
        """Return the key of an agent's name, and remember the name as first written."""
        if name is None:
            return None
        key = inputs.name_key(name)
        self._agents.setdefault(key, name)
        return key

    def _instant(self, given: dict[str, Any], field: str, *, required: bool = False) -> str | None:
        value = given.get(field)
        if value is None and not required:
            return None
        if not isinstance(value, str):
            raise InvalidInput(f"{field}: must be text", field=field)
        if instants.is_stored(value):  # most of a file: no parser is needed
            return value
        return instants.parse_instant(value, self._zone, field=field)


def _name_place(place: str, add: Callable[..., None], *arguments: Any) -> None:
    """Call a function; if it refuses its arguments, name the place in the refusal."""
    try:
        add(*arguments)
    except Unusable:
        raise
    except BoardError as error:
        field = error.details.get("field")
        raise InvalidInput(f"{place}: {error.message}", hint=error.hint, place=place, field=field) from None


def _reconcile(columns: dict[str, Any]) -> None:
    """Make the fields of an imported task agree with each other, as the lifecycle requires."""
    if columns["status"] in LEASED:
        columns["status"] = QUEUED  # the lease is valid only on the original board
    if columns["status"] not in FINAL:
        columns["finished_at"] = None
    if columns["status"] == QUEUED:
        columns["claimed_by"] = columns["claimed_at"] = columns["progress"] = None
        columns["attempts"] = min(columns["attempts"], columns["max_attempts"] - 1)
    elif columns["claimed_by"] is None or columns["claimed_at"] is None:
        columns["claimed_by"] = columns["claimed_at"] = None
    if columns["attempts"] > columns["max_attempts"]:
        raise InvalidInput(
            f"attempts: {columns['attempts']} (max_attempts is {columns['max_attempts']})", field="attempts"
        )
    if (columns["schedule_id"] is None) != (columns["occurrence_at"] is None):
        raise InvalidInput(
            "schedule_id: requires occurrence_at, and occurrence_at requires schedule_id", field="schedule_id"
        )


def read_id(value: object, field: str) -> str:
    """Return a full task id in capitals."""
    text = inputs.line(value, field, inputs.NAME).upper()
    if not is_ulid(text):
        raise InvalidInput(f"{field}: not a full id: {text[:60]!r}", field=field)
    return text


def _task_id(given: dict[str, Any]) -> str:
    return read_id(given.get("task_id"), "task_id")


def _actor(given: dict[str, Any]) -> tuple[str, str]:
    name = inputs.name(given.get("actor"), "actor")
    return name, inputs.one_of(given.get("actor_kind"), "actor_kind", ACTOR_KINDS)


def _optional_text(given: dict[str, Any], field: str) -> str | None:
    value = given.get(field)
    return None if value is None else inputs.text(value, field, inputs.TEXT)
