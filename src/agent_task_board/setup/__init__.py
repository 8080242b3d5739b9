"""`atb setup`: configure a client to use the board, and change nothing else in its files.

==================  ==============================================================================
``boards.py``       the board that a client is configured for
``clients.py``      the files of each client, and what goes into each
``json_entries.py`` our entries in a JSON file; the rest of the file keeps its bytes
``blocks.py``       our marked block in a text or TOML file, and files that are entirely ours
``texts.py``        the guide for agents
``hooks.py``        the commands that a client runs as hooks, and their output
``files.py``        plan all changes, then write all files or none
``folders.py``      the directories that were created for them
==================  ==============================================================================
"""

from __future__ import annotations
