"""What may come in: the limits of every field, and the one strict reader of JSON.

Every function returns the value in the form that is stored, or raises ``InvalidInput`` with the field's name in
the message and in ``details.field``. Callers pass the name under which their own callers know the field.
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
"""The name under which the board itself acts, as when a lease runs out."""
NOBODY = "none"
"""The reserved name: it stands for no agent at all wherever an assignee may be given."""
CALLER = "me"
"""The reserved name: it stands for the caller wherever an agent is named."""

_INT64 = 2**63


def _refuse(field: str, what: str, hint: str | None = None) -> InvalidInput:
    return InvalidInput(f"{field}: {what}", hint=hint, field=field)


def text(value: object, field: str, limit: int, *, required: bool = False) -> str:
    """Return free text of at most ``limit`` characters; line breaks are welcome, NUL is not."""
    if not isinstance(value, str):
        raise _refuse(field, f"must be text, not {_kind(value)}")
    if len(value) > limit:
        raise _refuse(field, f"too long: {len(value):,} characters (limit {limit:,})")
    if "\x00" in value:
        raise _refuse(field, "must not contain a NUL character")
    if not _is_unicode(value):
        raise _refuse(field, "must be valid Unicode; it has a lone surrogate, or bytes that are not UTF-8")
    if required and not value.strip():
        raise _refuse(field, "must not be empty")
    return value


def line(value: object, field: str, limit: int) -> str:
    """Return one line of text, not empty and without control characters."""
    checked = text(value, field, limit, required=True)
    if not checked.isprintable() and any(char < " " or "\x7f" <= char <= "\x9f" for char in checked):
        raise _refuse(field, "must not contain control characters or line breaks")
    return checked


def title(value: object, field: str) -> str:
    """Return the title of a task, without surrounding spaces."""
    return line(value.strip() if isinstance(value, str) else value, field, TITLE)


def note(value: object) -> str | None:
    """Return the note that goes with a verb; the empty text is none."""
    return None if value is None or value == "" else text(value, "note", TEXT)


def name(value: object, field: str) -> str:
    """Return the name of an agent, an actor or a queue, without surrounding spaces."""
    return line(value.strip() if isinstance(value, str) else value, field, NAME)


def agent_name(value: object, field: str) -> str:
    """Return an agent's name; ``none`` and ``me`` are reserved."""
    checked = name(value, field)
    if checked.casefold() == NOBODY:
        raise _refuse(field, f'"{NOBODY}" is reserved: it means no agent')
    if checked.casefold() == CALLER:
        raise _refuse(field, f'"{CALLER}" is reserved: it means the caller')
    return checked


def actor_name(value: object, field: str) -> str:
    """Return the name of whoever acts; those that stand for nobody and for the board itself are reserved."""
    checked = name(value, field)
    if checked.casefold() in (NOBODY, CALLER, BOARD):
        raise _refuse(field, f'"{checked}" is reserved')
    return checked


def assignee(value: object, field: str) -> str | None:
    """Return an agent's name, or ``None`` for nobody: ``None``, the empty text and ``none`` say so."""
    if value is None or value == "" or (isinstance(value, str) and value.strip().casefold() == NOBODY):
        return None
    return agent_name(value, field)


def tags(values: object, field: str = "tags") -> list[str]:
    """Return tags in the order given, each once."""
    return _each_once(values, field, TAGS, lambda value: line(value, field, TAG))


def artifacts(values: object, field: str = "artifacts") -> list[str]:
    """Return paths of artifacts in the order given, each once."""
    return _each_once(values, field, ARTIFACTS, lambda value: line(value, field, PATH))


def _each_once(values: object, field: str, limit: int, check: Any) -> list[str]:
    if isinstance(values, str) or not isinstance(values, (list, tuple, set, frozenset)):
        raise _refuse(field, f"must be a list, not {_kind(values)}")
    checked = list(dict.fromkeys(check(value) for value in values))
    at_most(len(checked), field, limit)
    return checked


def queues(values: object, field: str = "queue") -> list[str]:
    """Return names of queues in the order given, each once."""
    return _each_once(values, field, QUEUES, lambda value: name(value, field))


def reference(value: object, field: str) -> str:
    """Return what names a task, in capitals; whether there is such a task is another question."""
    return line(value, field, NAME).strip().upper()


def references(values: object, field: str) -> list[str]:
    """Return what names several tasks, each once."""
    return _each_once(values, field, DEPENDENCIES, lambda value: reference(value, field))


def integer(value: object, field: str, low: int, high: int) -> int:
    """Return a whole number between ``low`` and ``high``, both included."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise _refuse(field, f"must be a whole number, not {_kind(value)}")
    if not low <= value <= high:
        shown = f"{value:,}" if abs(value) < 10**18 else "a number that large"
        raise _refuse(field, f"out of range: {shown} (allowed {low:,} to {high:,})")
    return value


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
    """Return a count of entries if it does not exceed the limit."""
    if count > limit:
        raise _refuse(field, f"too many entries: {count:,} (limit {limit:,})")
    return count


def boolean(value: object, field: str) -> bool:
    """Return ``True`` or ``False``; nothing else stands for them."""
    if not isinstance(value, bool):
        raise _refuse(field, f"must be true or false, not {_kind(value)}")
    return value


def key(value: object, field: str) -> str | None:
    """Return a dedupe key or a request id; the empty text is none."""
    return None if value is None or value == "" else line(value, field, KEY)


def parameters(value: object, field: str = "params") -> str:
    """Return a JSON object as the text that is stored."""
    if not isinstance(value, dict):
        raise _refuse(field, f"must be a JSON object, not {_kind(value)}")
    return json_text(value, field)


def json_text(value: object, field: str) -> str:
    """Return any JSON value as the text that is stored: compact, at most 1 MiB and 100 levels deep."""
    check_json(value, field)
    encoded = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    size = len(encoded.encode())
    if size > JSON_BYTES:
        raise _refuse(field, f"too large: {size:,} bytes of JSON (limit {JSON_BYTES:,})")
    return encoded


def check_json(value: object, field: str, limit: int = JSON_DEPTH) -> None:
    """Refuse what JSON or SQLite cannot hold. Walks level by level, so that depth costs no recursion."""
    level: list[object] = [value]
    depth = 0
    while level:
        if len(level) > VALUES:  # a Python structure that shares its parts unfolds without end
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
                raise _refuse(field, f"has a value that JSON cannot hold ({type(item).__name__})")
        level = below


def parse_json(source: str, field: str, *, depth: int = JSON_DEPTH) -> Any:
    """Read JSON as strictly as the standard allows, nested ``depth`` levels at most.

    Raises:
        InvalidInput: malformed, ``NaN`` or ``Infinity``, a key twice in one object, a lone surrogate,
            an integer beyond 64 bits, or nested too deep.
    """
    value = _loads(source, field)
    check_json(value, field, depth)
    return value


def parse_object(source: str, field: str) -> dict[str, Any]:
    """Read a JSON object as strictly, and refuse what is wrong with a value under the name that it has there.

    Raises:
        InvalidInput: as ``parse_json``, or no object.
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
    """Stands in a value for what JSON allows no program to write."""

    __slots__ = ("hint", "what")

    def __init__(self, what: str, hint: str | None = None) -> None:
        self.what = what
        self.hint = hint


def _loads(source: str, field: str) -> Any:
    def once(pairs: list[tuple[str, Any]]) -> Any:
        found = dict(pairs)
        if len(found) != len(pairs):
            seen: set[str] = set()
            twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
            return _Unfit(f"has the key {twice[:60]!r} twice in one object")
        return found

    def constant(word: str) -> Any:
        return _Unfit(f"has {word}, which is not JSON")

    def whole(digits: str) -> Any:
        if len(digits) > 20:  # int() itself refuses thousands of digits, with an error of its own
            return _Unfit("has an integer beyond 64 bits", "Send such a number as text.")
        return int(digits)

    try:
        return json.loads(source, object_pairs_hook=once, parse_constant=constant, parse_int=whole)
    except RecursionError:
        raise _refuse(field, f"nested too deep (limit {JSON_DEPTH} levels)") from None
    except ValueError as error:
        raise _refuse(field, f"is not JSON: {error}") from None


def one_of(value: object, field: str, allowed: Iterable[str]) -> str:
    """Return ``value`` if it is one of the words allowed."""
    words = list(allowed)
    if not isinstance(value, str) or value not in words:
        shown = repr(value[:60]) if isinstance(value, str) else _kind(value)
        raise _refuse(field, f"{shown} is not one of: {', '.join(words)}")
    return value


def _is_unicode(value: str) -> bool:
    """Say whether a text can be written as UTF-8: a lone surrogate cannot."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _kind(value: object) -> str:
    names = {type(None): "null", bool: "a boolean", int: "a number", float: "a number", str: "text"}
    names |= {dict: "an object", list: "a list", tuple: "a list"}
    return names.get(type(value), type(value).__name__)
