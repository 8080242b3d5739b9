"""Tasks of Backlog.md: a directory of Markdown files with front matter, or one such file."""

from __future__ import annotations

import os
import re
import stat

from ..errors import InvalidInput
from . import foreign, words
from .front_matter import split

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, BinaryIO

TABLE = (
    ("`id`", "`params.backlog.id`; the task id is derived from it"),
    ("`title`", "`title`"),
    ("the text below the front matter", "`body`"),
    ("`status` To Do, In Progress", "`queued`"),
    ("`status` Done; files in `completed`", "`done`"),
    ("any other `status`; files in `drafts`", "`queued`, [held](import.md#held-tasks)"),
    ("files in `archive`", "`cancelled`, unless they are done"),
    ("`priority` high, medium, low", "1, 0, -1"),
    ("`assignee` `reporter`", "`assignee` (the first; without `@`), `created_by`"),
    ("`labels`", "`tags`"),
    ("`created_date` `updated_date`", "`created_at`, `updated_at`"),
    ("`dependencies`", "`blocked_by`"),
    ("`parent_task_id`", "the task also waits for what its parent waits for, and is held with it"),
    ("every other field, such as `milestone`, `ordinal`", "`params.backlog`"),
    ("other files, and links", "ignored"),
)
FILE = 1_048_576
"""Maximum number of bytes of one file."""
FILES = 100_000
"""Maximum number of files and directories."""
_FOLDERS = ("tasks", "completed", "drafts", os.path.join("archive", "tasks"), os.path.join("archive", "drafts"))


def read(source: BinaryIO | str) -> Iterator[foreign.Row]:
    """Yield the place and the issue of each task file of a directory, or that of one file opened for bytes.

    No link is followed, and nothing but plain files is opened.
    """
    if not isinstance(source, str):
        yield "file", _issue(_text(source.read(FILE + 1), "file"), "file", "tasks")
        return
    root = next(
        (
            path
            for path in (source, os.path.join(source, "backlog"), os.path.join(source, ".backlog"))
            if _is_folder(os.path.join(path, "tasks"))
        ),
        None,
    )
    folders = [(source, "tasks")] if root is None else [(os.path.join(root, one), one) for one in _FOLDERS]
    if root is None and not any(entry.name.lower().endswith(".md") for entry in _entries(source)):
        raise InvalidInput(
            f"file: {source[:200]} is a directory without tasks of Backlog.md",
            hint="Name a file, or the directory that has `tasks` with Markdown files in it.",
            field="file",
        )
    count = 0
    for path, folder in folders:
        if root is not None and not all(
            _is_folder(os.path.join(root, *folder.split(os.sep)[:depth]))
            for depth in range(1, folder.count(os.sep) + 2)
        ):
            continue
        for entry in sorted(_entries(path), key=lambda one: _natural(one.name)):
            count += 1
            if count > FILES:
                raise InvalidInput(f"file: more than {FILES:,} files", field="file")
            place = os.path.join(folder, entry.name) if root is not None else entry.name
            if entry.is_symlink():
                yield place, foreign.Ignored("link", place)
            elif (
                not entry.is_file(follow_symlinks=False)
                or not entry.name.lower().endswith(".md")
                or re.match(r"readme", entry.name, re.IGNORECASE)
            ):
                yield place, foreign.Ignored("not_a_task_file", place)
            else:
                yield place, _issue(_text(_content(entry.path, place), place), place, folder)


def _entries(path: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(path) as found:
            entries = []
            for entry in found:
                entries.append(entry)
                if len(entries) > FILES:
                    raise InvalidInput(f"file: more than {FILES:,} files", field="file")
            return entries
    except OSError as error:
        raise InvalidInput(f"file: {path[:200]}: {error.strerror}", field="file") from None


def _is_folder(path: str) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False


def _content(path: str, place: str) -> bytes:
    """Return the content of a plain file; the check is of the file that was opened."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
        with open(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise foreign.refuse(place, "is not a plain file")
            return file.read(FILE + 1)
    except OSError as error:
        raise foreign.refuse(place, str(error.strerror)) from None


def _text(content: bytes, place: str) -> str:
    if len(content) > FILE:
        raise foreign.refuse(place, f"too long (limit {FILE:,} bytes)")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise foreign.refuse(place, f"line {line}: not UTF-8") from None
    if "\0" in text:
        raise foreign.refuse(place, f"line {text.count(chr(10), 0, text.index(chr(0))) + 1}: has a NUL character")
    return text.replace("\r\n", "\n")


def _natural(name: str) -> list[Any]:
    """Return a key that sorts task-2 before task-10."""
    return [
        (0, int(part), "") if part.isdecimal() and len(part) < 18 else (1, 0, part)
        for part in re.split(r"([0-9]+)", name)
    ]


def _issue(text: str, place: str, folder: str) -> foreign.Issue:
    given, body = split(text, place)
    fields = foreign.Fields(given, place)
    name = fields.line("id")
    if not name:
        raise fields.refuse("id", "missing")
    found = foreign.Issue("backlog", name.lower())
    found.display = name
    kept: dict[str, Any] = {"id": name, "folder": folder if folder != "tasks" else None}
    found.set_title(fields.line("title"), body)
    status = fields.text("status")
    words.set_status(found, status)
    kept["status"] = status
    if folder == "completed":
        found.task["status"] = "done"
    elif folder.startswith("archive") and found.task["status"] == "queued":
        found.task["status"] = "cancelled"
    elif folder == "drafts" or words.normal(status) == "draft":
        found.held = "draft"
    words.set_priority(found, fields)
    found.set_tags(_list(fields, "labels"), kept)
    found.set_people([one.removeprefix("@") for one in _list(fields, "assignee") if one.removeprefix("@")], kept)
    reporter = fields.peek("reporter")
    found.task["created_by"] = foreign.name(reporter.removeprefix("@")) if isinstance(reporter, str) else None
    if found.task["created_by"] is not None:
        fields.take("reporter")
    words.set_dates(found, fields, created_at="created_date", updated_at="updated_date")
    found.waits_for += [one.lower() for one in _list(fields, "dependencies")]
    parent = fields.peek("parent_task_id", "parent")
    if isinstance(parent, str):
        found.parent = parent.lower()
    return found.finish(kept | fields.rest())


def _list(fields: foreign.Fields, key: str) -> list[str]:
    value = fields.take(key)
    return [value] if isinstance(value, str) else [one for one in value or [] if one]
