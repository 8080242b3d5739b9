"""One agent of the demo: ``python -m agent_task_board.demo DATA_DIR AGENT QUEUE…``."""

from __future__ import annotations

import sys

from .worker import main

if __name__ == "__main__":
    main(*sys.argv[1:])
