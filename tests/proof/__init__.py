"""A proof by trial: callers of every surface under kills and freezes, and a checker of what they were told.

``python -m tests.proof --seconds 3600 --seed 1 --report FILE`` runs it; docs/reliability.md says what it proves.
The harness uses public surfaces only: the ``atb`` command, HTTP, MCP over a raw pipe, and ``Board``.
"""
