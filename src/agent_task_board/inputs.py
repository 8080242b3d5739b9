"""Check input: the limits of every field, and the one strict JSON reader.

Every function returns the value in its stored form, or raises ``InvalidInput`` with the field's name in the message and
in ``details.field``. Callers pass the field's name as their own callers know it.
"""

from __future__ import annotations

import json

from .errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

ULID = 26
"""Characters of a task id."""
TITLE = 500
BODY = 200_000
TEXT = 20_000
NAME = 100
KEY = 200
PATH = 4_096
TAG = 64
TAGS = 50
DEPENDENCIES = 1_000
ARTIFACTS = 1_000
QUEUES = 100
JSON_BYTES = 1_048_576
JSON_DEPTH = 100
VALUES = 20_000_000
PRIORITY = 1_000_000
MAX_ATTEMPTS = 1_000
BOARD = "system"
"""The actor of what the board does by itself, such as expiring a lease."""
NOBODY = "none"
"""The reserved name that means "no agent" wherever an assignee can be given."""
CALLER = "me"
"""The reserved name that means the caller wherever an agent is named."""
RESERVED = frozenset((NOBODY, CALLER, BOARD, "human"))
"""The names that nobody may have: a caller must not be taken for the board, for a person or for nobody."""

CLOSE = 0.85
"""The similarity of a misspelt name: ``update_task`` is no misspelt ``create_task``."""

BLANK = "\u2800"
"""The braille pattern without dots, a symbol that looks like a space."""

_INT64 = 2**63
_DIGITS = 18
"""Digits that always fit into 64 bits."""


def _refuse(field: str, what: str, hint: str | None = None) -> InvalidInput:
    return InvalidInput(f"{field}: {what}", hint=hint, field=field)


def text(value: object, field: str, limit: int, *, required: bool = False) -> str:
    """Return free text of at most ``limit`` characters; it may have line breaks, but no NUL."""
    if not isinstance(value, str):
        raise _refuse(field, f"must be text, not {_kind(value)}")
    if len(value) > limit:
        raise _refuse(field, f"too long: {len(value):,} characters (limit {limit:,})")
    if "\x00" in value:
        raise _refuse(field, "must not contain a NUL character")
    if not _is_unicode(value):
        raise _refuse(field, "not valid Unicode: it has a lone surrogate, or bytes that are not UTF-8")
    if required and not value.strip():
        raise _refuse(field, "must not be empty")
    return value


def line(value: object, field: str, limit: int) -> str:
    """Return one line of text; it is not empty and has no control characters."""
    checked = text(value, field, limit, required=True)
    if not checked.isprintable() and any(char < " " or "\x7f" <= char <= "\x9f" for char in checked):
        raise _refuse(field, "must not contain control characters or line breaks")
    return checked


def title(value: object, field: str) -> str:
    """Return a task's title without surrounding spaces; it has a visible character."""
    checked = line(value.strip() if isinstance(value, str) else value, field, TITLE)
    _require_visible(checked, field)
    return checked


def note(value: object) -> str | None:
    """Return the note of a verb; an empty text means no note."""
    return None if value is None or value == "" else text(value, "note", TEXT)


def name(value: object, field: str) -> str:
    """Return the name of an agent, actor or queue without surrounding spaces."""
    return line(value.strip() if isinstance(value, str) else value, field, NAME)


def visible(value: str, field: str) -> str:
    """Return a new name, tag or queue: nothing in it is invisible, and every space is a plain one.

    Boards of older versions may hold others: whatever finds or keeps a name that exists takes it as it is.
    """
    if not value.isascii():
        from unicodedata import category  # half a megabyte that plain names do not pay for

        from .characters import IS_IGNORABLE

        for char in value:
            kind = category(char)
            if kind == "Cf" or IS_IGNORABLE.match(char):
                raise _refuse(field, f"must not contain invisible characters (U+{ord(char):04X})")
            if kind in ("Zl", "Zp") or (kind == "Zs" and char != " ") or char == BLANK:
                raise _refuse(field, f"must not contain spaces other than the plain one (U+{ord(char):04X})")
        _require_visible(value, field)
    return value


def _require_visible(value: str, field: str) -> None:
    """Refuse a text in which there is nothing to see: only spaces, marks and characters that show nothing."""
    if value.isascii():
        return  # not empty and without control characters
    from unicodedata import category

    from .characters import IS_IGNORABLE

    if not any(category(char)[0] in "LNPS" and char != BLANK and not IS_IGNORABLE.match(char) for char in value):
        raise _refuse(field, "must have a visible character")


def name_key(name: str) -> str:
    """Return the form in which two names are compared: NFC and ``casefold()``."""
    if name.isascii():
        return name.casefold()
    from unicodedata import normalize

    return normalize("NFC", normalize("NFC", name).casefold())


def agent_name(value: object, field: str, *, old: bool = False) -> str:
    """Return an agent's name; the reserved names are nobody's.

    With ``old``, it may be one of an older board, where only ``none`` and ``me`` were reserved for agents.
    """
    checked = name(value, field)
    word = _reserved(checked)
    if word == NOBODY:
        raise _refuse(field, f'"{NOBODY}" is reserved: it means no agent')
    if word == CALLER:
        raise _refuse(field, f'"{CALLER}" is reserved: it means the caller')
    if old:
        return checked
    if word is not None:
        raise _refuse(field, f'"{word}" is reserved: it is a kind of actor')
    return visible(checked, field)


def actor_name(value: object, field: str) -> str:
    """Return an actor's name; the reserved names are nobody's."""
    checked = visible(name(value, field), field)
    word = _reserved(checked)
    if word is not None:
        raise _refuse(field, f'"{word}" is reserved')
    return checked


def _reserved(name: str) -> str | None:
    """Return the reserved name that a name is, also in other letters for the same, such as fullwidth ones."""
    key = name.casefold()
    if not name.isascii():
        from unicodedata import normalize

        key = normalize("NFKC", key).casefold()
    return key if key in RESERVED else None


def assignee(value: object, field: str, *, old: bool = False) -> str | None:
    """Return an agent's name, or ``None`` if the value is ``None``, empty or ``none``."""
    if value is None or value == "" or (isinstance(value, str) and value.strip().casefold() == NOBODY):
        return None
    return agent_name(value, field, old=old)


def queue_name(value: object, field: str) -> str:
    """Return the name of a queue that a task is put into."""
    return visible(name(value, field), field)


def tags(values: object, field: str = "tags") -> list[str]:
    """Return tags in the given order, without duplicates."""
    return _each_once(values, field, TAGS, lambda value: line(value, field, TAG))


def new_tags(values: object, field: str = "tags") -> list[str]:
    """Return tags that a task is given, in the order given, each once."""
    return [visible(tag, field) for tag in tags(values, field)]


def artifacts(values: object, field: str = "artifacts") -> list[str]:
    """Return paths of artifacts in the given order, without duplicates."""
    return _each_once(values, field, ARTIFACTS, lambda value: _path(value, field))


def _path(value: object, field: str) -> str:
    checked = line(value, field, PATH)
    _require_visible(checked, field)
    return checked


def _each_once(values: object, field: str, limit: int, check: Any) -> list[str]:
    if isinstance(values, str) or not isinstance(values, (list, tuple, set, frozenset)):
        raise _refuse(field, f"must be a list, not {_kind(values)}")
    checked = list(dict.fromkeys(check(value) for value in values))
    at_most(len(checked), field, limit)
    return checked


def queues(values: object, field: str = "queue") -> list[str]:
    """Return names of queues in the given order, without duplicates."""
    return _each_once(values, field, QUEUES, lambda value: name(value, field))


def reference(value: object, field: str) -> str:
    """Return a task reference (an id or its ending) in capitals; it may name no task."""
    return line(value, field, NAME).strip().upper()


def references(values: object, field: str) -> list[str]:
    """Return task references in the given order, without duplicates."""
    return _each_once(values, field, DEPENDENCIES, lambda value: reference(value, field))


def integer(value: object, field: str, low: int, high: int) -> int:
    """Return a whole number from ``low`` to ``high``."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise _refuse(field, f"must be a whole number, not {_kind(value)}")
    if not low <= value <= high:
        shown = f"{value:,}" if abs(value) < 10**18 else "a number of more than 18 digits"
        raise _refuse(field, f"out of range: {shown} (allowed {low:,} to {high:,})")
    return value


def whole_number(value: str, field: str) -> int:
    """Return the integer that a text spells: ASCII digits, at most 18, with a minus sign or without.

    ``int()`` would also accept ``1_000``, ``+1``, surrounding spaces and digits of other scripts.
    """
    digits = value.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS):
        raise _refuse(field, f"not a whole number: {value[:60]!r}")
    return int(value)


def version(value: object, field: str) -> int:
    """Return a version, revision or sequence number."""
    return integer(value, field, 0, 2**62)


def percentage(value: object, field: str) -> int:
    """Return a whole percentage, 0 to 100."""
    return integer(value, field, 0, 100)


def priority(value: object, field: str) -> int:
    """Return a priority."""
    return integer(value, field, -PRIORITY, PRIORITY)


def at_most(count: int, field: str, limit: int) -> int:
    """Return a number of entries if it does not exceed the limit."""
    if count > limit:
        raise _refuse(field, f"too many entries: {count:,} (limit {limit:,})")
    return count


def boolean(value: object, field: str) -> bool:
    """Return ``True`` or ``False``; no other value is accepted."""
    if not isinstance(value, bool):
        raise _refuse(field, f"must be true or false, not {_kind(value)}")
    return value


def key(value: object, field: str) -> str | None:
    """Return a dedupe key or a request id; an empty text means none."""
    return None if value is None or value == "" else line(value, field, KEY)


def parameters(value: object, field: str = "params") -> str:
    """Return a JSON object as stored text."""
    if not isinstance(value, dict):
        raise _refuse(field, f"must be a JSON object, not {_kind(value)}")
    return json_text(value, field)


def json_text(value: object, field: str) -> str:
    """Return any JSON value as stored text: compact, at most 1 MiB, at most 100 levels deep."""
    check_json(value, field)
    encoded = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    size = len(encoded.encode())
    if size > JSON_BYTES:
        raise _refuse(field, f"too large: {size:,} bytes of JSON (limit {JSON_BYTES:,})")
    return encoded


def check_json(value: object, field: str, limit: int = JSON_DEPTH) -> None:
    """Refuse what JSON or SQLite cannot store. Walks level by level, so that depth needs no recursion."""
    level: list[object] = [value]
    depth = 0
    while level:
        if len(level) > VALUES:  # shared parts of a Python structure can multiply without end
            raise _refuse(field, f"too many values (limit {VALUES:,})")
        depth += any(isinstance(item, (dict, list, tuple)) for item in level)
        if depth > limit:
            raise _refuse(field, f"nested too deep (limit {limit} levels)")
        below: list[object] = []
        for item in level:
            if item is None or isinstance(item, bool):
                continue
            if isinstance(item, str):
                if not _is_unicode(item):
                    raise _refuse(field, "has a lone surrogate")
            elif isinstance(item, int):
                if not -_INT64 <= item < _INT64:
                    raise _refuse(field, "has an integer beyond 64 bits", "Send such a number as text.")
            elif isinstance(item, float):
                if item * 0 != 0:  # NaN or infinite
                    raise _refuse(field, "has a number that is not finite")
            elif isinstance(item, dict):
                if not all(isinstance(name, str) for name in item):
                    raise _refuse(field, "has an object key that is not text")
                below.extend(item.keys())
                below.extend(item.values())
            elif isinstance(item, (list, tuple)):
                below.extend(item)
            elif isinstance(item, _Unfit):
                raise _refuse(field, item.what, item.hint)
            else:
                raise _refuse(field, f"has a value that JSON cannot represent: {type(item).__name__}")
        level = below


def parse_json(source: str, field: str, *, depth: int = JSON_DEPTH) -> Any:
    """Read JSON strictly, nested at most ``depth`` levels.

    Raises:
        InvalidInput: malformed, ``NaN`` or ``Infinity``, a repeated key in an object, a lone surrogate, an integer
            beyond 64 bits, or nested too deep.
    """
    value = _loads(source, field)
    check_json(value, field, depth)
    return value


def parse_object(source: str, field: str) -> dict[str, Any]:
    """Read a JSON object strictly; a refusal names the key whose value is wrong.

    Raises:
        InvalidInput: as ``parse_json``, or not an object.
    """
    value = _loads(source, field)
    if isinstance(value, _Unfit):
        raise _refuse(field, value.what)
    if not isinstance(value, dict):
        raise _refuse(field, f"must be a JSON object, not {_kind(value)}")
    for name, item in value.items():
        if not _is_unicode(name):
            raise _refuse(field, "has a lone surrogate")
        check_json(item, name)
    return value


class _Unfit:
    """Takes the place of a part that JSON does not allow, until ``check_json`` refuses it with the field's name."""

    __slots__ = ("hint", "what")

    def __init__(self, what: str, hint: str | None = None) -> None:
        self.what = what
        self.hint = hint


class RepeatedKey(ValueError):
    """A JSON object has a key more than once."""

    def __init__(self, key: str) -> None:
        super().__init__(f"repeated key in an object: {key[:60]!r}")
        self.key = key


def json_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of these members: the ``object_pairs_hook`` of every JSON reader of the board.

    Raises:
        RepeatedKey: a key occurs more than once.
    """
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    seen: set[str] = set()
    for name, _ in pairs:
        if name in seen:
            raise RepeatedKey(name)
        seen.add(name)
    raise AssertionError


def _loads(source: str, field: str) -> Any:
    def members(pairs: list[tuple[str, Any]]) -> Any:
        try:
            return json_object(pairs)
        except RepeatedKey as error:
            return _Unfit(f"has a repeated key in an object: {error.key[:60]!r}")

    def constant(word: str) -> Any:
        return _Unfit(f"has {word}, which is not JSON")

    def whole(digits: str) -> Any:
        if len(digits) > 20:  # int() refuses thousands of digits with an error of its own
            return _Unfit("has an integer beyond 64 bits", "Send such a number as text.")
        return int(digits)

    try:
        return json.loads(source, object_pairs_hook=members, parse_constant=constant, parse_int=whole)
    except RecursionError:
        raise _refuse(field, f"nested too deep (limit {JSON_DEPTH} levels)") from None
    except ValueError as error:
        raise _refuse(field, f"not JSON: {error}") from None


def one_of(value: object, field: str, allowed: Iterable[str]) -> str:
    """Return ``value`` if it is one of the allowed words."""
    words = list(allowed)
    if not isinstance(value, str) or value not in words:
        shown = repr(value[:60]) if isinstance(value, str) else _kind(value)
        raise _refuse(field, f"not allowed: {shown} (allowed: {', '.join(words)})")
    return value


def did_you_mean(word: str, known: Iterable[str], *, similarity: float = 0.6) -> str:
    """Return the hint that names the most similar of the known words; empty if none is similar (0 to 1) enough."""
    from difflib import get_close_matches  # only a refused call needs it

    near = get_close_matches(word[:60], list(known), n=1, cutoff=similarity)
    return f"Did you mean {near[0]!r}?" if near else ""


def _is_unicode(value: str) -> bool:
    """Say whether a text can be encoded as UTF-8; one with a lone surrogate cannot."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _kind(value: object) -> str:
    names = {type(None): "null", bool: "a boolean", int: "a number", float: "a number", str: "text"}
    names |= {dict: "an object", list: "a list", tuple: "a list"}
    return names.get(type(value), type(value).__name__)
