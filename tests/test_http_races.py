"""However many ask for one task at the same instant, and whichever way: one gets it, the rest learn who did."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from io import BytesIO, TextIOWrapper
from threading import BrokenBarrierError
from typing import TYPE_CHECKING, Any

from agent_task_board.cli import main
from tests.processes import SPAWN, assert_sound, meet, run_together
from tests.serving import Client, process
from tests.support import open_board

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.synchronize import Barrier
    from pathlib import Path

    Outcomes = list[dict[str, Any]]

ROUNDS = 50
CLIENTS = 20


def by_http(port: int, agent: str, ids: list[str], start: Barrier) -> Outcomes:
    """Claim each task by compare-and-set, together with all others; return the envelopes."""
    outcomes = []
    with Client("127.0.0.1", port) as client:
        for id_ in ids:
            meet(start)
            answer = client.fetch(
                "PATCH", f"/api/tasks/{id_}", {"if_status": "queued", "status": "claimed", "agent": agent}
            )
            assert answer.status in (200, 409), answer
            outcomes.append(answer.envelope)
    return outcomes


def by_command(directory: str, agent: str, ids: list[str], start: Barrier) -> Outcomes:
    """Do the same by commands, one after the other in this process."""
    outcomes = []
    for id_ in ids:
        written = BytesIO()
        out = TextIOWrapper(written)
        meet(start)
        with redirect_stdout(out):
            main(["claim", id_, "--agent", agent, "--if-status", "queued", "--data-dir", directory])
        out.flush()
        outcomes.append(json.loads(written.getvalue()))
    return outcomes


def assert_one_winner_a_round(directory: Path, ids: list[str], raced: dict[str, Outcomes]) -> set[str]:
    """Check every round, and that the board agrees; return all who ever won."""
    with open_board(directory) as board:
        winners = []
        for number, id_ in enumerate(ids):
            granted = [agent for agent, outcomes in raced.items() if outcomes[number]["ok"]]
            assert len(granted) == 1, f"round {number} was won by {granted}"
            (winner,) = granted
            winners.append(winner)
            task = raced[winner][number]["data"]["task"]
            for agent, outcomes in raced.items():
                if agent != winner:
                    error = outcomes[number]["error"]
                    assert (error["code"], error["details"]["reason"]) == ("conflict", "status")
                    assert error["message"].startswith(f'task {id_} is "claimed", not "queued"')
                    assert error["details"]["actual"] == {
                        key: task[key] for key in ("status", "version", "claimed_by", "claimed_at", "lease_expires_at")
                    }
                    assert task["claimed_by"] == winner
            details = board.show(id_)
            assert [attempt["agent"] for attempt in details["attempts"]] == [winner]
            assert (details["task"]["fence"], details["task"]["version"]) == (1, 2)
    assert_sound(directory)
    return set(winners)


def race(directory: Path, racers: dict[str, Callable[[list[str], Barrier], Outcomes]]) -> set[str]:
    """Let all racers want one task a round; return those who won."""
    with open_board(directory) as board:
        board.import_tasks([{"title": f"Round {number}"} for number in range(ROUNDS)])
        ids = [task.id for task in board.list_tasks(limit=ROUNDS).tasks]
    start = SPAWN.Barrier(len(racers))

    def run(racer: Callable[[list[str], Barrier], Outcomes]) -> Outcomes:
        try:
            return racer(ids, start)
        except BaseException:
            start.abort()  # or all others would wait for this one
            raise

    with ThreadPoolExecutor(len(racers)) as pool:
        begun = {agent: pool.submit(run, racer) for agent, racer in racers.items()}
    faults = [fault for future in begun.values() if (fault := future.exception()) is not None]
    for fault in sorted(faults, key=lambda fault: isinstance(fault, BrokenBarrierError)):
        raise fault
    return assert_one_winner_a_round(directory, ids, {agent: future.result() for agent, future in begun.items()})


def http_racer(port: int, agent: str) -> Callable[[list[str], Barrier], Outcomes]:
    """Return a racer that asks a server."""
    return lambda ids, start: by_http(port, agent, ids, start)


def command_racer(directory: Path, agent: str) -> Callable[[list[str], Barrier], Outcomes]:
    """Return a racer that is a process of its own, past every server."""
    return lambda ids, start: run_together(by_command, [(str(directory), agent, ids, start)])[0]


def test_clients_of_one_server_have_one_winner_a_round(tmp_path: Path) -> None:
    with process(tmp_path, "--quiet") as server:
        won = race(
            tmp_path, {f"agent-{number}": http_racer(server.port, f"agent-{number}") for number in range(CLIENTS)}
        )
    assert len(won) > 1, "always the same: they did not race"


def test_clients_of_two_servers_on_one_board_have_one_winner_a_round(tmp_path: Path) -> None:
    with process(tmp_path, "--quiet") as one, process(tmp_path, "--quiet") as other:
        ports = (one.port, other.port)
        won = race(
            tmp_path,
            {f"agent-{number}": http_racer(ports[number % 2], f"agent-{number}") for number in range(CLIENTS)},
        )
    assert {int(agent.removeprefix("agent-")) % 2 for agent in won} == {0, 1}, "one server never won: they did not race"


def test_servers_and_commands_have_one_winner_a_round(tmp_path: Path) -> None:
    with process(tmp_path, "--quiet") as one, process(tmp_path, "--quiet") as other:
        ports = (one.port, other.port)
        won = race(
            tmp_path,
            {
                **{
                    f"agent-{number}": http_racer(ports[number % 2], f"agent-{number}") for number in range(CLIENTS - 3)
                },
                **{f"command-{number}": command_racer(tmp_path, f"command-{number}") for number in range(3)},
            },
        )
    assert {agent.partition("-")[0] for agent in won} == {"agent", "command"}, "one way never won: they did not race"
