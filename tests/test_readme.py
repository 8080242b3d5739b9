"""The README's commands do what the README says, pasted word for word by somebody who has a clone and Python."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from agent_task_board.inputs import parse_json
from tests.test_documents import ROOT, blocks, files_of_checkout, read

if TYPE_CHECKING:
    from pathlib import Path

KEPT = re.compile(r"PIP_\w+|SSL_CERT_\w+|\w+_CA_BUNDLE|\w+_proxy|LANG|LC_\w+|TMPDIR", re.IGNORECASE)
"""What a machine says about its way to the package index, and about its language; everything else is left behind."""

INSTALL = 600
"""Seconds that an installation may take on a slow network."""

PASTED = os.environ.get("ATB_PASTED")
"""The command that `.ci/run` has pasted."""

SMALL = "tests/test_backoff.py -p no:cacheprovider"
"""What pytest is told by its own variable, so that the README's command runs one file and not itself again."""


def marked(marker: str) -> str:
    """Return the one line in the block under a marker of the README."""
    found = re.findall(rf"^<!-- command: {marker} -->\n```sh\n(.*)\n```$", read("README.md"), re.MULTILINE)
    assert len(found) == 1, marker
    return str(found[0])


def without_numbers(sentences: list[str]) -> list[str]:
    return [re.sub(r"\d+", "N", sentence) for sentence in sentences]


def copy_to(target: Path) -> Path:
    """Make a fresh copy of the checkout, as a clone of it would be."""
    for path in files_of_checkout():
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / path, target / path)
    return target


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the clone in which both commands are pasted, one after the other, as a reader of the page would."""
    return copy_to(tmp_path_factory.mktemp("readme") / "clone")


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the environment of a user who has just come: a new home, and `python3` is the Python under test."""
    place = tmp_path_factory.mktemp("machine")
    home, programs = place / "home", place / "programs"
    home.mkdir()
    programs.mkdir()
    python = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
    (programs / "python3").write_text(f'#!/bin/sh\nexec "{python}" "$@"\n', encoding="utf-8")
    (programs / "python3").chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if KEPT.fullmatch(name)}
    return {**kept, "HOME": str(home), "PATH": f"{programs}:{os.defpath}:/usr/local/bin", "PIP_NO_COMPILE": "1"}


def paste(script: str, where: Path, environment: dict[str, str], limit: int) -> subprocess.CompletedProcess[str]:
    """Run a script in a shell as a user would paste it."""
    return subprocess.run(
        ["bash", "-c", script], cwd=where, env=environment, capture_output=True, text=True, timeout=limit
    )


def test_first_command_sets_up_from_nothing_and_ends_in_the_proof(clone: Path, machine: dict[str, str]) -> None:
    command = marked("demo")
    assert command == "python3 -m venv .venv && .venv/bin/pip install -q . && .venv/bin/atb demo"
    done = paste(command, clone, machine, INSTALL)
    assert done.returncode == 0, done.stderr[-3_000:]
    answer = parse_json(done.stdout, "answer")
    try:
        assert answer["ok"] is True
        assert answer["data"]["tasks"] == 25
        assert answer["data"]["attempts"]["completed"] >= 25
        assert {refusal["code"] for refusal in answer["data"]["refusals"]} == {"lease_lost"}
        story, _, proof = done.stderr.partition("\nProof, after ")
        assert "is killed while working on" in story
        for sentence in answer["data"]["proof"]:
            assert f"  - {sentence}\n" in proof
        shown = next(block for block in blocks("docs/tour.md", "text") if block.startswith("Proof"))
        assert without_numbers(re.findall(r"^  - (.*)", shown, re.MULTILINE)) == without_numbers(
            answer["data"]["proof"]
        )
    finally:
        shutil.rmtree(answer["data"]["directory"])
    assert not (clone / "data").exists()


def test_second_command_installs_what_the_tests_need_and_runs_them(clone: Path, machine: dict[str, str]) -> None:
    command = marked("tests")
    assert command == "python3 -m venv .venv && .venv/bin/pip install -q -e '.[dev]' && .venv/bin/pytest -q"
    if command == PASTED:  # `.ci/run` pasted it, in a clone: this very run is what came of it
        assert os.path.samefile(sys.prefix, ROOT / ".venv")
        return
    done = paste(command, clone, {**machine, "PYTEST_ADDOPTS": SMALL}, INSTALL)
    assert done.returncode == 0, done.stdout[-2_000:] + done.stderr[-2_000:]
    assert re.search(r"^\d+ passed", done.stdout, re.MULTILINE), done.stdout
    # The same environment has the tools that AGENTS.md names.
    tools = ". .venv/bin/activate && ruff check . && ruff format --check . && pytest -q --cov=agent_task_board"
    done = paste(tools, clone, {**machine, "PYTEST_ADDOPTS": f"{SMALL} -n 0"}, INSTALL)
    assert done.returncode == 0, done.stdout[-2_000:] + done.stderr[-2_000:]
    assert "TOTAL" in done.stdout
    for tool in tools.split(" && ")[1:]:
        assert f"`{tool}`" in read("AGENTS.md") or f"\n.venv/bin/{tool}\n" in read("AGENTS.md")


def test_readme_is_a_page_to_land_on() -> None:
    lines = read("README.md").splitlines()
    assert len(lines) <= 160
    assert any(re.match(r"!\[.+\]\(docs/pictures/board-light\.png\)$", line) for line in lines[:8])


# The snippets


@pytest.fixture
def shell(tmp_path: Path) -> dict[str, str]:
    """Return an environment in which `atb` is the one of this checkout; the working directory is empty."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "empty").mkdir()
    program(tmp_path / "bin" / "atb", f'exec "{sys.executable}" -m agent_task_board "$@"')
    path = f"{tmp_path / 'bin'}:{os.path.dirname(sys.executable)}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "USER": "maria", "LOGNAME": "maria"}


def program(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/bash\n{script}\n", encoding="utf-8")
    path.chmod(0o755)


def answers(output: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.splitlines() if line.startswith("{")]


def test_example_in_python_works(tmp_path: Path, shell: dict[str, str]) -> None:
    (tmp_path / "example.py").write_text(marked_block("python", "python"), encoding="utf-8")
    asked = "python3 -W error ../example.py && atb list --status done"
    done = paste(asked, tmp_path / "empty", shell, 60)
    assert (done.returncode, done.stderr) == (0, "")
    (answer,) = answers(done.stdout)
    assert [task["title"] for task in answer["data"]["tasks"]] == ["Write the parser"]


def marked_block(marker: str, language: str) -> str:
    """Return the block of code under a marker of the README."""
    found = re.findall(rf"^<!-- {marker} -->\n```{language}\n(.*?)^```", read("README.md"), re.MULTILINE | re.DOTALL)
    assert len(found) == 1, marker
    return str(found[0])


def test_recipe_against_toothless_tests_does_find_its_target(tmp_path: Path, shell: dict[str, str]) -> None:
    recipe = next(block for block in blocks("AGENTS.md", "sh") if "sed -i" in block)
    breaking, running = recipe.splitlines()[1:3]
    done = paste(f"{breaking}\n{running} -x -n 0", copy_to(tmp_path / "clone"), shell, 300)
    assert done.returncode == 1, done.stdout + done.stderr
    assert re.search(r"^FAILED tests/test_expiry", done.stdout, re.MULTILINE)
