"""Check the values in a board file: what SQLite lets into a text column, a board may still not be able to read.

The rules are those of a value that enters a board by any other way (``inputs``, ``instants``), for values of every
version: a name that only newer versions refuse is fine here.
"""

from __future__ import annotations

from .. import inputs, instants
from ..board.core import is_ulid
from ..errors import InvalidInput
from ..model import EVENT_KINDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from ..storage.db import Connection

    Check = Callable[[Any, str], object]

LONGEST = 4_194_304
"""The most characters of a text without a rule of its own."""
_HEXADECIMAL = frozenset("0123456789abcdef")


def faults(connection: Connection) -> Iterator[str]:
    """Yield a sentence for each value that the board could not read or would not have stored.

    The schema is one of ours, and SQLite finds the file undamaged: types and CHECKs hold. One row is in memory at a
    time.
    """
    tables = connection.execute("SELECT name FROM main.sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'")
    for (table,) in tables.fetchall():
        columns = [
            row[1] for row in connection.execute(f"SELECT * FROM pragma_table_info('{table}')") if row[2] == "TEXT"
        ]
        if not columns:
            continue
        checks = [_RULES.get(f"{table}.{name}") or _RULES.get(name) or _by_ending(name) for name in columns]
        pairs = list(zip(columns, checks, strict=True))
        for row in connection.execute(f"SELECT {', '.join(columns)} FROM {table}"):
            for (name, check), value in zip(pairs, row, strict=True):
                if value is not None:
                    try:
                        check(value, name)
                    except InvalidInput as error:
                        yield f"{table}: {error.message[:200]}"


def _by_ending(column: str) -> Check:
    return _instant if column.endswith("_at") else _text


def _text(value: Any, field: str) -> None:
    inputs.text(value, field, LONGEST)


def _line(limit: int) -> Check:
    return lambda value, field: inputs.line(value, field, limit)


def _instant(value: Any, field: str) -> None:
    if not instants.is_stored(value):
        raise InvalidInput(f"{field}: not an instant: {value[:60]!r}", field=field)


def _ulid(value: Any, field: str) -> None:
    if not is_ulid(value):
        raise InvalidInput(f"{field}: not a full id: {value[:60]!r}", field=field)


def _hexadecimal(value: Any, field: str) -> None:
    if not value or not _HEXADECIMAL.issuperset(value):
        raise InvalidInput(f"{field}: not hexadecimal: {value[:60]!r}", field=field)


def _kind(value: Any, field: str) -> None:
    inputs.one_of(value, field, EVENT_KINDS)


def _object(value: Any, field: str) -> None:
    if value != "{}":
        inputs.parse_object(value, field)


def _any_json(value: Any, field: str) -> None:
    inputs.parse_json(value, field)


def _lines(limit: int) -> Check:
    def check(value: Any, field: str) -> None:
        if value == "[]":
            return
        found = inputs.parse_json(value, field)
        if not isinstance(found, list):
            raise InvalidInput(f"{field}: must be a list", field=field)
        for one in found:
            inputs.line(one, field, limit)

    return check


_RULES: dict[str, Check] = {
    **dict.fromkeys(("task.id", "schedule.id"), _ulid),
    **dict.fromkeys(("at", "until", "not_before"), _instant),
    **dict.fromkeys(("agent", "name", "assignee", "claimed_by", "created_by", "actor", "queue"), _line(inputs.NAME)),
    **dict.fromkeys(("id", "key", "dedupe_key", "schedule_id", "cron", "zone"), _line(inputs.KEY)),
    **dict.fromkeys(("lease_token_hash", "token_hash", "arguments", "board_id"), _hexadecimal),
    **dict.fromkeys(("params", "data", "schedule.task"), _object),
    "title": _line(inputs.TITLE),
    "kind": _kind,
    "result": _any_json,
    "tags": _lines(inputs.TAG),
    "artifacts": _lines(inputs.PATH),
}
"""The check of a column, by its name, or by table and name. Instants are known by their ending."""
