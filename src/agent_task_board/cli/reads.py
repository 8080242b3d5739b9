"""The commands that only look: list, show, events, agents, stats."""

from __future__ import annotations

from ..board.queries import ORDERS
from ..errors import InvalidInput
from .command import Call, Command, Reply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..board.queries import TaskPage
    from ..model import Attention
    from .parsing import Parser

PAUSE = 0.25
"""Seconds between two looks of ``events --follow``."""

PAGE = 1_000
"""Events that it reads at once."""


def _list_arguments(parser: Parser) -> None:
    parser.repeated("--status", "STATUS", "only tasks in this status")
    parser.option("--queue", "NAME", "only of this queue")
    parser.option("--assignee", "AGENT", "only those assigned to this agent, or to nobody with none")
    parser.option("--claimed-by", "AGENT", "only those that this agent holds or held last")
    parser.repeated("--tag", "TAG", "only tasks with this tag")
    parser.flag("--ready", "only tasks that could be claimed now")
    parser.flag("--blocked", "only tasks that wait for others")
    parser.flag("--overdue", "only unfinished tasks past their deadline")
    parser.flag("--archived", "only tasks in the archive, which other lists leave out")
    parser.option("--search", "TEXT", "only tasks with this text in their id, title or body, archived ones too")
    parser.whole("--limit", "how many at most, 1 to 100000 (default: 100)")
    parser.option("--after", "CURSOR", "go on after an earlier page: its `next`")
    parser.option("--order", "ORDER", f"{', '.join(ORDERS)} (default: age, the oldest first)", default="age")
    parser.flag("--full", "with body, params, result and error")
    _budget_argument(parser)


def _budget_argument(parser: Parser) -> None:
    parser.whole("--budget", "with --format compact: how many tokens at most, of 4 characters each; 100 to 1000000")


def _list(call: Call) -> Reply:
    args = call.args
    limit = 100 if args.limit is None else args.limit
    if not call.is_compact:
        _refuse_budget(call)
        return Reply(_page(call, limit).to_dict(), page="tasks", zone=call.config.settings.timezone)
    if args.full:
        raise InvalidInput("full: compact text shows whole tasks one at a time", hint="Use `atb show`.", field="full")
    from ..text import compact

    return _in_brief(
        call,
        lambda attention, warnings: compact.task_list(
            lambda count: _page(call, count).to_dict(), limit, attention, tokens=args.budget, warnings=warnings
        ),
    )


def _in_brief(call: Call, text: Callable[[Attention, Sequence[str]], str]) -> Reply:
    """Return a read as compact text, written while the board is open; that it is not there is told at the top."""
    attention = call.board.attention()
    call.tell(call.board)
    written = text(attention, call.warnings)
    return Reply(None, compact=lambda _: written)


def _refuse_budget(call: Call) -> None:
    if call.args.budget is not None:
        raise InvalidInput("budget: goes with compact text only", hint="Add --format compact.", field="budget")


def _page(call: Call, limit: int) -> TaskPage:
    args = call.args
    return call.board.list_tasks(
        status=args.status,
        queue=args.queue,
        assignee=args.assignee,
        claimed_by=args.claimed_by,
        tags=args.tag,
        ready=args.ready,
        blocked=args.blocked,
        overdue=args.overdue,
        archived=args.archived,
        search=args.search,
        order=args.order,
        limit=limit,
        after=args.after,
        full=args.full,
    )


def _show_arguments(parser: Parser) -> None:
    parser.task()
    _budget_argument(parser)


def _show(call: Call) -> Reply:
    if not call.is_compact:
        _refuse_budget(call)
        return Reply(call.board.show(call.args.id), page="task", zone=call.config.settings.timezone)
    from ..text import compact

    found = call.board.show(call.args.id)
    return _in_brief(
        call,
        lambda attention, warnings: compact.details(found, attention, tokens=call.args.budget, warnings=warnings),
    )


def _events_arguments(parser: Parser) -> None:
    parser.option("--task", "ID", "only of this task")
    parser.whole("--after", "only later than this sequence number (default: 0)")
    parser.whole("--limit", "how many at most, 1 to 10000 (default: 100; with --follow: no end)")
    parser.flag("--follow", "print one event a line, and go on as they happen, until Ctrl-C")


def _events(call: Call) -> Reply:
    args = call.args
    after = args.after or 0
    if args.follow:
        return _follow(call, after)
    found = call.board.events(task=args.task, after=after, limit=100 if args.limit is None else args.limit)
    return Reply(found, page="events", zone=call.config.settings.timezone)


def _follow(call: Call, after: int) -> Reply:
    """Print events as they happen, until the limit, Ctrl-C, or the going of whoever reads them."""
    import select
    import sys
    from time import sleep

    from .output import print_line

    left = call.args.limit
    reader = select.poll()
    reader.register(sys.stdout.fileno(), 0)  # tells only of a pipe whose other end was closed
    if not (call.board.exists() or call.args.quiet):
        sys.stderr.write(f"there is no board at {call.board.path} yet; waiting for it\n")
    while True:
        found = call.board.events(task=call.args.task, after=after, limit=PAGE if left is None else min(left, PAGE))
        for event in found["events"]:
            print_line(event)
        after = found["next"]
        if left is not None:
            left -= len(found["events"])
        if left == 0 or reader.poll(0):
            return Reply(None, printed=True)
        if not found["events"]:
            sleep(PAUSE)


def _agents(call: Call) -> Reply:
    return Reply({"agents": call.board.agents()}, page="agents", zone=call.config.settings.timezone)


def _stats_arguments(parser: Parser) -> None:
    parser.whole("--days", "how many days to look back, 1 to 366 (default: 14)")


def _stats(call: Call) -> Reply:
    days = 14 if call.args.days is None else call.args.days
    return Reply(call.board.stats(days=days), page="stats", zone=call.config.settings.timezone)


def no_arguments(parser: Parser) -> None:
    """Take no arguments of its own."""


COMMANDS = {
    "list": Command(
        _list,
        _list_arguments,
        "List tasks.",
        "`data` is {tasks, next}: `next` is the cursor of the following page, null on the last one. Without --full\n"
        "the tasks lack body, params, result and error. All conditions must be met; statuses given are alternatives.",
        (
            "atb list --ready --order priority",
            "atb list --status review --status failed --format table",
            "atb list --claimed-by ada --status running",
            "atb list --ready --format compact --budget 500",
            'atb list --search parser --limit 20 --after "$NEXT"',
        ),
        reads=True,
    ),
    "show": Command(
        _show,
        _show_arguments,
        "Show one task with its attempts, dependencies and comments.",
        "`data` is {task, attempts, dependencies, dependents, comments}: dependencies are what it waits for,\n"
        "dependents are what waits for it.",
        ("atb show 9F3K2A", "atb show 9F3K2A --format table", "atb show 9F3K2A --format compact --budget 1000"),
        reads=True,
    ),
    "events": Command(
        _events,
        _events_arguments,
        "Read the history, of one task or of all.",
        "`data` is {events, next}, oldest first; give `next` as --after to go on. With --follow each event is one\n"
        "line of JSON, printed as it happens.",
        ("atb events --task 9F3K2A", "atb events --after 1200 --limit 1000", "atb events --follow"),
        reads=True,
    ),
    "agents": Command(
        _agents,
        no_arguments,
        "Show who holds what, when each agent was last seen, and what came of its attempts.",
        "`data` is {agents}: name, first_seen_at, last_seen_at, the attempts completed, failed and expired, and\n"
        "`holds`, the tasks under a lease now.",
        ("atb agents --format table",),
        reads=True,
    ),
    "stats": Command(
        _stats,
        _stats_arguments,
        "Count tasks by status and queue, and measure how they flow.",
        "`data` is {tasks, archived, by_status, by_queue, ready, blocked, lease_expired, days, finished, lead_time,\n"
        "cycle_time, running, by_agent}; tasks and by_status leave archived ones out. `finished` has one entry\n"
        "a day; lead_time (made to finished) and cycle_time (last claim to finished) are {tasks, median, p90} in\n"
        "seconds over the tasks done in these days.",
        ("atb stats", "atb stats --days 30 --format table"),
        reads=True,
    ),
}
