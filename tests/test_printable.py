"""Which characters are escaped before text is shown."""

from __future__ import annotations

import json
import shutil
import subprocess
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_task_board import characters, printable
from tests.hidden_text import EVERY, HIDING, SHOWN, characters_of

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


@pytest.mark.parametrize("name", SHOWN)
def test_what_people_write_stays(name: str) -> None:
    text = SHOWN[name]
    assert printable.escape_line(text) == printable.escape_text(text) == text
    assert printable.is_visible(text)
    assert printable.escape_json(json.dumps(text, ensure_ascii=False)) == json.dumps(text, ensure_ascii=False)


@pytest.mark.parametrize("name", HIDING)
def test_hidden_characters_are_escaped_where_they_show_nothing(name: str) -> None:
    text, escaped = HIDING[name]
    assert printable.escape_text(text) == escaped
    assert json.loads(printable.escape_json(json.dumps({"a": text}, ensure_ascii=False))) == {"a": text}


VISIBLE_FORMATS = set("\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd")
"""Format characters that draw something: signs that enclose or precede numbers."""


def test_every_format_character_that_draws_nothing_is_escaped() -> None:
    formats = {char for char in EVERY if unicodedata.category(char) in ("Cf", "Zl", "Zp")}
    for char in formats - VISIBLE_FORMATS:
        if not 0x13430 <= ord(char) < 0x13460:  # Egyptian hieroglyphs: they place the signs around them
            assert not printable.is_visible(f"a{char}b"), f"U+{ord(char):04X}"
    for char in characters_of(characters.DEFAULT_IGNORABLE):
        assert not printable.is_visible(f"a{char}b"), f"U+{ord(char):04X}"
    assert all(printable.is_visible(char) for char in VISIBLE_FORMATS)


def test_table_of_properties_is_that_of_unicode() -> None:
    program = r"""
        no warnings;
        for my $code (0 .. 0x10FFFF) {
            next if $code >= 0xD800 && $code <= 0xDFFF;
            print "$code\n" if chr($code) =~ /\p{PROPERTY}/;
        }"""
    if shutil.which("perl") is None:
        pytest.skip("Perl, which has the character database, is not installed")
    for name, ranges in (
        ("Default_Ignorable_Code_Point", characters.DEFAULT_IGNORABLE),
        ("Extended_Pictographic", characters.PICTOGRAPHS),
    ):
        done = subprocess.run(
            ["perl", "-e", program.replace("PROPERTY", name)], capture_output=True, text=True, check=True
        )
        assert {ord(char) for char in characters_of(ranges)} == set(map(int, done.stdout.split())), name


@pytest.mark.parametrize("name", ["ada", "agent-7", "maria@example.org", "Zoe\u0308", "\u5c0f\u6797", "a/b.c_d#1"])
def test_plain_name_stands_in_a_sentence_as_it_is(name: str) -> None:
    assert printable.name(name) == name


@pytest.mark.parametrize(
    "name",
    ["the operator (approved)", "ada, who approved it", "ada.", "", 'a"b', "\u0338x", "a\u200bda", "- x", "\U0001f469"],
)
def test_name_that_could_read_as_a_sentence_is_in_quotation_marks(name: str) -> None:
    shown = printable.name(name)
    assert (shown[0], shown[-1]) == ('"', '"')
    assert json.loads(shown) == name
    assert printable.is_visible(shown)


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
