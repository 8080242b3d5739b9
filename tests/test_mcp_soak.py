"""Other versions of the SDK, and a client that is not in Python: long runs, for ``pytest -m soak``."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agent_task_board.mcp_server.definitions import TOOLS
from tests.mcp_client import command, environment

pytestmark = pytest.mark.soak

ROOT = Path(__file__).parent.parent

TALK = """
import sys, anyio
from mcp import Client, StdioServerParameters

async def talk(mode):
    server = StdioServerParameters(command=sys.executable, args=["-m", "agent_task_board", "mcp"])
    async with Client(server, mode=mode) as client:
        assert "You are" in client.instructions
        assert len((await client.list_tools()).tools) == 12
        async def call(tool, **arguments):
            result = await client.call_tool(tool, arguments)
            return result.content[0].text, result.is_error
        text, refused = await call("create_task", title="null", body="[1]", tags='["a"]')
        assert not refused and '"null"' in text, text
        text, refused = await call("claim_task")
        assert not refused and "| [1]" in text, text
        words = dict(word.split("=", 1) for word in text.split() if "=" in word)
        text, refused = await call("complete_task", task_id=words["id"], token="0" * 32)
        assert refused and "lease_lost" in text, text
        text, refused = await call("complete_task", task_id=words["id"], token=words["token"], result={"a": 1})
        assert not refused and "done" in text, text
        assert (await client.read_resource("atb://board")).contents
        assert (await client.get_prompt("work-the-board")).messages
        print(client.protocol_version)

anyio.run(talk, "legacy")
anyio.run(talk, "auto")
"""


@pytest.mark.parametrize("wanted", ["mcp==2.3.0", "mcp<3"], ids=["lowest", "newest"])
def test_conversation_on_the_lowest_and_the_newest_sdk(tmp_path: Path, wanted: str) -> None:
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    python = str(tmp_path / "venv" / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "-q", "--upgrade", str(ROOT), wanted], check=True)
    around = {name: value for name, value in environment(tmp_path).items() if name != "PYTHONPATH"}
    ran = subprocess.run([python, "-c", TALK], cwd=tmp_path, env=around, capture_output=True, text=True, timeout=120)
    assert ran.stdout == "2025-11-25\n2026-07-28\n", ran.stderr
    version = subprocess.run([python, "-m", "pip", "show", "mcp"], check=True, capture_output=True, text=True)
    assert "2.3.0" in version.stdout or wanted != "mcp==2.3.0"


@pytest.mark.skipif(shutil.which("npx") is None, reason="there is no Node here")
def test_inspector_of_the_protocol_takes_every_answer(tmp_path: Path) -> None:
    npx = ["npx", "-y", "@modelcontextprotocol/inspector", "--cli"]

    def ask(method: str, *words: str) -> Any:
        ran = subprocess.run(
            [*npx, *command("--quiet", "--data-dir", str(tmp_path / "data")), "--method", method, *words],
            cwd=tmp_path,
            env={**os.environ, "ATB_AGENT": "ada"},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout)

    assert [tool["name"] for tool in ask("tools/list")["tools"]] == list(TOOLS)
    made = ask("tools/call", "--tool-name", "create_task", "--tool-arg", "title=From the inspector", "priority=5")
    assert "p5" in made["content"][0]["text"]
    listed = ask("tools/call", "--tool-name", "list_tasks")
    assert "From the inspector" in listed["content"][0]["text"]
    assert ask("resources/list")["resources"][0]["uri"] == "atb://board"
    assert "From the inspector" in ask("resources/read", "--uri", "atb://board")["contents"][0]["text"]
    assert ask("prompts/list")["prompts"][0]["name"] == "work-the-board"
