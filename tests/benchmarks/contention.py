"""Ten processes that claim and complete, against bare scripts that do two guarded UPDATEs and nothing else."""

from __future__ import annotations

import multiprocessing
import os
import sqlite3
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

from agent_task_board import Board
from agent_task_board.storage.turnstile import Turnstile
from tests.benchmarks.measuring import Measured, row

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.queues import Queue
    from multiprocessing.synchronize import Barrier
    from pathlib import Path

    Worker = Callable[[str, Barrier, "Queue[tuple[int, list[float]]]"], None]

PROCESSES = 10
NOW, LATER = "2026-11-30T06:14:05.123+00:00", "2099-11-30T06:14:05.123+00:00"

SAME_CLAIM = """
    UPDATE task
       SET status = 'claimed', claimed_by = :agent, claimed_at = :now, lease_token_hash = :hash,
           lease_expires_at = :later, lease_length = 900000, attempts = attempts + 1, fence = fence + 1,
           version = version + 1, updated_at = :now
     WHERE seq = (SELECT seq FROM task INDEXED BY task_ready
                   WHERE status = 'queued' AND open_dependencies = 0 AND delayed = 0 AND assignee IS NULL
                   ORDER BY priority DESC, seq LIMIT 1)
       AND status = 'queued'
    RETURNING seq"""
SAME_COMPLETE = """
    UPDATE task
       SET status = 'done', finished_at = :now, lease_token_hash = NULL, lease_expires_at = NULL, lease_length = NULL,
           version = version + 1, updated_at = :now
     WHERE seq = :seq AND status = 'claimed' AND lease_token_hash = :hash AND lease_expires_at > :now"""

TINY = """
    CREATE TABLE task (seq INTEGER PRIMARY KEY, status TEXT NOT NULL, hash TEXT);
    CREATE INDEX ready ON task (seq) WHERE status = 'queued'"""
TINY_CLAIM = """
    UPDATE task SET status = 'claimed', hash = :hash
     WHERE seq = (SELECT seq FROM task WHERE status = 'queued' ORDER BY seq LIMIT 1) AND status = 'queued'
    RETURNING seq"""
TINY_COMPLETE = "UPDATE task SET status = 'done' WHERE seq = :seq AND status = 'claimed' AND hash = :hash"


def measure(directory: Path, tasks: int, rounds: int) -> list[str]:
    """Return the rows of the table: pairs of claim and complete a second, and how fair the board is."""
    contenders: dict[str, Worker] = {
        "service": through_service,
        "fair": fair_updates,
        "same": same_updates,
        "tiny": tiny_updates,
    }
    pairs: dict[str, list[float]] = {name: [] for name in contenders}
    claims: list[float] = []
    shares: list[float] = []
    for turn in range(rounds):
        for name, worker in contenders.items():
            place = directory / f"contention-{name}-{turn}"
            place.mkdir()
            _fill(place, tasks, tiny=name == "tiny")
            took, results = _contend(place, worker)
            done = [count for count, _ in results]
            assert sum(done) == tasks, (name, done)
            pairs[name].append(tasks / took)
            if name == "service":
                claims += [seconds for _, latencies in results for seconds in latencies]
                shares.append(min(done) / (tasks / PROCESSES))
    speed = {name: Measured(values) for name, values in pairs.items()}
    told = {name: f"{measured.median:.0f} pairs/s" for name, measured in speed.items()}
    waits = Measured(claims)
    spread = ", ".join(
        f"{seconds * 1e3:.1f}" for seconds in (waits.median, waits.percentile(99), waits.percentile(100))
    )
    what = f"claim + complete, {PROCESSES} processes"
    against = {
        "fair": "the same two UPDATEs, bare, same board, same turnstile",
        "same": "the same two UPDATEs, bare, same board",
        "tiny": "two UPDATEs, bare, a table of three columns",
    }
    return [
        *(
            row(what, bare, told["service"], told[name], speed["service"].over(speed[name]))
            for name, bare in against.items()
        ),
        row(f"{what}: claim p50, p99, slowest", "", f"{spread} ms"),
        row(f"{what}: smallest share of an equal one", "", f"{min(shares):.0%}"),
    ]


def _fill(place: Path, tasks: int, *, tiny: bool) -> None:
    if not tiny:
        board = Board(place)
        board.import_tasks([{"title": f"task {number}"} for number in range(tasks)])
        board.close()
        return
    with closing(sqlite3.connect(place / "tasks.db", isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(TINY)
        connection.execute("BEGIN")
        connection.executemany("INSERT INTO task (status) VALUES (?)", [("queued",)] * tasks)
        connection.execute("COMMIT")


def _contend(place: Path, worker: Worker) -> tuple[float, list[tuple[int, list[float]]]]:
    """Let ten processes empty a board; return the seconds, and each one's count and seconds per claim."""
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(PROCESSES + 1)
    queue: Queue[tuple[int, list[float]]] = context.Queue()
    processes = [context.Process(target=worker, args=(str(place), barrier, queue)) for _ in range(PROCESSES)]
    for process in processes:
        process.start()
    barrier.wait()
    start = time.perf_counter()
    results = [queue.get() for _ in processes]
    took = time.perf_counter() - start
    for process in processes:
        process.join()
    return took, results


def through_service(directory: str, barrier: Barrier, queue: Queue[tuple[int, list[float]]]) -> None:
    """Claim and complete through ``Board`` until nothing is left."""
    board, name = Board(directory), f"worker-{os.getpid()}"
    board.list_tasks(limit=1)
    count, latencies = 0, []
    barrier.wait()
    while True:
        start = time.perf_counter()
        claim = board.claim(name)
        latencies.append(time.perf_counter() - start)
        if claim is None or claim.lease is None:
            break
        board.complete(claim.task.id, claim.lease.token)
        count += 1
    queue.put((count, latencies))


def fair_updates(directory: str, barrier: Barrier, queue: Queue[tuple[int, list[float]]]) -> None:
    """Do the same two guarded UPDATEs on the same board file, one writer after the other as the service does."""
    turnstile = Turnstile(directory)
    _bare(directory, barrier, queue, SAME_CLAIM, SAME_COMPLETE, turnstile)


def same_updates(directory: str, barrier: Barrier, queue: Queue[tuple[int, list[float]]]) -> None:
    """Do the same two guarded UPDATEs on the same board file, with the busy timeout alone."""
    _bare(directory, barrier, queue, SAME_CLAIM, SAME_COMPLETE)


def tiny_updates(directory: str, barrier: Barrier, queue: Queue[tuple[int, list[float]]]) -> None:
    """Do two guarded UPDATEs on the smallest table that could be called a queue."""
    _bare(directory, barrier, queue, TINY_CLAIM, TINY_COMPLETE)


def _bare(
    directory: str,
    barrier: Barrier,
    queue: Queue[tuple[int, list[float]]],
    claim: str,
    complete: str,
    turnstile: Turnstile | None = None,
) -> None:
    connection = sqlite3.connect(f"{directory}/tasks.db", isolation_level=None, timeout=60)
    connection.execute("PRAGMA synchronous = FULL")
    values: dict[str, Any] = {"agent": f"w{os.getpid()}", "now": NOW, "later": LATER, "hash": os.urandom(32).hex()}

    def write(statement: str) -> list[Any]:
        if turnstile:
            turnstile.enter()
        connection.execute("BEGIN IMMEDIATE")
        rows = connection.execute(statement, values).fetchall()
        connection.execute("COMMIT")
        if turnstile:
            turnstile.leave()
        return rows

    count, latencies = 0, []
    barrier.wait()
    while True:
        start = time.perf_counter()
        rows = write(claim)
        latencies.append(time.perf_counter() - start)
        if not rows:
            break
        values["seq"] = rows[0][0]
        write(complete)
        count += 1
    queue.put((count, latencies))
