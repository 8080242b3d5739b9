"""Every line of the documents can be pasted into the shells that people have, at a terminal."""

from __future__ import annotations

import concurrent.futures
import os
import re
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.pasting import SHELLS, Block, Call, Desk, InteractiveShell, blocks_to_paste, for_fish
from tests.test_documents import DOCUMENTS, blocks

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MISSING = [shell for shell in SHELLS if shutil.which(shell) is None]

PRESENT = [shell for shell in SHELLS if shell not in MISSING]

PAGES = [path for path in DOCUMENTS if blocks_to_paste(path)]

TOURS = ("README.md", "docs/tour.md", "docs/agents.md")
"""The pages that a reader works through with a board of his own."""

BLOCKING = re.compile(r"^atb (serve|watch|mcp)\b", re.MULTILINE)


def test_all_shells_are_here() -> None:
    if MISSING:
        why = f"blocks were not pasted into: {', '.join(MISSING)} (apt-get install {' '.join(MISSING)})"
        if os.environ.get("ATB_REQUIRE_BROWSER") == "1":
            pytest.fail(why)
        pytest.skip(why)


def pasted(blocks: list[Block], shell: str, desk: Desk) -> tuple[list[list[Call]], str]:
    """Return what an interactive shell called for each block, and its transcript."""
    terminal = InteractiveShell(shell, desk)
    try:
        return [terminal.paste(block) for block in blocks], terminal.transcript
    finally:
        terminal.close()


def moved(calls: list[Call], desk: Desk) -> list[Call]:
    """Return calls in no order, with directories as they are seen from the desk."""
    return sorted(call._replace(directory=os.path.relpath(call.directory, desk.directory)) for call in calls)


@pytest.mark.parametrize("shell", PRESENT)
def test_every_shell_passes_on_what_a_block_says(shell: str, tmp_path: Path) -> None:
    for page in PAGES:
        to_paste = blocks_to_paste(page)
        if shell == "fish":
            to_paste = for_fish(to_paste)
        script, terminal = (Desk(tmp_path / page.replace("/", "-") / name) for name in ("script", "terminal"))
        # One script for the whole page, as one session has it: a later block uses what an earlier one set.
        expected = []
        for number in range(len(to_paste)):
            before = "".join(block.text for block in to_paste[:number])
            script_calls, complaint = script.passed_on(Block(before + to_paste[number].text, []))
            assert complaint == "", (page, to_paste[number].text)
            expected.append(moved(script_calls, script))
        found, transcript = pasted(to_paste, shell, terminal)
        so_far: list[Call] = []
        for block, calls, wanted in zip(to_paste, found, expected, strict=True):
            so_far += calls
            assert moved(so_far, terminal) == wanted, (page, block.text, transcript[-2_000:])


@pytest.mark.parametrize("shell", PRESENT)
@pytest.mark.parametrize(
    "line",
    ["atb list   # what is left", "atb add 'an open quote", "exit 0"],
)
def test_line_that_cannot_be_pasted_is_found(shell: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ...


# The tours, with the program itself


@pytest.fixture(scope="module")
def tours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[tuple[str, str], tuple[list[Block], list[list[Call]], str]]]:
    ...
