"""The script of the demo: the example tasks, the agents and the incidents.

An incident belongs to the title of a task and happens at its first claim. Every run therefore has the same incidents,
regardless of which agent holds the task.
"""

from __future__ import annotations

import json
import os
from typing import Any, NamedTuple

LEASE = 2.0
"""The length of every lease, in seconds."""

STEP = 0.2
"""Seconds between two heartbeats of an agent."""

PAUSE = 0.15
"""Seconds until an agent that found no task claims again."""

WAIT = 0.6
"""Seconds until a failed or released task can be claimed again."""

REVIEW = 0.7
"""Seconds until the person reviews or retries a task."""

LIMIT = 60.0
"""Seconds until the demo is aborted, so that it never hangs."""

AGENTS = {
    "coder-1": ["code"],
    "coder-2": ["code"],
    "coder-3": ["code"],
    "writer-1": ["docs"],
    "operator-1": ["ops", "docs"],
}
"""The agents and their queues. One coder is killed and one is frozen; the third continues."""

PARTNER = {"writer-1": "operator-1", "operator-1": "writer-1"}
"""The agent to which each agent hands off; both serve ``docs``."""

STALE_VERBS = ("heartbeat", "complete", "fail", "release", "handoff")
"""The verbs that an agent calls with its old token after it lost its lease."""


class Incident(NamedTuple):
    """What happens to the first agent that claims a task, and the error or note that it writes."""

    kind: str
    text: str = ""


INCIDENTS = {
    "Parse station files and reject broken ones": Incident("fails", "fetching tests/broken: the test store timed out"),
    "Back up the station store every night, and restore it once": Incident(
        "fails", "restore: 3 of 100 predictions differ, the copy was taken during a write"
    ),
    "Set up staging": Incident("gives up", "the proxy rejects the certificate; another attempt would lock the name"),
    "Build the container image": Incident("releases", "the base image is being rebuilt; nothing done yet"),
    "Write the API reference": Incident(
        "hands off", "The text is complete. Please run the examples against staging, which I cannot reach."
    ),
    "Collect the glossary": Incident("hands off", "Half of it is in docs/glossary.md, up to L. The rest is yours."),
    "Store stations in SQLite": Incident("is frozen"),
    "Predict the water level at any instant": Incident("is killed"),
}

REJECTIONS = {
    "Serve the tides of a station": "A height without its datum is a guess. Please add the datum to the answer.",
}
"""The tasks that the person rejects once, with the note."""


def example_tasks() -> Any:
    """Return the example for the import: ``examples/tasks.json`` of the package or, in a checkout, of the project.

    Raises:
        FileNotFoundError: the package was installed without it.
    """
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    packaged = os.path.join(package, "examples", "tasks.json")
    checkout = os.path.join(package, "..", "..", "examples", "tasks.json")
    with open(packaged if os.path.exists(packaged) else checkout, encoding="utf-8") as file:
        return json.load(file)


class Report(NamedTuple):
    """What an agent reports itself, in addition to what the board records; sent as one line of JSON.

    ``kind`` is ``completed``, ``froze`` or ``stale_call``. A stale call is a call of ``verb`` under a lost lease;
    ``code`` is its refusal, or ``None`` if it was accepted.
    """

    agent: str
    kind: str
    task: str
    fence: int
    verb: str | None = None
    code: str | None = None

    def to_line(self) -> str:
        """Return the report as a line, without a line break."""
        return json.dumps(self._asdict())

    @classmethod
    def from_line(cls, line: str) -> Report | None:
        """Return the report in a line; ``None`` if the line is other output, such as a traceback."""
        try:
            return cls(**json.loads(line))
        except (TypeError, ValueError):
            return None
