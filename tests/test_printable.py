"""Which characters are escaped before text is shown."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_task_board import characters, printable

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


SHOWN = {
    "accents": "caf\u00e9 cafe\u0301",
    "spaces": "\u5de5\u4f5c\u3000\u677f a\u00a0b",
    "JSON": 'a "b" \\ c',
    "profession": "\U0001f469\u200d\U0001f4bb",
    "family": "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466",
    "skin tone": "\U0001f469\U0001f3fd\u200d\u2695\ufe0f",
    "heart": "\u2764\ufe0f \u2764\ufe0e",
    "keycap": "1\ufe0f\u20e3",
    "flags": "\U0001f1e9\U0001f1ea \U0001f3f3\ufe0f\u200d\U0001f308",
    "flag of Scotland": "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",
    "Arabic": "\u0645\u0631\u062d\u0628\u0627",
    "Hebrew": "\u05e9\u05b8\u05c1\u05dc\u05d5\u05b9\u05dd",
    "Persian": "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
    "Hindi": "\u0915\u094d\u200d\u0937 \u0915\u094d\u200c\u0937",
    "Malayalam": "\u0d05\u0d35\u0d28\u0d4d\u200d",
    "Thai": "\u0e17\u0e35\u0e48",
    "Vietnamese": "Vie\u0323\u0302t",
}


@pytest.mark.parametrize("name", SHOWN)
def test_what_people_write_stays(name: str) -> None:
    text = SHOWN[name]
    assert printable.escape_line(text) == printable.escape_text(text) == text
    assert printable.is_visible(text)
    assert printable.escape_json(json.dumps(text, ensure_ascii=False)) == json.dumps(text, ensure_ascii=False)


HIDING = {
    "joiner between Latin letters": ("a\u200db", r"a\u200db"),
    "non-joiner at the beginning": ("\u200ca", r"\u200ca"),
    "two joiners": ("\u0645\u200c\u200cx", "\u0645\u200c\\u200cx"),
    "joiner after an emoji alone": ("\U0001f469\u200d x", "\U0001f469\\u200d x"),
    "selector after a letter": ("a\ufe0f", r"a\ufe0f"),
    "second selector": ("\u2764\ufe0f\ufe0f", "\u2764\ufe0f\\ufe0f"),
    "other selector": ("\u2764\ufe00", "\u2764\\ufe00"),
    "selector of an ideograph": ("\u845b\U000e0100", "\u845b\\udb40\\udd00"),
    "tags after another emoji": ("\U0001f469\U000e0067", "\U0001f469\\udb40\\udc67"),
    "tags of another flag": ("\U0001f3f4\U000e0075\U000e007f", "\U0001f3f4\\udb40\\udc75\\udb40\\udc7f"),
    "Hangul filler": ("a\u3164b\uffa0\u115f\u1160", r"a\u3164b\uffa0\u115f\u1160"),
    "grapheme joiner": ("a\u034fb", r"a\u034fb"),
    "Mongolian selector": ("\u1820\u180b", "\u1820\\u180b"),
    "mark at the beginning": ("\u0338x\n\u0338y", "\\u0338x\n\\u0338y"),
    "mark after an escape": ("x\u200b\u0338", r"x\u200b\u0338"),
    "heap of marks": ("x" + "\u0301" * 10, "x" + "\u0301" * 8 + r"\u0301\u0301"),
}


@pytest.mark.parametrize("name", HIDING)
def test_hidden_characters_are_escaped_where_they_show_nothing(name: str) -> None:
    text, escaped = HIDING[name]
    assert printable.escape_text(text) == escaped
    assert json.loads(printable.escape_json(json.dumps({"a": text}, ensure_ascii=False))) == {"a": text}


def characters_of(ranges: str) -> set[str]:
    return set(re.findall(f"[{ranges}]", EVERY))


EVERY = "".join(chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000)
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
