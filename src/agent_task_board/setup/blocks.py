"""Our text: a block between two marker lines in a file that is not ours, or a file that is entirely ours.

The block and the line breaks around it are one contiguous part of the file. If a line break follows the block, the file
ended in a line break before the block was added.
"""

from __future__ import annotations

import hashlib
import re
import tomllib

from .files import Kept, Unfit
from .json_entries import same

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from .json_entries import Entry

MARKDOWN = ("<!-- >>> agent-task-board >>> -->", "<!-- <<< agent-task-board <<< -->")
TOML = ("# >>> agent-task-board >>>", "# <<< agent-task-board <<<")
SIGNATURE = "<!-- agent-task-board setup: {} -->\n"
"""The last line of our text; the digest shows whether the text above it was edited."""

_ABOUT = "# Written by `atb setup codex`; add --remove to remove it."
_CLIENT = re.compile(r"`atb setup ([a-z-]+)`")
_HEAD = re.compile(r"[ \t]*\[.*\][ \t]*(?=(#.*)?\r?\n)")
_SIGNED = re.compile(r"<!-- agent-task-board setup: ([0-9a-f]{16}) -->\n\Z")


class Block:
    """A marked block in a text file; ``body`` has no line break at its end.

    It is signed, like a file of ours, so that edits in it are not lost.
    """

    def __init__(self, path: str, root: str, marks: tuple[str, str], body: str) -> None:
        self.path = path
        self.root = root
        self.within: str | None = root
        self.marks = marks
        self.body = _signed(body)
        self.notes: list[str] = []

    def own(self) -> str:
        """Return a file that has only the block."""
        return self._block("\n") + "\n"

    def part(self, text: str) -> str:
        """Return the existing block."""
        return text[slice(*self._find(text) or (0, 0))] + "\n"

    def put(self, text: str | None) -> str:
        """Return the file with the block, at its end if it is new; raise ``Kept`` if the block was edited."""
        if text is None:
            return self.own()
        self._check_unedited(text)
        return self._put(text)

    def take(self, text: str) -> str | None:
        """Return the file without the block; ``None`` if nothing is left and we created the file."""
        self._check_unedited(text)
        return self._take(text)

    def _put(self, text: str) -> str:
        found = self._find(text)
        if found is not None:
            nl = "\r\n" if "\r\n" in text[slice(*found)] else "\n"
            return text[: found[0]] + self._block(nl) + text[found[1] :]
        nl = "\r\n" if re.match(r"[^\n]*\r\n", text) else "\n"
        block = self._block(nl)
        if not text:
            return block
        return f"{text}{nl}{block}{nl if text.endswith(chr(10)) else ''}"

    def _take(self, text: str) -> str | None:
        found = self._find(text)
        if found is None:
            return text
        before, after = text[: found[0]], text[found[1] :]
        nl = "\r\n" if "\r\n" in text[slice(*found)] else "\n"
        if not before and after == nl:
            return None
        if after.startswith(nl):
            rest = after[len(nl) :]
            # The line break before the block is ours if it makes an empty line; otherwise it ends a line of the file.
            shorter = before.removesuffix(nl)
            return (shorter if shorter.endswith("\n") else before) + rest
        return before.removesuffix(nl) + after

    def _check_unedited(self, text: str) -> None:
        found = self._find(text)
        if found is not None:
            inside = text[slice(*found)].replace("\r\n", "\n").removeprefix(self.marks[0] + "\n")
            _refuse_edited(inside.removesuffix(self.marks[1]), Kept("our block was edited and is kept"))

    def _block(self, nl: str) -> str:
        return nl.join([self.marks[0], *self.body.split("\n"), self.marks[1]])

    def _find(self, text: str) -> tuple[int, int] | None:
        """Return the start and end of the block."""
        first, last = ([at.span() for at in re.finditer(rf"^{re.escape(m)}(?=\r?$)", text, re.M)] for m in self.marks)
        if not first and not last:
            return None
        if len(first) != 1 or len(last) != 1 or first[0] > last[0]:
            raise Unfit(f"must have the markers {self.marks[0]!r} and {self.marks[1]!r} once each, in this order")
        return first[0][0], last[0][1]


class Guide(Block):
    """The guide for agents in a Markdown file that several clients read; the first line of the block names those.

    Each client adds and removes its own name, and the block goes with the last one.
    """

    def __init__(self, path: str, root: str, client: str, guide: str) -> None:
        super().__init__(path, root, MARKDOWN, _written_for([client]) + guide)
        self.client = client
        self.guide = guide

    def put(self, text: str | None) -> str:
        """Return the file with the block, which names this client beside the others."""
        found = set() if text is None else self._clients(text)
        self.body = _signed(_written_for({*found, self.client}) + self.guide)
        return super().put(text)

    def take(self, text: str) -> str | None:
        """Return the file without this client's name in the block, or without the block if it was the only one."""
        self._check_unedited(text)
        found = self._clients(text)
        others = found - {self.client}
        if not others:
            return self._take(text)
        if others == found:
            return text
        inside = text[slice(*self._find(text) or (0, 0))].replace("\r\n", "\n").split("\n")
        guide = "\n".join(inside[1:-2]).partition("\n\n")[2]
        self.body = _signed(_written_for(others) + guide)
        self.notes.append(f"the guide is kept for {' and '.join(sorted(others))}")
        return self._put(text)

    def _clients(self, text: str) -> set[str]:
        found = self._find(text)
        return set() if found is None else set(_CLIENT.findall("".join(text[slice(*found)].splitlines()[1:2])))


class TomlBlock(Block):
    """A block in a TOML file with one entry, as tables; the rest of the file keeps its meaning.

    To a program that rewrites the file, the end marker is a comment at the end of the file, and it may put its tables
    before the marker. Everything in the block that is not our entry is moved out of it.
    """

    def __init__(self, path: str, root: str, table: tuple[str, str], entry: Entry) -> None:
        self.table = table
        self.entry = entry
        self._lost: list[str] = []
        super().__init__(path, root, TOML, "")
        self.body = self._body(entry.value)

    def own(self) -> str:
        """Return a file that has only the block."""
        self.body = self._body(self.entry.value)
        return super().own()

    def part(self, text: str) -> str:
        """Return the existing block."""
        self.body = self._body(self._tidied(text)[1] or {})
        return self._block("\n") + "\n"

    def put(self, text: str | None) -> str:
        """Return the file with the block; check that it adds exactly our entry."""
        self.notes = []
        if text is None:
            return self.own()
        text, existing = self._tidied(text)
        wanted = _parsed(self._take(text) or "")
        outer, name = self.table
        tables = wanted.setdefault(outer, {})
        if not isinstance(tables, dict):
            raise Unfit(f"has a {outer!r} that is not a table")
        outside = tables.get(name, {})
        value = self.entry.value if existing is None else self.entry.merged(existing)
        if not isinstance(outside, dict) or not {"url", *value}.isdisjoint(outside):
            raise Unfit(f"has a table [{outer}.{name}] outside our block")
        self.entry.refuse_foreign({**outside, **(existing or {})})
        tables[name] = {**outside, **value}
        if existing is not None and same(existing, value):
            return text
        if existing is not None:
            self.notes.extend([*self.entry.put_notes(existing), *self._lost])
        self.body = self._body(value)
        found = self._put(text)
        if not same(_parsed(found, "would not be valid TOML with our block"), wanted):
            raise Unfit("would change its meaning with our block; check the keys that follow the block")
        return found

    def take(self, text: str) -> str | None:
        """Return the file without the block; check that the rest keeps its meaning."""
        self.notes = []
        text, existing = self._tidied(text)
        found = self._take(text)
        left = _parsed(found or "", "would not be valid TOML without our block")
        if existing is not None:
            self.notes.extend([*self.entry.take_notes(existing), *self._lost])
            if not same(self._others(left), self._others(_parsed(text))):
                raise Unfit("would change its meaning without our block; check the keys that follow the block")
        outer, name = self.table
        tables = left.get(outer)
        if isinstance(tables, dict) and name in tables:
            bare = isinstance(tables[name], dict) and {"command", "url"}.isdisjoint(tables[name])
            why = "; it has no command now, and Codex refuses the file until you remove it" if bare else ""
            self.notes.append(f"[{outer}.{name}] outside our block is kept{why}")
        return found

    def _body(self, value: dict[str, Any]) -> str:
        import tomli_w

        outer, name = self.table
        return f"{_ABOUT}\n{tomli_w.dumps({outer: {name: value}})}".rstrip("\n")

    def _others(self, document: dict[str, Any]) -> dict[str, Any]:
        outer, name = self.table
        tables = {key: value for key, value in document.get(outer, {}).items() if key != name}
        return {**document, outer: tables}

    def _tidied(self, text: str) -> tuple[str, dict[str, Any] | None]:
        """Return the file with only our entry in the block, and the existing entry, if any."""
        meaning, found = _parsed(text), self._find(text)
        if found is None:
            return text, None
        first, *lines, last = text[slice(*found)].splitlines(keepends=True)
        above, ours, below = self._sorted(text, found[0] + len(first), lines)
        outer, name = self.table
        existing = _parsed("".join(ours)).get(outer, {}).get(name)
        comments = [line.strip() for line in ours if line.lstrip().startswith("#") and line.strip() != _ABOUT]
        self._lost = [f"removed a comment in our block: {comment[:100]}" for comment in comments]
        if above or below:
            nl = "\r\n" if first.endswith("\r\n") else "\n"
            after = text[found[1] :].removeprefix(nl)
            text = "".join([text[: found[0]], *above, first, *ours, last, nl, *below, after])
            if not same(_parsed(text), meaning):
                raise Unfit("has other content in our block that cannot be moved out of it")
            self.notes.append("other content in our block was moved out of it")
        return text, existing

    def _sorted(self, text: str, at: int, lines: list[str]) -> tuple[list[str], list[str], list[str]]:
        """Return the lines of others before our table, our lines, and the lines of others after them.

        ``at`` is the position of the first line in the file. A comment belongs to the table that follows it. A line
        that looks like a table header may be part of a multi-line string or array: then the text before it is not valid
        TOML.
        """
        above: list[str] = []
        ours: list[str] = []
        below: list[str] = []
        outer, name = self.table
        into = above
        for line in lines:
            head = _HEAD.match(line)
            if head and _is_valid(text[:at]):
                into = ours if name in tomllib.loads(head[0]).get(outer, {}) else below
                if into is below:
                    below += _without_end(ours)
            into.append(line)
            at += len(line)
        end = _without_end(ours)
        (below if any(line.strip() for line in end) else ours).extend(end)
        if not any(line.strip() for line in above if line.strip() != _ABOUT):
            ours[:0], above = above, []
        elif any(line.strip() == _ABOUT for line in above):
            ours[:0], above = [f"{_ABOUT}{_end_of(lines[0])}"], [line for line in above if line.strip() != _ABOUT]
        return above, ours, below


def _without_end(lines: list[str]) -> list[str]:
    """Remove the comments and empty lines at the end of a list of lines, and return them."""
    start = len(lines)
    while start and (not lines[start - 1].strip() or lines[start - 1].lstrip().startswith("#")):
        start -= 1
    end = lines[start:]
    del lines[start:]
    return end


def _end_of(line: str) -> str:
    return line[len(line.rstrip("\r\n")) :]


def _is_valid(text: str) -> bool:
    try:
        tomllib.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        return False
    return True


def _parsed(text: str, refusal: str = "is not valid TOML") -> dict[str, Any]:
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:
        raise Unfit(f"{refusal} ({error})") from None


class OwnFile:
    """A file that is entirely ours. It is signed, to distinguish an edited file from one of another version."""

    def __init__(self, path: str, root: str, text: str) -> None:
        self.path = path
        self.root = root
        self.within: str | None = root
        self.text = text
        self.notes: list[str] = []

    def own(self) -> str:
        """Return the file."""
        return self.text + SIGNATURE.format(_digest(self.text))

    def part(self, text: str) -> str:
        """Return the existing file."""
        return text

    def put(self, text: str | None) -> str:
        """Return the file; raise ``Kept`` if it was edited."""
        if text is not None:
            _refuse_edited(text.replace("\r\n", "\n"), Unfit("exists, and `atb` did not write it"))
            if text.replace("\r\n", "\n") == self.own():
                return text
        return self.own()

    def take(self, text: str) -> str | None:
        """Return ``None``, because the whole file is removed; raise ``Kept`` if it was edited."""
        _refuse_edited(text.replace("\r\n", "\n"), Kept("`atb` did not write it, so it is kept"))
        return None


def _refuse_edited(text: str, foreign: Exception) -> None:
    """Raise ``Kept`` if our text was edited, and ``foreign`` if it has no signature of ours."""
    signed = _SIGNED.search(text)
    if signed is None:
        raise foreign
    if signed[1] != _digest(text[: signed.start()]):
        raise Kept("it was edited and is kept")


def _signed(body: str) -> str:
    return f"{body}\n{SIGNATURE.format(_digest(body + chr(10)))}".rstrip("\n")


def _written_for(clients: Iterable[str]) -> str:
    commands = " and ".join(f"`atb setup {client}`" for client in sorted(clients))
    return f"<!-- Written by {commands}; add --remove to remove it. -->\n\n"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]
