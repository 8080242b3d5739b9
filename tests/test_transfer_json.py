"""The streaming reader of JSON: any document, cut into pieces anywhere, as strictly as the reader of small texts."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent_task_board import inputs
from agent_task_board.errors import InvalidInput
from agent_task_board.transfer import json_stream
from tests.support import refused

ARRAYS = ("tasks", "events")


class Drip:
    """A file that gives a few bytes at a time, however many are asked for."""

    def __init__(self, content: bytes, size: int) -> None:
        self._file = io.BytesIO(content)
        self._size = size

    def read(self, size: int, /) -> bytes:
        return self._file.read(min(size, self._size))


def read(content: bytes, size: int = 1 << 20) -> list[tuple[str, int | None, Any]]:
    return list(json_stream.read(Drip(content, size), ARRAYS, bare="tasks"))


def elements(content: bytes, size: int = 1 << 20) -> list[Any]:
    return [value for _, place, value in read(content, size) if place is not None]


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"), max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(st.lists(VALUES, max_size=6), st.sampled_from([None, 1, 2]), st.booleans(), st.integers(1, 9))
@example([{"a": '"}]{["'}, "\\", '\\"'], None, False, 1)
def test_elements_are_those_of_the_document_wherever_it_is_cut(
    values: list[Any], indent: int | None, ascii_only: bool, size: int
) -> None:
    text = json.dumps(values, indent=indent, ensure_ascii=ascii_only)
    assert elements(text.encode(), size) == values
    wrapped = json.dumps({"ok": True, "data": {"events": values, "next": values}}, indent=indent)
    assert read(wrapped.encode(), size) == [
        ("ok", None, True),
        ("events", None, []),
        *[("events", place, value) for place, value in enumerate(values)],
        ("next", None, values),
    ]


@given(st.lists(VALUES, max_size=6))
def test_a_document_read_already_gives_the_same_pieces(values: list[Any]) -> None:
    for document in (values, {"tasks": values, "x": 1}, {"ok": True, "data": {"tasks": values}}):
        assert list(json_stream.walk(document, ARRAYS, bare="tasks")) == read(json.dumps(document).encode())


@given(st.text(alphabet='[]{}",:\\u0dNaIe1- \n', max_size=40), st.integers(1, 5))
def test_what_is_no_json_is_refused_and_nothing_else_happens(text: str, size: int) -> None:
    try:
        expected = inputs.parse_json(text, "file")
    except InvalidInput:
        with refused("invalid_input"):
            read(text.encode(), size)
        return
    if isinstance(expected, list):
        assert elements(text.encode(), size) == expected
    elif isinstance(expected, dict):
        assert read(text.encode(), size)[:1] in (
            [],
            [(next(iter(expected), ""), None, next(iter(expected.values()), ""))],
        )
    else:
        with refused("invalid_input"):
            read(text.encode(), size)


@pytest.mark.parametrize(
    ("element", "field"),
    [
        ('{"title": NaN}', "title"),
        ('{"title": -Infinity}', "title"),
        ('{"title": 1e999}', "title"),
        ('{"title": 9223372036854775808}', "title"),
        ('{"title": ' + "9" * 5_000 + "}", "title"),
        ('{"title": "\\ud800"}', "title"),
        ('{"title": {"a": 1, "a": 2}}', "title"),
        ('{"params": ' + "[" * 101 + "]" * 101 + "}", "params"),
        ('{"params": ' + "[" * 5_000 + "]" * 5_000 + "}", None),
        ('{"title": 1, "title": 1}', None),
        ('{"title": 1,}', None),
        ("{title: 1}", None),
        ("{]", None),
        ("[}", None),
        ("01", None),
        ("tru", None),
        ('"\n"', None),
    ],
)
def test_a_bad_element_is_refused_by_place_and_field(element: str, field: str | None) -> None:
    for size in (1, 7, 1 << 20):
        with refused("invalid_input") as caught:
            read(f'{{"tasks": [{{}}, {element}, {{}}]}}'.encode(), size)
        assert caught.value.details["place"] == "tasks[1]"
        assert caught.value.details["field"] == field
        assert caught.value.message.startswith("tasks[1]: ")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xef\xbb\xbf",
        b"  \n",
        b"null",
        b"5",
        b'"tasks"',
        b"[",
        b"[{}",
        b"[{},",
        b"[{},]",
        b"[,]",
        b"[{} {}]",
        b"[]]",
        b"[] []",
        b"[]x",
        b"{",
        b'{"tasks"',
        b'{"tasks":',
        b'{"tasks":[}',
        b'{"tasks":[]',
        b'{"tasks":[],}',
        b'{"tasks":[]]',
        b'{"tasks" []}',
        b"{tasks: []}",
        b'{"tasks":[],"tasks":[]}',
        b'{"next":1,"next":1}',
        b'{"data":{"tasks":[],"tasks":[]}}',
        b'{"ok":tru}',
        b'["\xff"]',
        b'["\xc3',
        "[1]".encode("utf-16"),
        "['ü']".encode("latin-1"),
        b"[\x00]",
    ],
)
def test_a_malformed_document_is_refused(content: bytes) -> None:
    for size in (1, 1 << 20):
        with refused("invalid_input"):
            read(content, size)


def test_bytes_that_are_no_utf_8_are_named_by_their_place_in_the_file() -> None:
    content = b'["' + "ü".encode() * 50_000 + b'\xff"]'
    for size in (1_000, 1_001, 1 << 20):
        with refused("invalid_input") as caught:
            read(content, size)
        assert "byte 100,002" in caught.value.message


def test_a_byte_order_mark_is_no_part_of_the_document() -> None:
    assert elements(b"\xef\xbb\xbf[1]", 1) == [1]


def test_an_element_that_never_ends_is_refused_before_it_is_all_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_stream, "ELEMENT", 1_000_000)

    class Endless:
        taken = 0

        def read(self, size: int, /) -> bytes:
            self.taken += size
            return b"[" * size

    for start in (b'[{"a": "', b"[", b"[1"):
        endless = Endless()
        pieces = iter([start])
        file = type("File", (), {"read": lambda self, size: next(pieces, None) or endless.read(size)})()  # noqa: B023
        with refused("invalid_input"):
            list(json_stream.read(file, ARRAYS, bare="tasks"))
        assert endless.taken < 4_000_000


def test_unexpected_character_is_reported_with_its_line() -> None:
    with refused("invalid_input") as caught:
        read(b'{\n"tasks": [{}\n{}]}')
    assert "line 3" in caught.value.message
