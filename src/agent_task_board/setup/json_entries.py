"""An entry of ours in a JSON file that belongs to somebody else: put in and taken out as text.

Whether an object or array around an entry was made by us is written in its layout, so that nothing else has to remember
it: what we make has white space behind its bracket, and into an empty one that was there our entry goes without any.
"""

from __future__ import annotations

import json
import re

from .files import Unfit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, NoReturn

_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\r\n]*")
_CLOSING = {"{": "}", "[": "]"}
_BOM = "\ufeff"


class Entry:
    """A member of an object (``key``), or an element of an array (no key), below the objects named by ``path``.

    ``is_ours`` says of a value that is there whether we wrote it, at any time and with any options. ``only_new`` marks
    what a file of ours needs, but every other file has already.
    """

    __slots__ = ("is_ours", "key", "only_new", "path", "value")

    def __init__(
        self,
        path: tuple[str, ...],
        key: str | None,
        value: Any,
        is_ours: Callable[[Any], bool],
        *,
        only_new: bool = False,
    ) -> None:
        self.path = path
        self.key = key
        self.value = value
        self.is_ours = is_ours
        self.only_new = only_new

    def holds(self, item: _Item) -> bool:
        """Say whether an item of the innermost container is the one that this entry is about."""
        return self.is_ours(item.value) if self.key is None else item.key == self.key


class JsonEntries:
    """The entries of ours in one JSON file."""

    def __init__(self, path: str, root: str, entries: Sequence[Entry]) -> None:
        self.path = path
        self.root = root
        self.entries = entries

    def own(self) -> str:
        """Return a file that holds nothing but the entries."""
        document: dict[str, Any] = {}
        for entry in self.entries:
            at = document
            names = entry.path if entry.key is None else (*entry.path, entry.key)
            for name in names[:-1]:
                at = at.setdefault(name, {})
            if entry.key is None:
                at.setdefault(names[-1], []).append(entry.value)
            else:
                at[names[-1]] = entry.value
        return json.dumps(document, indent=2, ensure_ascii=False) + "\n"

    def put(self, text: str | None) -> str:
        """Return the file with the entries; one of ours that differs is replaced."""
        if text is None:
            return self.own()
        mark, text = _split(text)
        _check(text)
        for entry in self.entries:
            if not entry.only_new:
                text = _put(text, entry)
        return mark + text

    def take(self, text: str) -> str | None:
        """Return the file without what is ours; ``None`` if that was all, and we had made the file."""
        mark, text = _split(text)
        _check(text)
        made = {entry.key: entry.value for entry in self.entries if entry.only_new}
        first = next(iter(_Container(text).items), None)
        left: str | None = text
        for entry in reversed(self.entries):
            if not entry.only_new and left is not None:
                left = _take(left, entry)
        if left is None:
            return None
        rest = {item.key: item.value for item in _Container(left).items}
        if left != text and rest and rest == made and first is not None and first.key not in made:
            return None  # we put it behind our entries; in a file of somebody else ours come last
        return mark + left


def _split(text: str) -> tuple[str, str]:
    return (_BOM, text[1:]) if text.startswith(_BOM) else ("", text)


def _check(text: str) -> None:
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        if not text.strip():
            raise Unfit("is empty, which is no JSON") from None
        raise Unfit(f"is not strict JSON, perhaps for a comment or a comma too many ({error})") from None
    if not isinstance(value, dict):
        raise Unfit("does not hold a JSON object")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


class _Item:
    """A member or element: where it begins, where its value begins and ends, and what it is."""

    __slots__ = ("end", "key", "start", "value", "value_start")

    def __init__(self, start: int, key: str | None, value_start: int, end: int, value: Any) -> None:
        self.start = start
        self.key = key
        self.value_start = value_start
        self.end = end
        self.value = value


class _Container:
    """An object or array of a text that is known to be JSON."""

    __slots__ = ("close", "items", "kind", "open")

    def __init__(self, text: str, at: int = 0) -> None:
        self.open = at = _skip(text, at)
        self.kind = text[at]
        self.items: list[_Item] = []
        at = _skip(text, at + 1)
        while text[at] != _CLOSING[self.kind]:
            start, key = at, None
            if self.kind == "{":
                key, at = _DECODER.raw_decode(text, at)
                at = _skip(text, _skip(text, at) + 1)
            value, end = _DECODER.raw_decode(text, at)
            self.items.append(_Item(start, key, at, end, value))
            at = _skip(text, end)
            if text[at] == ",":
                at = _skip(text, at + 1)
        self.close = at


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return at if found is None else found.end()


class _Step:
    """A container, and which item of the one before it that is."""

    __slots__ = ("container", "place")

    def __init__(self, container: _Container, place: int) -> None:
        self.container = container
        self.place = place


def _way(text: str, entry: Entry) -> list[_Step]:
    """Return the containers from the root to the one of an entry, as far as there are any."""
    steps = [_Step(_Container(text), 0)]
    for depth, name in enumerate(entry.path):
        container = steps[-1].container
        places = [place for place, item in enumerate(container.items) if item.key == name]
        if len(places) > 1:
            raise Unfit(f"has {name!r} twice in one object")
        if not places:
            break
        item = container.items[places[0]]
        wanted = "[" if entry.key is None and depth == len(entry.path) - 1 else "{"
        if text[item.value_start] != wanted:
            raise Unfit(f"has a {name!r} that is not {'an array' if wanted == '[' else 'an object'}")
        steps.append(_Step(_Container(text, item.value_start), places[0]))
    return steps


def _put(text: str, entry: Entry) -> str:
    steps = _way(text, entry)
    container = steps[-1].container
    missing = entry.path[len(steps) - 1 :]
    if missing:
        value: Any = [entry.value] if entry.key is None else {entry.key: entry.value}
        for name in reversed(missing[1:]):
            value = {name: value}
        return _insert(text, container, len(steps), missing[0], value)
    found = [item for item in container.items if entry.holds(item)]
    if not found:
        return _insert(text, container, len(steps), entry.key, entry.value)
    if len(found) > 1 and entry.key is not None:
        raise Unfit(f"has {entry.key!r} twice in one object")
    if any(_same(item.value, entry.value) for item in found):
        return text
    if not entry.is_ours(found[0].value):
        raise Unfit(f"has a {entry.key!r} that somebody else wrote")
    base = _indentation_of(text, found[0].start)
    base = _unit(text) * len(steps) if base is None else base
    return text[: found[0].value_start] + _written(text, entry.value, base) + text[found[0].end :]


def _take(text: str, entry: Entry) -> str | None:
    left: str | None = text
    while left is not None:
        steps = _way(left, entry)
        if len(steps) <= len(entry.path):
            return left
        items = steps[-1].container.items
        places = [place for place, item in enumerate(items) if entry.holds(item) and entry.is_ours(item.value)]
        if not places:
            return left
        steps.append(_Step(steps[-1].container, places[-1]))
        left = _cut(left, steps)
    return None


def _insert(text: str, container: _Container, depth: int, key: str | None, value: Any) -> str:
    """Add an item at the end of a container; ``depth`` is how deep its items lie."""
    name = "" if key is None else f"{json.dumps(key, ensure_ascii=False)}: "
    if not container.items:
        written = name + _written(text, value, _unit(text) * (depth - 1))
        return text[: container.open + 1] + written + text[container.open + 1 :]
    last = container.items[-1]
    before = container.open if len(container.items) == 1 else text.rindex(",", 0, last.start)
    gap = text[before + 1 : last.start]
    base = gap.rpartition("\n")[2] if "\n" in gap else _unit(text) * depth
    return text[: last.end] + f",{gap}{name}{_written(text, value, base)}" + text[last.end :]


def _cut(text: str, steps: list[_Step]) -> str | None:
    """Take out an item, and with it the containers that were made for it; ``None``: the root, too."""
    container, place = steps[-2].container, steps[-1].place
    items = container.items
    if place > 0:
        return text[: items[place - 1].end] + text[items[place].end :]
    if len(items) > 1:
        return text[: items[0].start] + text[items[1].start :]
    if items[0].start == container.open + 1:
        return text[: items[0].start] + text[items[0].end :]
    return None if len(steps) == 2 else _cut(text, steps[:-1])


def _written(text: str, value: Any, base: str) -> str:
    """Return a value as it is written into a text whose line begins with ``base``."""
    lines = json.dumps(value, indent=_unit(text), ensure_ascii=False).split("\n")
    return f"{_line_end(text)}{base}".join(lines)


def _unit(text: str) -> str:
    """Return the indentation of the first member of the root: that of every level."""
    items = _Container(text).items
    return (items and _indentation_of(text, items[0].start)) or "  "


def _indentation_of(text: str, start: int) -> str | None:
    """Return the white space before a place, if nothing else is on its line."""
    before = text[text.rfind("\n", 0, start) + 1 : start]
    return before if "\n" in text[:start] and not before.strip() else None


def _line_end(text: str) -> str:
    return "\r\n" if re.match(r"[^\n]*\r\n", text) else "\n"


def _same(one: Any, other: Any) -> bool:
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
