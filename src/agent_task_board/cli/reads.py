"""The commands that query the board: list, show, events, agents, stats."""

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

POLL_SECONDS = 0.25
"""How often ``events --follow`` reads new events."""

PAGE = 1_000
"""Events that it reads at once, at most."""


def _list_arguments(parser: Parser) -> None:
    parser.repeated("--status", "STATUS", "only tasks with this status")
    parser.option("--queue", "NAME", "only tasks in this queue")
    parser.option("--assignee", "AGENT", "only tasks assigned to this agent; none: only unassigned tasks")
    parser.option("--claimed-by", "AGENT", "only tasks that this agent holds, or was the last to hold")
    parser.repeated("--tag", "TAG", "only tasks with this tag")
    parser.flag("--ready", "only tasks that are ready to be claimed")
    parser.flag("--blocked", "only tasks with unfinished dependencies")
    parser.flag("--overdue", "only unfinished tasks past their deadline")
    parser.flag("--archived", "only archived tasks, which are otherwise left out")
    parser.option("--search", "TEXT", "only tasks with this text in the id, title or body, including archived tasks")
    parser.whole("--limit", "the maximum number of tasks, 1 to 100000 (default: 100)")
    parser.option("--after", "CURSOR", "continue the list: the previous page's `next`")
    parser.option("--order", "ORDER", f"the order: {', '.join(ORDERS)} (default: age, oldest first)", default="age")
    parser.flag("--full", "include body, params, result and error")
    _budget_argument(parser)


def _budget_argument(parser: Parser) -> None:
    parser.whole("--budget", "with --format compact: the maximum number of tokens (4 characters each), 100 to 1000000")


def _list(call: Call) -> Reply:
    args = call.args
    limit = 100 if args.limit is None else args.limit
    if not call.is_compact:
        _refuse_budget(call)
        return Reply(_page(call, limit).to_dict(), page="tasks", zone=call.config.settings.timezone)
    if args.full:
        raise InvalidInput("full: not available with `--format compact`", hint="Use `atb show ID`.", field="full")
    from ..text import compact

    return _in_brief(
        call,
        lambda attention, warnings: compact.task_list(
            lambda count: _page(call, count).to_dict(), limit, attention, tokens=args.budget, warnings=warnings
        ),
    )


def _in_brief(call: Call, text: Callable[[Attention, Sequence[str]], str]) -> Reply:
    """Return a read as compact text, rendered while the board is open; a missing board is a warning at its top."""
    attention = call.board.attention()
    call.report_board(call.board)
    rendered = text(attention, call.warnings)
    return Reply(None, compact=lambda _: rendered)


def _refuse_budget(call: Call) -> None:
    if call.args.budget is not None:
        raise InvalidInput("budget: requires `--format compact`", field="budget")


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
    parser.option("--task", "ID", "only events of this task")
    parser.whole("--after", "only events after this sequence number (default: 0)")
    parser.whole("--limit", "the maximum number of events, 1 to 10000 (default: 100; with --follow: no limit)")
    parser.flag("--follow", "print each event on its own line, and wait for new ones until Ctrl-C")


def _events(call: Call) -> Reply:
    args = call.args
    after = args.after or 0
    if args.follow:
        return _follow(call, after)
    found = call.board.events(task=args.task, after=after, limit=100 if args.limit is None else args.limit)
    return Reply(found, page="events", zone=call.config.settings.timezone)


def _follow(call: Call, after: int) -> Reply:
    """Print events as they happen, until the limit, Ctrl-C, or the reader closes the pipe."""
    import select
    import sys
    from time import sleep

    from .output import print_line

    left = call.args.limit
    reader = select.poll()
    reader.register(sys.stdout.fileno(), 0)  # only reports a pipe whose reading end was closed
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
            sleep(POLL_SECONDS)


def _agents(call: Call) -> Reply:
    return Reply({"agents": call.board.agents()}, page="agents", zone=call.config.settings.timezone)


def _stats_arguments(parser: Parser) -> None:
    parser.whole("--days", "the number of days to include, 1 to 366 (default: 14)")


def _stats(call: Call) -> Reply:
    days = 14 if call.args.days is None else call.args.days
    return Reply(call.board.stats(days=days), page="stats", zone=call.config.settings.timezone)


def no_arguments(parser: Parser) -> None:
    """Add nothing: the command has no arguments of its own."""


COMMANDS = {
    "list": Command(
        _list,
        _list_arguments,
        "List tasks.",
        "`data` is {tasks, next}; `next` is the cursor of the next page, or null on the last page. Without\n"
        "--full, tasks have no body, params, result and error. A task must meet all conditions; if several\n"
        "statuses are given, it must have one of them.",
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
        "`data` is {task, attempts, dependencies, dependents, comments}. The task waits for its dependencies,\n"
        "and its dependents wait for it.",
        ("atb show 9F3K2A", "atb show 9F3K2A --format table", "atb show 9F3K2A --format compact --budget 1000"),
        reads=True,
    ),
    "events": Command(
        _events,
        _events_arguments,
        "Show the history of one task or of all tasks.",
        "`data` is {events, next}, oldest first. To continue, pass `next` as --after. With --follow, each\n"
        "event is printed as one line of JSON when it happens.",
        ("atb events --task 9F3K2A", "atb events --after 1200 --limit 1000", "atb events --follow"),
        reads=True,
    ),
    "agents": Command(
        _agents,
        no_arguments,
        "Show all agents: the tasks they hold, when they were last seen, and the outcomes of their attempts.",
        "`data` is {agents}. Each agent has name, first_seen_at, last_seen_at, the number of attempts\n"
        "completed, failed and expired, and `holds`, the tasks that it holds now.",
        ("atb agents --format table",),
        reads=True,
    ),
    "stats": Command(
        _stats,
        _stats_arguments,
        "Count tasks by status and queue, and show lead and cycle times.",
        "`data` is {tasks, archived, by_status, by_queue, ready, blocked, lease_expired, days, finished,\n"
        "lead_time, cycle_time, running, by_agent}. `tasks` and `by_status` do not count archived tasks.\n"
        "`finished` has one entry per day. `lead_time` (created to finished) and `cycle_time` (last claim to\n"
        "finished) are {tasks, median, p90}, in seconds, of the tasks done in these days.",
        ("atb stats", "atb stats --days 30 --format table"),
        reads=True,
    ),
}
