"""What a shell asks while a command line is typed: the words that could come next, from the parsers and the board.

A script (``scripts/atb.*``) calls ``atb __complete SHELL …`` and gets plain lines. The first says what follows:
``words``, or ``files`` or ``directories``, which the shell completes itself. Then comes one candidate a line: the word,
and where there is something to tell about it a tab and a text. Nothing here prints an error or creates a file, and no
text of the board reaches a place where a shell would expand it.
"""

from __future__ import annotations

import copy
import os

from .. import config, instants
from ..model import FINAL, STATUSES
from . import find, parsing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Action
    from collections.abc import Callable, Iterable, Sequence

    from ..service import Board
    from .command import Command

    Word = tuple[str, str]
    """A candidate, and what there is to tell about it."""

WORDS, FILES, DIRECTORIES = "words", "files", "directories"

PATIENCE = instants.SECOND // 5
"""Milliseconds that a locked board is waited for."""

TITLE = 60
"""Columns of a title, at most."""

HELD = ("claimed", "running")
UNFINISHED = tuple(status for status in STATUSES if status not in FINAL)
MEANT: dict[str, Sequence[str]] = {
    **dict.fromkeys(("resume", "heartbeat", "complete", "fail", "release", "handoff"), HELD),
    **dict.fromkeys(("approve", "reject"), ("review",)),
    **dict.fromkeys(("update", "edit", "cancel", "reassign"), UNFINISHED),
    **dict.fromkeys(("claim", "done"), ("queued",)),
    "retry": ("failed", "cancelled"),
    "archive": FINAL,
}
"""The statuses of the tasks that a command is for; all, if it is not here."""

_LISTING = {"63", "33", "64"}
"""Values of bash's ``COMP_TYPE`` at which it lists candidates, and never inserts one of several."""

_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=@%+,")


def script(shell: str) -> str:
    """Return the completion script of a shell."""
    path = os.path.join(os.path.dirname(__file__), "scripts", f"atb.{shell}")
    with open(path, encoding="utf-8") as file:
        return file.read()


def answer(arguments: Sequence[str]) -> int:
    """Print the candidates for a command line; whatever goes wrong, print nothing and succeed."""
    from .output import print_text

    try:
        shell, *rest = arguments
        print_text("".join(f"{line}\n" for line in (_for_bash(*rest) if shell == "bash" else _for_others(rest))))
    except BaseException:  # noqa: S110 - a message would end up in the line that is typed
        pass
    return 0


def _for_others(words: Sequence[str]) -> list[str]:
    """Answer zsh and fish, which pass the words, the last up to the cursor, and quote what they insert."""
    kind, found, prefix = complete(words[1:])
    return [kind, *("\t".join(filter(None, (prefix + word, text))) for word, text in found)]


def _for_bash(how: str, breaks: str, line: str) -> list[str]:
    """Answer bash, which passes the line up to the cursor and inserts candidates as they are.

    ``breaks`` are the characters at which readline begins a new word: it replaces only what comes after the last one.
    Texts are shown only where bash lists candidates: it would insert them, too, and a title may be ``$(command)``.
    """
    words, raw = split(line)
    if raw is None:
        return []
    kind, found, prefix = complete(words[1:])
    kept = 0
    for place, char in enumerate(raw):
        if char in breaks and not (place and raw[place - 1] == "\\"):
            kept = place + 1
    lines = []
    for word, text in found:
        quoted = "".join(char if char in _PLAIN or not char.isascii() else f"\\{char}" for char in prefix + word)
        with_text = how in _LISTING and text and len(found) > 1
        lines.append(quoted[kept:] + (f"  ({text})" if with_text else ""))
    return [kind, *lines]


def split(line: str) -> tuple[list[str], str | None]:
    """Return the words of a line without their quotes, and the last as it is typed; ``None``: it has quotes."""
    words, word, raw, quote, quoted = [], "", "", "", False
    escape = False
    for char in line:
        if not (escape or quote) and char in " \t\n":
            if raw:
                words.append(word)
            word, raw, quoted = "", "", False
            continue
        raw += char
        if escape:
            word, escape = word + char, False
        elif char == "\\" and quote != "'":
            escape = True
        elif char == quote:
            quote = ""
        elif char in "'\"" and not quote:
            quote, quoted = char, True
        else:
            word += char
    return [*words, word], None if quoted or escape else raw


def complete(words: Sequence[str]) -> tuple[str, list[Word], str]:
    """Return what can stand for the last word: the kind, the candidates, and the beginning that all of them share."""
    typed = _Typed(words)
    kind, found = typed.candidates()
    beginning = typed.current
    return kind, [word for word in found if word[0].startswith(beginning)], typed.prefix


class _Typed:
    """A command line up to the cursor."""

    def __init__(self, words: Sequence[str]) -> None:
        *before, self.current = words or [""]
        self.prefix = ""
        """``--option=``, if the value of an option is typed in the same word."""
        self._name: str | None = None
        self._command: Command | None = None
        self._actions = parsing.parser_of("watch", find("watch")).arguments()  # it has none of its own
        self._given: dict[str, str] = {}
        self._used: set[str] = set()
        self._pending: Action | None = None
        self._places = 0
        self._only_places = False
        for word in before:
            self._take(word)

    def _take(self, word: str) -> None:
        if self._pending is not None:
            self._given[self._pending.dest] = word
            self._pending = None
        elif word == "--" and not self._only_places:
            self._only_places = True
        elif word.startswith("-") and len(word) > 1 and not self._only_places:
            option, is_inline, value = word.partition("=")
            action = self._option(option)
            if action is not None:
                self._used.update(action.option_strings)
                if is_inline:
                    self._given[action.dest] = value
                elif action.nargs != 0:
                    self._pending = action
        elif self._command is None:
            self._name = word
            self._command = find(word)  # an unknown one is refused: there is nothing to offer
            self._actions = parsing.parser_of(word, self._command).arguments()
        else:
            place = self._place()
            if place is not None:
                self._given.setdefault(place.dest, word)
            self._places += 1

    def _option(self, name: str) -> Action | None:
        return next((action for action in self._actions if name in action.option_strings), None)

    def _place(self) -> Action | None:
        """Return the argument that the next word without a dash is; the last one may take several."""
        places = [action for action in self._actions if not action.option_strings]
        if self._places < len(places):
            return places[self._places]
        return places[-1] if places and places[-1].nargs in ("*", "+") else None

    def candidates(self) -> tuple[str, list[Word]]:
        """Return the kind of the candidates, and all of them, whatever is typed of the last word."""
        if self._pending is not None:
            return self._values(self._pending)
        if self.current.startswith("-") and not self._only_places:
            option, is_inline, value = self.current.partition("=")
            if not is_inline:
                return WORDS, self._options() + ([] if self._command else [("--version", "print the versions")])
            action = self._option(option)
            if action is None or action.nargs == 0:
                return WORDS, []
            self.prefix, self.current = f"{option}=", value
            return self._values(action)
        if self._command is None:
            from .registry import MODULES

            return WORDS, [(name, find(name).summary) for name in MODULES]
        place = self._place()
        return (WORDS, []) if place is None else self._values(place)

    def _options(self) -> list[Word]:
        """Return the options that can still be given, without their short names."""
        found = []
        for action in self._actions:
            is_repeatable = type(action).__name__ == "_AppendAction"
            if is_repeatable or self._used.isdisjoint(action.option_strings):
                text = (action.help or "").replace("%%", "%")
                found += [(name, text) for name in action.option_strings if name.startswith("--")]
        return found

    def _values(self, action: Action) -> tuple[str, list[Word]]:
        """Return the values that an option or an argument can have."""
        if action.choices is not None:
            return WORDS, [(str(choice), "") for choice in action.choices]
        if action.metavar in ("FILE", "PATH", "ZIP"):
            return FILES, []
        if action.metavar == "DIR":
            return DIRECTORIES, []
        if action.metavar == "ORDER":
            from ..board.queries import ORDERS

            return WORDS, [(order, "") for order in ORDERS]
        if action.metavar == "STATUS":
            return WORDS, [(status, "") for status in self._statuses()]
        return WORDS, self._from_board(action)

    def _statuses(self) -> Iterable[str]:
        if self._name == "hooks":
            from ..hooks.outbox import STATUSES as DELIVERIES

            return DELIVERIES
        return FINAL if self._name == "archive" else STATUSES

    def _from_board(self, action: Action) -> list[Word]:
        from ..board import candidates
        from ..printable import is_visible

        names: dict[str, Callable[[Board], list[str]]] = {
            "queue": candidates.queues,
            **dict.fromkeys(("agent", "assignee", "claimed_by", "to", "actor"), candidates.agents),
            **dict.fromkeys(("tag", "drop_tag"), candidates.tags),
        }
        if self._name == "schedule":
            names["name"] = candidates.schedules
        is_task = action.metavar == "ID" and action.dest != "request_id"
        if not is_task and action.dest not in names:
            return []
        with self._board() as board:
            if is_task:
                return self._tasks(board, action)
            # A name that hides characters would be inserted with them, unseen.
            found = [(name, "") for name in names[action.dest](board) if is_visible(name)]
        may_be_none = action.dest == "assignee" or (action.dest == "to" and self._name == "reassign")
        return found + ([("none", "nobody")] if may_be_none else [])

    def _tasks(self, board: Board, action: Action) -> list[Word]:
        from ..board import candidates
        from .tables import cut, one_line

        status: Sequence[str] = ()
        agent = None
        if not action.option_strings:
            status = MEANT.get(self._name or "", ())
            agent = (self._given.get("agent") or os.environ.get("ATB_AGENT") or None) if status == HELD else None
        elif self._name == "add":  # what a new task can wait for
            status = UNFINISHED
        found = candidates.tasks(board, self.current, status=status, agent=agent, archived=self._name == "unarchive")
        typed = len(self.current)  # in the case in which it is typed: shells compare letter by letter
        return [
            (self.current + self._alike(one.name[typed:]), f"{one.status}: {cut(one_line(one.title), TITLE)}")
            for one in found
        ]

    def _alike(self, rest: str) -> str:
        return rest.lower() if self.current.islower() else rest

    def _board(self) -> Board:
        from ..service import Board

        found = config.load(data_dir=self._given.get("data_dir"), config=self._given.get("config"), environ=os.environ)
        settings = copy.copy(found.settings)
        settings.busy_timeout = PATIENCE
        return Board(found.data_dir, create=False, read_only=True, settings=settings)
