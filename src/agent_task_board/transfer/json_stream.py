"""Read a JSON document of any size, one element of its arrays at a time, in bounded memory.

Each element is parsed as strictly as ``inputs`` parses a small text. This module itself reads what is around the
elements: the arrays, the object that contains them, and the envelope around that object.
"""

from __future__ import annotations

import codecs
import json
import re

from .. import inputs
from ..errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from typing import Any, NoReturn, Protocol

    class Binary(Protocol):
        """A source of bytes."""

        def read(self, size: int, /) -> bytes:
            """Return at most ``size`` bytes; none at the end."""
            ...

    Piece = tuple[str, int | None, Any]
    """The name of an array, the index of an element, its value; or the name of a member, ``None``, its value."""


CHUNK = 65_536
"""Minimum number of bytes that are read at once."""
ELEMENT = 32 * 1_048_576
"""Maximum number of characters of one element; a task with all fields at their limits has fewer."""

_PLAIN = re.compile(r'[^"\[\]{}]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^"\[\]{}]*+)*+', re.DOTALL)
"""Everything up to the next bracket outside of a string, or up to a string whose end was not read yet."""
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_WORD = re.compile(r"[^\s,:\[\]{}\"]++")
_SURROGATE = re.compile(r"\\u[dD]")
_SPACE = re.compile(r"[ \t\r\n]*+")
_TRUNCATED = "the file ends inside a value"


def read(file: Binary, arrays: Collection[str], *, bare: str) -> Iterator[Piece]:
    """Yield the elements of the named arrays one by one, and all other members whole, in the order of the file.

    Before its elements, an array is yielded as a member with an empty list. A document that is an array is taken as the
    array ``bare``. The document may be inside an envelope, as ``data``.

    Raises:
        InvalidInput: not JSON, not UTF-8, a repeated key, or an element longer than ``ELEMENT``.
    """
    source = _Source(file)
    match source.peek():
        case "[":
            yield from _array(source, bare)
        case "{":
            yield from _object(source, arrays, bare, is_outermost=True)
        case "":
            _refuse("the file is empty")
        case _:
            source.value("file")
            _refuse("must be an array or an object")
    if source.peek():
        _refuse("extra data after the document")


def walk(document: Any, arrays: Collection[str], *, bare: str) -> Iterator[Piece]:
    """Yield the same as ``read``, from a document that was already parsed."""
    if isinstance(document, dict) and "data" in document and isinstance(document["data"], (dict, list)):
        yield from _walk({key: value for key, value in document.items() if key != "data"}, arrays)
        document = document["data"]
    if isinstance(document, list):
        document = {bare: document}
    if not isinstance(document, dict):
        _refuse("must be an array or an object")
    yield from _walk(document, arrays)


def _walk(members: dict[str, Any], arrays: Collection[str]) -> Iterator[Piece]:
    for name, value in members.items():
        if name in arrays and isinstance(value, list):
            yield name, None, []
            for place, element in enumerate(value):
                yield name, place, element
        else:
            yield name, None, value


def _object(source: _Source, arrays: Collection[str], bare: str, *, is_outermost: bool) -> Iterator[Piece]:
    seen: set[str] = set()
    source.skip("{")
    if source.peek() == "}":
        source.skip("}")
        return
    while True:
        if source.peek() != '"':
            source.unexpected("a key")
        name = source.value("file")
        if name in seen:
            _refuse(f"repeated key: {name[:60]!r}")
        seen.add(name)
        source.skip(":")
        start = source.peek()
        if name in arrays and start == "[":
            yield from _array(source, name)
        elif name == "data" and is_outermost and start == "[":
            yield from _array(source, bare)
        elif name == "data" and is_outermost and start == "{":
            yield from _object(source, arrays, bare, is_outermost=False)
        else:
            yield name, None, source.value(name[:60])
        if source.peek() == "}":
            source.skip("}")
            return
        source.skip(",")


def _array(source: _Source, name: str) -> Iterator[Piece]:
    yield name, None, []
    source.skip("[")
    if source.peek() == "]":
        source.skip("]")
        return
    place = 0
    while True:
        yield name, place, source.element(f"{name}[{place}]")
        place += 1
        if source.peek() == "]":
            source.skip("]")
            return
        source.skip(",")


class _NotObvious(Exception):
    """The fast reader leaves this value to the strict one."""


def _short_integer(digits: str) -> int:
    if len(digits) > 18:
        raise _NotObvious
    return int(digits)


def _finite_number(digits: str) -> float:
    number = float(digits)
    if number * 0 != 0:
        raise _NotObvious
    return number


def _refuse_constant(_: str) -> Any:
    raise _NotObvious


_FAST = json.JSONDecoder(
    object_pairs_hook=inputs.json_object,
    parse_int=_short_integer,
    parse_float=_finite_number,
    parse_constant=_refuse_constant,
)
"""Reads obviously valid values in a fraction of the strict reader's time, and raises an error for all others."""


class _Source:
    """A file and the position in it; text before the position is dropped."""

    def __init__(self, file: Binary) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._bytes = 0
        self._text = ""
        self._at = 0
        self._line = 1
        self._ended = False

    def peek(self) -> str:
        """Return the next character that is not white space; an empty string at the end of the file."""
        while True:
            end = _SPACE.match(self._text, self._at).end()  # type: ignore[union-attr]
            self._advance(end)
            if end < len(self._text):
                return self._text[end]
            if not self._read_more():
                return ""

    def skip(self, expected: str) -> None:
        """Skip a character that must come next."""
        if self.peek() != expected:
            self.unexpected(repr(expected))
        self._at += 1

    def unexpected(self, expected: str) -> NoReturn:
        """Refuse the next character."""
        found = self.peek()
        _refuse(f"line {self._line:,}: expected {expected}, found {found!r}" if found else _TRUNCATED)

    def value(self, field: str) -> Any:
        """Parse the next value, as strictly as a document of its own."""
        return inputs.parse_json(self._next(field), field)

    def element(self, place: str) -> Any:
        """Parse the next element of an array; a refusal names its place, and the field if there is one."""
        if self.peek() == "{":
            try:
                value, end = _FAST.raw_decode(self._text, self._at)
            except (_NotObvious, ValueError, RecursionError):  # also if its end was not read yet
                pass
            else:
                brackets = self._text.count("{", self._at, end) + self._text.count("[", self._at, end)
                if brackets <= inputs.JSON_DEPTH and not _SURROGATE.search(self._text, self._at, end):
                    self._advance(end)
                    return value
        text = self._next(place)
        try:
            return inputs.parse_object(text, place) if text.startswith("{") else inputs.parse_json(text, place)
        except InvalidInput as error:
            field = error.details["field"]
            if field == place:
                raise InvalidInput(error.message, hint=error.hint, place=place, field=None) from None
            raise InvalidInput(f"{place}: {error.message}", hint=error.hint, place=place, field=field) from None

    def _next(self, place: str) -> str:
        """Return the text of the next value."""
        start = self.peek()
        line = self._line
        if start in ("{", "["):
            end = self._end_of_brackets(place)
        else:
            end = self._end_of((_STRING if start == '"' else _WORD), place, line)
        text = self._text[self._at : end]
        self._advance(end)
        return text

    def _end_of(self, pattern: re.Pattern[str], place: str, line: int) -> int:
        """Return the end of a string, a number or a word, once the character after it was read, or the file ends."""
        while True:
            found = pattern.match(self._text, self._at)
            if found and found.end() < len(self._text):
                return found.end()
            self._refuse_too_long(place)
            if not self._read_more():
                if found:
                    return found.end()
                _refuse(
                    f"{place}: {_TRUNCATED}" if self._at == len(self._text) else f"{place}: not JSON in line {line:,}"
                )
            if found is None and self._text[self._at] != '"':
                _refuse(f"{place}: not JSON in line {line:,}")

    def _end_of_brackets(self, place: str) -> int:
        """Return the end of an array or an object; its parser checks whether the brackets match."""
        depth, at = 0, self._at
        while True:
            at = _PLAIN.match(self._text, at).end()  # type: ignore[union-attr]
            while at == len(self._text) or self._text[at] == '"':
                self._refuse_too_long(place)
                so_far = at - self._at
                if not self._read_more():
                    _refuse(f"{place}: {_TRUNCATED}")
                at = _PLAIN.match(self._text, self._at + so_far).end()  # type: ignore[union-attr]
            depth += 1 if self._text[at] in "{[" else -1
            at += 1
            if depth == 0:
                return at

    def _refuse_too_long(self, place: str) -> None:
        if len(self._text) - self._at > ELEMENT:
            _refuse(f"{place}: too long (limit {ELEMENT:,} characters)")

    def _advance(self, end: int) -> None:
        self._line += self._text.count("\n", self._at, end)
        self._at = end

    def _read_more(self) -> bool:
        """Read at least as much as is not passed yet; return whether there was more text."""
        if self._ended:
            return False
        left = self._text[self._at :]
        while True:
            chunk = self._file.read(max(CHUNK, len(left)))
            pending = len(self._decoder.getstate()[0])
            try:
                text = self._decoder.decode(chunk, final=not chunk)
            except UnicodeDecodeError as error:
                _refuse(f"not UTF-8 at byte {self._bytes - pending + error.start:,}")
            self._bytes += len(chunk)
            self._ended = not chunk
            if text or self._ended:
                break
        self._text, self._at = left + text, 0
        return bool(text)


def _refuse(what: str) -> NoReturn:
    raise InvalidInput(f"file: {what}", field="file")
