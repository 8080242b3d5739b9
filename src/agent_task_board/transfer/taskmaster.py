"""Tasks of task-master: ``tasks.json``, with or without tags."""

from __future__ import annotations

from ..errors import InvalidInput
from . import foreign, json_stream, words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, BinaryIO

TABLE = (
    ("`id`, the tag (`master` without one)", "`params.task-master`; the task id is derived from both"),
    ("`title` `priority` (`critical high medium low`)", "`title`, `priority` 2, 1, 0, -1"),
    ("`description` `details` `testStrategy`", "`body`, with a heading for each of the last two"),
    ("`status` `pending`, `in-progress`", "`queued`"),
    ("`status` `done`, `cancelled`", "`done`, `cancelled`"),
    ("any other `status`, such as `review`, `deferred`, `blocked`", "`queued`, [held](import.md#held-tasks)"),
    ("`dependencies`", "`blocked_by`"),
    ("`subtasks`", "a task each; the parent waits for it, and it waits for what the parent waits for"),
    ("`createdAt` `updatedAt` `assignee`", "`created_at`, `updated_at`, `assignee`"),
    ("`metadata` of a tag", "ignored"),
)


def read(file: BinaryIO) -> Iterator[foreign.Row]:
    """Yield the place and the issue of each task and subtask."""
    for name, place, value in json_stream.read(file, ("tasks",), bare="tasks"):
        if name == "tasks" and place is not None:
            yield from _task(value, "master", f"tasks[{place}]")
        elif name == "tasks":
            continue
        elif isinstance(value, dict) and isinstance(value.get("tasks"), list):
            for number, task in enumerate(value["tasks"]):
                yield from _task(task, name, f"{name}.tasks[{number}]")
            for key in value:
                if key != "tasks":
                    yield name, foreign.Ignored("metadata", name)
        elif name in ("metadata", "meta"):
            yield name, foreign.Ignored("metadata", name)
        else:
            raise InvalidInput(f"file: {name[:60]}: must be a tag with tasks", field="file")


def _task(task: Any, tag: str, place: str) -> Iterator[foreign.Row]:
    if not isinstance(task, dict):
        raise foreign.refuse(place, "must be a JSON object")
    fields = foreign.Fields(task, place)
    number = _number(fields.take("id"))
    if number is None:
        raise fields.refuse("id", "must be a whole number or text")
    subtasks = fields.entries("subtasks")
    numbers: list[str] = []
    for index, subtask in enumerate(subtasks):
        where = f"{place}.subtasks[{index}]"
        if not isinstance(subtask, dict):
            raise foreign.refuse(where, "must be a JSON object")
        own = _number(subtask.get("id"))
        if own is None:
            raise foreign.refuse(where, "id: must be a whole number or text", field="id")
        numbers.append(own)
    found = _issue(fields, tag, number, siblings=(), prefix="")
    found.waits_for += [_name(tag, f"{number}.{own}") for own in numbers]
    yield place, found.finish({"id": number, "tag": tag} | fields.rest())
    for index, (subtask, own) in enumerate(zip(subtasks, numbers, strict=True)):
        where = f"{place}.subtasks[{index}]"
        inner = foreign.Fields(subtask, where)
        inner.take("id")
        inner.take("parentTaskId")
        below = _issue(inner, tag, f"{number}.{own}", siblings=tuple(numbers), prefix=f"{number}.")
        below.parent = _name(tag, number)
        yield where, below.finish({"id": f"{number}.{own}", "tag": tag} | inner.rest())


def _issue(fields: foreign.Fields, tag: str, number: str, *, siblings: tuple[str, ...], prefix: str) -> foreign.Issue:
    found = foreign.Issue("task-master", _name(tag, number))
    found.set_title(
        fields.line("title"),
        foreign.sections(
            (None, fields.text("description")),
            ("Details", fields.text("details")),
            ("Test strategy", fields.text("testStrategy")),
        ),
    )
    words.set_status(found, str(fields.peek("status") or ""))
    if found.task["status"] != "queued" or words.normal(str(fields.peek("status") or "")) in words.READY:
        fields.take("status")
    words.set_priority(found, fields)
    found.task["assignee"] = foreign.name(fields.peek("assignee"))
    if found.task["assignee"] == fields.peek("assignee"):
        fields.take("assignee")
    words.set_dates(found, fields, created_at="createdAt", updated_at="updatedAt")
    if found.task["status"] != "queued":
        words.set_dates(found, fields, finished_at="completedAt")
    for other in fields.entries("dependencies"):
        target = _number(other)
        if target is None:
            raise fields.refuse("dependencies", "must be a list of numbers")
        found.waits_for.append(_name(tag, f"{prefix}{target}" if target in siblings else target))
    return found


def _number(value: object) -> str | None:
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        return None
    return str(value).strip() or None


def _name(tag: str, number: str) -> str:
    return number if tag == "master" else f"{tag}:{number}"
