"""The examples: each is run as it lies there."""

from __future__ import annotations

import asyncio
import json
import os
import re
import runpy
import stat
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.command_line import Terminal
from tests.serving import serving
from tests.support import open_board
from tests.test_documents import ROOT

if TYPE_CHECKING:
    from pathlib import Path

EXAMPLES = ROOT / "examples"


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    """Return a terminal whose PATH leads to the `atb` under test, and to its Python."""
    terminal = Terminal(tmp_path)
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, words in (("atb", f'"{sys.executable}" -m agent_task_board'), ("python3", f'"{sys.executable}"')):
        (programs / name).write_text(f'#!/bin/sh\nexec {words} "$@"\n', encoding="utf-8")
        (programs / name).chmod(0o755)
    terminal.environ["PATH"] = f"{programs}:{os.environ.get('PATH', os.defpath)}"
    return terminal


def script(terminal: Terminal, content: str) -> str:
    path = terminal.directory / "do-the-work"
    path.write_text(f"#!/usr/bin/env bash\n{content}\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def run_worker(terminal: Terminal, content: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(EXAMPLES / "worker.sh"), script(terminal, content)],
        cwd=terminal.directory,
        env={**terminal.environ, "ATB_AGENT": "ada", **environ},
        capture_output=True,
        text=True,
        timeout=120,
    )


# worker.sh


def test_shell_worker_completes_what_works_and_fails_what_does_not(terminal: Terminal) -> None:
    good, bad, odd = (
        terminal.add("good"),
        terminal.add("bad", "--max-attempts", "1"),
        terminal.add("odd", "--max-attempts", "1"),
    )
    done = run_worker(
        terminal,
        """
        case $(cat) in
          *'"title":"good"'*) echo '{"tests": 12}' ;;
          *'"title":"odd"'*) echo 'this is no JSON' ;;
          *) printf 'no way \\377\\n' >&2; exit 3 ;;
        esac
        """,
    )
    assert done.returncode == 0, done
    tasks = {name: terminal.data("show", one)["task"] for name, one in (("good", good), ("bad", bad), ("odd", odd))}
    assert (tasks["good"]["status"], tasks["good"]["result"]) == ("done", {"tests": 12})
    assert (tasks["bad"]["status"], tasks["bad"]["error"]) == ("failed", "exit code 3: no way ")
    assert tasks["odd"]["status"] == "failed"
    assert re.fullmatch("the result was refused: result: .*JSON.*", tasks["odd"]["error"])
    assert not any("worker" in name for name in os.listdir(terminal.directory))


def test_shell_worker_renews_its_lease_and_stops_work_whose_lease_is_lost(terminal: Terminal) -> None:
    task = terminal.add()
    done = run_worker(
        terminal,
        f"""
        until atb events --task {task} | grep -q '"started"'; do sleep 0.05; done
        atb reassign {task} --to bob >/dev/null
        exec sleep 100
        """,
        BEAT="0.1",
    )
    assert done.returncode == 0, done
    assert f"{task}: the lease is lost" in done.stderr
    found = terminal.data("show", task)
    assert (found["task"]["status"], found["task"]["assignee"]) == ("queued", "bob")
    assert [attempt["outcome"] for attempt in found["attempts"]] == ["revoked"]


def test_shell_worker_is_not_confused_by_the_format_that_its_caller_likes(terminal: Terminal) -> None:
    tasks = [terminal.add("one"), terminal.add("two")]
    done = run_worker(terminal, "cat >/dev/null; echo 1", ATB_FORMAT="compact")
    assert (done.returncode, done.stderr) == (0, "")
    assert [terminal.data("show", task)["task"]["status"] for task in tasks] == ["done", "done"]


def test_shell_worker_stops_at_a_claim_that_it_cannot_read(terminal: Terminal) -> None:
    first, second = terminal.add("one", "--priority", "1"), terminal.add("two")
    broken = terminal.directory / "programs" / "python3"
    broken.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    done = run_worker(terminal, "echo 1")
    assert done.returncode == 1
    assert done.stderr
    assert [terminal.data("show", one)["task"]["status"] for one in (first, second)] == ["claimed", "queued"]


def test_shell_worker_passes_on_a_refusal(terminal: Terminal) -> None:
    done = run_worker(terminal, "exit 0", ATB_AGENT="none")
    assert done.returncode == 1
    assert json.loads(done.stderr)["error"]["code"] == "invalid_input"
    assert stat.S_IMODE((EXAMPLES / "worker.sh").stat().st_mode) & stat.S_IXUSR


# worker.py


def test_python_worker_empties_a_board(terminal: Terminal) -> None:
    tasks = [terminal.add("count", "--body", "one two three"), terminal.add("nothing to count")]
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / "worker.py"), "data", "ada"],
        cwd=terminal.directory,
        env=terminal.environ,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    results = [terminal.data("show", task)["task"]["result"] for task in tasks]
    assert results == [{"words": 3}, {"words": 0}]


def test_python_worker_fails_what_raises_and_leaves_what_it_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    board = open_board(tmp_path / "data")
    bad = board.add("bad", max_attempts=1, priority=2).task
    lost = board.add("lost", priority=1).task
    late = board.add("late").task
    worker = runpy.run_path(str(EXAMPLES / "worker.py"))

    def work(task: Any, is_lost: Any) -> None:
        if task.title == "bad":
            raise RuntimeError("no way")
        board.reassign(task.id, "bob")
        if task.title == "lost":
            assert is_lost.wait(60)
            raise worker["LostError"]

    worker["run"].__globals__["work"] = work
    worker["run"](board, "ada", pause=0.01)
    shown = {one.id: board.show(one.id)["task"] for one in (bad, lost, late)}
    assert (shown[bad.id]["status"], shown[bad.id]["error"]) == ("failed", "RuntimeError: no way")
    for one in (lost, late):
        assert (shown[one.id]["status"], shown[one.id]["assignee"]) == ("queued", "bob")
    told = capsys.readouterr().err
    assert f"{lost.id}: the lease is lost" in told
    assert f"{late.id}: lease_lost" in told
    board.close()


@pytest.mark.parametrize(("words", "code"), [([], 2), (["data"], 2), (["missing", "ada"], 1), (["data", "none"], 1)])
def test_python_worker_that_is_called_wrongly_says_how(terminal: Terminal, words: list[str], code: int) -> None:
    terminal.add()
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / "worker.py"), *words],
        cwd=terminal.directory,
        env=terminal.environ,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (code, "")
    assert "Traceback" not in done.stderr
    told = {2: "usage: ", 1: "missing" if words[:1] == ["missing"] else "invalid_input: "}[code]
    assert told in done.stderr
    assert not (terminal.directory / "missing").exists()


# The MCP server, as configured


def tools_of(server: dict[str, Any], terminal: Terminal) -> tuple[set[str], str]:
    """Start a server as a client does; return its tools, and what it answers to the call that makes a task."""
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    parameters = StdioServerParameters(
        command=server["command"],
        args=server["args"],
        env={**terminal.environ, **server.get("env", {})},
        cwd=terminal.directory,
    )

    async def ask() -> tuple[set[str], str]:
        async with stdio_client(parameters) as streams, ClientSession(*streams) as session:
            await session.initialize()
            names = {tool.name for tool in (await session.list_tools()).tools}
            answer = await session.call_tool("create_task", {"title": "Write the parser", "claim": True})
            return names, "".join(getattr(part, "text", "") for part in answer.content)

    return asyncio.run(asyncio.wait_for(ask(), 60))


def test_example_of_a_configuration_starts_the_server(terminal: Terminal) -> None:
    found = json.loads((EXAMPLES / "mcp.json").read_text(encoding="utf-8"))
    server = found["mcpServers"]["agent-task-board"]
    place = server["args"].index("--data-dir") + 1
    assert os.path.isabs(server["args"][place])
    assert not os.path.exists(server["args"][place])  # whoever forgets to change it must not get a board by chance
    server["args"][place] = str(terminal.directory / "data")
    for _ in range(2):
        tools, _ = tools_of(server, terminal)
        assert {"claim_task", "complete_task", "resume_task"} <= tools
    tasks = terminal.data("list")["tasks"]
    assert [task["title"] for task in tasks] == ["Write the parser"] * 2
    assert len({task["claimed_by"] for task in tasks}) == 2  # two sessions never share their leases


@pytest.mark.parametrize("client", ["claude", "codex", "gemini", "cursor"])
def test_server_that_setup_writes_is_one_that_a_client_starts(terminal: Terminal, client: str) -> None:
    shown = terminal.data("setup", client, "--print", "--agent", "ada", "--data-dir", "my board")
    content = shown["files"][0]["content"]
    if client == "codex":
        import tomllib

        server = tomllib.loads(content)["mcp_servers"]["agent-task-board"]
    else:
        server = json.loads(content)["mcpServers"]["agent-task-board"]
    if client != "claude":  # the same server, which need not be started again
        assert server["args"][-3:] == ["mcp", "--data-dir", str(terminal.directory / "my board")]
        return
    tools_of(server, terminal)
    (task,) = terminal.data("--data-dir", "my board", "list")["tasks"]
    assert task["claimed_by"] == "ada"


# worker_http.py


def run_http_worker(url: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, EXAMPLES / "worker_http.py", url, "ada"],
        env={"PATH": os.environ.get("PATH", os.defpath), **environ},
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize("asks", [False, True])
def test_http_worker_works_until_nothing_is_ready(tmp_path: Path, asks: bool) -> None:
    with serving(tmp_path / "data", auth=asks) as server:
        task = server.board.add("count", body="three short words").task.id
        environ = {"ATB_KEY": server.server.access.credentials.add_key("ada")[1]} if asks else {}
        done = run_http_worker(server.url, **environ)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        found = server.board.show(task)["task"]
        assert (found["status"], found["claimed_by"], found["result"]) == ("done", "ada", {"words": 3})


def test_http_worker_without_its_key_says_so(tmp_path: Path) -> None:
    with serving(tmp_path / "data", auth=True) as server:
        server.server.access.credentials.add_key("bob")
        for environ in ({}, {"ATB_KEY": "atb_wrong"}):
            refused = run_http_worker(server.url, **environ)
            assert refused.returncode == 1
            assert refused.stderr.startswith("not_permitted: ")
