"""Text of ours: a block between two marks in a file of somebody else, or a file that is wholly ours.

A block and the line breaks that go with it are one stretch of the file. Whether a file ended in a line break before is
told by whether one follows the block.
"""

from __future__ import annotations

import hashlib
import re
import tomllib

from .files import Kept, Unfit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

MARKDOWN = ("<!-- >>> agent-task-board >>> -->", "<!-- <<< agent-task-board <<< -->")
TOML = ("# >>> agent-task-board >>>", "# <<< agent-task-board <<<")
SIGNATURE = "<!-- agent-task-board setup: {} -->\n"
"""The last line of a file that is wholly ours; the digest tells whether anybody edited what is above it."""

_SIGNED = re.compile(r"<!-- agent-task-board setup: ([0-9a-f]{16}) -->\n\Z")


class Block:
    """A marked block in a text file; ``body`` is without a line break at its end."""

    def __init__(self, path: str, root: str, marks: tuple[str, str], body: str) -> None:
        self.path = path
        self.root = root
        self.marks = marks
        self.body = body

    def own(self) -> str:
        """Return a file that holds nothing but the block."""
        return self._block("\n") + "\n"

    def put(self, text: str | None) -> str:
        """Return the file with the block, at its end if there was none."""
        if text is None:
            return self.own()
        found = self._find(text)
        if found is not None:
            nl = "\r\n" if "\r\n" in text[slice(*found)] else "\n"
            return text[: found[0]] + self._block(nl) + text[found[1] :]
        nl = "\r\n" if re.match(r"[^\n]*\r\n", text) else "\n"
        block = self._block(nl)
        if not text:
            return block
        return f"{text}{nl}{block}{nl if text.endswith(chr(10)) else ''}"

    def take(self, text: str) -> str | None:
        """Return the file without the block; ``None`` if that was all, and we had made the file."""
        found = self._find(text)
        if found is None:
            return text
        before, after = text[: found[0]], text[found[1] :]
        nl = "\r\n" if "\r\n" in text[slice(*found)] else "\n"
        if not before and after == nl:
            return None
        if after.startswith(nl):
            rest = after[len(nl) :]
            # The break before the block is ours if it makes an empty line; else it ends a line of somebody else.
            shorter = before.removesuffix(nl)
            return (shorter if shorter.endswith("\n") else before) + rest
        return before.removesuffix(nl) + after

    def _block(self, nl: str) -> str:
        return nl.join([self.marks[0], *self.body.split("\n"), self.marks[1]])

    def _find(self, text: str) -> tuple[int, int] | None:
        """Return where the block begins and ends."""
        first, last = ([at.span() for at in re.finditer(rf"^{re.escape(m)}(?=\r?$)", text, re.M)] for m in self.marks)
        if not first and not last:
            return None
        if len(first) != 1 or len(last) != 1 or first[0] > last[0]:
            raise Unfit(f"does not have the marks {self.marks[0]!r} and {self.marks[1]!r} once each, in this order")
        return first[0][0], last[0][1]


class TomlBlock(Block):
    """A block of tables in a TOML file: the keys of ``table``, and nothing else of the file changes its meaning."""

    def __init__(self, path: str, root: str, table: tuple[str, str], body: str) -> None:
        super().__init__(path, root, TOML, body)
        self.table = table

    def put(self, text: str | None) -> str:
        """Return the file with the block, once it is sure that it adds what it should."""
        bare = "" if text is None else self._without(text)
        wanted = _parsed(bare)
        outer, name = self.table
        tables = wanted.setdefault(outer, {})
        if not isinstance(tables, dict):
            raise Unfit(f"has a {outer!r} that is not a table")
        if name in tables:
            raise Unfit(f"has a table [{outer}.{name}] that stands outside of our block")
        tables[name] = tomllib.loads(self.body)[outer][name]
        found = super().put(text)
        if repr(_parsed(found, "would not be valid TOML with our block")) != repr(wanted):  # nan is not equal to nan
            raise Unfit("would change its meaning with our block, perhaps since keys follow it")
        return found

    def take(self, text: str) -> str | None:
        """Return the file without the block, if it is still valid TOML then."""
        _parsed(text)
        found = super().take(text)
        if found is not None:
            _parsed(found, "would not be valid TOML without our block")
        return found

    def _without(self, text: str) -> str:
        left = super().take(text)
        return "" if left is None else left


def _parsed(text: str, else_say: str = "is not valid TOML") -> dict[str, Any]:
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:
        raise Unfit(f"{else_say} ({error})") from None


class OwnFile:
    """A file that is wholly ours, signed, so that an edited one is told from one of another version."""

    def __init__(self, path: str, root: str, text: str) -> None:
        self.path = path
        self.root = root
        self.text = text

    def own(self) -> str:
        """Return the file."""
        return self.text + SIGNATURE.format(_digest(self.text))

    def put(self, text: str | None) -> str:
        """Return the file; an edited one is left as it is."""
        if text is not None:
            self._look(text, lambda: Unfit("is there already, and somebody else wrote it"))
            if text.replace("\r\n", "\n") == self.own():
                return text
        return self.own()

    def take(self, text: str) -> str | None:
        """Return ``None``, since all of it goes; an edited one is left as it is."""
        self._look(text, lambda: Kept("somebody else wrote it, so it stays"))
        return None

    @staticmethod
    def _look(text: str, foreign: Callable[[], Exception]) -> None:
        plain = text.replace("\r\n", "\n")
        signed = _SIGNED.search(plain)
        if signed is None:
            raise foreign()
        if signed[1] != _digest(plain[: signed.start()]):
            raise Kept("it was edited, so it stays as it is")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]
