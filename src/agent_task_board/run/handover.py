"""What a command is given and what it leaves: its arguments, its environment, and files in a directory of its own."""

from __future__ import annotations

import json
import os
import re

from .. import inputs
from ..errors import InvalidInput
from ..printable import escape_json
from ..text import compact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from ..model import Attention, Grant, TaskDetails

BRIEF_TOKENS = 2_000
"""Tokens of the brief, at most."""
RESULT_BYTES = 2 * inputs.JSON_BYTES
"""Bytes of a result file that are read, at most."""
_PLACES = re.compile(r"\{(id|title|brief)\}")


class Handover:
    """The files of one attempt, in a directory that only this user can enter.

    Args:
        directory: the directory; it exists and is empty.
        grant: the claim.
        found: the task with what belongs to it.
        attention: what the board needs people for.
    """

    def __init__(self, directory: str, grant: Grant, found: TaskDetails, attention: Attention) -> None:
        self._grant = grant
        self.brief = compact.details(found, attention, tokens=BRIEF_TOKENS)
        self.task_file = os.path.join(directory, "task.json")
        self._brief_file = os.path.join(directory, "brief.txt")
        self._result_file = os.path.join(directory, "result")
        self._artifacts_file = os.path.join(directory, "artifacts")
        document = {"task": grant.task.to_dict(), "brief": self.brief}
        _write(self.task_file, escape_json(json.dumps(document, ensure_ascii=False)) + "\n")
        _write(self._brief_file, self.brief)

    def words(self, command: Sequence[str]) -> list[str]:
        """Return the command with ``{id}``, ``{title}`` and ``{brief}`` replaced, each once and within its argument."""
        values = {"id": self._grant.task.id, "title": self._grant.task.title, "brief": self.brief}
        first, *others = command
        return [first, *(_PLACES.sub(lambda found: values[found[1]], word) for word in others)]

    def environment(self, environ: Mapping[str, str], agent: str, data_dir: str) -> dict[str, str]:
        """Return the environment of the command: that of this process, and what `atb` needs to act on this attempt."""
        found = dict(environ)
        if found.get("ATB_CONFIG"):  # the command may run in another directory
            found["ATB_CONFIG"] = os.path.abspath(os.path.expanduser(found["ATB_CONFIG"]))
        lease = self._grant.lease
        return {
            **found,
            "ATB_AGENT": agent,
            "ATB_DATA_DIR": data_dir,
            "ATB_TASK_ID": self._grant.task.id,
            "ATB_TASK_FILE": self.task_file,
            "ATB_BRIEF_FILE": self._brief_file,
            "ATB_RESULT_FILE": self._result_file,
            "ATB_ARTIFACTS_FILE": self._artifacts_file,
            "ATB_ATTEMPT": str(self._grant.task.attempts),
            "ATB_FENCE": str(lease.fence),
            "ATB_TOKEN": lease.token,
        }

    def result(self) -> Any:
        """Return the result that the command left: JSON, else ``{"text": …}``; ``None`` if it left none.

        Raises:
            InvalidInput: it is too large.
        """
        text = _read(self._result_file)
        if not text.strip():
            return None
        try:
            return inputs.parse_json(text, "result")
        except InvalidInput:
            return {"text": text.rstrip()}

    def artifacts(self) -> list[str]:
        """Return the paths that the command left: a JSON array, or one path a line.

        Raises:
            InvalidInput: they are not paths, or too many.
        """
        text = _read(self._artifacts_file)
        if text.lstrip().startswith("["):
            return list(inputs.artifacts(inputs.parse_json(text, "artifacts")))
        return list(inputs.artifacts([line.strip() for line in text.splitlines() if line.strip()]))


def _write(path: str, text: str) -> None:
    with open(path, "x", encoding="utf-8", errors="replace") as file:
        file.write(text)


def _read(path: str) -> str:
    """Return the text of a file that the command may have written; empty if there is none."""
    try:
        # The command may have put anything here: a pipe must not stop us, a link is not followed.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    with os.fdopen(descriptor, "rb") as file:
        content = file.read(RESULT_BYTES + 1) or b""
    if len(content) > RESULT_BYTES:
        raise InvalidInput(f"{os.path.basename(path)}: too large (limit {RESULT_BYTES:,} bytes)")
    return content.decode("utf-8", "replace")
