"""Processes that are started, killed, frozen and started again, at random, from one seed."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.proof.clients import environment
from tests.proof.journal import clock

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ROOT = Path(__file__).parents[2]
LIMIT = 120.0
"""Seconds after which a process that should have ended is taken for stuck."""

GONE_BY_SIGNAL = -signal.SIGKILL

CHORES = {
    "tick": (1.0, ["tick"]),
    "backup": (8.0, ["backup", "--keep", "3"]),
    "archive": (6.0, ["archive", "--older-than", "4s"]),
    "doctor": (60.0, ["doctor"]),
}
"""Commands that run beside the callers: seconds between two of a kind on average, and arguments."""

MAY_END_WITH = (0, 7, GONE_BY_SIGNAL)
"""How a chore may end: well, with ``busy``, or killed."""


class Player:
    """One process that is always there: a caller or a server, in a process group of its own."""

    def __init__(self, name: str, command: list[str], directory: Path, env: dict[str, str]) -> None:
        self.name = name
        self.command = command
        self.starts = 0
        self.frozen_until = 0.0
        self._errors = directory / f"{name}.err"
        self._env = env
        self.process = self.start()

    def start(self) -> subprocess.Popen[bytes]:
        """Start it, or start it again."""
        command = [word.replace("START", str(self.starts)) for word in self.command]
        with self._errors.open("ab") as errors:
            self.process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=self._env,
                start_new_session=True,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
            )
        self.starts += 1
        return self.process

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process and to all that it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    @property
    def last_words(self) -> str:
        """The end of what it said on standard error."""
        return self._errors.read_bytes()[-700:].decode(errors="replace")


class Mayhem:
    """Everything that runs on one board, and what happens to it."""

    def __init__(
        self,
        directory: Path,
        *,
        seed: int,
        seconds: float,
        source: Path,
        callers: Mapping[str, int],
        servers: int,
        chores: Iterable[str],
        kill_every: float,
        freeze_every: float,
    ) -> None:
        self.random = random.Random(f"mayhem {seed}")
        self.directory = directory
        self.counts: Counter[str] = Counter()
        self.faults: list[str] = []
        self.backups: list[tuple[int, dict[str, Any]]] = []
        self._kill_every, self._freeze_every = kill_every, freeze_every
        self._env = environment(PYTHONPATH=f"{source}{os.pathsep}{ROOT}")
        self._chores: list[tuple[str, int, subprocess.Popen[bytes], float | None]] = []
        self._due = {chore: time.monotonic() + self.random.uniform(0, CHORES[chore][0]) for chore in chores}
        ports = [_free_port() for _ in range(servers)]
        self.servers = [
            Player(f"server-{port}", self._atb("serve", "--port", str(port), "--quiet"), directory, self._env)
            for port in ports
        ]
        for port in ports:
            _listening(port)
        self.deadline = clock() + round(seconds * 1_000)
        names = [(surface, f"{surface}-{number}") for surface, count in callers.items() for number in range(count)]
        others = ",".join(name for _, name in names)
        self.callers = [
            Player(
                name,
                [
                    sys.executable, "-m", "tests.proof.callers", surface, name, str(directory), f"{seed} {name} START",
                    str(self.deadline), ",".join(map(str, ports)) or "0", others,
                ],
                directory,
                self._env,
            )
            for surface, name in names
        ]  # fmt: skip

    def _atb(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "agent_task_board", "--data-dir", str(self.directory / "data"), *arguments]

    def run(self) -> None:
        """Kill, freeze and restart until the deadline; then let everybody end."""
        try:
            kill, freeze = self._next(self._kill_every), self._next(self._freeze_every)
            while clock() < self.deadline:
                now = time.monotonic()
                self._look_after(now)
                self._do_chores(now)
                if now >= kill:
                    self._kill()
                    kill = self._next(self._kill_every)
                if now >= freeze:
                    self._freeze(now)
                    freeze = self._next(self._freeze_every)
                time.sleep(0.02)
            self._end()
        finally:
            for player in [*self.callers, *self.servers]:
                player.signal(signal.SIGKILL)
                player.process.wait()
            for _, _, process, _ in self._chores:
                process.kill()
                process.communicate()

    def _next(self, every: float) -> float:
        return time.monotonic() + self.random.expovariate(1 / every)

    def _look_after(self, now: float) -> None:
        for player in [*self.callers, *self.servers]:
            code = player.process.poll()
            if code is not None:
                if code != GONE_BY_SIGNAL:
                    self.faults.append(f"{player.name} ended with {code}: {player.last_words}")
                player.signal(signal.SIGKILL)  # what it started dies with it
                player.frozen_until = 0.0
                player.start()
                self.counts["restarts"] += 1
            elif player.frozen_until and now >= player.frozen_until:
                player.frozen_until = 0.0
                player.signal(signal.SIGCONT)

    def _kill(self) -> None:
        player = self.random.choice([*self.callers, *self.servers])
        player.signal(signal.SIGKILL)
        self.counts["kills of servers" if player in self.servers else "kills of callers"] += 1

    def _freeze(self, now: float) -> None:
        player = self.random.choice([*self.callers, *self.servers])
        if not player.frozen_until:
            player.signal(signal.SIGSTOP)
            player.frozen_until = now + self.random.uniform(0.1, 3.5)
            self.counts["freezes"] += 1

    def _do_chores(self, now: float) -> None:
        for chore, due in self._due.items():
            if now >= due:
                every, arguments = CHORES[chore]
                process = subprocess.Popen(
                    self._atb(*arguments), env=self._env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
                )
                end = now + self.random.uniform(0, 0.3) if self.random.random() < 0.1 else None
                self._chores.append((chore, clock(), process, end))
                self._due[chore] = self._next(every)
        for entry in list(self._chores):
            chore, begun, process, end = entry
            if process.poll() is None:
                if end is not None and now >= end:
                    process.kill()
                    self.counts["kills of chores"] += 1
                continue
            self._chores.remove(entry)
            self._chore_ended(chore, begun, process)

    def _chore_ended(self, chore: str, begun: int, process: subprocess.Popen[bytes]) -> None:
        out, _ = process.communicate()
        if process.returncode not in MAY_END_WITH:
            self.faults.append(f"{chore} ended with {process.returncode}: {out[-3_000:].decode(errors='replace')}")
        elif process.returncode == 0:
            self.counts[chore] += 1
            if chore == "backup":
                self.backups.append((begun, json.loads(out)["data"]))

    def _end(self) -> None:
        for player in [*self.callers, *self.servers]:
            player.signal(signal.SIGCONT)
        for player in self.callers:
            try:
                code = player.process.wait(LIMIT)
            except subprocess.TimeoutExpired:
                self.faults.append(f"{player.name} hangs: {player.last_words}")
                continue
            if code != GONE_BY_SIGNAL:
                self.faults.append(f"{player.name} ended with {code}: {player.last_words}")
        for chore, begun, process, _ in self._chores:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(LIMIT)
            if process.poll() is None:
                self.faults.append(f"{chore} hangs")
            else:
                self._chore_ended(chore, begun, process)
        self._chores.clear()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _listening(port: int) -> None:
    deadline = time.monotonic() + LIMIT
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=LIMIT).close()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
        else:
            return
