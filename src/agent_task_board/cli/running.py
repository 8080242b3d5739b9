"""The command that runs a command for each task: run."""

from __future__ import annotations

import os
import signal
import sys
import threading

from .. import inputs
from ..errors import Empty, InvalidInput
from .command import Call, Command, Reply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..model import Task
    from .parsing import Parser

MODES = ("once", "drain", "forever")


def _run_arguments(parser: Parser) -> None:
    parser.add_argument("command_words", metavar="CMD", nargs="*", help="the command and its arguments, after --")
    parser.option("--agent", "NAME", "the agent that claims (default: ATB_AGENT, else the command's name and a suffix)")
    parser.repeated("--queue", "NAME", "only claim from this queue")
    parser.repeated("--tag", "TAG", "only claim a task with this tag")
    parser.option("--lease", "LENGTH", "the length of the lease, renewed meanwhile (default: as configured, 15m)")
    parser.whole("--jobs", "work on this many tasks at once, 1 to 64 (default: 1)")
    parser.flag("--once", "work on one task that is ready; without one, exit with 9")
    parser.flag("--drain", "end when nothing is ready, held or delayed any more")
    parser.flag("--forever", "wait for further tasks until Ctrl-C (default)")
    parser.flag("--worktree", "give each attempt a git worktree and a branch of its own, below .atb/worktrees")


def _run(call: Call) -> Reply:
    from ..run import runner
    from ..run.worktree import Repository

    args = call.args
    command = args.command_words
    if not command or not command[0]:
        raise InvalidInput("CMD: missing", hint="Pass the command after --: atb run -- CMD ARGS.", field="CMD")
    for word in command:
        if "\0" in word:
            raise InvalidInput("CMD: has a NUL character", field="CMD")
    modes = [mode for mode in MODES if getattr(args, mode)] or [MODES[-1]]
    if len(modes) > 1:
        raise InvalidInput(f"{modes[1]}: pass only one of --once, --drain and --forever", field=modes[1])
    jobs = 1 if args.jobs is None else inputs.integer(args.jobs, "jobs", 1, runner.JOBS)
    repository = Repository() if args.worktree else None
    agent = call.agent_if_any() or _name(command[0])
    board = call.board
    inputs.queues(args.queue)
    inputs.tags(args.tag)
    work = runner.Runner(
        board,
        agent,
        command,
        _reporter(call),
        mode=modes[0],
        jobs=jobs,
        filters={"queues": args.queue, "tags": args.tag, "lease": args.lease},
        repository=repository,
    )
    number = work.run()
    if number is not None:
        call.close()
        _end_by(number)
    if modes[0] == "once" and not work.worked:
        call.warn(*board.nothing_ready(agent, queues=args.queue, tags=args.tag))
        raise Empty("nothing is ready")
    return Reply(None, printed=True)


def _name(program: str) -> str:
    """Return a name for an agent that has none: that of its program, with a random suffix."""
    plain = "".join(char for char in os.path.basename(program) if char.isascii() and (char.isalnum() or char in "-_"))
    return f"{plain[:80] or 'run'}-{os.urandom(2).hex()}"


def _end_by(number: int) -> None:
    """End this process by a signal that it has handled, so that its caller sees what ended it."""
    sys.stdout.flush()
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def _reporter(call: Call) -> Callable[..., None]:
    """Return what prints one event: a line of text at a terminal, a line of JSON elsewhere.

    Where the lines go must not decide what becomes of the work: once they cannot be written, the rest is discarded.
    """
    from .. import instants
    from .output import Unwritable, complain, discard, print_line, print_text

    lock = threading.Lock()
    is_table, quiet = call.style == "table", call.args.quiet

    def report(event: str, task: Task | None, **facts: Any) -> None:
        found: dict[str, Any] = {"event": event, "at": instants.to_text(instants.now())}
        if task is not None:
            found |= {"task_id": task.id, "title": task.title, "attempt": task.attempts, "fence": task.fence}
        found |= facts
        with lock:
            try:
                if not is_table:
                    print_line(found)
                elif not quiet or event != "note":
                    print_text(_line(found) + "\n")
            except BrokenPipeError:
                discard()
            except Unwritable as error:
                complain(f"{error.message}; the work goes on\n")

    return report


def _line(found: dict[str, Any]) -> str:
    from .tables import clean

    parts = [found["at"][11:19]]
    if "task_id" in found:
        parts += [found["task_id"][-6:], found["event"]]
        if found["event"] == "started":
            parts.append(found["title"])
    else:
        parts.append(found["event"])
    if "progress" in found:
        parts.append(f"{found['progress']}%")
    if found.get("status") and found["status"] != "done":
        parts.append(f"({found['status']})")
    parts += [str(found[name]) for name in ("note", "reason", "error") if found.get(name)]
    if "seconds" in found:
        parts.append(f"next in {found['seconds']:g} s")
    return clean(" ".join(parts)).replace("\n", " ")


COMMANDS = {
    "run": Command(
        _run,
        _run_arguments,
        "Run a command for each task: claim, renew the lease, end the attempt.",
        "The command gets {task, brief} as JSON on standard input, ATB_TASK_ID, ATB_TOKEN and others in its\n"
        "environment, and {id}, {title} and {brief} in its arguments replaced. Exit code 0 completes the task,\n"
        "with the result from the file ATB_RESULT_FILE; 75 releases it with a delay; any other one fails it\n"
        "with the last lines of standard error. Lines `::progress 40 note` and `::note text` of its output go\n"
        "to the board. If the lease is lost, everything that it started is ended. See docs/run.md.",
        (
            "atb run --drain -- make check",
            "atb run --queue docs --jobs 2 -- claude -p {brief}",
            "atb run --worktree -- codex exec {brief}",
        ),
    ),
}
