"""Every line of the documents can be pasted into the shells that people have, at a terminal."""

from __future__ import annotations

import concurrent.futures
import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.pasting import SHELLS, Block, Call, ClosedError, Desk, Shell, blocks_to_paste, for_fish, make_programs
from tests.test_documents import DOCUMENTS, blocks

if TYPE_CHECKING:
    from pathlib import Path

MISSING = [shell for shell in SHELLS if shutil.which(shell) is None]

PRESENT = [shell for shell in SHELLS if shell not in MISSING]

PAGES = [path for path in DOCUMENTS if blocks_to_paste(path)]

TOURS = ("README.md", "docs/tour.md", "docs/agents.md")
"""The pages that a reader works through on a board of their own."""


def test_all_shells_are_here() -> None:
    if MISSING:
        why = f"blocks were not pasted into {', '.join(MISSING)}: install it"
        if os.environ.get("ATB_REQUIRE_BROWSER") == "1":
            pytest.fail(why)
        pytest.skip(why)


def pasted(to_paste: list[Block], shell: str, desk: Desk, *, interactive: bool = True) -> tuple[list[list[Call]], str]:
    """Return what a shell called for each block, and what its terminal showed."""
    one = Shell(shell, desk, interactive=interactive)
    try:
        return [one.paste(block) for block in to_paste], one.transcript
    finally:
        one.close()


def of_shell(shell: str, to_paste: list[Block]) -> list[Block]:
    return for_fish(to_paste) if shell == "fish" else to_paste


# What a shell passes on


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_programs(tmp_path_factory.mktemp("programs"))


def differences(shell: str, to_paste: list[Block], place: Path, programs: Path) -> list[str]:
    """Return the blocks that a shell at a terminal reads otherwise than a script does, and its complaints."""
    script, terminal = Desk(place / "script", programs), Desk(place / "terminal", programs)
    expected, complaints = pasted(to_paste, "bash", script, interactive=False)
    found, shown = pasted(to_paste, shell, terminal)
    pairs = zip(to_paste, expected, found, strict=True)
    wrong = [block.text for block, one, two in pairs if without_order(one, script) != without_order(two, terminal)]
    return wrong + [f"{text}\n{shown[-2_000:]}" for text in [complaints] if text]


def without_order(calls: list[Call], desk: Desk) -> list[Call]:
    """Return calls with directories as they are seen from the desk; the parts of a pipeline have no order."""
    return sorted(call._replace(directory=os.path.relpath(call.directory, desk.directory)) for call in calls)


@pytest.mark.parametrize("shell", PRESENT)
@pytest.mark.parametrize("page", PAGES)
def test_every_shell_passes_on_what_a_block_says(page: str, shell: str, tmp_path: Path, programs: Path) -> None:
    assert differences(shell, of_shell(shell, blocks_to_paste(page)), tmp_path, programs) == []


@pytest.mark.parametrize(
    ("shell", "line"),
    [
        ("zsh", "atb list   # what is left"),
        ("zsh", "atb show task?"),
        ("bash", 'atb add "Fix it!atb"'),
        ("dash", "atb complete ID --result @- <<<1"),
        ("fish", "NAME=ada\natb claim --agent $NAME"),
        ("bash", "no-such-program"),
        ("bash", "* * * * * atb tick"),
    ],
)
def test_line_that_a_shell_reads_otherwise_is_found(shell: str, line: str, tmp_path: Path, programs: Path) -> None:
    if shell in PRESENT:
        assert differences(shell, [Block(f"atb where\n{line}\n", [])], tmp_path, programs)


@pytest.mark.parametrize("shell", PRESENT)
def test_line_that_closes_the_terminal_is_found(shell: str, tmp_path: Path, programs: Path) -> None:
    with pytest.raises(ClosedError):
        pasted([Block("atb claim || exit 0; exit 0\n", [])], shell, Desk(tmp_path, programs))


# The tours, with the program itself


Tour = tuple[list[Block], list[list[Call]], str]


@pytest.fixture(scope="module")
def tours(tmp_path_factory: pytest.TempPathFactory, programs: Path) -> dict[tuple[str, str], Tour]:
    """Return what became of each tour in each shell; they are taken side by side, because they wait for leases."""

    def take(page: str, shell: str) -> Tour:
        desk = Desk(tmp_path_factory.mktemp("tour"), programs, real=True)
        to_paste = of_shell(shell, [block for block in blocks_to_paste(page) if is_for_the_board(block)])
        if not any("atb init" in block.text for block in to_paste):
            subprocess.run(
                [str(desk.directory.parent / "atb"), "init"],
                cwd=desk.directory,
                env=desk.environ,
                check=True,
                capture_output=True,
            )
            for record in desk.records.iterdir():
                record.unlink()
        return to_paste, *pasted(to_paste, shell, desk)

    with concurrent.futures.ThreadPoolExecutor() as pool:
        taken = {(page, shell): pool.submit(take, page, shell) for page in TOURS for shell in PRESENT}
        return {name: future.result() for name, future in taken.items()}


def is_for_the_board(block: Block) -> bool:
    """Say whether a block calls only `atb` (and `sleep`), and nothing that stays until it is stopped."""
    programs = re.findall(r"^(?:env \w+=\w+ |\w+=\$\()?([\w./]+)", block.text, re.MULTILINE)
    stays = re.search(r"\batb (serve|watch|mcp)\b", block.text)
    return set(programs) <= {"atb", "sleep", "export"} and not stays


@pytest.mark.parametrize("shell", PRESENT)
@pytest.mark.parametrize("page", TOURS)
def test_tour_goes_as_told(page: str, shell: str, tours: dict[tuple[str, str], Tour]) -> None:
    to_paste, calls, shown = tours[page, shell]
    assert to_paste
    for block, made in zip(to_paste, calls, strict=True):
        codes = [call.code for call in made]
        assert codes == (block.codes or [0] * len(codes)), (block.text, shown[-4_000:])
        assert len(codes) == len(re.findall(r"\batb ", block.text)), block.text
    if shell != "fish":
        for line in told(page):
            assert re.search(line, shown), (line, shown)


def told(page: str) -> list[str]:
    """Return the lines of output that a page shows, as patterns; `…` stands for what differs each time."""
    shown = [text for text in blocks(page, "text") if not text.startswith("Proof")]
    return [re.escape(line).replace("…", ".*") for text in shown for line in text.splitlines()]
