"""Which characters are escaped before text is shown."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_task_board import printable

HIDDEN = {
    "escape": "\x1b",
    "NUL": "\x00",
    "DEL": "\x7f",
    "C1 control": "\x9b",
    "carriage return": "\r",
    "soft hyphen": "\xad",
    "zero-width space": "\u200b",
    "right-to-left override": "\u202e",
    "isolate": "\u2066",
    "line separator": "\u2028",
    "byte order mark": "\ufeff",
    "tag": "\U000e0041",
    "lone surrogate": "\udc80",
}


@pytest.mark.parametrize("name", HIDDEN)
def test_hidden_character_is_escaped_in_lines_and_texts(name: str) -> None:
    char = HIDDEN[name]
    escaped = json.dumps(char)[1:-1]
    assert escaped.isascii()
    assert printable.escape_line(f"a{char}b") == f"a{escaped}b"
    assert printable.escape_text(f"a{char}b") == f"a{escaped}b"
    assert not printable.is_visible(f"a{char}b")


@pytest.mark.parametrize(
    "text", ["caf\u00e9", "\u5de5\u4f5c\u3000\u677f", "a\u00a0b", "\U0001f469\u200d\U0001f4bb", 'a "b" \\ c']
)
def test_letters_spaces_emoji_and_backslashes_stay(text: str) -> None:
    assert printable.escape_line(text) == printable.escape_text(text) == text
    assert printable.is_visible(text)


def test_line_breaks_and_tabs_stay_in_texts_only() -> None:
    assert printable.escape_line("a\tb\nc") == r"a\tb\nc"
    assert printable.escape_text("a\tb\nc") == "a\tb\nc"
    assert printable.is_visible("a\tb\nc")


@given(st.text())
def test_escaped_line_is_one_line_that_needs_no_escape(text: str) -> None:
    line = printable.escape_line(text)
    assert line.splitlines() in ([], [line])
    assert printable.escape_line(line) == line
    assert printable.is_visible(line)
