"""What a command is, what it is called with, and what it answers."""

from __future__ import annotations

import os
import sys

from .. import config, identity, inputs
from ..errors import InvalidInput
from ..identity import Actor
from ..service import Board

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable
    from typing import Any

    from .parsing import Parser

FILE_BYTES = 4 * inputs.JSON_BYTES
"""How much of a file an option reads; every field is smaller."""


class Command:
    """One verb of the command line.

    ``summary`` is its line in ``atb --help``; ``details`` say what it does to a task and what it refuses;
    ``examples`` are lines to paste. ``creates`` marks the few that make a board, ``reads`` those that only look.
    """

    __slots__ = ("configure", "creates", "details", "examples", "reads", "run", "summary")

    def __init__(
        self,
        run: Callable[[Call], Reply],
        configure: Callable[[Parser], None],
        summary: str,
        details: str,
        examples: tuple[str, ...],
        *,
        creates: bool = False,
        reads: bool = False,
    ) -> None:
        self.run = run
        self.configure = configure
        self.summary = summary
        self.details = details
        self.examples = examples
        self.creates = creates
        self.reads = reads


class Reply:
    """The ``data`` of an envelope, and the name of the page that shows it to people.

    ``compact`` returns the answer as compact text, given the envelope's warnings. ``then`` is what goes on once the
    answer is printed, as long as it likes.
    """

    __slots__ = ("compact", "data", "page", "printed", "then", "warnings", "zone")

    def __init__(
        self,
        data: Any,
        *,
        page: str = "facts",
        warnings: list[str] | None = None,
        zone: str = "UTC",
        printed: bool = False,
        compact: Callable[[list[str]], str] | None = None,
        then: Callable[[], None] | None = None,
    ) -> None:
        self.data = data
        self.page = page
        self.warnings = warnings or []
        self.zone = zone
        self.printed = printed
        self.compact = compact
        self.then = then


class Call:
    """One run of a command: its parsed arguments, and on demand its configuration and its board."""

    def __init__(self, args: Namespace, command: Command, warnings: list[str]) -> None:
        self.args = args
        self.command = command
        self.warnings = warnings
        self.creates = command.creates
        self.reads = command.reads
        self._config: config.Config | None = None
        self._board: Board | None = None
        self._standard_input_of = ""
        self._has_told = False

    @property
    def is_compact(self) -> bool:
        """Whether the answer is to be compact text."""
        wish = self.args.format or os.environ.get("ATB_FORMAT")
        return not self.args.json and bool(wish == "compact")

    @property
    def config(self) -> config.Config:
        """The configuration; its warnings are added to the envelope's."""
        if self._config is None:
            self._config = config.load(data_dir=self.args.data_dir, config=self.args.config, environ=os.environ)
            self.warnings.extend(self._config.warnings)
        return self._config

    @property
    def board(self) -> Board:
        """The board, opened as the command needs it."""
        if self._board is None:
            self._board = Board(
                self.config.data_dir,
                create=self.creates,
                read_only=self.reads,
                settings=self.config.settings,
            )
        return self._board

    @property
    def has_pending_hooks(self) -> bool:
        """Whether the board wrote something down that hooks are to be told."""
        return self._board is not None and self._board.has_pending_hooks

    def close(self) -> None:
        """Close the board; say so if it was made just now, or is not there."""
        if self._board is not None:
            self.tell(self._board)
            self._board.close()

    def tell(self, board: Board) -> None:
        """Add to the warnings, once, that the board was made just now, or is not there."""
        path = os.path.abspath(board.path)
        if not self._has_told and board.created:
            self.warnings.append(f"made a new board at {path}")
        elif not self._has_told and board.is_missing:
            self.warnings.append(f"there is no board at {path} yet")
        self._has_told = True

    # What the arguments mean

    def agent(self) -> str:
        """Return the name of the agent that calls.

        Raises:
            InvalidInput: neither ``--agent`` nor ``ATB_AGENT`` gives one.
        """
        name = self.args.agent or os.environ.get("ATB_AGENT")
        if not name:
            raise InvalidInput(
                "agent: who is calling?", hint="Give --agent NAME, or set ATB_AGENT once per shell.", field="agent"
            )
        return inputs.agent_name(name, "agent")

    def actor(self) -> Actor | None:
        """Return the actor that ``--actor`` names; ``None`` leaves it to the service."""
        if not self.args.actor:
            return None
        return Actor(inputs.actor_name(self.args.actor, "actor"), identity.from_environment().kind)

    def token(self) -> str:
        """Return the lease token: ``--token``, else the content of ``--token-file``, else ``ATB_TOKEN``.

        Raises:
            InvalidInput: there is none.
        """
        token = self.args.token
        if token is None and self.args.token_file is not None:
            token = self.read_text(self.args.token_file, "token-file").strip()
        token = token or os.environ.get("ATB_TOKEN")
        if not token:
            raise InvalidInput(
                "token: the lease token is missing",
                hint="Give --token or --token-file, or set ATB_TOKEN; `atb resume` gives a new one to the holder.",
                field="token",
            )
        return str(token)

    def text(self, name: str) -> str | None:
        """Return the text of ``--NAME`` or of the file of ``--NAME-file``."""
        value: str | None = getattr(self.args, name)
        file: str | None = getattr(self.args, f"{name}_file")
        if file is None:
            return value
        if value is not None:
            raise InvalidInput(f"{name}: give --{name} or --{name}-file, not both", field=name)
        return self.read_text(file, f"{name}-file")

    def json(self, name: str) -> Any:
        """Return the JSON of ``--NAME``: literal, ``@FILE``, or ``-`` for standard input; ``None`` if not given."""
        value: str | None = getattr(self.args, name)
        if value is None:
            return None
        if value == "-" or value.startswith("@"):
            value = self.read_text(value.removeprefix("@"), name)
        return inputs.parse_json(value, name)

    def read_text(self, path: str, field: str, limit: int | None = FILE_BYTES) -> str:
        """Return the text of a file (``-``: standard input), at most ``limit`` bytes of it.

        Raises:
            InvalidInput: it cannot be read, is larger, or is not UTF-8.
        """
        size = -1 if limit is None else limit + 1
        try:
            if path == "-":
                if self._standard_input_of:
                    raise InvalidInput(
                        f"{field}: standard input was already read for {self._standard_input_of}", field=field
                    )
                if sys.stdin is None:
                    raise InvalidInput(f"{field}: standard input is closed", field=field)
                self._standard_input_of = field
                content = sys.stdin.buffer.read(size)
            else:
                with open(path, "rb") as file:
                    content = file.read(size)
        except (OSError, ValueError) as error:  # ValueError: a NUL in the path
            reason = getattr(error, "strerror", None) or error
            raise InvalidInput(f"{field}: {path[:200]}: {reason}", field=field) from None
        if limit is not None and len(content) > limit:
            raise InvalidInput(f"{field}: {path[:200]}: more than {limit:,} bytes", field=field)
        try:
            return content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise InvalidInput(f"{field}: {path[:200]}: not UTF-8 at byte {error.start:,}", field=field) from None
