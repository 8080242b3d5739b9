"""Escape hidden characters: those that break lines, steer a terminal, or turn, hide or cover text.

Every display, log and notification, and all JSON, escapes the same characters in the same way: as JSON does. Letters of
every script, emoji and all kinds of spaces stay as they are, and with them the few invisible characters that writing
needs, where they show something:

- U+200C and U+200D directly after a letter of a script that joins its letters (Persian, the scripts of India);
- U+200D between two pictographs, U+FE0E and U+FE0F after one, U+FE0F in a keycap (emoji);
- the tags in the flags of England, Scotland and Wales.

Combining marks stay, too: at most ``MARKS`` in a row, and none at the beginning of a line, where it would change the
character before the text.
"""

from __future__ import annotations

import json
import re

from .characters import DEFAULT_IGNORABLE, JOINING, PICTOGRAPHS, STACKING

MARKS = 8
"""Combining marks in a row that are shown; more of them would cover the lines around."""

_HIDDEN = f"\x7f-\x9f\u2028\u2029\ufff9-\ufffb\ud800-\udfff{DEFAULT_IGNORABLE}"
"""Beyond the ASCII controls: C1 controls, line separators, annotations, surrogates, all that is default-ignorable."""
_IN_A_LINE = re.compile(f"[\x00-\x1f{_HIDDEN}{STACKING}]+")
_IN_A_TEXT = re.compile(f"[\x00-\x08\x0b-\x1f{_HIDDEN}{STACKING}]+")
_MARK = re.compile(f"[{STACKING}]")
_ASCII = bytes(range(0x7F))
_SHOWS = re.compile(
    f"(?<=[{JOINING}])[\u200c\u200d]"
    f"|(?<=[{PICTOGRAPHS}\U0001f3fb-\U0001f3ff\ufe0f])\u200d(?=[{PICTOGRAPHS}])"
    f"|(?<=[{PICTOGRAPHS}])[\ufe0e\ufe0f]"
    "|(?<=[#*0-9])\ufe0f(?=\u20e3)"
    "|(?<=\U0001f3f4)\U000e0067\U000e0062(?:\U000e0065\U000e006e\U000e0067|\U000e0073\U000e0063\U000e0074"
    "|\U000e0077\U000e006c\U000e0073)\U000e007f"
)
"""Hidden characters at a place where they show something."""
_LETTERS = rf"\w{JOINING}{STACKING}"
_SIMPLE_NAME = re.compile(f"[{_LETTERS}](?:[{_LETTERS}.@+/#~-]*[{_LETTERS}])?")


def escape_line(text: str) -> str:
    """Return text on one line: line breaks and tabs are escaped, too."""
    return text if text.isascii() and text.isprintable() else _IN_A_LINE.sub(_escape, text)


def escape_text(text: str) -> str:
    """Return text with its line breaks and tabs; every other hidden character is escaped."""
    return text if text.isascii() and text.isprintable() else _IN_A_TEXT.sub(_escape, text)


def escape_json(document: str) -> str:
    """Return a JSON document whose strings have no hidden character; what it says stays the same.

    A lone surrogate, which strict readers refuse even as an escape, becomes a question mark.
    """
    if document.isascii() and "\x7f" not in document:
        return document
    encoded = document.encode("utf-8", "replace")
    # A board is megabytes, nearly all of it ASCII: search only the rest, a fourth of the time.
    if _IN_A_TEXT.search(encoded.translate(None, _ASCII).decode()) is None:
        return encoded.decode()
    return _IN_A_TEXT.sub(_escape, encoded.decode())


def is_visible(text: str) -> bool:
    """Say whether ``escape_text`` would leave a text as it is."""
    return escape_text(text) == text


def name(text: str) -> str:
    """Return a name as it stands in a sentence: in quotation marks if it is more than one plain word.

    A name such as ``the operator (approved)`` would otherwise read as if the board said it.
    """
    if _SIMPLE_NAME.fullmatch(text) and is_visible(text):
        return text
    return escape_line(json.dumps(text, ensure_ascii=False))


def _escape(found: re.Match[str]) -> str:
    """Escape a run of hidden characters and marks, but for those that show something where they are."""
    text, place, end = found.string, found.start(), found.end()
    shown: list[str] = []
    # Within quotation marks of ours, the first mark would change them.
    marks = MARKS if place == 0 or text[place - 1] in '\n"' else 0
    while place < end:
        char = text[place]
        if _MARK.match(char):
            shows = marks < MARKS
            marks += 1
        elif kept := _SHOWS.match(text, place, end + 1):
            shown.append(kept[0])
            place = kept.end()
            marks = 0
            continue
        else:
            shows = False
            marks = MARKS  # a mark after it would change the escape
        shown.append(char if shows else json.dumps(char)[1:-1])
        place += 1
    return "".join(shown)
