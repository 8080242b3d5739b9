"""Tasks of todo.txt: one task a line."""

from __future__ import annotations

import re

from . import foreign, words
from .lines import read_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

TABLE = (
    ("the text, without what became a field", "`title`; the task id is derived from it, or from `id:`"),
    ("the whole line", "`params.todo.line`"),
    ("`x`, with its date", "`done`, `finished_at`"),
    ("`(A)` … `(Z)`; `pri:A` of a finished task", "`priority` 26 … 1; 0 without one"),
    ("the creation date", "`created_at`"),
    ("`+project`, `@context`", "`tags`, without the sign; the title keeps them"),
    ("`due:` `t:`", "`due_at`, `not_before`"),
    (
        "other `key:value`, such as `rec:`",
        "`params.todo`; the title keeps them. `h:1` comes in [held](import.md#held-tasks)",
    ),
)
LINE = 1_048_576
"""Maximum number of bytes of one line."""
_DATE = r"\d{4}-\d\d-\d\d"
_LINE = re.compile(
    rf"(?P<done>x\s+(?:\((?P<old>[A-Z])\)\s+)?(?:(?P<finished>{_DATE})\s+)?)?(?:\((?P<priority>[A-Z])\)\s+)?(?:(?P<created>{_DATE})\s+)?(?P<text>\S.*)",
    re.ASCII,
)
_PAIR = re.compile(r"(?<!\S)([A-Za-z][\w-]*):([^\s:/][^\s]*)", re.ASCII)
_TAG = re.compile(r"(?<!\S)[+@](\S+)")


def read(file: BinaryIO) -> Iterator[foreign.Row]:
    """Yield the place and the issue of each line."""
    seen: dict[str, int] = {}
    for place, line in read_lines(file, LINE):
        yield place, _issue(line.strip(), seen)


def _issue(line: str, seen: dict[str, int]) -> foreign.Issue:
    parts = _LINE.fullmatch(line)
    text = line if parts is None else parts["text"]
    pairs = dict(reversed(_PAIR.findall(text)))
    due, start = words.instant(pairs.get("due")), words.instant(pairs.get("t"))
    taken = {"pri"} | ({"due"} if due else set()) | ({"t"} if start else set())
    title = " ".join(_PAIR.sub(lambda pair: "" if pair[1] in taken else pair[0], text).split()) or text
    name = f"id:{pairs['id']}" if pairs.get("id") else title
    seen[name] = seen.get(name, 0) + 1
    found = foreign.Issue("todo", name if seen[name] == 1 else f"{name}\n#{seen[name]}")
    found.display = title
    kept: dict[str, object] = {"line": line}
    found.set_title(foreign.one_line(title), "")
    found.set_tags(_TAG.findall(text), kept)
    done = parts is not None and parts["done"] is not None
    letter = pairs.get("pri") or (parts and (parts["priority"] or parts["old"])) or ""
    found.task |= {
        "status": "done" if done else "queued",
        "priority": 91 - ord(letter) if len(letter) == 1 and "A" <= letter <= "Z" else 0,
        "due_at": due,
        "not_before": start,
        "created_at": words.instant(parts and parts["created"]),
        "finished_at": words.instant(parts and parts["finished"]) if done else None,
    }
    found.held = "hidden" if pairs.get("h") == "1" else None
    kept |= {key: value for key, value in pairs.items() if key not in taken}
    return found.finish(kept)
