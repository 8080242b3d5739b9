"""The tools as the official SDK's client meets them, in both eras: every tool and refusal, two clients at once."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any

import mcp_types as types
import pytest
from mcp import Client, MCPError

from agent_task_board.mcp_server import definitions, server, tools
from tests.command_line import Terminal
from tests.mcp_client import Sdk, answered, connected, connection
from tests.support import MARIA, open_board

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from agent_task_board import Board

ADA = {"ATB_AGENT": "ada"}

ERAS = {"2025-11-25": "legacy", "2026-07-28": "auto"}
"""The newest protocol of each era: one that begins with ``initialize``, and one without sessions."""


@pytest.fixture(scope="module", params=ERAS)
def era(request: pytest.FixtureRequest) -> str:
    """Return a version of the protocol."""
    return str(request.param)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, era: str) -> Path:
    """Return the directory of the servers of one era."""
    directory = tmp_path_factory.mktemp("mcp")
    (directory / "atb.toml").write_text('busy_timeout = "1s"\n')
    return directory


@pytest.fixture(scope="module")
def ada(place: Path, era: str) -> Iterator[Sdk]:
    """Return a client for all tests of this module; its server acts as ada."""
    with connected(place, mode=ERAS[era], **ADA) as client:
        assert client.client.protocol_version == era
        yield client


@pytest.fixture
def board(place: Path) -> Iterator[Board]:
    """Return the board of that server, emptied of what could be claimed."""
    with open_board(place / "data") as board:
        for task in board.list_tasks(status=["queued", "claimed", "running", "review"]).tasks:
            board.cancel(task.id)
        yield board


def only(board: Board, task: str) -> dict[str, Any]:
    return board.show(task)["task"]


# What there is


def test_tools_are_those_of_the_page_of_tools(ada: Sdk) -> None:
    listed = ada.portal.call(ada.client.list_tools).tools
    shown = {"tools": [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in listed]}
    assert shown == json.loads(definitions.page())
    assert len(json.dumps(shown, separators=(",", ":"))) <= 13_600


def test_server_says_who_the_client_is_and_how_to_work(ada: Sdk) -> None:
    assert ada.client.server_info is not None
    assert ada.client.server_info.name == "agent-task-board"
    assert 'You are "ada" here' in ada.instructions
    assert len(ada.instructions) <= 1_500
    capabilities = ada.client.server_capabilities
    assert capabilities.tools is not None
    assert capabilities.resources is not None
    assert capabilities.prompts is not None


# Every tool


def test_task_goes_from_its_making_to_its_end(ada: Sdk, board: Board) -> None:
    first = ada.call("create_task", title="First").id
    made = ada.call(
        "create_task", title="Write the parser", body="# Grammar\n\nas agreed", queue="core", priority=7,
        assignee="ada", due_at="2030-12-24", tags=["parser", "now"], params={"files": ["a.py"]}, dedupe_key="parser",
        max_attempts=5, needs_approval=True,
    )  # fmt: skip
    assert made.head == ["created"]
    again = ada.call("create_task", title="Another", dedupe_key="parser")
    assert again.head == ["created", "existing"]
    assert again.id == made.id

    claimed = ada.call("claim_task", queue=["core"], lease="30m", comment="Picking this up.")
    assert claimed.head == ["claimed"]
    assert claimed.id == made.id
    assert "| # Grammar\n" in claimed.text
    assert claimed.line("params") == {"files": ["a.py"]}
    task = only(board, made.id)
    assert task["claimed_by"] == task["created_by"] == "ada"

    renewed = ada.call("heartbeat", task_id=made.id[-6:], token=claimed.token, progress=40, note="half")
    assert renewed.head == ["renewed"]
    resumed = ada.call("resume_task", task_id=made.id)
    assert resumed.head == ["resumed"]
    assert resumed.token != claimed.token
    ada.refused("lease_lost", "heartbeat", task_id=made.id, token=claimed.token)
    done = ada.call(
        "complete_task",
        task_id=made.id,
        token=resumed.token,
        result={"tests": 12},
        artifacts=["out.html"],
        note="green",
    )
    assert done.head == ["completed"]
    assert only(board, made.id)["status"] == "review"
    repeated = ada.call("complete_task", task_id=made.id, token=resumed.token)
    assert repeated.head == ["completed", "replayed"]

    assert ada.call("add_comment", task_id=made.id, text="Please look.").head == ["commented"]
    shown = ada.call("get_task", task_id=made.id)
    assert "Please look." in shown.text
    assert "attempt 1 ada completed" in shown.text
    listed = ada.call("list_tasks", status=["review", "queued"])
    assert [row.split(" ")[0] for row in listed.text.splitlines()[2:]] == [first[-6:], made.id[-6:]]
    assert ada.call("cancel_task", task_id=first, confirm=True).head == ["cancelled"]
    kinds = {event["kind"]: event for event in board.events(task=made.id)["events"]}
    assert list(kinds) == ["created", "claimed", "commented", "started", "resumed", "completed"]
    assert {event["actor_kind"] for event in kinds.values()} == {"agent"}


def test_claim_is_ended_in_every_other_way(ada: Sdk, board: Board) -> None:
    id_ = ada.call("create_task", title="To and fro").id
    token = ada.call("claim_task", task_id=id_).token
    assert ada.call("release_task", task_id=id_, token=token, note="the build is red").head == ["released"]
    claimed = ada.call("claim_task", task_id=id_)
    assert claimed.left == [("released", "ada", "the build is red", "agent")]
    assert ada.call("fail_task", task_id=id_, token=claimed.token, error="no network", retry_in=0).head == ["failed"]
    token = ada.call("claim_task", task_id=id_).token
    assert ada.call("handoff_task", task_id=id_, token=token, to="bob", note="colours").head == ["handed_off"]
    assert only(board, id_)["assignee"] == "bob"
    nothing = ada.call("claim_task")
    assert nothing.head == ["nothing"]
    assert "assigned" in nothing.notes[0]
    assert ada.call("claim_task", agent="bob").left == [("handed_off", "ada", "colours", "agent")]
    assert only(board, id_)["claimed_by"] == "bob"


def test_task_is_created_and_claimed_in_one(ada: Sdk, board: Board) -> None:
    made = ada.call("create_task", title="Mine", claim=True, agent="cleo", request_id="r1")
    assert only(board, made.id)["claimed_by"] == "cleo"
    again = ada.call("create_task", title="Mine", claim=True, agent="cleo", request_id="r1")
    assert again.head == ["created", "replayed"]
    ada.refused("lease_lost", "heartbeat", task_id=made.id, token=made.token)
    assert not ada.call("complete_task", task_id=made.id, token=again.token).refused


def test_long_list_is_cut_and_goes_on_after_its_cursor(ada: Sdk, board: Board) -> None:
    board.import_tasks([{"title": f"Task {number} {'x' * 300}", "queue": "long"} for number in range(150)])
    seen: list[str] = []
    after: dict[str, Any] = {}
    while True:
        text = ada.call("list_tasks", queue="long", limit=100, **after).text
        assert len(text) <= definitions.LIST_TOKENS * 4
        *rows, last = text.splitlines()[2:]
        seen += rows
        if not last.startswith("+ more "):
            seen.append(last)
            break
        after = {"after": last.partition(" after=")[2]}
    assert [row.split('"')[1].split()[1] for row in seen] == [str(number) for number in range(150)]
    board.import_tasks([{"title": "Huge", "body": "y" * 150_000}])
    huge = board.list_tasks(search="Huge").tasks[0].id
    assert len(ada.call("get_task", task_id=huge).text) <= definitions.TASK_TOKENS * 4


# Every refusal


def test_every_refusal_has_the_code_of_every_surface(ada: Sdk, board: Board, place: Path) -> None:
    id_ = ada.call("create_task", title="Contended").id
    ada.refused("not_found", "get_task", task_id="01J00000000000000000000000")
    ada.refused("invalid_input", "get_task", task_id="no id")
    held = board.claim("bob", task=id_)
    assert held is not None
    conflict = ada.refused("conflict", "claim_task", task_id=id_)
    assert conflict.line("details")["reason"] == "status"
    assert conflict.line("details")["actual"]["claimed_by"] == "bob"
    assert ada.refused("conflict", "resume_task", task_id=id_).line("details")["reason"] == "assigned"
    for tool, needed in (
        ("heartbeat", {}), ("complete_task", {}), ("fail_task", {"error": "x"}), ("release_task", {}),
        ("handoff_task", {"to": "cleo"}),
    ):  # fmt: skip
        lost = ada.refused("lease_lost", tool, task_id=id_, token="0" * 32, **needed)
        assert lost.line("details")["actual"]["claimed_by"] == "bob"
    with board.database.write():
        busy = ada.refused("busy", "create_task", title="Not now")
    assert "Repeat" in busy.line("hint")
    board.cancel(id_)
    ada.refused("conflict", "cancel_task", task_id=id_, confirm=True)
    unknown = ada.refused("invalid_input", "clam_task")
    assert "'claim_task'" in unknown.line("hint")


def test_stale_holder_cannot_complete_after_takeover(ada: Sdk, board: Board, place: Path) -> None:
    id_ = ada.call("create_task", title="Slow work").id
    stale = Terminal(place).claim_long_ago(id_, agent="slow")
    fresh = ada.call("claim_task")
    assert fresh.id == id_
    refused = ada.refused("lease_lost", "complete_task", task_id=id_, token=stale, agent="slow")
    assert refused.line("details")["actual"]["claimed_by"] == "ada"
    assert not ada.call("complete_task", task_id=id_, token=fresh.token).refused
    assert only(board, id_)["claimed_by"] == "ada"


def test_two_clients_that_race_for_one_task_get_one_winner(ada: Sdk, board: Board, place: Path, era: str) -> None:
    async def both(one: Client, other: Client, task: str) -> list[types.CallToolResult]:
        from anyio import create_task_group

        results: list[types.CallToolResult] = []

        async def claim(client: Client) -> None:
            results.append(await client.call_tool("claim_task", {"task_id": task}))

        async with create_task_group() as group:
            group.start_soon(claim, one)
            group.start_soon(claim, other)
        return results

    with contextlib.ExitStack() as stack:
        opened = connection(place, (), {"ATB_AGENT": "bob"}, "rival", ERAS[era])
        bob = stack.enter_context(ada.portal.wrap_async_context_manager(opened))
        for number in range(10):
            task = ada.call("create_task", title=f"Prize {number}").id
            answers = [answered(one) for one in ada.portal.call(both, ada.client, bob, task)]
            winner, loser = sorted(answers, key=lambda answer: answer.refused)
            assert winner.head == ["claimed"]
            assert loser.code == "conflict"
            assert loser.line("details")["actual"]["claimed_by"] in winner.text


def test_server_that_reads_only_offers_only_that(place: Path, board: Board, era: str) -> None:
    task = board.add("Look at me").task.id
    with connected(place, "--read-only", mode=ERAS[era]) as client:
        names = [tool.name for tool in client.portal.call(client.client.list_tools).tools]
        assert names == ["list_tasks", "get_task", "wait", "why"]
        assert "Look at me" in client.call("list_tasks", ready=True).text
        assert client.call("get_task", task_id=task).id == task
        assert json.loads(client.read(f"atb://tasks/{task}").text)["task"]["id"] == task
        client.refused("not_permitted", "create_task", title="No")
        assert "claim_task" not in client.instructions
        assert client.portal.call(client.client.list_prompts).prompts == []
        with pytest.raises(MCPError) as caught:
            client.portal.call(client.client.get_prompt, definitions.PROMPT)
        assert caught.value.error.code == -32602
    assert "No" not in {task.title for task in board.list_tasks(search="No").tasks}


# Resources and the prompt


def test_resources_are_the_board_and_its_tasks(ada: Sdk, board: Board) -> None:
    (listed,) = ada.portal.call(ada.client.list_resources).resources
    assert str(listed.uri) == "atb://board"
    (template,) = ada.portal.call(ada.client.list_resource_templates).resource_templates
    assert template.uri_template == "atb://tasks/{id}"
    task = board.add("On show", body="null").task.id
    seen = ada.read("atb://board")
    assert seen.mime_type == "text/plain"
    assert seen.text.startswith("atb1 board revision=")
    assert f'{task[-6:]} "On show" queued' in seen.text
    whole = ada.read(f"atb://tasks/{task[-6:]}")
    assert whole.mime_type == "application/json"
    assert json.loads(whole.text) == board.show(task)


@pytest.mark.parametrize(
    ("uri", "codes", "name"),
    [
        ("atb://tasks/01J00000000000000000000000", {"2025-11-25": -32002, "2026-07-28": -32602}, "not_found"),
        ("atb://tasks/none", dict.fromkeys(ERAS, -32602), "invalid_input"),
        ("atb://nothing", dict.fromkeys(ERAS, -32602), "invalid_input"),
    ],
)
def test_resource_that_is_not_there_is_refused(ada: Sdk, era: str, uri: str, codes: dict[str, int], name: str) -> None:
    with pytest.raises(MCPError) as caught:
        ada.read(uri)
    assert caught.value.error.code == codes[era]
    assert caught.value.error.data is not None
    assert caught.value.error.data["code"] == name


def test_prompt_tells_how_to_work_the_board(ada: Sdk) -> None:
    (listed,) = ada.portal.call(ada.client.list_prompts).prompts
    assert listed.name == "work-the-board"

    def text(**arguments: str) -> str:
        (message,) = ada.portal.call(ada.client.get_prompt, "work-the-board", arguments).messages
        assert isinstance(message.content, types.TextContent)
        return message.content.text

    assert "claim_task" in text()
    assert '["core"]' in text(queue="core")
    assert "queue" not in text(queue="")
    for name, arguments in (("other", {}), ("work-the-board", {"queues": "x"}), ("work-the-board", {"queue": "\n"})):
        with pytest.raises(MCPError) as caught:
            ada.portal.call(ada.client.get_prompt, name, arguments)
        assert caught.value.error.code == -32602


# Who the client is


def test_client_without_a_name_of_its_own_gets_one_that_it_can_keep(place: Path, board: Board, era: str) -> None:
    task = board.add("Long work").task.id
    with connected(place, client="claude-code", mode=ERAS[era]) as client:
        name = identity_of(client)
        assert name.startswith("claude-code-")
        client.call("claim_task", task_id=task)
        assert only(board, task)["claimed_by"] == name
    with connected(place, client="claude-code", mode=ERAS[era]) as client:
        assert identity_of(client) != name
        assert client.refused("conflict", "resume_task", task_id=task).line("hint") == tools.HELD_BY_ANOTHER
        token = client.call("resume_task", task_id=task, agent=name).token
        assert not client.call("complete_task", task_id=task, token=token).refused


def identity_of(client: Sdk) -> str:
    return client.instructions.partition('You are "')[2].partition('"')[0]


@pytest.mark.parametrize(
    ("client", "begins"),
    [
        ("Codex", "Codex-"), ("", "mcp-"), (None, "mcp-"), (5, "mcp-"), ("none", "none-"), ("\n\x1b", "mcp-"),
        ("two\nlines", "twolines-"), ("x" * 500, "xxx"), ("\ud800", "mcp-"), ("  Ada  ", "Ada-"),
    ],
)  # fmt: skip
def test_name_of_a_client_becomes_the_name_of_an_agent(client: object, begins: str) -> None:
    identity = server.Identity(None)
    name = identity.name(client)
    assert name.startswith(begins)
    assert len(name) <= 100
    assert name.isprintable()
    assert identity.name(client) == name
    others = {server.Identity(None).name("x") for _ in range(20)}
    assert len(others) > 15, "the suffix is random"


def test_name_that_was_given_stays() -> None:
    assert server.Identity("ada").name("claude-code") == "ada"


def test_everything_done_over_mcp_is_done_by_an_agent(ada: Sdk, board: Board) -> None:
    task = ada.call("create_task", title="Judged", needs_approval=True, claim=True)
    ada.call("complete_task", task_id=task.id, token=task.token)
    ada.call("add_comment", task_id=task.id, text="done", agent="Nora")
    events = board.events(task=task.id)["events"]
    assert {event["actor_kind"] for event in events} == {"agent"}
    assert events[-1]["actor"] == "Nora"
    assert board.approve(task.id, actor=MARIA).task.status == "done"
