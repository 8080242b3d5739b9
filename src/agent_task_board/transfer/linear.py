"""Issues of Linear: its CSV export."""

from __future__ import annotations

from . import foreign, words
from .sources import read_table, words_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, BinaryIO

TABLE = (
    ("`ID`", "`params.linear.id`; the task id is derived from it"),
    ("`Title` `Description`", "`title`, `body`"),
    ("`Status` such as Todo, In Progress", "`queued`"),
    (
        "`Status` such as Done, or a date in `Completed`; Canceled, Duplicate, or a date in `Canceled`",
        "`done`; `cancelled`",
    ),
    ("any other `Status`, such as Backlog, Triage, In Review", "`queued`, [held](import.md#held-tasks)"),
    ("`Priority` Urgent, High, Medium, Low, No priority", "2, 1, 0, -1, 0"),
    ("`Labels`", "`tags`"),
    ("`Creator` `Assignee`", "`created_by`, `assignee`"),
    ("`Created` `Updated` `Completed` or `Canceled` `Due Date`", "`created_at`, `updated_at`, `finished_at`, `due_at`"),
    ("`Blocked by`", "`blocked_by`"),
    ("`Parent issue`", "the task also waits for what its parent waits for, and is held with it"),
    ("every other column, such as `Team`, `Project`, `Estimate`", "`params.linear`"),
)


def read(file: BinaryIO) -> Iterator[foreign.Row]:
    """Yield the place and the issue of each row."""
    ignored: list[tuple[str, foreign.Ignored]] = []
    for place, row in read_table(file, ignored, ("id", "title")):
        yield place, _issue(foreign.Fields(row, place))
        yield from ignored
        ignored.clear()
    yield from ignored


def _issue(fields: foreign.Fields) -> foreign.Issue:
    name = fields.text("id")
    if not name:
        raise fields.refuse("id", "missing")
    found = foreign.Issue("linear", name)
    kept: dict[str, Any] = {"id": name}
    found.set_title(fields.line("title"), fields.text("description"))
    status = fields.text("status")
    words.set_status(found, status)
    if fields.peek("completed") or fields.peek("canceled"):
        found.held = None
        found.task["status"] = "cancelled" if fields.peek("canceled") else "done"
    kept["status"] = status
    words.set_priority(found, fields)
    found.set_tags(words_of(fields.take("labels")), kept)
    assignee = fields.text("assignee")
    found.set_people([assignee] if assignee else [], kept)
    creator = fields.text("creator")
    found.task["created_by"] = foreign.name(creator)
    if creator != found.task["created_by"]:
        kept["creator"] = creator
    words.set_dates(found, fields, created_at="created", updated_at="updated", due_at="due date")
    if found.task["status"] != "queued":
        words.set_dates(found, fields, finished_at=("canceled", "completed"))
    found.waits_for += words_of(fields.take("blocked by"))
    parent = fields.peek("parent issue")
    if isinstance(parent, str):
        found.parent = parent
    return found.finish(kept | fields.rest())
