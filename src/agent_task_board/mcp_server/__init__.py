"""The MCP server over standard input and output: ``atb mcp``."""

from __future__ import annotations
