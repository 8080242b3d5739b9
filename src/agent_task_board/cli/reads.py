"""The commands that query the board: list, show, events, agents, stats."""

from __future__ import annotations

from .. import inputs
from ..board.queries import EVENT_LIMIT, NEXT_AS_AFTER, ORDERS, events_follow
from ..errors import InvalidInput
from ..model import FRAMING
from .command import Call, Command, Reply
from .parsing import did_you_mean, whole_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..board.queries import TaskPage
    from ..model import Attention, Event, EventPage
    from .parsing import Parser

POLL_SECONDS = 0.25
"""How often ``events --follow`` reads new events."""

PAGE = 1_000
"""Events that it reads at once, at most."""


def _list_arguments(parser: Parser) -> None:
    parser.repeated("--status", "STATUS", "only tasks with this status, or with one of several: review,failed")
    parser.option("--queue", "NAME", "only tasks in this queue")
    parser.option("--assignee", "AGENT", "only tasks assigned to this agent; me: to the caller; none: to no agent")
    parser.option("--claimed-by", "AGENT", "only tasks that this agent (me: the caller) holds, or was the last to hold")
    parser.repeated("--tag", "TAG", "only tasks with this tag")
    parser.flag("--ready", "only tasks that are ready to be claimed")
    parser.flag("--blocked", "only tasks with unfinished dependencies")
    parser.flag("--stuck", "only tasks that wait for a failed or cancelled one, directly or through others")
    parser.flag("--overdue", "only unfinished tasks past their deadline")
    parser.flag("--all", "include finished tasks, which tables and compact text leave out without --status")
    parser.flag("--archived", "only archived tasks, which are otherwise left out")
    parser.option(
        "--search", "TEXT", 'only tasks with all these words, or a "phrase", also archived ones; notes are not searched'
    )
    parser.whole("--limit", "the maximum number of tasks, 1 to 100000 (default: 100)")
    parser.option("--after", "CURSOR", "continue the list: the previous page's `next`")
    parser.option(
        "--order", "ORDER", f"the order: {', '.join(ORDERS)} (default: work; with --search: best match first)"
    )
    parser.add_argument("--tail", type=whole_number, nargs="?", const=100, metavar="N", help="the N newest (100)")
    parser.option("--fields", "NAMES", "only these keys or columns, separated by commas: id,status,title")
    parser.flag("--full", "include body, params, result and error")
    _budget_argument(parser)


def _budget_argument(parser: Parser) -> None:
    parser.whole("--budget", "with --format compact: the maximum number of tokens (4 characters each), 100 to 1000000")


def _list(call: Call) -> Reply:
    args = call.args
    limit = 100 if args.limit is None else args.limit
    if args.tail is not None:
        for option in ("limit", "after", "order"):
            if getattr(args, option) is not None:
                raise InvalidInput(f"{option}: not allowed with --tail", field=option)
    names = None if args.fields is None else _field_names(args.fields)
    if not call.is_compact:
        _refuse_budget(call)
        page = _page(call, limit if args.tail is None else args.tail, names)
        return _list_reply(call, page, names)
    for option in ("fields", "tail"):
        if getattr(args, option) is not None:
            raise InvalidInput(f"{option}: not available with `--format compact`", field=option)
    if args.full:
        raise InvalidInput("full: not available with `--format compact`", hint="Use `atb show ID`.", field="full")
    from ..text import compact

    return _in_brief(
        call,
        lambda attention, warnings: compact.task_list(
            lambda count: _page(call, count), limit, attention, tokens=args.budget, warnings=warnings
        ),
    )


def _list_reply(call: Call, page: TaskPage, names: Sequence[str] | None) -> Reply:
    """Return a list as JSON or as a table; warn of what it does not show."""
    from ..board.queries import tasks_in_words

    data = page.to_dict()
    how = "" if call.style == "table" else NEXT_AS_AFTER  # the last line of a table says it
    warnings = page.warnings(how) if call.args.tail is None else []
    if page.hidden:
        warnings.append(f"{tasks_in_words(page.hidden, 'finished')} not shown; --all or --status shows them")
    if call.args.tail is not None:
        data["tasks"].reverse()
        data["next"] = None
    if names is not None:
        data["tasks"] = [{name: task[name] for name in names} for task in data["tasks"]]
    return Reply(data, page="tasks" if names is None else "columns", warnings=warnings, zone=_zone(call))


def _field_names(text: str) -> list[str]:
    """Return the names of ``--fields``.

    Raises:
        InvalidInput: a name is not that of a field.
    """
    from ..model import DERIVED, JSON_KEYS

    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in JSON_KEYS and name not in DERIVED:
            hint = did_you_mean(name, JSON_KEYS) or f"Fields: {', '.join(JSON_KEYS)}."
            raise InvalidInput(f"fields: unknown field: {name[:60]!r}", hint=hint, field="fields")
    return list(dict.fromkeys(names))


def _zone(call: Call) -> str:
    return call.config.settings.timezone


def _in_brief(call: Call, text: Callable[[Attention, Sequence[str]], str]) -> Reply:
    """Return a read as compact text, rendered while the board is open; a missing board is a warning at its top."""
    attention = call.board.attention()
    call.report_board(call.board)
    rendered = text(attention, call.warnings)
    return Reply(None, compact=lambda _: rendered)


def _refuse_budget(call: Call) -> None:
    if call.args.budget is not None:
        raise InvalidInput("budget: requires `--format compact`", field="budget")


def _page(call: Call, limit: int, names: Sequence[str] | None = None) -> TaskPage:
    args = call.args
    full = args.full
    if names is not None:
        from ..model import LONG_KEYS

        full = full or not set(LONG_KEYS).isdisjoint(names)
    order = args.order or (None if args.tail is None else "newest")
    return call.board.list_tasks(
        status=args.status,
        queue=args.queue,
        assignee=args.assignee,
        claimed_by=args.claimed_by,
        tags=args.tag,
        ready=args.ready,
        blocked=args.blocked,
        stuck=args.stuck,
        overdue=args.overdue,
        archived=args.archived,
        search=args.search,
        order=order,
        limit=limit,
        after=args.after,
        full=full,
        hide_finished=call.style in ("table", "compact") and not args.all,
        agent=call.agent_if_any(),
    )


def _show_arguments(parser: Parser) -> None:
    parser.task()
    parser.flag("--output", "include what the command of each attempt wrote (atb run keeps its end)")
    _budget_argument(parser)


def _show(call: Call) -> Reply:
    if not call.is_compact:
        _refuse_budget(call)
        return Reply(
            call.board.show(call.args.id, output=call.args.output, why=call.style == "table"),
            page="task",
            zone=_zone(call),
        )
    if call.args.output:
        raise InvalidInput("output: not available with `--format compact`", field="output")
    from ..text import compact

    found = call.board.show(call.args.id, why=True)
    return _in_brief(
        call,
        lambda attention, warnings: compact.details(found, attention, tokens=call.args.budget, warnings=warnings),
    )


def _events_arguments(parser: Parser) -> None:
    parser.option("--task", "ID", "only events of this task")
    parser.whole("--after", "only events after this sequence number (default: 0)")
    parser.whole("--tail", "only the latest N events, oldest first")
    parser.whole("--limit", "the maximum number of events, 1 to 10000 (default: 100; with --follow: no limit)")
    parser.flag("--follow", "print each event on its own line, and wait for new ones until Ctrl-C")


def _events(call: Call) -> Reply:
    args = call.args
    after = args.after or 0
    if args.tail is not None:
        for option in ("after", "limit"):
            if getattr(args, option) is not None:
                raise InvalidInput(f"{option}: not allowed with --tail", field=option)
        found = call.board.events(task=args.task, before=0, limit=inputs.integer(args.tail, "tail", 1, EVENT_LIMIT))
        found["events"].reverse()
        found["next"] = found["events"][-1]["seq"] if found["events"] else 0
        if args.follow:
            return _follow(call, found["next"], found["events"])
        return _events_reply(call, found, [])
    if args.follow:
        return _follow(call, after)
    limit = 100 if args.limit is None else args.limit
    found = call.board.events(task=args.task, after=after, limit=limit)
    more = call.board.count_events(found["next"], task=args.task) if len(found["events"]) == limit else 0
    how = f"; continue with --after {found['next']}" if call.style == "table" else NEXT_AS_AFTER
    return _events_reply(call, found, [events_follow(more, how)] if more else [])


def _events_reply(call: Call, found: EventPage, warnings: list[str]) -> Reply:
    def in_brief(warnings: list[str]) -> str:
        from ..text import compact

        return compact.events(found, warnings=warnings)

    return Reply(found, page="events", warnings=warnings, zone=_zone(call), compact=in_brief)


def _follow(call: Call, after: int, first: Sequence[Event] = ()) -> Reply:
    """Print events as they happen, after the ``first`` ones, until the limit, Ctrl-C, or the reader closes the pipe."""
    import select
    import sys
    from time import sleep

    from .output import print_line, print_text

    def show(event: Event) -> None:
        if call.style != "table":
            print_line(event)
            return
        from .pages import event_line

        print_text(event_line(event, _zone(call)))

    for event in first:
        show(event)
    left = call.args.limit
    reader = select.poll()
    reader.register(sys.stdout.fileno(), 0)  # only reports a pipe whose reading end was closed
    while True:
        found = call.board.events(task=call.args.task, after=after, limit=PAGE if left is None else min(left, PAGE))
        for event in found["events"]:
            show(event)
        after = found["next"]
        if left is not None:
            left -= len(found["events"])
        if left == 0 or reader.poll(0):
            return Reply(None, printed=True)
        if not found["events"]:
            sleep(POLL_SECONDS)


def _agents(call: Call) -> Reply:
    return Reply({"agents": call.board.agents()}, page="agents", zone=_zone(call))


def _stats_arguments(parser: Parser) -> None:
    parser.whole("--days", "the number of days to include, 1 to 366 (default: 14)")


def _stats(call: Call) -> Reply:
    days = 14 if call.args.days is None else call.args.days
    return Reply(call.board.stats(days=days), page="stats", zone=_zone(call))


def no_arguments(parser: Parser) -> None:
    """Add nothing: the command has no arguments of its own."""


COMMANDS = {
    "list": Command(
        _list,
        _list_arguments,
        "List tasks.",
        "The work that is left first: what a claim would take next, the other queued tasks, those held, waiting or\n"
        "in review, then finished ones, newest first. Tables and compact text leave finished ones out, unless\n"
        "--all, --status, --archived or --search asks for them.\n"
        "`data` is {tasks, next}; `next` is the cursor of the next page, or null on the last page. Without\n"
        "--full, tasks have no body, params, result and error. A task must meet all conditions; if several\n"
        "statuses are given, it must have one of them.",
        (
            "atb list --ready",
            "atb list --status review,failed --format table",
            "atb list --fields id,status,title --all",
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
        "and its dependents wait for it. For a stuck task, `stuck_by` is the failed or cancelled task that keeps it\n"
        "from starting. For a returned one, `returned` is {by, at, note}, and its attempt has `returned`: true.\n"
        "Events and comments that an import copied have `imported`: nobody on\n"
        "this board saw who wrote them.\n" + FRAMING,
        ("atb show 9F3K2A", "atb show 9F3K2A --format table", "atb show 9F3K2A --format compact --budget 1000"),
        reads=True,
    ),
    "events": Command(
        _events,
        _events_arguments,
        "Show the history of one task or of all tasks.",
        "`data` is {events, next}, oldest first. To continue, pass `next` as --after. With --follow, each\n"
        "event is printed as one line when it happens: JSON, or text at a terminal. Events that an import\n"
        "copied have `imported`: an approval in a file is none on this board.\n" + FRAMING,
        (
            "atb events --task 9F3K2A",
            "atb events --tail 20",
            "atb events --after 1200 --limit 1000",
            "atb events --follow",
        ),
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
        "`data` is {tasks, archived, by_status, by_queue, ready, blocked, stuck, lease_expired, days,\n"
        "finished, lead_time, cycle_time, running, by_agent}. `tasks` and `by_status` do not count archived tasks.\n"
        "`finished` has one entry per day. `lead_time` (created to finished) and `cycle_time` (last claim to\n"
        "finished) are {tasks, median, p90}, in seconds, of the tasks done in these days.",
        ("atb stats", "atb stats --days 30 --format table"),
        reads=True,
    ),
}
