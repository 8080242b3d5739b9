"""The pages of ``docs/`` that are made from the program: ``python -m agent_task_board.cli.reference``.

It writes ``cli.md``, ``errors.md``, ``http.md``, ``mcp-tools.json`` and ``schema.sql`` into ``./docs``; a test holds
them equal to what it makes.
The page of commands is laid out here and not by argparse, whose help looks different in each version of Python.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile

from .. import errors
from ..storage import db
from . import find, parsing
from .registry import GROUPS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Action
    from collections.abc import Callable, Iterable

    from .command import Command

MADE = "Made by `python -m agent_task_board.cli.reference` from the program itself; do not edit."

REASONS = {
    "status": "The task is in another status than the verb or `--if-status` wants.",
    "version": "The task has another version than `--if-version` names: somebody changed it in between.",
    "blocked": "The task waits for tasks that are not done.",
    "delayed": "The task is not to be started yet; its `not_before` lies ahead.",
    "assigned": "The task is assigned to another agent, or another agent holds it.",
    "cycle": "The dependency would close a circle; `details.cycle` lists its ids.",
    "dedupe": "Another unfinished task holds the dedupe key; `details.task_id` names it.",
    "request_id": "The request id was used within the last 24 hours with other arguments.",
}
"""What ``details.reason`` of a conflict may be."""

_COMMENTED = re.compile(r"^((?:--.*\n)+)\n*CREATE (?:UNIQUE )?(?:TABLE|INDEX|TRIGGER) (\w+)", re.MULTILINE)

_CLI_HEAD = """\
Every command prints one JSON document on standard output, whether it worked or not:

```json
{"ok": true, "data": {}, "warnings": []}
{"ok": false, "error": {"code": "", "message": "", "hint": "", "details": {}}, "warnings": []}
```

A verb on a task answers `{"task"}`, `comment` `{"event"}`; beside it stand `lease` (`token`, `fence`, `expires_at`)
where one was granted or renewed, `created` after `add`, and `replayed` where the call was a repetition. Only `add`,
`import`, `serve`, `mcp` and `demo` make a board; everything else finds an empty one where none is, and says so in
`warnings`.

Talk for people goes to standard error. Branch on the exit code or on `error.code`, never on a message;
[errors.md](errors.md) lists them. What the verbs do to a task is told in [lifecycle.md](lifecycle.md).

## Values

- **ID**: a whole task id in any case, or an ending of at least 4 characters that fits one task only.
- **LENGTH**: `90` (seconds), `90s`, `15m`, `1h30m`, `2d`.
- **INSTANT**: ISO 8601; without an offset it is in the configured time zone. A bare date means the end of that day
  for `--due` and its beginning for `--not-before`. Answers are always in UTC.
- **JSON**: the JSON itself, `@FILE`, or `-` for standard input. Read strictly: no `NaN`, no key twice in one object,
  no integer beyond 64 bits.
- Plain text keeps a leading `@`; `--body-file`, `--note-file` and `--error-file` read a file, or standard input
  with `-`.
- Options are never abbreviated.

## Environment

| variable | what it does |
|---|---|
| `ATB_AGENT` | who claims, and who acts; a caller with it is an agent, and may not do what is for people |
| `ATB_ACTOR` | who acts, where no agent does; otherwise the login name |
| `ATB_TOKEN` | the lease token, where no option gives one |
| `ATB_DATA_DIR`, `ATB_CONFIG` | where the board and the configuration are, see [configuration.md](configuration.md) |
| `ATB_FORMAT` | `json`, `table` or `compact`, where no option says it |
| `NO_COLOR` | no colour in tables; there is none outside a terminal anyway |
"""

_ERRORS_HEAD = """\
A refusal is the `error` of the envelope: `{"code", "message", "hint", "details"}`. Programs tell refusals apart by
`code` or by the exit code of the command; messages are for people and may change.

Exit code 0 means that the call worked, and that what it changed is on disk. A `claim` with nothing ready works, too:
its `data` is `null`. Ctrl-C ends a command with 130.

The HTTP status is that of the same refusal over HTTP; what only HTTP knows is told in [http.md](http.md).
"""

_ERRORS_TAIL = """\
A refusal that found a task in another state than expected has `details.actual`: `status`, `version`, `claimed_by`,
`claimed_at` and `lease_expires_at` as they are now. `details.field` names the field of an `invalid_input`, where there
is one.
"""


def commands_page() -> str:
    """Return ``docs/cli.md``."""
    lines = ["# Commands", "", f"<!-- {MADE} -->", "", _CLI_HEAD.rstrip(), ""]
    lines += ["## Options of every command", "", "They may stand before or after the command's name.", ""]
    every = [action for action in parsing.parser_of("tick", find("tick"))._actions if action.dest != "help"]
    lines += [*_options(every), ""]
    lines += [
        "`atb --help` lists the commands, `atb COMMAND --help` explains one, and `atb --version` tells the versions"
    ]
    lines += ["of the board, Python and SQLite."]
    for title, (_, names) in GROUPS.items():
        lines += ["", f"## {title}"]
        for name in names:
            lines += ["", *_command(name, find(name))]
    return "\n".join(lines) + "\n"


def errors_page() -> str:
    """Return ``docs/errors.md``."""
    rows = [
        (
            f"`{refusal.code}`",
            refusal.exit_code,
            refusal.http_status or "none",
            _first_sentence(refusal.__doc__ or ""),
            refusal.hint,
        )
        for refusal in errors.REFUSALS
    ]
    lines = ["# Errors", "", f"<!-- {MADE} -->", "", _ERRORS_HEAD.rstrip(), ""]
    lines += _table(("code", "exit", "HTTP", "when", "hint"), rows)
    lines += ["", "A hint may be more specific than the one shown here.", "", "## Reasons of a conflict", ""]
    lines += ["`details.reason` of a `conflict` is one of these:", ""]
    lines += _table(("reason", "when"), [(f"`{reason}`", when) for reason, when in REASONS.items()])
    lines += ["", _ERRORS_TAIL.rstrip()]
    return "\n".join(lines) + "\n"


def schema_page() -> str:
    """Return ``docs/schema.sql``: what the migrations make of an empty database, in the order in which they make it."""
    above = _comments_above()
    with tempfile.TemporaryDirectory() as nowhere:
        database = db.Database(nowhere)  # no board there, hence an empty one in memory
        with database.read() as connection:
            made = connection.execute("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid")
            statements = [above.get(name, "") + sql + ";" for name, sql in made.fetchall()]
        database.close()
    head = f"-- Schema {db.SCHEMA_VERSION} of tasks.db. {MADE}"
    return "\n\n".join([head, *statements]) + "\n"


def _comments_above() -> dict[str, str]:
    """Return the comment above the statement that makes a table, index or trigger; SQLite keeps only those inside."""
    folder = os.path.join(os.path.dirname(db.__file__), "migrations")
    found: dict[str, str] = {}
    for name in sorted(os.listdir(folder)):
        if name.endswith(".sql"):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                found.update((made, comment) for comment, made in _COMMENTED.findall(file.read()))
    return found


def tools_page() -> str:
    """Return ``docs/mcp-tools.json``: what a server answers to ``tools/list``."""
    from ..mcp_server.definitions import page

    return page()


def http_page() -> str:
    """Return ``docs/http.md``: what a server answers to ``GET /api``."""
    from ..web.documentation import markdown

    title, _, rest = markdown().partition("\n")
    return f"{title}\n\n<!-- {MADE} -->\n{rest}"


PAGES: dict[str, Callable[[], str]] = {
    "cli.md": commands_page,
    "errors.md": errors_page,
    "http.md": http_page,
    "mcp-tools.json": tools_page,
    "schema.sql": schema_page,
}
"""The files of ``docs/`` that are made, and what makes each."""


def _command(name: str, command: Command) -> list[str]:
    """Return the section of one command."""
    parser = parsing.Parser(prog=f"atb {name}", add_help=False, allow_abbrev=False)
    command.configure(parser)
    own = sorted(parser._actions, key=lambda action: bool(action.option_strings))
    words = [_usage(action) for action in own if not action.option_strings or action.required]
    optional = any(action.option_strings and not action.required for action in own)
    lines = [f"### atb {name}", "", command.summary, "", *command.details.split("\n"), "", "```"]
    lines += [" ".join([f"atb {name}", *words, *(["[OPTION]..."] if optional else [])]), "```", ""]
    if own:
        lines += [*_options(own), ""]
    return [*lines, "```sh", *command.examples, "```"]


def _usage(action: Action) -> str:
    """Return how an argument stands in the usage line."""
    word = _value(action)
    if action.option_strings:
        return f"{action.option_strings[0]} {word}"
    return f"[{word}]" if action.nargs == "?" else word


def _value(action: Action) -> str:
    """Return what an argument takes: its choices, or the name of its value; nothing for a flag."""
    if action.nargs == 0:
        return ""
    if action.choices is not None:
        return "|".join(map(str, action.choices))
    return str(action.metavar or action.dest.upper())


def _options(actions: Iterable[Action]) -> list[str]:
    """Return a table of arguments."""
    rows = []
    for action in actions:
        names = ", ".join(f"`{' '.join(filter(None, (name, _value(action))))}`" for name in action.option_strings)
        text = (action.help or "").replace("%%", "%")  # argparse wants one percent sign written as two
        rows.append((names or f"`{_value(action)}`", text))
    return _table(("argument", "what it does"), rows)


def _first_sentence(docstring: str) -> str:
    first = docstring.partition("\n\n")[0]
    return " ".join(first.split()).replace("``", "`")


def _table(heads: Iterable[str], rows: Iterable[Iterable[object]]) -> list[str]:
    """Return a table in Markdown."""
    lines = [list(map(str, heads))]
    lines.append(["---"] * len(lines[0]))
    lines += [[str(cell).replace("|", "\\|") for cell in row] for row in rows]
    return [f"| {' | '.join(line)} |" for line in lines]


def main() -> None:
    """Write every page into ``./docs``."""
    for name, make in PAGES.items():
        path = os.path.join("docs", name)
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            file.write(make())
        sys.stdout.write(f"{path}\n")


if __name__ == "__main__":
    main()
