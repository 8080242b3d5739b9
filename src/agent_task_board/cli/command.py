"""What a command is, what it is called with, and what it returns."""

from __future__ import annotations

import os
import sys

from .. import config, identity, inputs
from ..errors import InvalidInput, NotPermitted, Unusable, no_board
from ..identity import Actor
from ..model import AGENT
from ..service import Board

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Sequence
    from typing import Any

    from ..errors import BoardError
    from .parsing import Parser
    from .remembered import Remembered

FILE_BYTES = 4 * inputs.JSON_BYTES
"""Bytes that an option reads from a file, at most; the limit of every field is lower."""


class Command:
    """One command of the command line.

    ``summary`` is its line in ``atb --help``. ``details`` say what it changes and what it refuses. ``examples`` are
    lines to paste. ``creates`` says whether it creates the board if it is missing, ``reads`` whether it opens the board
    read-only: always, or only for the actions listed (its ``action`` argument). A command that ``needs_board`` is
    refused where there is none and it creates none.
    """

    __slots__ = ("configure", "creates", "details", "examples", "needs_board", "reads", "run", "summary")

    def __init__(
        self,
        run: Callable[[Call], Reply],
        configure: Callable[[Parser], None],
        summary: str,
        details: str,
        examples: tuple[str, ...],
        *,
        creates: bool | tuple[str, ...] = False,
        reads: bool | tuple[str, ...] = False,
        needs_board: bool = True,
    ) -> None:
        self.run = run
        self.configure = configure
        self.summary = summary
        self.details = details
        self.examples = examples
        self.creates = creates
        self.reads = reads
        self.needs_board = needs_board


class Reply:
    """The ``data`` of an envelope, and the name of the page that shows it to people.

    ``zone`` is the time zone of that page. ``printed`` means that the command has already printed its output.
    ``compact`` takes the warnings of the envelope and returns the answer as compact text. ``then`` is called once the
    answer is printed, and may run for as long as it needs. ``error`` is the first refusal of several calls in one, and
    gives the exit code.
    """

    __slots__ = ("compact", "data", "error", "page", "printed", "then", "warnings", "zone")

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
        error: BoardError | None = None,
    ) -> None:
        self.data = data
        self.page = page
        self.warnings = warnings or []
        self.zone = zone
        self.printed = printed
        self.compact = compact
        self.then = then
        self.error = error


class Call:
    """One run of a command: its arguments and, opened on demand, its configuration and its board.

    A command reads its call and never changes it; the only thing that it adds are warnings.
    """

    def __init__(self, args: Namespace, command: Command, warnings: list[str], style: str) -> None:
        self.style = style
        """How the answer is printed: ``json``, ``table``, ``compact``, or ``value`` for ``--print``."""
        self._args = args
        self._creates = _holds(command.creates, args)
        self._reads = _holds(command.reads, args)
        self._needs_board = command.needs_board and not self._creates
        self._warnings = warnings
        self._config: config.Config | None = None
        self._board: Board | None = None
        self._standard_input_of = ""
        self._has_reported_board = False
        self.lease: Remembered | None = None
        """The remembered lease whose token the call presents."""

    @property
    def args(self) -> Namespace:
        """The parsed arguments."""
        return self._args

    @property
    def warnings(self) -> Sequence[str]:
        """The warnings so far."""
        return self._warnings

    @property
    def is_compact(self) -> bool:
        """Whether the answer is printed as compact text."""
        return self.style == "compact"

    @property
    def config(self) -> config.Config:
        """The configuration; its warnings are added to the envelope's."""
        if self._config is None:
            self._config = config.load(data_dir=self.args.data_dir, config=self.args.config, environ=os.environ)
            self.warn(*self._config.warnings)
        return self._config

    @property
    def board(self) -> Board:
        """The board, opened in the way that the command declares.

        Raises:
            NotFound: there is no board, and the command does not create one.
            Unusable: a board would be created in a directory that other users control.
        """
        if self._board is None:
            board = Board(
                self.config.data_dir,
                create=self._creates,
                read_only=self._reads,
                settings=self.config.settings,
            )
            if self._needs_board:
                self.require(board)
            elif self._creates:
                self.refuse_place()
            self._board = board
        return self._board

    def require(self, board: Board) -> None:
        """Refuse the call if a board does not exist; the refusal names the places that were looked at.

        Raises:
            NotFound: it does not exist.
        """
        if not board.exists():
            place = self.config.place
            looked = [] if place is None else place.looked
            raise no_board(board.path, looked if board.path in looked or not looked else [*looked, board.path])

    def refuse_place(self) -> None:
        """Refuse to create a board in a directory that was found and that other users control.

        Raises:
            Unusable: they control it.
        """
        place = self.config.place
        if place is not None and place.data_dir == self.config.data_dir:
            refuse_directory(place.data_dir, place.refused)

    @property
    def has_pending_hooks(self) -> bool:
        """Whether this call queued notifications for hooks."""
        return self._board is not None and self._board.has_pending_hooks

    def close(self) -> None:
        """Close the board; warn if this call created it, or did not find it."""
        if self._board is not None:
            self.report_board(self._board)
            self._board.close()

    def warn(self, *warnings: str) -> None:
        """Add warnings to the answer, also to a refusal."""
        self._warnings.extend(warnings)

    def report_board(self, board: Board) -> None:
        """Warn, once per call, if the board was created just now or was not found."""
        path = os.path.abspath(board.path)
        if not self._has_reported_board:
            self.warn(*board.migration_notes)
        if not self._has_reported_board and board.created:
            self.warn(f"created a board at {path}")
        elif not self._has_reported_board and board.is_missing:
            self.warn(f"no board found at {path}")
        self._has_reported_board = True

    # Values of the arguments

    def agent(self) -> str:
        """Return the name of the calling agent.

        Raises:
            InvalidInput: neither ``--agent`` nor ``ATB_AGENT`` is given.
        """
        name = self.agent_if_any()
        if name is None:
            raise InvalidInput("agent: missing", hint="Pass --agent NAME, or set ATB_AGENT.", field="agent")
        return name

    def agent_if_any(self) -> str | None:
        """Return the name of the calling agent, if an agent calls."""
        name = self.args.agent or os.environ.get("ATB_AGENT")
        return inputs.agent_name(name, "agent") if name else None

    def refuse_agent(self, what: str) -> None:
        """Refuse a call by an agent that is for people only; ``what`` begins the message.

        Raises:
            NotPermitted: an agent calls.
        """
        agent = self.agent_if_any()
        if agent is not None:
            raise NotPermitted(
                f"{what}: for people only, not for the agent {agent!r}",
                hint="Ask a person to run it in a shell of their own.",
            )

    def actor(self) -> Actor | None:
        """Return the actor: ``--actor``, else the agent of ``--agent``; ``None``: the service uses its default.

        Who passes ``--agent`` acts as an agent, under whatever name.
        """
        agent = inputs.agent_name(self.args.agent, "agent") if self.args.agent else None
        name = getattr(self.args, "actor", None)
        if name:
            kind = identity.from_environment().kind if agent is None else AGENT
            return Actor(inputs.actor_name(name, "actor"), kind)
        return None if agent is None else Actor(agent, AGENT)

    def token(self) -> str:
        """Return the lease token: ``--token``, the content of ``--token-file``, ``ATB_TOKEN``, or the remembered one.

        Raises:
            InvalidInput: no token is given, and this session remembers none.
        """
        token = self.args.token
        if token is None and self.args.token_file is not None:
            token = self.read_text(self.args.token_file, "token-file").strip()
        token = token or os.environ.get("ATB_TOKEN")
        if token:
            return str(token)
        from . import remembered

        agent = self.agent_if_any()
        if agent is None:
            raise InvalidInput(
                "token: missing",
                hint="Set ATB_TOKEN, or pass --token-file FILE. After `claim --save`, --agent or ATB_AGENT is enough.",
                field="token",
            )
        self.lease = remembered.find(self.board.path, agent, self.args.id)
        return self.lease.token or remembered.ENDED

    def text(self, name: str) -> str | None:
        """Return the text of ``--NAME`` or the content of ``--NAME-file``."""
        value: str | None = getattr(self.args, name)
        file: str | None = getattr(self.args, f"{name}_file")
        if file is None:
            return value
        if value is not None:
            raise InvalidInput(f"{name}: pass --{name} or --{name}-file, not both", field=name)
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
        """Return the text of a file (``-``: standard input) of at most ``limit`` bytes.

        Raises:
            InvalidInput: the file cannot be read, is larger than ``limit``, or is not UTF-8.
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
            raise InvalidInput(f"{field}: file too large: {path[:200]} (limit {limit:,} bytes)", field=field)
        try:
            return content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise InvalidInput(f"{field}: not UTF-8: {path[:200]} (byte {error.start:,})", field=field) from None


def refuse_directory(data_dir: str, reason: str | None) -> None:
    """Refuse to create a board in a directory that was found, if there is a reason against it.

    Raises:
        Unusable: there is a reason.
    """
    if reason is not None:
        raise Unusable(
            f"no board is created in {data_dir}: {reason}",
            hint="Name another directory with --data-dir, or this one if you trust its owner.",
        )


def _holds(declared: bool | tuple[str, ...], args: Namespace) -> bool:
    """Say whether what a command declares holds for a call."""
    return declared if isinstance(declared, bool) else args.action in declared
