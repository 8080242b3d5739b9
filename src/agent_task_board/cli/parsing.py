"""Arguments: the position of the command's name, the parser of one command, and the types of values."""

from __future__ import annotations

import argparse

from .. import inputs
from ..errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, NoReturn

    from .command import Command

# Error messages are always in English. Without this line, gettext would import another module to look at the locale.
argparse._ = str  # type: ignore[attr-defined]

GLOBAL_WITH_VALUE = ("--data-dir", "--config", "--format", "--print")
GLOBAL_FLAGS = ("--json", "--quiet", "--help", "-h", "--version", "-V")
SHORT = {"--queue": "-q", "--priority": "-p", "--tag": "-t", "--limit": "-n", "--agent": "-a"}
"""The short options."""


_ID = "its id, or at least the first or last 4 characters of it"


def place_of_command(arguments: list[str]) -> int | None:
    """Return the index of the command's name; the options of every command may come before it.

    Raises:
        InvalidInput: another option comes before it.
    """
    skip = False
    for place, word in enumerate(arguments):
        if skip:
            skip = False
        elif word in GLOBAL_WITH_VALUE:
            skip = True
        elif not word.startswith("-"):
            return place
        elif word not in GLOBAL_FLAGS and word.partition("=")[0] not in GLOBAL_WITH_VALUE:
            known = [*GLOBAL_WITH_VALUE, *GLOBAL_FLAGS]
            raise InvalidInput(
                f"unknown option before the command: {word[:60]!r}",
                hint=did_you_mean(word, known) or "Pass the options of a command after its name.",
            )
    return None


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """Return a hint with the known word that is most similar, if one is similar enough."""
    import difflib

    near = difflib.get_close_matches(word, list(known), n=1)
    return f"Did you mean {near[0]!r}?" if near else None


class Parser(argparse.ArgumentParser):
    """A parser whose errors are refusals like any other."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Keep the arguments: an error message does not always name the one that was misspelt."""
        self._words = list(args or ())
        return super().parse_known_args(args, namespace)

    def print_help(self, file: Any = None) -> None:
        """Print the help page like any other output; the base class ignores that it cannot be written."""
        del file
        from .output import print_text

        print_text(self.format_help())

    def error(self, message: str) -> NoReturn:
        """Refuse the arguments, with a hint if an option was misspelt."""
        hint = None
        known = [option for action in self._actions for option in action.option_strings]
        for word in (word.partition("=")[0] for word in self._words):
            if word == "--":
                break
            if word.startswith("--") and word not in known:
                hint = did_you_mean(word, known)
                break
            if word.startswith("-") and word not in known:
                hint = "For a value that begins with a dash, write --option=-value, or pass it after --."
        raise self._refusal(message, hint)

    def _refusal(self, message: str, hint: str | None) -> InvalidInput:
        """Return an error of argparse in the words of every other refusal."""
        see = f"See `{self.prog} --help`."
        required = message.partition("the following arguments are required: ")[2]
        if required:
            names = [name.lower() for name in required.split(", ")]
            values = self._values(names[0])
            return InvalidInput(f"{', '.join(names)}: missing", hint=hint or values or see, field=names[0])
        unknown = message.partition("unrecognized arguments: ")[2]
        if unknown:
            if unknown.startswith("-"):
                return InvalidInput(f"unknown option: {unknown.split()[0][:60]!r}", hint=hint or see)
            hint = hint or f"Quote a value of several words. {see}"
            return InvalidInput(f"unexpected argument: {unknown[:60]!r}", hint=hint)
        argument, _, problem = message.removeprefix("argument ").partition(": ")
        name = argument.rpartition("/")[2].removeprefix("--").replace("-", "_")
        values = self._values(name)
        if problem.startswith("invalid choice: "):
            problem = f"unknown value: {problem.removeprefix('invalid choice: ').partition(' (choose from')[0][:60]}"
        elif problem.startswith("expected "):
            problem, hint = "no value given", hint or values
        elif not problem:
            return InvalidInput(message, hint=hint or see)
        return InvalidInput(f"{name}: {problem}", hint=hint or values or see, field=name)

    def _values(self, name: str) -> str | None:
        """Return a hint with the values that an argument may have, if there is a list of them."""
        for action in self._actions:
            if action.choices and name in (action.dest, action.metavar):
                return f"Values: {', '.join(map(str, action.choices))}."
        return None

    def arguments(self) -> list[argparse.Action]:
        """Return every option and argument, in the order added."""
        return list(self._actions)

    def whole(self, option: str, text: str) -> None:
        """Add an option that takes a whole number."""
        self.add_argument(*_names(option), type=whole_number, metavar="N", help=text)

    def option(self, option: str, metavar: str, text: str, **more: Any) -> None:
        """Add an option that takes a value."""
        self.add_argument(*_names(option), metavar=metavar, help=text, **more)

    def repeated(self, option: str, metavar: str, text: str, **more: Any) -> None:
        """Add an option that can be repeated."""
        text = f"{text} (repeatable)"
        self.add_argument(*_names(option), metavar=metavar, action="append", default=[], help=text, **more)

    def flag(self, option: str, text: str) -> None:
        """Add an option without a value."""
        self.add_argument(option, action="store_true", help=text)

    def task(self) -> None:
        """Add the id of a task."""
        self.add_argument("id", metavar="ID", help=f"the task: {_ID}")

    def tasks(self) -> None:
        """Add the ids of one or several tasks."""
        self.add_argument("ids", metavar="ID", nargs="+", help=f"a task, or several: {_ID}")

    def actor(self) -> None:
        """Add the actor."""
        self.option("--actor", "NAME", "who makes the change (default: ATB_AGENT, ATB_ACTOR, the login name)")

    def holder(self) -> None:
        """Add the arguments of a verb under a lease: the task, the token, the actor."""
        self.task()
        self.option("--token-file", "FILE", "read the lease token from a file, or from standard input with -")
        self.option(
            "--token",
            "TOKEN",
            "the lease token of the claim (default: ATB_TOKEN, else the one that `claim --save` remembers)",
        )
        self.option("--actor", "NAME", "who makes the change (default: the holder)")

    def note(self, text: str) -> None:
        """Add a note, given as text or in a file."""
        self.option("--note", "TEXT", text)
        self.option("--note-file", "FILE", "read the note from a file, or from standard input with -")


def _names(option: str) -> tuple[str, ...]:
    """Return an option with its short form, if it has one."""
    return (SHORT[option], option) if option in SHORT else (option,)


def whole_number(text: str) -> int:
    """Return the integer that a text spells, as an argument's type."""
    try:
        return inputs.whole_number(text, "")
    except InvalidInput as error:
        raise argparse.ArgumentTypeError(error.message.removeprefix(": ")) from None


class _Page(argparse.RawDescriptionHelpFormatter):
    """Help of a fixed width; to find the width of the terminal, argparse would import shutil."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28, width=100)


def parser_of(name: str, command: Command) -> Parser:
    """Return the parser of one command, with the options of every command."""
    parser = Parser(
        prog=f"atb {name}",
        description=f"{command.summary}\n\n{command.details}",
        epilog="examples:\n" + "\n".join(f"  {line}" for line in command.examples),
        formatter_class=_Page,
        allow_abbrev=False,
    )
    command.configure(parser)
    every = parser.add_argument_group("options of every command")
    taken = parser._option_string_actions
    if "--agent" not in taken:
        every.add_argument(*_names("--agent"), metavar="NAME", help="who calls: an agent (default: ATB_AGENT)")
    if not name:
        every.add_argument("-V", "--version", action="store_true", help="print the version")
    every.add_argument(
        "--data-dir", metavar="DIR", help="the data directory of the board (default: as `atb where` says)"
    )
    every.add_argument("--config", metavar="FILE", help="the configuration file (default: as `atb where` says)")
    every.add_argument("--json", action="store_true", help="print the JSON envelope; overrides --format")
    if "--format" not in taken:
        every.add_argument(
            "--format",
            choices=["json", "table", "compact"],
            help="table: for people, the default at a terminal; compact: few tokens, for agents (default: ATB_FORMAT, "
            "json); for export and import, the format of the file",
        )
    if "--print" not in taken:
        every.add_argument(
            "--print", metavar="PATH", help="print one value of the answer instead, such as data.task.id"
        )
    every.add_argument("--quiet", action="store_true", help="print nothing on standard error")
    return parser
