"""The command of recurring work: schedule."""

from __future__ import annotations

from ..errors import InvalidInput
from .command import Call, Command, Reply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .parsing import Parser

ACTIONS = ("add", "list", "show", "pause", "resume", "remove", "preview")
_OF_ADD = ("cron", "zone", "task", "catch_up")


def _arguments(parser: Parser) -> None:
    parser.add_argument("action", choices=ACTIONS, help="what to do")
    parser.add_argument("name", metavar="NAME", nargs="?", help="the schedule; every action but list needs it")
    parser.option("--cron", "RULE", "with add: minute, hour, day of month, month, day of week")
    parser.option("--zone", "ZONE", "with add: the time zone of the rule, an IANA name (default: the configured one)")
    parser.option("--task", "JSON", "with add: the template of the task: JSON, @FILE, or - for standard input")
    parser.whole("--catch-up", "with add: occurrences that one tick makes at most, 1 to 1000 (default: configured, 10)")
    parser.whole("--count", "with preview: how many occurrences, 1 to 1000 (default: 10)")
    parser.actor()


def _schedule(call: Call) -> Reply:
    args, action = call.args, call.args.action
    call.creates = action == "add"
    call.reads = action in ("list", "show", "preview")
    for option, owner in (*((name, "add") for name in _OF_ADD), ("count", "preview")):
        if getattr(args, option) is not None and action != owner:
            raise InvalidInput(f"{option}: goes with {owner} only", field=option)
    if action == "list":
        if args.name is not None:
            raise InvalidInput("name: does not go with list", hint="Use `atb schedule show NAME`.", field="name")
        return _reply(call, {"schedules": call.board.schedules()})
    if args.name is None:
        raise InvalidInput(f"name: which schedule is to {action}?", field="name")
    if action == "add":
        return _add(call)
    if action == "preview":
        count = 10 if args.count is None else args.count
        found = call.board.preview_schedule(args.name, count=count)
        return _reply(call, {"schedule": call.board.schedule(args.name), "occurrences": found})
    verb = {
        "show": call.board.schedule,
        "pause": call.board.pause_schedule,
        "resume": call.board.resume_schedule,
        "remove": call.board.remove_schedule,
    }[action]
    return _reply(call, {"schedule": verb(args.name)})


def _add(call: Call) -> Reply:
    args = call.args
    for option in ("cron", "task"):
        if getattr(args, option) is None:
            raise InvalidInput(f"{option}: is missing", hint=f"Give --{option}.", field=option)
    made = call.board.add_schedule(
        args.name, cron=args.cron, zone=args.zone, task=call.json("task"), catch_up=args.catch_up, actor=call.actor()
    )
    return _reply(call, {"schedule": made})


def _reply(call: Call, data: dict[str, object]) -> Reply:
    return Reply(data, page="schedules", zone=call.config.settings.timezone)


COMMANDS = {
    "schedule": Command(
        _schedule,
        _arguments,
        "Let tasks recur: add, list, show, pause, resume, remove, preview.",
        "`add NAME` takes a cron rule of five fields and a template: a JSON object with the fields title, body,\n"
        "queue, priority, assignee, tags, params, max_attempts and needs_approval, and due_in, a length of time.\n"
        "{date}, {datetime} and {occurrence} in title and params stand for the planned instant. `atb tick` makes the\n"
        "tasks, each occurrence once, late ones too. `pause` drops what comes after it, `resume` goes on with what\n"
        "lies ahead; `remove` leaves the tasks that were made. `data` is {schedule}, of list {schedules}, of preview\n"
        "{schedule, occurrences}. Only `add` makes a board.",
        (
            'atb schedule add nightly --cron "0 2 * * *" --task \'{"title": "Check the links, {date}"}\'',
            'atb schedule add report --cron "0 9 * * mon-fri" --zone Europe/Berlin --task @report.json --catch-up 1',
            "atb schedule preview nightly --count 5 --format table",
            "atb schedule pause nightly",
        ),
    ),
}
