"""Text that must stay as it is, and text that hides something with its escaped form, for tests of several surfaces."""

from __future__ import annotations

import re

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

EVERY = "".join(chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000)
"""Every character."""


def characters_of(ranges: str) -> set[str]:
    """Return the characters of the ranges of a character class."""
    return set(re.findall(f"[{ranges}]", EVERY))
