"""Run the command line with ``python -m agent_task_board``."""

from .cli import run

if __name__ == "__main__":
    run()
