"""Read a JSON document of any size, one element of its arrays at a time, in bounded memory.

Each element is read as strictly as ``inputs`` reads a small text. What lies around the elements is read here: the
arrays, the object that holds them, and the envelope around that object.
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
        """What bytes are read from."""

        def read(self, size: int, /) -> bytes:
            """Return at most so many bytes; none at the end."""
            ...

    Piece = tuple[str, int | None, Any]
    """An element of an array: the array's name, its place, its value. Without a place: a whole member."""


CHUNK = 65_536
ELEMENT = 32 * 1_048_576
"""Characters of one element, at most; a task whose every field is as long as it may be has fewer."""

_PLAIN = re.compile(r'[^"\[\]{}]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^"\[\]{}]*+)*+', re.DOTALL)
"""Everything up to the next bracket outside of a text, or to a text that has no end yet."""
_TEXT = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_WORD = re.compile(r"[^\s,:\[\]{}\"]++")
_SURROGATE = re.compile(r"\\u[dD]")
_SPACE = re.compile(r"[ \t\r\n]*+")
_DONE = "the file ends in the middle"


def read(file: Binary, arrays: Collection[str], *, bare: str) -> Iterator[Piece]:
    """Yield the elements of the arrays named, in the order of the file, and every other member of the object whole.

    An array yields itself first, as a member with an empty list. A document that is an array is the one called
    ``bare``; an envelope is looked into, whose ``data`` may be either.

    Raises:
        InvalidInput: no JSON, not UTF-8, the same key twice, or an element longer than ``ELEMENT``.
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
            _refuse("the file holds neither an array nor an object")
    if source.peek():
        _refuse("there is more in the file behind the end of the document")


def walk(document: Any, arrays: Collection[str], *, bare: str) -> Iterator[Piece]:
    """Yield of a document that was read already what ``read`` yields of a file."""
    if isinstance(document, dict) and "data" in document and isinstance(document["data"], (dict, list)):
        yield from _walk({key: value for key, value in document.items() if key != "data"}, arrays)
        document = document["data"]
    if isinstance(document, list):
        document = {bare: document}
    if not isinstance(document, dict):
        _refuse("this is neither an array nor an object")
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
            _refuse(f"the key {name[:60]!r} is there twice in one object")
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


class _Odd(Exception):
    """A value that the strict reader may refuse."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _Odd
    return found


def _whole(digits: str) -> int:
    if len(digits) > 18:
        raise _Odd
    return int(digits)


def _finite(digits: str) -> float:
    number = float(digits)
    if number * 0 != 0:
        raise _Odd
    return number


def _constant(_: str) -> Any:
    raise _Odd


_QUICK = json.JSONDecoder(object_pairs_hook=_once, parse_int=_whole, parse_float=_finite, parse_constant=_constant)
"""Reads what is beyond doubt in a fraction of the time that the strict reader takes; all else is left to that."""


class _Source:
    """A file and how far it was read; what lies behind is forgotten."""

    def __init__(self, file: Binary) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._bytes = 0
        self._text = ""
        self._at = 0
        self._line = 1
        self._ended = False

    def peek(self) -> str:
        """Return the next character that is no space; nothing at the end of the file."""
        while True:
            end = _SPACE.match(self._text, self._at).end()  # type: ignore[union-attr]
            self._pass(end)
            if end < len(self._text):
                return self._text[end]
            if not self._read_on():
                return ""

    def skip(self, expected: str) -> None:
        """Go on behind a character that must come next."""
        if self.peek() != expected:
            self.unexpected(repr(expected))
        self._at += 1

    def unexpected(self, wanted: str) -> NoReturn:
        """Refuse what comes next."""
        found = self.peek()
        _refuse(f"line {self._line:,}: {wanted} should come here, not {found!r}" if found else _DONE)

    def value(self, field: str) -> Any:
        """Read a value of any kind, as strictly as a text of its own."""
        return inputs.parse_json(self._next(field), field)

    def element(self, place: str) -> Any:
        """Read an element of an array; a refusal names its place, and its field where it is about one."""
        if self.peek() == "{":
            try:
                value, end = _QUICK.raw_decode(self._text, self._at)
            except (_Odd, ValueError, RecursionError):  # also where its end was not read yet
                pass
            else:
                brackets = self._text.count("{", self._at, end) + self._text.count("[", self._at, end)
                if brackets <= inputs.JSON_DEPTH and not _SURROGATE.search(self._text, self._at, end):
                    self._pass(end)
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
            end = self._end_of((_TEXT if start == '"' else _WORD), place, line)
        text = self._text[self._at : end]
        self._pass(end)
        return text

    def _end_of(self, pattern: re.Pattern[str], place: str, line: int) -> int:
        """Return where a text, a number or a word ends; what comes behind it must be there, or the file ends."""
        while True:
            found = pattern.match(self._text, self._at)
            if found and found.end() < len(self._text):
                return found.end()
            self._refuse_too_long(place)
            if not self._read_on():
                if found:
                    return found.end()
                _refuse(f"{place}: {_DONE}" if self._at == len(self._text) else f"{place}: no JSON in line {line:,}")
            if found is None and self._text[self._at] != '"':
                _refuse(f"{place}: no JSON in line {line:,}")

    def _end_of_brackets(self, place: str) -> int:
        """Return where an array or an object ends; whether its brackets match is seen when it is read."""
        depth, at = 0, self._at
        while True:
            at = _PLAIN.match(self._text, at).end()  # type: ignore[union-attr]
            while at == len(self._text) or self._text[at] == '"':
                self._refuse_too_long(place)
                so_far = at - self._at
                if not self._read_on():
                    _refuse(f"{place}: {_DONE}")
                at = _PLAIN.match(self._text, self._at + so_far).end()  # type: ignore[union-attr]
            depth += 1 if self._text[at] in "{[" else -1
            at += 1
            if depth == 0:
                return at

    def _refuse_too_long(self, place: str) -> None:
        if len(self._text) - self._at > ELEMENT:
            _refuse(f"{place}: more than {ELEMENT:,} characters")

    def _pass(self, end: int) -> None:
        self._line += self._text.count("\n", self._at, end)
        self._at = end

    def _read_on(self) -> bool:
        """Read more behind what is not passed yet, as much again at least; say whether there was more."""
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
