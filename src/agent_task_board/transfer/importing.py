"""Bring tasks in from elsewhere: all of a file, or nothing of it.

The file is read one element at a time, checked, and staged; the board is locked only to take over what was staged.
"""

from __future__ import annotations

import json
import re
from datetime import datetime

from .. import inputs, instants
from ..board import fields
from ..board.core import is_ulid
from ..errors import BoardError, InvalidInput, Unusable
from ..model import ACTOR_KINDS, EVENT_KINDS, FINAL, JSON_KEYS, LEASED, OUTCOMES, QUEUED, STATUSES
from .staging import COLUMNS, Staging

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from ..board.core import Core
    from ..identity import Actor
    from .json_stream import Piece

FORMATS = ("json", "csv", "beads", "github")
NAME = "agent-task-board"
VERSION = 1
"""What an export says of itself; a file of a newer version is refused."""
ARRAYS = ("tasks", "attempts", "events", "comments", "schedules", "archived")
"""The arrays of an export, in their order."""
PROGRESS_EVERY = 1_000
"""Elements between two calls of ``progress``."""

_INSTANTS = ("occurrence_at", "created_at", "updated_at", "claimed_at", "finished_at")
_KEYS = {
    "tasks": frozenset(JSON_KEYS),
    "attempts": frozenset("task_id number agent fence claimed_at ended_at outcome result error note".split()),
    "events": frozenset("seq task_id kind actor actor_kind at data".split()),
    "comments": frozenset("task_id actor actor_kind at text".split()),
    "schedules": frozenset(
        """
        id name cron zone task catch_up paused paused_at next_at last_at made created_by created_at updated_at
        """.split()
    ),
    "archived": frozenset(("task_id", "archived_at")),
}
_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_STORED = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", re.ASCII)
"""An instant as the board stores it: most of a file's."""
_SAID = frozenset("ok data error warnings next exported_at counts truncated revision timezone".split())
"""Members that a command prints beside the tasks; they say nothing about them."""


class Imported:
    """How an import went: tasks brought in, tasks passed over, and sentences about what is not as in the file."""

    __slots__ = ("dry_run", "imported", "skipped", "warnings")

    def __init__(self) -> None:
        self.imported = 0
        self.skipped = 0
        self.warnings: list[str] = []
        self.dry_run = False

    def to_dict(self) -> dict[str, Any]:
        """Return ``{"imported", "skipped"}``, of a trial also ``"dry_run"``."""
        counts: dict[str, Any] = {"imported": self.imported, "skipped": self.skipped}
        return {**counts, "dry_run": True} if self.dry_run else counts


def import_tasks(
    core: Core,
    source: Any,
    actor: Actor | None,
    *,
    file_format: str,
    dry_run: bool,
    progress: Callable[[int], object] | None,
    read_schedule: Callable[[Core, dict[str, Any]], dict[str, Any]],
) -> Imported:
    """Do what ``Board.import_tasks`` promises; ``read_schedule`` checks a schedule of the file."""
    form = inputs.one_of(file_format, "format", FORMATS)
    outcome = Imported()
    outcome.dry_run = inputs.boolean(dry_run, "dry_run")
    by = core.caller(actor)
    if not dry_run and core.database.session().is_momentary:
        core.create()  # refused: nothing can be written there
    staging = Staging(core.database)
    try:
        intake = _Intake(core, by, staging, read_schedule)
        with staging:
            intake.read(source, form, progress)
        if dry_run or staging.is_apart:
            with staging.board.read() as tx:  # what would be refused is refused before a board is made
                staging.bring_to(tx)
                outcome.imported, outcome.skipped = staging.check(tx, core.new_id)
        if not dry_run:
            staging.bring_to(core.database.session(to_write=True).connection)
            with core.write(by) as tx:
                outcome.imported, outcome.skipped = staging.check(tx.connection, core.new_id)
                staging.bring_in(tx)
        outcome.warnings = [*intake.warnings, *staging.warnings]
        outcome.skipped += intake.left_out
    finally:
        staging.close()
    return outcome


class _Intake:
    """Reads a file and stages it, element by element."""

    def __init__(
        self,
        core: Core,
        by: Actor,
        staging: Staging,
        read_schedule: Callable[[Core, dict[str, Any]], dict[str, Any]],
    ) -> None:
        self._core = core
        self._read_schedule = read_schedule
        self._zone = core.settings.timezone
        self._by = by
        self._staging = staging
        self._tasks = 0
        self._comments = 0
        self._names: dict[str, str] = {}
        self._schedules: set[str] = set()
        self._was_read = True
        """Whether the strict reader has seen everything."""
        self.left_out = 0
        """Lines of the file that are no tasks."""
        self.warnings: list[str] = []

    def read(self, source: Any, form: str, progress: Callable[[int], object] | None) -> None:
        """Stage everything in a file, or in a document that was read already."""
        with_events = False
        if form == "json":
            with_events = self._read_document(source, progress)
        else:
            self._read_rows(source, form, progress)
        for key, name in self._names.items():
            self._staging.add("staged_name", (key, name, name))
        self._staging.finish(with_events=with_events)

    def _read_document(self, source: Any, progress: Callable[[int], object] | None) -> bool:
        """Stage a document of JSON; say whether it has a history."""
        seen: set[str] = set()
        count = 0
        self._was_read = hasattr(source, "read")
        for name, place, value in self._pieces(source):
            if place is None:
                self._take_member(name, value, seen)
                continue
            self._checked(f"{name}[{place}]", self._take, name, place, value)
            count += 1
            if progress is not None and count % PROGRESS_EVERY == 0:
                progress(count)
        if "tasks" not in seen:
            raise InvalidInput(
                "the file holds neither an array of tasks nor an object with `tasks`",
                hint="Import what `atb export` or `atb list --full` prints, or an array of objects with a `title`.",
                field="file",
            )
        return "events" in seen

    @staticmethod
    def _pieces(source: Any) -> Iterator[Piece]:
        from . import json_stream

        how = json_stream.read if hasattr(source, "read") else json_stream.walk
        return how(source, ARRAYS, bare="tasks")

    def _take_member(self, name: str, value: Any, seen: set[str]) -> None:
        if name in ARRAYS:
            if not isinstance(value, list):
                raise InvalidInput(f"{name}: must be a list", field=name)
            if name in seen:
                raise InvalidInput(f"{name}: is there twice", field=name)
        elif name == "format" and value != NAME:
            raise InvalidInput(f"format: this is no export of {NAME}", field="format")
        elif name == "version" and (isinstance(value, bool) or value != VERSION):
            raise InvalidInput(
                f"version: this program reads version {VERSION} of an export",
                hint="Install the newest atb-board.",
                field="version",
            )
        elif name not in _SAID and name not in ("format", "version"):
            self.warnings.append(f"the file's {name[:60]!r} was left out: it means nothing here")
        seen.add(name)

    def _read_rows(self, source: Any, form: str, progress: Callable[[int], object] | None) -> None:
        """Stage a file of rows, each a task or an issue of another tracker."""
        count = 0
        if form == "csv":
            from .csv import read_rows

            for count, (place, task) in enumerate(read_rows(source), 1):
                self._checked(place, self._task, place, task, {})
                if progress is not None and count % PROGRESS_EVERY == 0:
                    progress(count)
            return
        from . import beads, github

        rows = beads.read if form == "beads" else github.read
        for count, (place, issue) in enumerate(rows(source), 1):
            if issue is None:
                self.left_out += 1
                continue
            self._checked(place, self._task, place, issue.task, issue.names)
            self.warnings += issue.warnings
            for comment in issue.comments:
                self._checked(place, self._comment, comment)
            if progress is not None and count % PROGRESS_EVERY == 0:
                progress(count)

    @staticmethod
    def _checked(place: str, take: Callable[..., None], *arguments: Any) -> None:
        """Name the place in a refusal."""
        try:
            take(*arguments)
        except Unusable:
            raise
        except BoardError as error:
            field = error.details.get("field")
            raise InvalidInput(f"{place}: {error.message}", hint=error.hint, place=place, field=field) from None

    def _take(self, name: str, place: int, value: Any) -> None:
        if not isinstance(value, dict):
            raise InvalidInput(f"{_SINGULAR[name]} must be a JSON object")
        unknown = next((key for key in value if key not in _KEYS[name]), None)
        if unknown is not None:
            raise InvalidInput(f"{str(unknown)[:60]}: there is no such field", field=str(unknown)[:60])
        match name:
            case "tasks":
                self._task(f"tasks[{place}]", value, {})
            case "attempts":
                self._attempt(place, value)
            case "events":
                self._event(place, value)
            case "comments":
                self._comment(value)
            case "archived":
                task, at = _task_id(value), self._instant(value, "archived_at", required=True)
                self._staging.add("staged_archived", (place, task, at))
            case _:
                self._schedule(value)

    def _task(self, place: str, given: dict[str, Any], names: dict[str, str]) -> None:
        """Check one task and stage it; ``names`` are those of the other tracker for what it waits for."""
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
            "created_by": inputs.name(given.get("created_by", self._by.name), "created_by"),
            "schedule_id": inputs.key(given.get("schedule_id"), "schedule_id"),
        }
        if given.get("progress") is not None:
            columns["progress"] = inputs.percentage(given["progress"], "progress")
        for field in _INSTANTS:
            columns[field] = self._instant(given, field)
        _settle(columns)
        for field in ("assignee", "claimed_by"):
            columns[field] = self._named(columns[field])
        ids = given.get("blocked_by", [])
        if not isinstance(ids, list):
            raise InvalidInput("blocked_by: must be a list of ids", field="blocked_by")
        waits = list(dict.fromkeys(read_id(str(id_), "blocked_by") for id_ in ids))
        if len(waits) > inputs.DEPENDENCIES:
            raise InvalidInput(f"blocked_by: more than {inputs.DEPENDENCIES:,} dependencies", field="blocked_by")
        id_ = None if given.get("id") is None else read_id(given["id"], "id")
        self._tasks += 1
        position, final = self._tasks, columns["status"] in FINAL
        self._staging.add(
            "staged_key",
            (
                position,
                id_ or self._core.new_id(),
                None if final else columns["dedupe_key"],
                columns["schedule_id"],
                columns["occurrence_at"],
                id_ is None,
                final,
                place,
            ),
        )
        self._staging.add("staged_task", (position, *(columns[column] for column in COLUMNS)))
        for number, other in enumerate(waits, 1):
            self._staging.add("staged_dependency", (position, number, other, names.get(other)))

    def _attempt(self, place: int, given: dict[str, Any]) -> None:
        outcome, ended_at = given.get("outcome"), self._instant(given, "ended_at")
        if (outcome is None) != (ended_at is None):
            raise InvalidInput("outcome and ended_at go together", field="outcome")
        result = given.get("result")
        row = (
            place,
            _task_id(given),
            inputs.integer(given.get("number"), "number", 1, 2**53),
            self._named(inputs.agent_name(given.get("agent"), "agent", old=True)),
            inputs.integer(given.get("fence"), "fence", 0, 2**53),
            self._instant(given, "claimed_at", required=True),
            ended_at,
            None if outcome is None else inputs.one_of(outcome, "outcome", OUTCOMES),
            None if result is None else inputs.json_text(result, "result"),
            _long_text(given, "error"),
            _long_text(given, "note"),
        )
        self._staging.add("staged_attempt", row)

    def _event(self, place: int, given: dict[str, Any]) -> None:
        kind, data = inputs.one_of(given.get("kind"), "kind", EVENT_KINDS), given.get("data")
        if not isinstance(data, dict):
            raise InvalidInput("data: must be a JSON object", field="data")
        if not self._was_read:
            inputs.check_json(data, "data")
        changes = data.get("changes", {})
        if not isinstance(changes, dict) or not all(
            isinstance(change, dict) and "from" in change and "to" in change for change in changes.values()
        ):
            raise InvalidInput("data: changes must hold objects with from and to", field="data")
        if kind == "commented":
            inputs.text(data.get("text"), "text", inputs.TEXT)
        self._staging.add(
            "staged_event",
            (place, _task_id(given), kind, *self._actor(given), self._instant(given, "at", required=True), _json(data)),
        )

    def _comment(self, given: dict[str, Any]) -> None:
        text = inputs.text(given.get("text"), "text", inputs.TEXT, required=True)
        at = self._instant(given, "at", required=True)
        row = (self._comments, _task_id(given), "commented", *self._actor(given), at, _json({"text": text}))
        self._comments += 1
        self._staging.add("staged_comment", row)

    def _schedule(self, given: dict[str, Any]) -> None:
        checked = self._read_schedule(self._core, given)
        id_, key = read_id(given.get("id"), "id"), checked["name"].casefold()
        paused = inputs.boolean(given.get("paused", False), "paused")
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
            paused_at if paused else None,
            next_at,
            last_at,
            inputs.integer(given.get("made", 0), "made", 0, 2**53),
            inputs.name(given.get("created_by", self._by.name), "created_by"),
            self._instant(given, "created_at"),
            self._instant(given, "updated_at"),
        )
        if {id_, key} & self._schedules:
            raise InvalidInput("name: such a schedule is already in the file", field="name")
        self._schedules |= {id_, key}
        self._staging.add("staged_schedule", row)

    # Fields

    def _named(self, name: str | None) -> str | None:
        """Return the key of an agent's name; names are shown as first written."""
        if name is None:
            return None
        key = inputs.name_key(name)
        self._names.setdefault(key, name)
        return key

    def _actor(self, given: dict[str, Any]) -> tuple[str, str]:
        return inputs.name(given.get("actor"), "actor"), inputs.one_of(
            given.get("actor_kind"), "actor_kind", ACTOR_KINDS
        )

    def _instant(self, given: dict[str, Any], field: str, *, required: bool = False) -> str | None:
        value = given.get(field)
        if value is None and not required:
            return None
        if not isinstance(value, str):
            raise InvalidInput(f"{field}: must be text", field=field)
        if _STORED.fullmatch(value):
            try:
                datetime.fromisoformat(value)  # is there such a day?
            except ValueError:
                pass  # refused below
            else:
                return value
        return instants.parse_instant(value, self._zone, field=field)


_SINGULAR = {
    "tasks": "a task",
    "attempts": "an attempt",
    "events": "an event",
    "comments": "a comment",
    "schedules": "a schedule",
    "archived": "an entry of the archive",
}


def _settle(columns: dict[str, Any]) -> None:
    """Make the fields of an imported task agree with each other, as the lifecycle wants them."""
    if columns["status"] in LEASED:
        columns["status"] = QUEUED  # its lease lives on the board that it comes from
    if columns["status"] not in FINAL:
        columns["finished_at"] = None
    if columns["status"] == QUEUED:
        columns["claimed_by"] = columns["claimed_at"] = columns["progress"] = None
        columns["attempts"] = min(columns["attempts"], columns["max_attempts"] - 1)
    elif columns["claimed_by"] is None or columns["claimed_at"] is None:
        columns["claimed_by"] = columns["claimed_at"] = None
    if columns["attempts"] > columns["max_attempts"]:
        raise InvalidInput("attempts: more than max_attempts", field="attempts")
    if (columns["schedule_id"] is None) != (columns["occurrence_at"] is None):
        raise InvalidInput("schedule_id and occurrence_at go together", field="schedule_id")


def read_id(value: object, field: str) -> str:
    """Return a whole task id in capitals."""
    text = inputs.line(value, field, inputs.NAME).upper()
    if not is_ulid(text):
        raise InvalidInput(f"{field}: {text[:60]!r} is not a whole id", field=field)
    return text


def _task_id(given: dict[str, Any]) -> str:
    return read_id(given.get("task_id"), "task_id")


def _long_text(given: dict[str, Any], field: str) -> str | None:
    value = given.get(field)
    return None if value is None else inputs.text(value, field, inputs.TEXT)
