"""``atb demo``: several real processes empty one board, with accidents, and prove that no work was done twice.

=============  ==========================================================================
``script.py``  the example, the agents, and which accident befalls which task
``worker.py``  one agent: a process that claims, works, and ends its leases
``stage.py``   starts the agents, plays the person and the accidents, keeps the time
``screen.py``  tells what happens, as lines or as a live table
``proof.py``   checks the board afterwards
=============  ==========================================================================
"""

from __future__ import annotations

from .stage import run

__all__ = ["run"]
