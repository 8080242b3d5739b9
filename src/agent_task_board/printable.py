"""Escape hidden characters: those that break lines, steer a terminal, or turn or hide text.

Every display, log and notification escapes the same characters in the same way, as JSON does. Letters of every script,
emoji and all kinds of spaces stay as they are.
"""

from __future__ import annotations

import json
import re

_HIDDEN = (
    "\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f"
)
"""Beyond the ASCII controls: C1 controls, line separators, text direction, zero-width characters, surrogates, tags."""
_NOT_IN_A_LINE = re.compile(f"[\x00-\x1f{_HIDDEN}]")
_NOT_IN_A_TEXT = re.compile(f"[\x00-\x08\x0b-\x1f{_HIDDEN}]")


def escape_line(text: str) -> str:
    """Return text on one line: line breaks and tabs are escaped, too."""
    return _NOT_IN_A_LINE.sub(_escape, text)


def escape_text(text: str) -> str:
    """Return text with its line breaks and tabs; every other hidden character is escaped."""
    return _NOT_IN_A_TEXT.sub(_escape, text)


def is_visible(text: str) -> bool:
    """Say whether ``escape_text`` would leave a text as it is."""
    return _NOT_IN_A_TEXT.search(text) is None


def _escape(found: re.Match[str]) -> str:
    return json.dumps(found[0])[1:-1]
