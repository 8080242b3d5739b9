"""Our entries in a JSON file that is not ours, inserted and removed as text.

The layout records whether we created the object or array around an entry, so that no other record is needed. An object
that we create has white space after its bracket; an entry in an empty object that existed before is inserted without.
"""

from __future__ import annotations

import json
import re

from . import foreign
from .files import Unfit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any, NoReturn

_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\r\n]*")
_CLOSING = {"{": "}", "[": "]"}
_BOM = "\ufeff"
_BLANK = " \t\r\n"
_WAS_BLANK = " "
"""The text after our root in a file that existed but was blank."""


def same(one: Any, other: Any) -> bool:
    """Say whether two values are equal; the order of keys is ignored, and NaN equals itself."""
    return json.dumps(one, sort_keys=True, default=repr) == json.dumps(other, sort_keys=True, default=repr)


class Entry:
    """A member of an object (``key``), or an element of an array (no key), in the nested objects named by ``path``.

    ``is_ours`` says whether we wrote an existing value, at any time and with any options. ``merge`` takes our value and
    an existing one of ours, and returns ours with the additions of others; ``foreign`` takes the same and returns the
    additions that are not known to be harmless, which are refused. ``is_like`` says whether an element does the
    same, but is not ours to change. With ``inner``, the elements are groups, and our element is in the array of that
    name: others may have added to the group. ``agent`` returns the agent that a value names. ``only_new``: the entry
    is written only into a file that we create.
    """

    __slots__ = ("agent", "foreign", "inner", "is_like", "is_ours", "key", "merge", "only_new", "path", "value")

    def __init__(
        self,
        path: tuple[str, ...],
        key: str | None,
        value: Any,
        is_ours: Callable[[Any], bool],
        *,
        merge: Callable[[Any, Any], Any] = lambda ours, _: ours,
        foreign: Callable[[Any, Any], dict[str, Any]] = lambda _, __: {},
        is_like: Callable[[Any], bool] = lambda _: False,
        agent: Callable[[Any], str | None] = lambda _: None,
        inner: str | None = None,
        only_new: bool = False,
    ) -> None:
        self.path = path
        self.key = key
        self.value = value
        self.is_ours = is_ours
        self.merge = merge
        self.foreign = foreign
        self.is_like = is_like
        self.agent = agent
        self.inner = inner
        self.only_new = only_new

    @property
    def core(self) -> Any:
        """Our value; for a group, its element."""
        return self.value if self.inner is None else self.value[self.inner][0]

    def merged(self, found: Any) -> Any:
        """Return the value that replaces an existing one of ours; in a group, it replaces one element."""
        return self.merge(self.core, found)

    def refuse_foreign(self, found: Any, group: dict[str, Any] | None = None) -> None:
        """Refuse an existing value of ours, and the group around it, to which others added what may be harmful.

        Raises:
            Unfit: they did; the message shows every such key and its value.
        """
        added = self.foreign(self.core, found)
        if group is not None and self.inner is not None:
            added |= foreign.of_group(group, self.inner)
        if added:
            what = f"the entry {self.key!r}" if self.key is not None else f"the {self.path[-1]} hook of `atb`"
            raise Unfit(
                f"has keys in {what} that `atb` did not write: {foreign.in_words(added)}",
                hint="Look at them: they may run something else. Remove them, or the entry with --remove; then repeat.",
                foreign=json.loads(json.dumps(added, default=str)),
            )

    def put_notes(self, found: Any) -> Iterator[str]:
        """Yield warnings about a change of others that ``merged`` overwrites."""
        before, after = self.agent(found), self.agent(self.value)
        if before is not None and before != after:
            now = "each session has its own name" if after is None else f"it now names {after!r}"
            yield f"the entry named the agent {before!r}; {now} (set it with --agent NAME)"

    def take_notes(self, found: Any) -> Iterator[str]:
        """Yield warnings about additions of others that are removed with our entry."""
        if self.key is not None:
            merged = self.merged(found)
            added = [key for key in merged if key not in self.value or not same(merged[key], self.value[key])]
            if added:
                yield f"removed keys that others added to the entry: {', '.join(added)}"


class JsonEntries:
    """Our entries in one JSON file."""

    def __init__(self, path: str, root: str, entries: Sequence[Entry]) -> None:
        self.path = path
        self.root = root
        self.within: str | None = root
        self.entries = entries
        self.notes: list[str] = []

    def own(self) -> str:
        """Return a file that has only the entries."""
        return _document((entry, entry.value) for entry in self.entries)

    def part(self, text: str) -> str:
        """Return a file that has only what ``take`` removes."""
        is_whole = self.take(text) is None
        _, text = _split(text)
        found: list[tuple[Entry, Any]] = []
        for entry in self.entries:
            values = [_item(way).value for way in _ours(text, entry)]
            found += [(entry, value if entry.inner is None else {entry.inner: [value]}) for value in values]
            if entry.only_new and is_whole:
                found.append((entry, entry.value))
        return _document(found)

    def put(self, text: str | None) -> str:
        """Return the file with the entries; an existing one that differs is replaced."""
        self.notes = []
        if text is None:
            return self.own()
        mark, text = _split(text)
        if not text.strip(_BLANK):
            return mark + text + self.own().rstrip("\n") + _WAS_BLANK
        _check(text)
        for entry in self.entries:
            if not entry.only_new:
                text = _put(text, entry, self.notes)
        return mark + text

    def take(self, text: str) -> str | None:
        """Return the file without our entries; ``None`` if nothing is left and we created the file."""
        self.notes = []
        whole, (mark, text) = text, _split(text)
        if not text.strip(_BLANK):
            return whole
        blank = text[: _skip(text, 0)] if text.endswith(_WAS_BLANK) else None
        _check(text)
        ours_only = {entry.key: entry.value for entry in self.entries if entry.only_new}
        first = next(iter(_Container(text).items), None)
        left: str | None = text
        for entry in reversed(self.entries):
            if not entry.only_new and left is not None:
                left = _take(left, entry, self.notes)
        if left is not None:
            rest = {item.key: item.value for item in _Container(left).items}
            if left == text or not rest or rest != ours_only or first is None or first.key in ours_only:
                return mark + left
            # The remaining entry is ours only if it comes after the others: in a file of others, ours come last.
        return None if blank is None else mark + blank


def _document(entries: Iterable[tuple[Entry, Any]]) -> str:
    document: dict[str, Any] = {}
    for entry, value in entries:
        at = document
        names = entry.path if entry.key is None else (*entry.path, entry.key)
        for name in names[:-1]:
            at = at.setdefault(name, {})
        if entry.key is None:
            at.setdefault(names[-1], []).append(value)
        else:
            at[names[-1]] = value
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _split(text: str) -> tuple[str, str]:
    return (_BOM, text[1:]) if text.startswith(_BOM) else ("", text)


def _check(text: str) -> None:
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise Unfit(f"is not strict JSON; check for comments and trailing commas ({error})") from None
    if not isinstance(value, dict):
        raise Unfit("is not a JSON object")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"not JSON: {name}")


class _Item:
    """A member or element: its start, its key, and the start, end and content of its value."""

    __slots__ = ("end", "key", "start", "value", "value_start")

    def __init__(self, start: int, key: str | None, value_start: int, end: int, value: Any) -> None:
        self.start = start
        self.key = key
        self.value_start = value_start
        self.end = end
        self.value = value


class _Container:
    """An object or array in a text that is valid JSON."""

    __slots__ = ("items", "open")

    def __init__(self, text: str, at: int = 0) -> None:
        self.open = at = _skip(text, at)
        kind = text[at]
        self.items: list[_Item] = []
        at = _skip(text, at + 1)
        while text[at] != _CLOSING[kind]:
            start, key = at, None
            if kind == "{":
                key, at = _DECODER.raw_decode(text, at)
                at = _skip(text, _skip(text, at) + 1)
            value, end = _DECODER.raw_decode(text, at)
            self.items.append(_Item(start, key, at, end, value))
            at = _skip(text, end)
            if text[at] == ",":
                at = _skip(text, at + 1)


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return at if found is None else found.end()


class _Step:
    """A container, and its place among the items of the previous container."""

    __slots__ = ("container", "place")

    def __init__(self, container: _Container, place: int) -> None:
        self.container = container
        self.place = place


def _way(text: str, entry: Entry) -> list[_Step]:
    """Return the containers from the root to the one of an entry, as far as they exist."""
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


def _item(way: list[_Step]) -> _Item:
    """Return the item at the end of a complete way."""
    return way[-2].container.items[way[-1].place]


def _ways(text: str, entry: Entry) -> list[list[_Step]]:
    """Return the way to each item that could be the entry: the member with its key, or every element."""
    steps = _way(text, entry)
    if len(steps) <= len(entry.path):
        return []
    ways = []
    for place, item in enumerate(steps[-1].container.items):
        if entry.inner is None:
            if entry.key is None or item.key == entry.key:
                ways.append([*steps, _Step(steps[-1].container, place)])
        elif isinstance(item.value, dict) and isinstance(item.value.get(entry.inner), list):
            group = _Container(text, item.value_start)
            places = [at for at, member in enumerate(group.items) if member.key == entry.inner]
            array = _Container(text, group.items[places[-1]].value_start)
            to_array = [*steps, _Step(group, place), _Step(array, places[-1])]
            ways += [[*to_array, _Step(array, at)] for at in range(len(array.items))]
    return ways


def _ours(text: str, entry: Entry) -> list[list[_Step]]:
    return [way for way in _ways(text, entry) if entry.is_ours(_item(way).value)]


def _put(text: str, entry: Entry, notes: list[str]) -> str:
    steps = _way(text, entry)
    container = steps[-1].container
    missing = entry.path[len(steps) - 1 :]
    if missing:
        value: Any = [entry.value] if entry.key is None else {entry.key: entry.value}
        for name in reversed(missing[1:]):
            value = {name: value}
        return _insert(text, container, len(steps), missing[0], value)
    there, ours = _ways(text, entry), _ours(text, entry)
    if entry.key is not None and len(there) > 1:
        raise Unfit(f"has {entry.key!r} twice in one object")
    if entry.key is not None and len(there) > len(ours):
        raise Unfit(f"has a {entry.key!r} that `atb` did not write")
    like = [_item(way).value for way in there if entry.is_like(_item(way).value)]
    if like:
        raise Unfit(
            f"has a {entry.path[-1]} hook that runs `atb` in a command that `atb` did not write: "
            f"{foreign.in_words(like[0])}",
            hint="Look at it: it may run something else. Remove it; then repeat.",
            foreign=like[0],
        )
    for way in ours:
        item = _item(way)
        _refuse_doubled(text[item.value_start : item.end])
        entry.refuse_foreign(item.value, way[-4].container.items[way[-3].place].value if entry.inner else None)
    if not ours:
        return _insert(text, container, len(steps), entry.key, entry.value)
    if len(ours) > 1:
        raise Unfit(
            f"has {len(ours)} {entry.path[-1]} hooks that run `atb`",
            hint="Look at them: they may run something else. Remove all but one, or all with --remove; then repeat.",
        )
    if same(_item(ours[0]).value, entry.merged(_item(ours[0]).value)):
        return text
    item = _item(ours[0])
    notes.extend(entry.put_notes(item.value))
    base = _indentation_of(text, item.start)
    base = _unit(text) * (len(ours[0]) - 1) if base is None else base
    return text[: item.value_start] + _written(text, entry.merged(item.value), base) + text[item.end :]


def _refuse_doubled(text: str) -> None:
    """Refuse an entry in which a key occurs twice: which of the two counts, differs from client to client."""

    def check(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise Unfit("has a key twice in our entry", hint="Remove the entry; then repeat.")
        return found

    json.loads(text, object_pairs_hook=check)


def _take(text: str, entry: Entry, notes: list[str]) -> str | None:
    there = [_item(way).value for way in _ways(text, entry)]
    if any(entry.is_like(value) for value in there):
        notes.append(f"a {entry.path[-1]} hook that runs `atb` was changed by others; it is kept")
    left: str | None = text
    while left is not None:
        ours = _ours(left, entry)
        if not ours:
            return left
        way = ours[-1]
        notes.extend(entry.take_notes(_item(way).value))
        if entry.inner is not None and len(way[-2].container.items) == 1:
            way = way[:-2]  # remove the whole group: our element is its only one
        left = _cut(left, way)
    return None


def _insert(text: str, container: _Container, depth: int, key: str | None, value: Any) -> str:
    """Add an item at the end of a container; ``depth`` is the nesting depth of its items."""
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
    """Remove an item and the containers that were created for it; ``None``: also the root."""
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
    """Return a value as JSON, in the style of a text, on a line that is indented by ``base``."""
    lines = json.dumps(value, indent=_unit(text), ensure_ascii=False).split("\n")
    return f"{_line_end(text)}{base}".join(lines)


def _unit(text: str) -> str:
    """Return the indentation of one level: that of the first member of the root."""
    items = _Container(text).items
    return (items and _indentation_of(text, items[0].start)) or "  "


def _indentation_of(text: str, start: int) -> str | None:
    """Return the white space before a position, if nothing else precedes it on its line."""
    before = text[text.rfind("\n", 0, start) + 1 : start]
    return before if "\n" in text[:start] and not before.strip() else None


def _line_end(text: str) -> str:
    return "\r\n" if re.match(r"[^\n]*\r\n", text) else "\n"
