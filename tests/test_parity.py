"""The same calls mean the same on every surface."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_task_board.mcp_server.definitions import TOOLS
from tests.scenarios import SCENARIOS
from tests.surfaces import TOOL, Mcp, Run, differences, opened

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.scenarios import Step
    from tests.surfaces import Surface


@pytest.fixture(scope="module")
def surfaces(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Surface]]:
    """Return every surface, to be used by one scenario after the other."""
    with opened(tmp_path_factory.mktemp("surfaces")) as found:
        yield found


@pytest.mark.parametrize("steps", SCENARIOS.values(), ids=SCENARIOS)
def test_every_surface_gives_the_same_answers(steps: tuple[Step, ...], surfaces: dict[str, Surface]) -> None:
    played = {name: Run(surface).play(steps) for name, surface in surfaces.items()}

    first, *others = played
    for other in others:
        for one, another in zip(played[first], played[other], strict=True):
            found = list(differences(one.comparable(), another.comparable()))
            assert not found, f"{first} and {other} after {one.step.verb} {one.step.arguments}: {found}"


def test_scenarios_call_every_tool() -> None:
    steps = [step for steps in SCENARIOS.values() for step in steps]
    called = [TOOL[step.verb] for step in steps if Mcp.given(step.verb, dict(step.arguments)) is not None]
    assert set(called) == set(TOOLS) - {"wait"}  # its answers differ by surface: test_waiting.py
    assert len(called) > 500
