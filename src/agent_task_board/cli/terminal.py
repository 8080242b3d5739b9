"""The commands for a person at a terminal: watch, completion."""

from __future__ import annotations

from .command import Call, Command, Reply
from .reads import no_arguments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .parsing import Parser

SHELLS = ("bash", "zsh", "fish")


def _watch(call: Call) -> Reply:
    from .watch import watch

    return watch(call)


def _completion_arguments(parser: Parser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="the shell that the script is for")


def _completion(call: Call) -> Reply:
    from .completion import script
    from .output import print_text

    text = script(call.args.shell)
    if call.args.json or call.args.format == "json" or call.style == "value":
        return Reply({"shell": call.args.shell, "script": text})
    print_text(text)
    return Reply(None, printed=True)


COMMANDS = {
    "watch": Command(
        _watch,
        no_arguments,
        "Show the board live in the terminal: what needs you, what is in progress, what is ready.",
        "Redraws the board whenever it changes, also when a lease expires, a delay ends or a deadline\n"
        "passes. `q` or Ctrl-C quits. If standard output is not a terminal, or with --json, it prints one line\n"
        "of JSON now and one for each change: {at, revision, counts, blocked, stuck, delayed, needs_you,\n"
        "in_progress, ready}. `needs_you` has the groups review, expired, stuck, overdue and failed; each group\n"
        "is {count, tasks}, with at most 100 tasks. Holds no lock and no transaction while it waits.",
        ("atb watch", "atb watch --json"),
        reads=True,
    ),
    "completion": Command(
        _completion,
        _completion_arguments,
        "Print the script that completes `atb` in a shell.",
        "The shell then completes commands, options, statuses, queues, agents, tags, schedules, and tasks with\n"
        "their titles, from the board that the command line names. Completion only reads, and never prints an\n"
        "error. With --json, `data` is {shell, script}. docs/completion.md says where the script goes.",
        ("atb completion bash", "atb completion zsh", "atb completion fish"),
        reads=True,
    ),
}
