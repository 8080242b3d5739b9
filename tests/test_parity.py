"""The same calls mean the same on every surface."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.scenarios import SCENARIOS
from tests.surfaces import Run, differences, opened

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
