"""What callers write down themselves: each call before it is made, and what came of it.

A journal is a file of JSON lines. Each line is one ``write`` to a file opened for appending, so it survives the death
of its writer; it need not survive the machine. Times are milliseconds of the machine's clock.
"""

from __future__ import annotations

import json
import os
import time
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tests.proof.lifecycle import FOREVER

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def clock() -> int:
    """Return the present instant of the clock that all processes of this machine share."""
    return time.time_ns() // 1_000_000


def instant(text: str) -> int:
    """Return an instant that the board wrote in full."""
    return round(datetime.fromisoformat(text).timestamp() * 1_000)


class Journal:
    """One caller's own record; ``begin`` before a call, ``end`` with its answer."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def begin(self, call: dict[str, Any]) -> None:
        """Write down what is about to be asked."""
        self._write({**call, "begun": clock()})

    def end(self, number: str, answer: dict[str, Any] | None) -> None:
        """Write down what was told; ``None``: the answer was lost."""
        self._write({"id": number, "ended": clock(), "answer": answer})

    def _write(self, entry: dict[str, Any]) -> None:
        os.write(self._file, json.dumps(entry).encode() + b"\n")


class Entry:
    """One call of a journal; ``answer`` is ``None`` where none arrived."""

    def __init__(self, call: dict[str, Any]) -> None:
        self.id: str = call["id"]
        self.verb: str = call["verb"]
        self.mark: str = call["mark"]
        self.surface: str = call["surface"]
        self.agent: str | None = call.get("agent")
        self.person: str | None = call.get("person")
        self.task: str | None = call.get("task")
        self.args: dict[str, Any] = call.get("args", {})
        self.begun: int = call["begun"]
        self.ended = FOREVER
        self.answer: dict[str, Any] | None = None

    @property
    def accepted(self) -> bool:
        """Whether the caller was told that the call worked."""
        return self.answer is not None and self.answer["code"] == "ok"

    @property
    def replayed(self) -> bool:
        """Whether the caller was told that the call repeated an earlier one."""
        return self.answer is not None and bool(self.answer.get("replayed"))

    def __repr__(self) -> str:
        ended = "open" if self.answer is None else self.ended
        who = self.agent or self.person
        return (
            f"{self.id} {self.verb} by {who} over {self.surface}, {self.begun} to {ended}, {self.args}: {self.answer}"
        )


def read(path: Path) -> Iterator[Entry]:
    """Yield the calls of a journal in their order; a last line that was cut off is left out."""
    open_calls: dict[str, Entry] = {}
    order: list[Entry] = []
    for line in path.read_bytes().split(b"\n"):
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if "verb" in entry:
            order.append(Entry(entry))
            open_calls[entry["id"]] = order[-1]
        elif entry["answer"] is not None:
            open_calls[entry["id"]].answer = entry["answer"]
            open_calls[entry["id"]].ended = entry["ended"]
    yield from order


def read_all(directory: Path) -> list[Entry]:
    """Return the calls of every journal of a directory."""
    return [entry for path in sorted(directory.glob("*.journal")) for entry in read(path)]


def told(task: dict[str, Any]) -> dict[str, Any]:
    """Return what a task's JSON tells of its lifecycle."""
    ends = task["lease_expires_at"]
    return {
        **{name: task[name] for name in ("id", "status", "version", "fence", "attempts", "claimed_by", "assignee")},
        "ends": None if ends is None else (instant(ends), instant(ends)),
        "at": instant(task["updated_at"]),
    }


def from_data(data: dict[str, Any] | None) -> dict[str, Any]:
    """Return the answer that the ``data`` of a call that worked tells."""
    answer: dict[str, Any] = {"code": "ok"}
    if data is None:
        return {**answer, "nothing": True}
    if "task" in data:
        answer["task"] = told(data["task"])
    if "lease" in data:
        answer["lease"] = {"token": data["lease"]["token"], "fence": data["lease"]["fence"]}
    for name in ("replayed", "created"):
        if name in data:
            answer[name] = data[name]
    return answer


def from_error(error: dict[str, Any]) -> dict[str, Any]:
    """Return the answer that a refusal tells."""
    code, details = error["code"], error["details"]
    answer: dict[str, Any] = {"code": code}
    if code == "conflict":
        answer["code"] = f"conflict/{details.get('reason')}"
    if code not in ("conflict", "lease_lost", "busy"):
        answer["message"] = error["message"]
    actual = details.get("actual")
    if actual is not None:
        ends = actual["lease_expires_at"]
        state = {
            **{name: actual[name] for name in ("status", "version", "claimed_by")},
            "ends": None if ends is None else (instant(ends), instant(ends)),
        }
        if details.get("reason") == "dedupe":
            answer["other"] = {"id": details["task_id"], **state}
        else:
            answer["actual"] = state
    return answer
