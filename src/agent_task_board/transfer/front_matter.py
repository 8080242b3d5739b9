"""Read the front matter of a Markdown file: the small part of YAML that tools write there, and nothing else."""

from __future__ import annotations

import re

from .foreign import refuse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

_KEY = re.compile(r"([A-Za-z_][\w-]*):(?:\s+(.*))?", re.ASCII)
_INDICATORS = "&*!|>%@`{}[],?"


def split(text: str, place: str) -> tuple[dict[str, str | list[str]], str]:
    """Return the fields before the body of a Markdown file, and the body.

    A value is text, or a list of texts: plain, quoted, in brackets, one a line after ``-``, or a block after ``|`` or
    ``>``.

    Raises:
        InvalidInput: there is no front matter, or a line of it is something else; the message names the line.
    """
    lines = text.split("\n")
    if lines[0].rstrip() != "---":
        raise refuse(place, "line 1: must begin with front matter (---)")
    end = next((number for number, line in enumerate(lines[1:], 1) if line.rstrip() in ("---", "...")), None)
    if end is None:
        raise refuse(place, "the front matter has no end (---)")
    fields: dict[str, str | list[str]] = {}
    at = 1
    while at < end:
        line = lines[at].rstrip()
        if not line.strip() or line.lstrip().startswith("#"):
            at += 1
            continue
        found = _KEY.fullmatch(line)
        if found is None:
            _refuse(place, at, line)
        key, value = found[1], (found[2] or "").strip()
        if key in fields:
            raise refuse(place, f"line {at + 1}: repeated key: {key[:60]}")
        at += 1
        block: list[str] = []
        while at < end and (
            not lines[at].strip() or lines[at][0] in " \t" or (not value and lines[at].startswith("- "))
        ):
            block.append(lines[at].rstrip())
            at += 1
        fields[key] = _value(value, block, place, at - len(block))
    return fields, "\n".join(lines[end + 1 :]).strip("\n")


def _value(value: str, block: list[str], place: str, at: int) -> str | list[str]:
    style = re.fullmatch(r"([|>])[-+]?\d?", value)
    if style:
        depth = min((len(line) - len(line.lstrip()) for line in block if line.strip()), default=0)
        parts = [line[depth:] for line in block]
        return ("\n" if style[1] == "|" else " ").join(parts).strip()
    content = [(number, line.strip()) for number, line in enumerate(block, at) if line.strip()]
    if value.startswith("[") and content:  # a list over several lines
        value = " ".join([value, *(line for _, line in content)])
        content = []
    if value and content:
        if value[0] not in "\"'":
            return " ".join([_scalar(value, place, at - 1), *(line for _, line in content)])
        return _scalar(" ".join([value, *(line for _, line in content)]), place, at - 1)
    if content:
        items = []
        for number, line in content:
            if not line.startswith("- ") and line != "-":
                _refuse(place, number, line)
            items.append(_scalar(line[1:].strip(), place, number))
        return items
    if value.startswith("["):
        if not value.endswith("]"):
            _refuse(place, at - 1, value)
        return [_scalar(part, place, at - 1) for part in _parts(value[1:-1], place, at - 1)]
    return _scalar(value, place, at - 1)


def _parts(text: str, place: str, at: int) -> list[str]:
    parts = re.findall(r"\s*(\"(?:[^\"\\]|\\.)*\"|'(?:[^']|'')*'|[^,\"'\[\]{}][^,\[\]{}]*)\s*(?:,|$)", text)
    if "".join(parts).replace(" ", "") != re.sub(r",(?=(?:[^\"']|\"[^\"]*\"|'[^']*')*$)", "", text).replace(" ", ""):
        _refuse(place, at, text)
    return [part.strip() for part in parts if part.strip()]


def _scalar(text: str, place: str, at: int) -> str:
    if text.startswith('"'):
        if not re.fullmatch(r'"(?:[^"\\]|\\["\\/nt])*"', text):
            _refuse(place, at, text)
        return re.sub(r"\\(.)", lambda found: {"n": "\n", "t": "\t"}.get(found[1], found[1]), text[1:-1])
    if text.startswith("'"):
        if not re.fullmatch(r"'(?:[^']|'')*'", text):
            _refuse(place, at, text)
        return text[1:-1].replace("''", "'")
    text = re.sub(r"\s+#.*$", "", text)
    if text in ("null", "~"):
        return ""
    if (text[:1] in _INDICATORS and text[:1]) or text.startswith(("- ", "? ")) or ": " in text or text.endswith(":"):
        _refuse(place, at, text)
    return text


def _refuse(place: str, at: int, text: str) -> NoReturn:
    raise refuse(place, f"line {at + 1}: not understood: {text.strip()[:60]!r}")
