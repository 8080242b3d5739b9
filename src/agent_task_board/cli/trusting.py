"""The command that decides what counts although it was found: trust."""

from __future__ import annotations

import os
import sys

from .. import config, inputs, places, trust
from ..errors import InvalidInput, NotFound
from ..printable import escape_line
from .command import Call, Command, Reply
from .tables import facts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .parsing import Parser


def _arguments(parser: Parser) -> None:
    parser.add_argument(
        "directory", metavar="DIR", nargs="?", help="trust this directory of another user (default: the settings here)"
    )
    parser.flag("--yes", "at a terminal, do not ask")
    parser.flag("--list", "list what is trusted")
    parser.option("--remove", "PATH", "take back the decision about this file or directory")


def _trust(call: Call) -> Reply:
    args = call.args
    call.refuse_agent("trust")
    if sum((args.directory is not None, args.list, args.remove is not None)) > 1:
        raise InvalidInput("trust: pass DIR, --list or --remove, not several", field="trust")
    if args.list:
        return Reply(trust.Trust().listed())
    if args.remove is not None:
        return Reply({"removed": trust.forget(_absolute(args.remove, "remove"))})
    return _file(call) if args.directory is None else _directory(call, _absolute(args.directory, "directory"))


def _directory(call: Call, path: str) -> Reply:
    """Trust a directory that others control."""
    found = trust.directory(path)
    if places.why_untrusted(path, above=False) is None:
        call.warn(f"{found['path']}: already counts; to trust the settings in it, run `atb trust` there")
        return Reply({"directory": found["path"], "trusted": True})
    shown = {"directory": found["path"], "owner": _name_of(found["owner"]), "others_write": bool(found["others"])}
    is_trusted = _decide(call, shown, "Trust what its owner keeps in this directory?")
    if is_trusted:
        trust.trust_directory(found)
    return Reply({**shown, "trusted": is_trusted})


def _file(call: Call) -> Reply:
    """Trust the configuration file that was found here, as it is now."""
    found = config.load(data_dir=call.args.data_dir, config=call.args.config, environ=os.environ)
    if found.file is None:
        raise NotFound(
            "no configuration file found that could be trusted",
            hint=found.ignored[0] + "; `atb trust DIR` trusts a directory of another user."
            if found.ignored
            else "`atb where` shows what is looked at; `atb config init` writes a file.",
            ignored=found.ignored,
        )
    if found.file == config.own_file(os.environ):
        raise InvalidInput(f"file: always counts, it is your own: {found.file}", field="file")
    sections = config.trusted_sections(found)
    shown = {"file": found.file, "sha256": trust.digest(found.content), **sections}
    if not found.untrusted:
        call.warn("already trusted" if sections else "nothing in this file needs trust")
        is_trusted = True
    else:
        is_trusted = _decide(call, shown, "Trust this file as it is now?")
    if is_trusted:
        trust.trust_file(found.file, found.content)
    return Reply({**shown, "trusted": is_trusted})


def _decide(call: Call, shown: dict[str, Any], question: str) -> bool:
    """Show what would be trusted and ask, at a terminal; elsewhere the command itself is the decision."""
    is_asked = call.style == "table" and sys.stdin is not None and sys.stdin.isatty() and sys.stderr is not None
    if call.args.yes or not is_asked:
        return True
    sys.stderr.write("".join(f"{escape_line(line)}\n" for line in facts(shown)) + f"{question} [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() in ("y", "yes"):
        return True
    call.warn("nothing was recorded")
    return False


def _name_of(owner: int) -> str:
    try:
        import pwd

        return pwd.getpwuid(owner).pw_name
    except (ImportError, KeyError):
        return str(owner)


def _absolute(path: str, field: str) -> str:
    return config.absolute(inputs.line(path, field, inputs.PATH), config.working_directory())


COMMANDS = {
    "trust": Command(
        _trust,
        _arguments,
        "Make the hooks and server settings of a file that was found count.",
        "In a file that was found rather than named, some settings have no effect until you trust the file:\n"
        "[hooks] and [serve], which run programs and open ports, and everything that an atb.toml sets for a\n"
        "board outside of its project. It shows them and asks (at a terminal; --yes does not ask), and records\n"
        "the path and the SHA-256 of the file in your state directory. A changed file must be trusted again.\n"
        "`data` is {file, sha256, hooks, serve, settings, trusted}. With DIR, it trusts a directory of another\n"
        "user, such as a mount, for as long as its owner and its write permissions stay: {directory, owner,\n"
        "others_write, trusted}. For people only.",
        ("atb trust", "atb trust --yes", "atb trust /srv/board", "atb trust --list", "atb trust --remove ./atb.toml"),
        needs_board=False,
    ),
}
