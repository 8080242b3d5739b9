"""What is played: the example, the agents, and the accidents.

Accidents go by the title of a task and happen at its first claim, so that every run shows the same ones, whichever
agent happens to hold the task.
"""

from __future__ import annotations

import json
import os
from typing import Any, NamedTuple

LEASE = 2.0
"""Seconds of every lease."""

STEP = 0.2
"""Seconds from one heartbeat of a working agent to the next."""

PAUSE = 0.15
"""Seconds after which an agent that found nothing asks again."""

WAIT = 0.6
"""Seconds that a failed or released task waits for its next claim."""

REVIEW = 0.7
"""Seconds that the person takes to look at something."""

LIMIT = 60.0
"""Seconds after which the demo gives up: it must never hang."""

AGENTS = {
    "coder-1": ["code"],
    "coder-2": ["code"],
    "coder-3": ["code"],
    "writer-1": ["docs"],
    "operator-1": ["ops", "docs"],
}
"""The agents and the queues that each serves. One coder is killed and one frozen: the third carries on."""

PARTNER = {"writer-1": "operator-1", "operator-1": "writer-1"}
"""Who takes over what an agent hands on; both serve ``docs``."""

STALE_VERBS = ("heartbeat", "complete", "fail", "release", "handoff")
"""Everything that an agent whose lease is gone tries with its old token."""


class Accident(NamedTuple):
    """What befalls the agent that claims a task first, and what it says about it."""

    kind: str
    words: str = ""


ACCIDENTS = {
    "Parse station files and reject broken ones": Accident("fails", "fetching tests/broken: the test store timed out"),
    "Back up the station store every night, and restore it once": Accident(
        "fails", "restore: 3 of 100 predictions differ, the copy was taken during a write"
    ),
    "Set up staging": Accident("gives up", "the proxy refuses the certificate; asking again would lock the name"),
    "Build the container image": Accident("releases", "the base image is being rebuilt just now; nothing done yet"),
    "Write the API reference": Accident(
        "hands off", "The text is complete. Please run the examples against staging, which I cannot reach."
    ),
    "Collect the glossary": Accident("hands off", "Half of it is in docs/glossary.md, up to L. The rest is yours."),
    "Store stations in SQLite": Accident("is frozen"),
    "Predict the water level at any instant": Accident("is killed"),
}

REJECTIONS = {
    "Serve the tides of a station": "A height without its datum is a guess. Please add the datum to the answer.",
}
"""What the person returns once, and with which note."""


def example_tasks() -> Any:
    """Return the example as it is imported: ``examples/tasks.json`` of the package or, in a checkout, of the project.

    Raises:
        FileNotFoundError: the package was installed without it.
    """
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    packaged = os.path.join(package, "examples", "tasks.json")
    checkout = os.path.join(package, "..", "..", "examples", "tasks.json")
    with open(packaged if os.path.exists(packaged) else checkout, encoding="utf-8") as file:
        return json.load(file)


class Report(NamedTuple):
    """What an agent says of itself, beside what the board records. Travels as one line of JSON.

    ``kind`` is ``completed``, ``froze`` or ``tried``; the last one, with ``verb``, is a call under a lease that was
    lost, and ``code`` is the refusal, or ``None`` when the call was accepted.
    """

    agent: str
    kind: str
    task: str
    fence: int
    verb: str | None = None
    code: str | None = None

    def to_line(self) -> str:
        """Return the line without its end."""
        return json.dumps(self._asdict())

    @classmethod
    def from_line(cls, line: str) -> Report | None:
        """Return the report of a line, or ``None`` when the line is none: the last words of a crash."""
        try:
            return cls(**json.loads(line))
        except (TypeError, ValueError):
            return None
