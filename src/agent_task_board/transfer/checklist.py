"""A checklist in Markdown: ``- [ ] text``; indented items belong to the item above, which waits for them."""

from __future__ import annotations

import re

from . import foreign
from .lines import read_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

TABLE = (
    ("the text of an item", "`title`; the task id is derived from it, its headings and the items above"),
    ("`[ ]`", "`queued`"),
    ("`[x]`", "`done`"),
    ("`[-]` `[~]`", "`cancelled`"),
    ("any other mark, such as `[?]` or `[>]`", "`queued`, [held](import.md#held-tasks)"),
    ("an indented item", "a task that the item above waits for"),
    ("indented text below an item", "`body`"),
    ("headings", "`params.checklist.headings`"),
    ("other text", "ignored"),
)
LINE = 1_048_576
"""Maximum number of bytes of one line."""
DEPTH = 100
_ITEM = re.compile(r"(?P<indent>\s*)(?:[-*+]|\d+[.)])\s+\[(?P<mark>.)\]\s+(?P<text>\S.*)")
_HEADING = re.compile(r" {0,3}(#{1,6})\s+(.*?)\s*#*\s*")
_STATUSES = {" ": "queued", "x": "done", "X": "done", "-": "cancelled", "~": "cancelled"}


class _Item:
    def __init__(self, indent: int, place: str, mark: str, text: str, path: str, headings: list[str]) -> None:
        self.indent = indent
        self.place = place
        self.mark = mark
        self.text = text
        self.path = path
        self.headings = headings
        self.body: list[str] = []
        self.waits_for: list[str] = []


def read(file: BinaryIO) -> Iterator[foreign.Row]:
    """Yield the items, each after those that belong to it."""
    stack: list[_Item] = []
    headings: list[tuple[int, str]] = []
    seen: dict[str, int] = {}
    fence = ""
    for place, line in read_lines(file, LINE):
        indent = _indent(line)
        mark = re.match(r"\s*(```+|~~~+)", line)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        found = None if fence or mark else _ITEM.fullmatch(line)
        heading = None if fence or mark else _HEADING.fullmatch(line)
        if found:
            while stack and stack[-1].indent >= indent:
                yield _issue(stack.pop())
            if len(stack) >= DEPTH:
                raise foreign.refuse(place, f"more than {DEPTH} items are inside each other")
            path = "\n".join([*(text for _, text in headings), *(item.text for item in stack), found["text"].strip()])
            seen[path] = seen.get(path, 0) + 1
            path += f"\n#{seen[path]}" if seen[path] > 1 else ""
            item = _Item(indent, place, found["mark"], found["text"].strip(), path, [text for _, text in headings])
            if stack:
                stack[-1].waits_for.append(path)
            stack.append(item)
        elif heading:
            while stack:
                yield _issue(stack.pop())
            level = len(heading[1])
            headings = [*((one, text) for one, text in headings if one < level), (level, heading[2])]
        elif stack and indent > stack[0].indent:
            owner = next(item for item in reversed(stack) if item.indent < indent)
            owner.body.append(line.strip() if not fence else line)
        else:
            yield place, foreign.Ignored("text", place)
    while stack:
        yield _issue(stack.pop())


def _indent(line: str) -> int:
    expanded = line.expandtabs(4)
    return len(expanded) - len(expanded.lstrip())


def _issue(item: _Item) -> foreign.Row:
    found = foreign.Issue("checklist", item.path)
    found.set_title(foreign.one_line(item.text), "\n".join(item.body))
    found.task["status"] = _STATUSES.get(item.mark, "queued")
    found.held = None if item.mark in _STATUSES else f"[{item.mark}]"
    found.waits_for = item.waits_for
    kept = {"headings": item.headings, "mark": item.mark if item.mark not in " xX" else None}
    found.display = item.text
    return item.place, found.finish(kept)
