"""`atb setup`: make a client know the board, without touching anything that it did not write.

==================  ==============================================================================
``clients.py``      which files a client reads, and what goes into each
``json_entries.py`` an entry of ours in a JSON file; everything else keeps its bytes
``blocks.py``       a marked block of ours in a text or TOML file, and files that are wholly ours
``texts.py``        what an agent is told there
``hooks.py``        the commands that a client runs by itself, and what those answer
``files.py``        plan first, then write: all files or none
==================  ==============================================================================
"""

from __future__ import annotations
