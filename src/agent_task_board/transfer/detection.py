"""Tell the format of a file by its beginning, never by its name alone."""

from __future__ import annotations

import json
import re

from .tabular import delimiter_of, text_of

SAMPLE = 65_536
"""The most bytes at the beginning of a file that its format is told by."""

_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"|([\[\]{}:,])|[^\s\[\]{}:,"]+', re.DOTALL)
_DEPTH = 6
"""Brackets around the keys that are looked at."""
_COMMENTS = re.compile(r"\A(?:[ \t]*(?:(?:#|//)[^\n]*)?\n)+")
_BOX = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+\[[^\]\n]\]\s", re.MULTILINE)
_TODO = re.compile(r"^(x \d{4}-\d\d-\d\d |\([A-Z]\) |x )|(^|\s)[+@]\w", re.MULTILINE)
_COLUMNS = (
    ("jira", {"issue key", "summary"}),
    ("asana", {"task id", "name", "section/column"}),
    ("linear", {"id", "team", "title", "status"}),
)
"""Trackers, and columns that their tables have."""


def detect(beginning: bytes, name: str = "") -> str:
    """Return the format of a file by its first ``SAMPLE`` bytes; ``name`` decides only between tables and text."""
    text = text_of(beginning).lstrip()
    if text.startswith(("#", "//")):
        after = _COMMENTS.sub("", text)
        text = after if after.startswith("{") else text
    if text.startswith(("{", "[")) and not _BOX.match(text):
        return _of_json(text)
    if text.startswith(("---\n", "---\r\n")):
        return "backlog"
    if _BOX.search(text):
        return "checklist"
    lines = [line for line in text.splitlines() if line.strip()]
    if lines and lines[0].lower().startswith("sep="):
        del lines[0]
    header = _cells(lines[0]) if lines else set()
    for tracker, columns in _COLUMNS:
        if columns <= header:
            return tracker
    if "title" in header or name.lower().endswith((".csv", ".tsv")):
        return "csv"
    if lines and (
        name.lower().endswith("todo.txt") or 2 * sum(bool(_TODO.search(line)) for line in lines) >= len(lines)
    ):
        return "todo"
    return "json"


def _cells(header: str) -> set[str]:
    return {cell.strip().strip('"').strip().lower() for cell in header.split(delimiter_of(header))}


def _of_json(text: str) -> str:
    try:
        _, end = json.JSONDecoder().raw_decode(text)
        is_lines = text.startswith("{") and text[end:].lstrip()[:1] in ("{", "#")
    except (ValueError, RecursionError):  # longer than what was read, or no JSON
        is_lines = False
    keys = _paths(text.split("\n", 1)[0] if is_lines else text)
    root = {path[1:] for path in keys if path.startswith(".") and path.count(".") == 1 and "[]" not in path}
    first = {path[3:] for path in keys if path.startswith("[].") and path.count(".") == 1}
    if is_lines or "_schema" in root or "_type" in root or {"id", "title", "issue_type"} <= root:
        return "beads"
    if root & {"idOrganization", "labelNames", "idTags"} or {"cards", "lists"} <= root:
        return "trello"
    if ".issues[].fields" in keys or "fields" in first:
        return "jira"
    if ".data[].gid" in keys or "gid" in first:
        return "asana"
    if {"number", "title"} <= first or {".issues[].number", ".issues[].title"} <= keys or "[][].number" in keys:
        return "github"
    marks = ("dependencies", "subtasks", "testStrategy")
    if any(re.fullmatch(r"(\.[^.\[]*)?\.tasks\[\]\.(" + "|".join(marks) + ")", path) for path in keys):
        return "task-master"
    return "json"


def _paths(text: str) -> set[str]:
    """Return the paths of the keys in JSON that may be cut, such as ``.tasks[].title``."""
    found: set[str] = set()
    stack: list[str] = []
    path = ""
    key: str | None = None
    for token in _TOKEN.finditer(text):
        string, mark = token.group(1), token.group(2)
        if mark in ("{", "["):
            stack.append(path)
            path = f"{path}.{key}" if key is not None else path
            path += "[]" if mark == "[" else ""
            key = None
        elif mark in ("}", "]"):
            path = stack.pop() if stack else ""
            key = None
        elif mark == ":" and key is not None and len(stack) <= _DEPTH:
            found.add(f"{path}.{key}")
        elif mark == ",":
            key = None
        elif string is not None:
            key = string
    return found
