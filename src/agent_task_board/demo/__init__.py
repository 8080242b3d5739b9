"""``atb demo``: several real processes work on one board, with simulated crashes. A proof checks the outcome.

=============  ==========================================================================
``script.py``  the example tasks, the agents, and the incident of each task
``worker.py``  one agent: a process that claims tasks and works on them
``stage.py``   starts the agents, acts as the person, kills and wakes agents
``screen.py``  shows what happens, as lines or as a live table
``proof.py``   checks the board at the end
=============  ==========================================================================
"""

from __future__ import annotations

from .stage import run

__all__ = ["run"]
