"""One run: a board, callers, kills and freezes; then the checks, and a report of what was found."""

from __future__ import annotations

import compileall
import json
import platform
import sqlite3
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import agent_task_board
from agent_task_board import Board, __version__
from tests.proof.checker import linearizable
from tests.proof.clients import environment
from tests.proof.journal import Entry, clock, read_all, told
from tests.proof.ledger import Ledger
from tests.proof.mayhem import CHORES, Mayhem

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

SOURCE = Path(agent_task_board.__file__).parents[1]

CALLERS = {"cli": 2, "http": 2, "mcp": 1, "python": 2}
"""How many callers of each surface there are."""


def prove(
    directory: Path,
    *,
    seconds: float,
    seed: int,
    source: Path = SOURCE,
    callers: Mapping[str, int] = CALLERS,
    servers: int = 2,
    chores: Iterable[str] = CHORES,
    kill_every: float = 1.5,
    freeze_every: float = 2.5,
) -> dict[str, Any]:
    """Run callers on a new board for so many seconds, check everything, and return the report.

    Args:
        directory: an empty directory for the board, the journals and what processes say on standard error.
        seconds: how long callers work; checking comes on top.
        seed: of every random choice of the harness. Processes race all the same, so no two runs are equal.
        source: the directory that holds the package under test.
        callers: how many callers of each surface.
        servers: how many ``atb serve`` there are.
        chores: which commands run beside the callers.
        kill_every: seconds between two kills, on average.
        freeze_every: the same for freezes.
    """
    compileall.compile_dir(source, quiet=2)
    with Board(directory / "data") as board:
        board.create()
    mayhem = Mayhem(
        directory, seed=seed, seconds=seconds, source=source, callers=callers, servers=servers, chores=chores,
        kill_every=kill_every, freeze_every=freeze_every,
    )  # fmt: skip
    begun = clock()
    mayhem.run()
    ran = (clock() - begun) / 1_000
    archives = "archive" in set(chores)
    report = check(directory, archives=archives, backups=mayhem.backups, source=source)
    report["violations"] = [*mayhem.faults, *report["violations"]]
    counts = {**dict(sorted(mayhem.counts.items())), **report.pop("counts")}
    where = f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, atb {__version__}"
    return {"seconds": round(ran), "seed": seed, "on": where, "counts": counts, **report}


def check(
    directory: Path, *, archives: bool, source: Path, backups: Iterable[tuple[int, dict[str, Any]]] = ()
) -> dict[str, Any]:
    """Check what a run left behind: journals against the board, every task, the file, and the newest backup."""
    entries = read_all(directory)
    events = _events(directory / "data")
    looks = list(_last_looks(directory / "data"))
    ledger = Ledger([*entries, *looks], events)
    violations = list(ledger.violations())
    calls = ledger.calls_by_task()
    visited, most = 0, 0
    for task, of_task in calls.items():
        verdict = linearizable(of_task, archives=archives)
        visited, most = visited + verdict.visited, max(most, len(of_task))
        if not verdict.holds:
            violations.append(f"task {task}: {verdict.why}")
    violations += _doctor(directory / "data", source)
    for number, (begun, backup) in enumerate(list(backups)[-1:]):
        violations += _restored(backup, begun, directory / f"restored-{number}", ledger, source)
    counts = {
        "calls": len(entries),
        **{f"calls over {name}": count for name, count in _count(entry.surface for entry in entries).items()},
        "answers lost": sum(entry.answer is None for entry in entries),
        "tasks": len(looks),
        "events": len(events),
        "calls on one task, at most": most,
        "orders tried": visited,
    }
    answers = _count(entry.answer["code"] for entry in entries if entry.answer is not None)
    answers["replayed"] = sum(entry.replayed for entry in entries)
    kinds = _count(event["kind"] for event in events)
    worked = _count(f"{entry.surface} {entry.verb}" for entry in entries if entry.accepted)
    return {"counts": counts, "answers": answers, "events": kinds, "worked": worked, "violations": violations}


def _count(words: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(words).items()))


def _events(data_dir: Path) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    with Board(data_dir, read_only=True) as board:
        while page := board.events(after=len(events) and events[-1]["seq"], limit=1_000)["events"]:
            events += [dict(event) for event in page]
    return events


def _last_looks(data_dir: Path) -> Iterable[Entry]:
    """Yield a look at every task, after everybody has ended."""
    now = clock()
    with Board(data_dir, read_only=True) as board:
        for archived in (False, True):
            after: str | None = None
            while True:
                page = board.list_tasks(archived=archived, limit=100, after=after).to_dict()
                for task in page["tasks"]:
                    number = f"last look at {task['id']}"
                    entry = Entry({
                        "id": number, "mark": number, "verb": "show", "surface": "python", "agent": "checker",
                        "task": task["id"], "begun": now,
                    })  # fmt: skip
                    entry.ended, entry.answer = clock(), {"code": "ok", "task": told(task)}
                    yield entry
                after = page["next"]
                if after is None:
                    break


def _doctor(data_dir: Path, source: Path) -> list[str]:
    ran = _atb(source, "--data-dir", str(data_dir), "doctor")
    if ran.returncode == 0:
        return []
    return [f"doctor of {data_dir.name} ends with {ran.returncode}: {ran.stdout[-4_000:].decode()}"]


def _restored(backup: dict[str, Any], begun: int, place: Path, ledger: Ledger, source: Path) -> list[str]:
    """Say what a backup lacks: it holds everything that was told before it was called for, and nothing else."""
    ran = _atb(source, "restore", backup["path"], "--data-dir", str(place))
    if ran.returncode != 0:
        return [f"restore ends with {ran.returncode}: {ran.stdout[-4_000:].decode()}"]
    found, events = _events(place), list(ledger.events)
    if found != events[: len(found)]:
        return [f"the backup {backup['path']} has another history than the board"]
    missing = ledger.told_before(begun, events[len(found) :])
    return [f"the backup lacks {event}" for event in missing[:3]] + _doctor(place, source)


def _atb(source: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "agent_task_board", *arguments],
        env=environment(PYTHONPATH=str(source)),
        stdin=subprocess.DEVNULL,
        capture_output=True,
    )


def as_text(report: dict[str, Any]) -> str:
    """Return a report as JSON."""
    return json.dumps(report, indent=1, ensure_ascii=False) + "\n"
