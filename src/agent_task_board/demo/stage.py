"""The stage of the demo: it starts the agents, acts as the person, and kills and wakes agents."""

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
"""Seconds between two reads of the board."""

EVENTS = 10_000
"""More events than a demo has."""


def run(data_dir: str | None, *, out: TextIO, quiet: bool) -> dict[str, Any]:
    """Let several processes complete the example tasks, show it on ``out``, and prove that no work was done twice.

    It takes about fifteen seconds, and at most a minute. All agents end before it returns or raises.

    Args:
        data_dir: the directory of the new board; by default a new temporary directory, which is kept.
        out: where to show what happens: a live table on a terminal, lines elsewhere.
        quiet: show nothing.

    Returns:
        ``directory tasks agents attempts refusals seconds proof``: ``attempts`` counts them by outcome, ``refusals``
        are objects of ``verb task agent code``, ``proof`` is a list of sentences.

    Raises:
        InvalidInput: ``data_dir`` already has a board.
        ProofFailed: the history breaks a guarantee.
        BoardError: an agent crashed, or the time limit was reached.
    """
    directory = tempfile.mkdtemp(prefix="atb-demo-") if data_dir is None else os.path.abspath(data_dir)
    board = Board(directory, actor=PERSON)
    if board.exists():
        raise InvalidInput(
            f"data_dir: a board exists: {board.path}",
            hint="Name another directory, or leave out --data-dir to use a temporary one.",
        )
    screen = Screen(io.StringIO()) if quiet else LiveScreen(out) if _can_redraw(out) else Screen(out)
    stage = Stage(board, directory, screen)
    try:
        return stage.play()
    finally:
        stage.close()
        board.close()


class Stage:
    """One run: the board, the processes of the agents, and their reports."""

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
        self._last_lines: dict[str, str] = {}
        """The last line of each agent's output that is not a report: the end of a traceback."""
        self._killed: str | None = None
        self._frozen: dict[str, str] = {}
        """The task of each frozen agent."""
        self._holders: dict[str, str] = {}
        """The last agent that claimed each task."""
        self._seen_since: dict[str, float] = {}
        self._rejected: set[str] = set()

    def play(self) -> dict[str, Any]:
        """Run from the import to the proof; return the ``data`` of the command."""
        imported = self.board.import_tasks(script.example_tasks()).imported
        self.events = self.board.events(limit=EVENTS)["events"]
        self.titles = {task.id: task.title for task in self.board.list_tasks(limit=1_000).tasks}
        self.screen.report(f"{imported} tasks imported into {self.directory}")
        for agent, queues in script.AGENTS.items():
            self._start_agent(agent, queues)
        while self._tick():
            if time.monotonic() - self.start > script.LIMIT:
                raise BoardError(
                    f"the demo took too long (limit {script.LIMIT:.0f} seconds)",
                    hint=f"The machine may be too busy. To see the board, run `atb --data-dir {self.directory} list`.",
                )
            time.sleep(TICK)
        return self._conclude()

    def close(self) -> None:
        """Kill every agent that is still running."""
        for process in self._processes.values():
            process.kill()  # also ends a frozen one
        for process in self._processes.values():
            process.wait()
        self._join_readers()

    # The agents

    def _start_agent(self, agent: str, queues: list[str]) -> None:
        """Start an agent, and a thread that reads its output."""
        process = subprocess.Popen(
            # -P: a file in the working directory must not replace a module of Python
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
        self.screen.report(f"{agent} starts as process {process.pid} for {' and '.join(queues)}")

    def _listen(self, agent: str, process: subprocess.Popen[str]) -> None:
        if process.stdout is not None:
            with process.stdout:
                for line in process.stdout:
                    self._inbox.put((agent, line))

    def _join_readers(self) -> None:
        for reader in self._readers.values():
            reader.join()

    # The board

    def _tick(self) -> bool:
        """Process new events and reports; return whether an agent is still running."""
        working = any(process.poll() is None for process in self._processes.values())
        if not working:  # checked first, so that no event or report is missed
            self._join_readers()
        for event in self.board.events(after=self.events[-1]["seq"], limit=EVENTS)["events"]:
            self.events.append(event)
            self._follow(event)
        self._read_reports()
        self._wake()
        self._check_for_crashes()
        self._review()
        self.screen.show(self._rows(), self.board.stats()["by_status"])
        return working

    def _follow(self, event: Event) -> None:
        """Show an event, and kill the agent whose incident it triggers."""
        kind, agent, title = event["kind"], event["actor"], self.titles[event["task_id"]]
        self.screen.report(sentence(event, title), TONES.get(kind, ""))
        if kind == "claimed":
            self._holders[event["task_id"]] = agent
        incident = script.INCIDENTS.get(title)
        if kind == "progressed" and incident and incident.kind == "is killed" and self._killed is None:
            self._killed = agent
            self._processes[agent].kill()
            self.screen.report(f'{agent} is killed while working on "{title}" (SIGKILL)', BAD)

    def _read_reports(self) -> None:
        """Process the output of the agents since the last call."""
        while True:
            try:
                agent, line = self._inbox.get_nowait()
            except Empty:
                return
            report = script.Report.from_line(line)
            if report is None:
                self.screen.report(f"{agent}: {line.rstrip()}", BAD)
                self._last_lines[agent] = line.strip()
                continue
            self.reports.append(report)
            title = self.titles[report.task]
            if report.kind == "froze":
                self._frozen[agent] = report.task
                self.screen.report(f'{agent} is frozen while working on "{title}" (SIGSTOP)', BAD)
            elif report.kind == "stale_call":
                answer = f"refused, {report.code}" if report.code else "accepted"
                self.screen.report(f'{agent} calls {report.verb} on "{title}" with its old token: {answer}', WARN)

    def _wake(self) -> None:
        """Wake a frozen agent once another agent holds its task."""
        for agent, task in list(self._frozen.items()):
            if any((one.kind, one.agent, one.task) == ("stale_call", agent, task) for one in self.reports):
                del self._frozen[agent]
            elif self._holders.get(task, agent) != agent:
                # repeated each time, because it may not have stopped yet
                self._processes[agent].send_signal(signal.SIGCONT)

    def _check_for_crashes(self) -> None:
        for agent, process in self._processes.items():
            if process.poll() not in (None, 0) and agent != self._killed:
                self._readers[agent].join()
                self._read_reports()
                line = self._last_lines.get(agent, "no output")
                raise BoardError(f"{agent} crashed with exit code {process.returncode}: {line}")

    # The person

    def _review(self) -> None:
        """Act as the person: approve tasks in review, reject some of them once, and retry failed tasks."""
        now = time.monotonic()
        for task in self.board.list_tasks(status=[REVIEW, FAILED]).tasks:
            if now - self._seen_since.setdefault(task.id, now) < script.REVIEW:
                continue
            del self._seen_since[task.id]
            note = script.REJECTIONS.get(task.title)
            if task.status == FAILED:
                self.board.retry(task.id)
            elif note and task.id not in self._rejected:
                self.board.reject(task.id, note=note)
                self._rejected.add(task.id)
            else:
                self.board.approve(task.id)

    # The output

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
                state = "working" if state == "idle" else state
                rows.append(Row(agent, state, held[0]["progress"], held[0]["title"]))
            else:
                rows.append(Row(agent, state))
        return rows

    def _conclude(self) -> dict[str, Any]:
        histories = [self.board.show(id_) for id_ in self.titles]
        sentences = proof.prove(histories, self.events, self.reports)
        outcomes = Counter(str(attempt["outcome"]) for history in histories for attempt in history["attempts"])
        refusals = [report for report in self.reports if report.kind == "stale_call"]
        seconds = round(time.monotonic() - self.start, 1)
        self.screen.conclude(
            [
                f"Proof, after {seconds} seconds and {outcomes.total()} attempts:",
                *(f"  - {one}" for one in sentences),
                "Calls by stale holders, and the answers:",
                *(f'  - {one.agent}, {one.verb} "{self.titles[one.task]}": {one.code}' for one in refusals),
                f"View the board: atb --data-dir {self.directory} list --format table",
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
