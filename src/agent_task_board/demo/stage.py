"""The stage of the demo: it starts the agents, plays the person and the accidents, and keeps the time."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from ..errors import BoardError, InvalidInput
from ..identity import Actor
from ..model import FAILED, HUMAN, OUTCOMES, REVIEW
from ..service import Board
from . import proof, script
from .screen import BAD, TONES, WARN, LiveScreen, Row, Screen, sentence

if TYPE_CHECKING:
    from typing import Any, TextIO

    from ..model import Event
    from .script import Report

PERSON = Actor("reviewer", HUMAN)
MODULE = "agent_task_board.demo"
TICK = 0.1
"""Seconds between two looks at the board."""

EVENTS = 10_000
"""More events than a demo makes."""


def run(data_dir: str | None, *, out: TextIO, quiet: bool) -> dict[str, Any]:
    """Let several processes empty the example board, tell it on ``out``, and prove that nothing was done twice.

    Takes about fifteen seconds and never more than a minute. No agent outlives the call, whatever ends it.

    Args:
        data_dir: where to make the board; by default a new temporary directory, which is kept.
        out: where to tell what happens: a live table on a terminal, lines elsewhere.
        quiet: tell nothing.

    Returns:
        ``directory tasks agents attempts refusals seconds proof``: ``attempts`` counts them by outcome, ``refusals``
        are objects of ``verb task agent code``, ``proof`` is a list of sentences.

    Raises:
        InvalidInput: ``data_dir`` holds a board already.
        ProofFailed: something happened twice, or out of order.
        BoardError: an agent crashed, or the time ran out.
    """
    directory = tempfile.mkdtemp(prefix="atb-demo-") if data_dir is None else os.path.abspath(data_dir)
    board = Board(directory, actor=PERSON)
    if board.exists():
        raise InvalidInput(
            f"there is a board already, {board.path}, and the demo makes its own",
            hint="Name another directory, or leave --data-dir out for a temporary one.",
        )
    screen = Screen(io.StringIO()) if quiet else LiveScreen(out) if _can_redraw(out) else Screen(out)
    stage = Stage(board, directory, screen)
    try:
        return stage.play()
    finally:
        stage.close()
        board.close()


class Stage:
    """One performance: the board, the agents' processes, and what they said."""

    def __init__(self, board: Board, directory: str, screen: Screen) -> None:
        self.board = board
        self.directory = directory
        self.screen = screen
        self.start = time.monotonic()
        self.titles: dict[str, str] = {}
        self.events: list[Event] = []
        self.reports: list[Report] = []
        self._processes: dict[str, subprocess.Popen[str]] = {}
        self._readers: dict[str, threading.Thread] = {}
        self._inbox: SimpleQueue[tuple[str, str]] = SimpleQueue()
        self._last_words: dict[str, str] = {}
        """What an agent said that is no report: the end of a traceback."""
        self._killed: str | None = None
        self._frozen: dict[str, str] = {}
        """The task of each agent that stands still."""
        self._holders: dict[str, str] = {}
        """Who claimed each task last."""
        self._looking_since: dict[str, float] = {}
        self._returned: set[str] = set()

    def play(self) -> dict[str, Any]:
        """Run from the import to the proof; return the answer of the command."""
        imported = self.board.import_tasks(script.example_tasks()).imported
        self.events = self.board.events(limit=EVENTS)["events"]
        self.titles = {task.id: task.title for task in self.board.list_tasks(limit=1_000).tasks}
        self.screen.tell(f"{imported} tasks imported into {self.directory}")
        for agent, queues in script.AGENTS.items():
            self._enter(agent, queues)
        while self._tick():
            if time.monotonic() - self.start > script.LIMIT:
                raise BoardError(
                    f"the demo did not end within {script.LIMIT:.0f} seconds",
                    hint=f"Look at {self.directory} with `atb list`; a very busy machine may be the reason.",
                )
            time.sleep(TICK)
        return self._conclude()

    def close(self) -> None:
        """End every agent that still runs."""
        for process in self._processes.values():
            process.kill()  # reaches a frozen one, too
        for process in self._processes.values():
            process.wait()
        self._join_readers()

    # The agents

    def _enter(self, agent: str, queues: list[str]) -> None:
        """Start an agent, and a thread that listens to it."""
        process = subprocess.Popen(
            # -P: a file of the viewer's working directory must not stand in for a module of Python
            [sys.executable, "-P", "-m", MODULE, self.directory, agent, *queues],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
        )
        self._processes[agent] = process
        reader = threading.Thread(target=self._listen, args=(agent, process), daemon=True)
        self._readers[agent] = reader
        reader.start()
        self.screen.tell(f"{agent} starts as process {process.pid}, serving {' and '.join(queues)}")

    def _listen(self, agent: str, process: subprocess.Popen[str]) -> None:
        if process.stdout is not None:
            with process.stdout:
                for line in process.stdout:
                    self._inbox.put((agent, line))

    def _join_readers(self) -> None:
        for reader in self._readers.values():
            reader.join()

    # One look at everything

    def _tick(self) -> bool:
        """Follow the board and the agents; return whether anybody is still at work."""
        working = any(process.poll() is None for process in self._processes.values())
        if not working:  # asked first, so that nothing they did is missed
            self._join_readers()
        for event in self.board.events(after=self.events[-1]["seq"], limit=EVENTS)["events"]:
            self.events.append(event)
            self._follow(event)
        self._hear()
        self._wake()
        self._check_for_crashes()
        self._review()
        self.screen.show(self._rows(), self.board.stats()["by_status"])
        return working

    def _follow(self, event: Event) -> None:
        """Tell an event, and let the accident happen that waits for it."""
        kind, agent, title = event["kind"], event["actor"], self.titles[event["task_id"]]
        self.screen.tell(sentence(event, title), TONES.get(kind, ""))
        if kind == "claimed":
            self._holders[event["task_id"]] = agent
        accident = script.ACCIDENTS.get(title)
        if kind == "progressed" and accident and accident.kind == "is killed" and self._killed is None:
            self._killed = agent
            self._processes[agent].kill()
            self.screen.tell(f'{agent} is killed in the middle of "{title}" (SIGKILL)', BAD)

    def _hear(self) -> None:
        """Take in what the agents said since the last look."""
        while True:
            try:
                agent, line = self._inbox.get_nowait()
            except Empty:
                return
            report = script.Report.from_line(line)
            if report is None:
                self.screen.tell(f"{agent}: {line.rstrip()}", BAD)
                self._last_words[agent] = line.strip()
                continue
            self.reports.append(report)
            title = self.titles[report.task]
            if report.kind == "froze":
                self._frozen[agent] = report.task
                self.screen.tell(f'{agent} is frozen in the middle of "{title}" (SIGSTOP)', BAD)
            elif report.kind == "tried":
                answer = f"refused, {report.code}" if report.code else "accepted"
                self.screen.tell(f'{agent} tries to {report.verb} "{title}" with its old token: {answer}', WARN)

    def _wake(self) -> None:
        """Wake whoever is frozen once somebody else holds its task."""
        for agent, task in list(self._frozen.items()):
            if any((one.kind, one.agent, one.task) == ("tried", agent, task) for one in self.reports):
                del self._frozen[agent]
            elif self._holders.get(task, agent) != agent:
                self._processes[agent].send_signal(signal.SIGCONT)  # again at each look: it may be about to stop

    def _check_for_crashes(self) -> None:
        for agent, process in self._processes.items():
            if process.poll() not in (None, 0) and agent != self._killed:
                self._readers[agent].join()
                self._hear()
                said = self._last_words.get(agent, "nothing")
                raise BoardError(f"{agent} crashed with exit code {process.returncode}; its last words: {said}")

    # The person

    def _review(self) -> None:
        """Do the person's part: approve what is in review, return some of it once, and retry what failed."""
        now = time.monotonic()
        for task in self.board.list_tasks(status=[REVIEW, FAILED]).tasks:
            if now - self._looking_since.setdefault(task.id, now) < script.REVIEW:
                continue
            del self._looking_since[task.id]
            note = script.REJECTIONS.get(task.title)
            if task.status == FAILED:
                self.board.retry(task.id)
            elif note and task.id not in self._returned:
                self.board.reject(task.id, note=note)
                self._returned.add(task.id)
            else:
                self.board.approve(task.id)

    # What is seen

    def _rows(self) -> list[Row]:
        known = {agent["name"]: agent for agent in self.board.agents()}
        rows = []
        for agent, process in self._processes.items():
            state = "idle"
            if agent == self._killed:
                state = "killed"
            elif agent in self._frozen:
                state = "frozen"
            elif process.poll() is not None:
                state = "ended"
            held = known[agent]["holds"] if agent in known else []
            if held:
                state = "works" if state == "idle" else state
                rows.append(Row(agent, state, held[0]["progress"], held[0]["title"]))
            else:
                rows.append(Row(agent, state))
        return rows

    def _conclude(self) -> dict[str, Any]:
        histories = [self.board.show(id_) for id_ in self.titles]
        sentences = proof.prove(histories, self.events, self.reports)
        outcomes = Counter(str(attempt["outcome"]) for history in histories for attempt in history["attempts"])
        refusals = [report for report in self.reports if report.kind == "tried"]
        seconds = round(time.monotonic() - self.start, 1)
        self.screen.conclude(
            [
                f"Proof, after {seconds} seconds and {outcomes.total()} attempts:",
                *(f"  - {one}" for one in sentences),
                "Every call of a stale holder, and the answer:",
                *(f'  - {one.agent}, {one.verb} "{self.titles[one.task]}": {one.code}' for one in refusals),
                f"Look at the board: atb --data-dir {self.directory} list --format table",
            ]
        )
        return {
            "directory": self.directory,
            "tasks": len(histories),
            "agents": [
                {key: agent[key] for key in ("name", "completed", "failed", "expired")} for agent in self.board.agents()
            ],
            "attempts": {outcome: outcomes[outcome] for outcome in OUTCOMES},
            "refusals": [
                {"verb": one.verb, "task": one.task, "agent": one.agent, "code": one.code} for one in refusals
            ],
            "seconds": seconds,
            "proof": sentences,
        }


def _can_redraw(out: TextIO) -> bool:
    return out.isatty() and os.environ.get("TERM") != "dumb"
