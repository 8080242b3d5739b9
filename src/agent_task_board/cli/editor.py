"""``atb edit``: a task as one text in the caller's editor, and what was changed in it as one update."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from datetime import datetime

from .. import inputs, instants
from ..errors import BoardError, InvalidInput
from .command import Reply
from .leases import receipt_reply
from .output import complain
from .parsing import did_you_mean, whole_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .command import Call

EXPLAINED = """\
# Change what you like, save, and close the editor. To change nothing, close it without saving.
# An empty value clears a field. Each tag and each dependency has a line of its own: add lines, or remove them.
# Lines above the first empty line that begin with # are comments. Below it is the body, as it is.
"""
LISTS = {"tag": "tags", "depends-on": "depends_on"}
"""Keys that may stand on several lines, with the arguments of the service."""
FIELDS = {
    "title": "title",
    "queue": "queue",
    "priority": "priority",
    "assignee": "assignee",
    "due": "due_at",
    "not-before": "not_before",
    **LISTS,
    "params": "params",
    "dedupe-key": "dedupe_key",
    "max-attempts": "max_attempts",
    "max-runtime": "max_runtime",
    "needs-approval": "needs_approval",
}
"""The keys of the header, which are the options of ``atb update``, with the arguments of the service."""
YES, NO = "yes", "no"


def edit(call: Call) -> Reply:
    """Open a task in the editor, and write what was changed.

    Raises:
        InvalidInput: there is no editor, it failed, or the text cannot be read.
        BoardError: the update was refused. The text stays in its file then, as ``details.file``.
    """
    words = _editor()
    details = call.board.show(call.args.id)
    task: dict[str, Any] = details["task"]
    text = write(task, call.config.settings.timezone)
    directory = tempfile.mkdtemp(prefix="atb-edit-")  # with what the editor itself leaves beside the file
    path = os.path.join(directory, f"{task['id'][-6:]}.md")
    edited: str | None = None
    try:
        _create(path, text)
        _run(words, path)
        edited = call.read_text(path, "file")
        given = changes(text, edited)
        if given:
            version = task["version"]
            receipt = call.board.update(task["id"], **given, if_version=version, actor=call.actor())
    except BaseException as error:
        if edited is None:
            edited = _content(path)
        if edited in (None, text):
            shutil.rmtree(directory, ignore_errors=True)
        else:
            _keep(path, error)
        raise
    shutil.rmtree(directory, ignore_errors=True)
    if given:
        return receipt_reply(call, receipt, "updated")

    def in_brief(warnings: list[str]) -> str:
        from ..text import compact

        return compact.unchanged(task, warnings=warnings)

    zone = call.config.settings.timezone
    return Reply({"task": task}, page="receipt", warnings=["nothing was changed"], zone=zone, compact=in_brief)


def _editor() -> list[str]:
    """Return the words of the editor's command."""
    for name in ("VISUAL", "EDITOR"):
        command = os.environ.get(name, "").strip()
        if command:
            try:
                return shlex.split(command)
            except ValueError as error:
                raise InvalidInput(f"{name}: not a command: {command[:60]!r} ({error})", field=name) from None
    raise InvalidInput(
        "editor: VISUAL and EDITOR are not set",
        hint="Set one of them, as in `EDITOR=nano atb edit ID`, or change single fields with `atb update ID`.",
        field="editor",
    )


def _create(path: str, text: str) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(text.encode())


def _run(words: list[str], path: str) -> None:
    """Run the editor until it ends; Ctrl-C in it is its own affair."""
    # Standard output is for the answer alone, so an editor gets it only where both are the terminal.
    output = None if sys.stdout is not None and sys.stdout.isatty() else 2
    # A handler, not SIG_IGN, which the editor would inherit.
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        code = subprocess.run([*words, path], stdout=output, check=False).returncode
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InvalidInput(
            f"editor: {words[0][:60]!r} cannot be started: {reason}", hint="Correct VISUAL or EDITOR.", field="editor"
        ) from None
    finally:
        signal.signal(signal.SIGINT, before)
    if code:
        how = f"was ended by signal {-code}" if code < 0 else f"exited with {code}"
        raise InvalidInput(
            f"editor: {words[0][:60]!r} {how}; nothing was changed", hint="Edit the task again.", field="editor"
        )


def _content(path: str) -> str | None:
    try:
        with open(path, "rb") as file:
            return file.read().decode("utf-8", "replace")
    except OSError:
        return None


def _keep(path: str, error: BaseException) -> None:
    """Leave the text where it is, readable to its owner only, and say where."""
    os.chmod(path, 0o600)
    if isinstance(error, BoardError):
        error.details["file"] = path
        error.hint = f"{error.hint} Your text is kept in {path}."
    else:
        complain(f"your text is kept in {path}\n")


# The text


def write(task: dict[str, Any], zone: str) -> str:
    """Return a task as text: comments, a line for each field, an empty line, the body."""
    values: dict[str, list[str]] = {
        "title": [task["title"]],
        "queue": [task["queue"]],
        "priority": [str(task["priority"])],
        "assignee": [task["assignee"] or ""],
        "due": [_local(task["due_at"], zone)],
        "not-before": [_local(task["not_before"], zone)],
        "tag": task["tags"] or [""],
        "depends-on": task["blocked_by"] or [""],
        "params": [json.dumps(task["params"], ensure_ascii=False) if task["params"] else ""],
        "dedupe-key": [task["dedupe_key"] or ""],
        "max-attempts": [str(task["max_attempts"])],
        "max-runtime": ["" if task["max_runtime"] is None else str(task["max_runtime"])],
        "needs-approval": [YES if task["needs_approval"] else NO],
    }
    header = "".join(f"{key}: {value}".rstrip(" ") + "\n" for key in FIELDS for value in values[key])
    return f"{EXPLAINED}{header}\n{task['body']}\n"


def _local(instant: str | None, zone: str) -> str:
    if instant is None:
        return ""
    return datetime.fromisoformat(instant).astimezone(instants.load_zone(zone)).isoformat(timespec="milliseconds")


def changes(before: str, after: str) -> dict[str, Any]:
    """Return what differs between two texts, as arguments of ``Board.update``.

    A line that is gone removes that tag or dependency; the other fields stay as they are without their lines.

    Raises:
        InvalidInput: the header of the second is malformed; the message has the number of the line.
    """
    if before == after:
        return {}
    old, old_body = _read(before)
    new, new_body = _read(after)
    given: dict[str, Any] = {}
    for key, values in new.items():
        if values != old[key]:
            given[FIELDS[key]] = _value(key, values)
    if LISTS.keys() - new.keys():  # without its last line, a list is empty
        given |= {FIELDS[key]: [] for key in LISTS.keys() - new.keys() if old[key]}
    if new_body.rstrip("\n") != old_body.rstrip("\n"):  # editors differ in how they end a file
        given["body"] = new_body
    return given


def _read(text: str) -> tuple[dict[str, list[str]], str]:
    """Return the values of the header by their keys, and the body."""
    lines = text.split("\n")
    found: dict[str, list[str]] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            body = "\n".join(lines[number:])
            break
        if line.startswith("#"):
            continue
        key, colon, value = line.partition(":")
        key = key.strip().lower()
        if not colon or key not in FIELDS:
            what = f"unknown field {key[:60]!r}" if colon else "not `field: value`"
            raise InvalidInput(
                f"line {number}: {what}",
                hint=did_you_mean(key, FIELDS) or "The body begins after the first empty line.",
                field="file",
                line=number,
            )
        if key in found and key not in LISTS:
            raise InvalidInput(f"line {number}: {key} is there twice", field="file", line=number)
        found.setdefault(key, []).append(value.strip())
    else:
        body = ""
    for key in LISTS.keys() & found.keys():
        found[key] = [value for value in found[key] if value]
    return found, body.removesuffix("\n")


def _value(key: str, values: list[str]) -> Any:
    """Return the value of a field as the service takes it."""
    if key in LISTS:
        return values
    value = values[0]
    if key == "title":
        return value
    if key == "needs-approval":
        if value.lower() not in (YES, NO):
            raise InvalidInput(f"needs-approval: {YES} or {NO}, not {value[:60]!r}", field="needs_approval")
        return value.lower() == YES
    if not value:
        return None
    if key in ("priority", "max-attempts"):
        try:
            return whole_number(value)
        except Exception as error:
            raise InvalidInput(f"{key}: {error}", field=FIELDS[key]) from None
    return inputs.parse_json(value, "params") if key == "params" else value
