"""Cards of Trello: the JSON export of a board."""

from __future__ import annotations

from . import foreign, words
from .sources import read_document

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, BinaryIO

TABLE = (
    ("`cards`: `id`", "`params.trello.id`; the task id is derived from it; `created_at` is in it"),
    ("`name` `desc`", "`title`, `body`"),
    ("checklists of a card", "`body`, with a heading each"),
    ("the list, such as To Do, Doing", "`queued`, and `params.trello.list`"),
    ("the list, such as Done; `dueComplete`", "`done`"),
    ("an archived card, or one in an archived list", "`cancelled`, unless it is done"),
    ("any other list, such as Ideas, Waiting", "`queued`, [held](import.md#held-tasks)"),
    ("`labels`", "`tags` (the name, else the colour)"),
    ("members", "the first becomes `assignee`; if there are several, `params.trello.assignees` has all of them"),
    ("`due` `start` `dateLastActivity` `dateClosed`", "`due_at`, `not_before`, `updated_at`, `finished_at`"),
    (
        "`actions`: comments of cards",
        "`commented` events with their author and time; a board's export has the latest 1,000 actions",
    ),
    ("other `actions`", "ignored"),
    ("every other field of a card", "`params.trello`"),
)


def read(file: BinaryIO) -> Iterator[foreign.Row]:
    """Yield the place and the issue of each card."""
    board = read_document(file)
    if not isinstance(board, dict) or not isinstance(board.get("cards"), list):
        raise foreign.refuse("file", "must be the JSON export of a board, with `cards`", field="file")
    outer = foreign.Fields(board, "file")
    lists = _by_id(outer.entries("lists"))
    members = _by_id(outer.entries("members"))
    checklists: dict[str, list[dict[str, Any]]] = {}
    for one in outer.entries("checklists"):
        if isinstance(one, dict):
            checklists.setdefault(str(one.get("idCard")), []).append(one)
    comments: dict[str, list[dict[str, Any]]] = {}
    for number, action in enumerate(outer.entries("actions")):
        data = action.get("data") if isinstance(action, dict) else None
        card = data.get("card") if isinstance(data, dict) else None
        if isinstance(card, dict) and action.get("type") == "commentCard":
            comments.setdefault(str(card.get("id")), []).append(action)
        else:
            yield f"actions[{number}]", foreign.Ignored("action", f"actions[{number}]")
    for number, card in enumerate(outer.entries("cards")):
        place = f"cards[{number}]"
        if not isinstance(card, dict):
            raise foreign.refuse(place, "must be a JSON object")
        yield place, _issue(foreign.Fields(card, place), lists, members, checklists, comments)


def _by_id(entries: list[Any]) -> dict[str, dict[str, Any]]:
    return {str(one.get("id")): one for one in entries if isinstance(one, dict)}


def _issue(
    fields: foreign.Fields,
    lists: dict[str, dict[str, Any]],
    members: dict[str, dict[str, Any]],
    checklists: dict[str, list[dict[str, Any]]],
    comments: dict[str, list[dict[str, Any]]],
) -> foreign.Issue:
    name = fields.text("id")
    if not name:
        raise fields.refuse("id", "missing")
    found = foreign.Issue("trello", name)
    kept: dict[str, Any] = {"id": name}
    own = checklists.get(name, [])
    items = [(str(one.get("name") or "Checklist"), _items(one)) for one in own]
    if own:
        fields.take("idChecklists")
    fields.take("checklists")
    found.set_title(fields.line("name"), foreign.sections((None, fields.text("desc")), *items))
    column = lists.get(str(fields.peek("idList")), {})
    kept["list"] = str(column.get("name") or "")
    words.set_status(found, kept["list"])
    if fields.take("dueComplete") is True:
        found.task["status"] = "done"
    if (fields.take("closed") is True or column.get("closed") is True) and found.task["status"] == "queued":
        found.task["status"] = "cancelled"
    labels = [
        str(one.get("name") or one.get("color") or "") for one in fields.entries("labels") if isinstance(one, dict)
    ]
    found.set_tags(labels, kept)
    if labels:
        fields.take("idLabels")
    ids = [str(one) for one in fields.entries("idMembers")]
    people = [foreign.login(members.get(one), "username", "fullName") or one for one in ids]
    found.set_people(people, kept)
    fields.take("members")
    words.set_dates(found, fields, due_at="due", not_before="start", updated_at="dateLastActivity")
    if found.task["status"] != "queued":
        words.set_dates(found, fields, finished_at=("dateCompleted", "dateClosed"))
    try:
        found.task["created_at"] = words.from_seconds(int(name[:8], 16)) if len(name) == 24 else None
    except ValueError:
        found.task["created_at"] = None
    for action in reversed(comments.get(name, [])):  # the export has the newest first
        author = foreign.login(action.get("memberCreator"), "username", "fullName")
        found.add_comment(action["data"].get("text"), author, action.get("date"))
    return found.finish(kept | fields.rest())


def _items(checklist: dict[str, Any]) -> str:
    items = [item for item in checklist.get("checkItems") or [] if isinstance(item, dict)]
    return "\n".join(f"- [{'x' if item.get('state') == 'complete' else ' '}] {item.get('name')}" for item in items)
