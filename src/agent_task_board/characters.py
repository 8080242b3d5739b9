"""Unicode properties that Python's ``unicodedata`` lacks, as ranges for a regular expression's character class.

Generated from Unicode 14.0 with Perl's copy of the character database; ``tests/test_printable.py`` compares them with
it, and with ``unicodedata``. A newer version has added no default-ignorable character since.
"""

from __future__ import annotations

import re

DEFAULT_IGNORABLE = (
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""``Default_Ignorable_Code_Point`` of ``DerivedCoreProperties.txt``: what shows nothing where a font lacks it. Soft
hyphen, zero-width characters, all bidirectional controls, Hangul fillers, variation selectors, tags."""
IS_IGNORABLE = re.compile(f"[{DEFAULT_IGNORABLE}]")
"""Matches a default-ignorable character."""

PICTOGRAPHS = (
    "\xa9\xae\u203c\u2049\u2122\u2139\u2194-\u2199\u21a9\u21aa\u231a\u231b\u2328\u2388\u23cf\u23e9-\u23f3\u23f8-\u23fa"
    "\u24c2\u25aa\u25ab\u25b6\u25c0\u25fb-\u25fe\u2600-\u2605\u2607-\u2612\u2614-\u2685\u2690-\u2705\u2708-\u2712\u2714"
    "\u2716\u271d\u2721\u2728\u2733\u2734\u2744\u2747\u274c\u274e\u2753-\u2755\u2757\u2763-\u2767\u2795-\u2797\u27a1"
    "\u27b0\u27bf\u2934\u2935\u2b05-\u2b07\u2b1b\u2b1c\u2b50\u2b55\u3030\u303d\u3297\u3299\U0001f000-\U0001f0ff"
    "\U0001f10d-\U0001f10f\U0001f12f\U0001f16c-\U0001f171\U0001f17e\U0001f17f\U0001f18e\U0001f191-\U0001f19a"
    "\U0001f1ad-\U0001f1e5\U0001f201-\U0001f20f\U0001f21a\U0001f22f\U0001f232-\U0001f23a\U0001f23c-\U0001f23f"
    "\U0001f249-\U0001f3fa\U0001f400-\U0001f53d\U0001f546-\U0001f64f\U0001f680-\U0001f6ff\U0001f774-\U0001f77f"
    "\U0001f7d5-\U0001f7ff\U0001f80c-\U0001f80f\U0001f848-\U0001f84f\U0001f85a-\U0001f85f\U0001f888-\U0001f88f"
    "\U0001f8ae-\U0001f8ff\U0001f90c-\U0001f93a\U0001f93c-\U0001f945\U0001f947-\U0001faff\U0001fc00-\U0001fffd"
)
"""``Extended_Pictographic`` of ``emoji-data.txt``: what emoji sequences are made of."""

JOINING = (
    "\u0600-\u061b\u061d-\u109f\u1780-\u17b3\u17b6-\u180a\u1810-\u18af\u1900-\u1cff\ua800-\uabff\ufb50-\ufdff"
    "\ufe70-\ufefc\U00010a00-\U00011fff"
)
"""The blocks of scripts in which U+200C and U+200D choose the form of a letter: Arabic to Myanmar, Khmer, Mongolian,
later blocks of South and Southeast Asia, the presentation forms of Arabic. A letter of them shows what a joiner does.
"""

STACKING = "\u0300-\u034e\u0350-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
"""The blocks of combining marks without a script, which fit on any character."""
