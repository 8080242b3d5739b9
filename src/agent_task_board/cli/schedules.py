"""The command for schedules: schedule."""

from __future__ import annotations

from ..errors import InvalidInput
from .command import Call, Command, Reply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .parsing import Parser

ACTIONS = ("add", "list", "show", "pause", "resume", "remove", "preview")
_OF_ADD = ("cron", "zone", "task", "catch_up")


def _arguments(parser: Parser) -> None:
    parser.add_argument("action", choices=ACTIONS, help="the operation")
    parser.add_argument("name", metavar="NAME", nargs="?", help="the name of the schedule; required except for list")
    parser.option("--cron", "RULE", "with add: the cron rule: minute, hour, day of month, month, day of week")
    parser.option("--zone", "ZONE", "with add: the time zone of the rule, an IANA name (default: as configured)")
    parser.option("--task", "JSON", "with add: the template of the tasks: JSON, @FILE, or - for standard input")
    parser.whole(
        "--catch-up", "with add: the maximum number of occurrences per tick, 1 to 1000 (default: as configured, 10)"
    )
    parser.whole("--count", "with preview: the number of occurrences, 1 to 1000 (default: 10)")
    parser.option("--after", "INSTANT", "with preview: only occurrences after this instant (default: what comes next)")
    parser.actor()


def _schedule(call: Call) -> Reply:
    args, action = call.args, call.args.action
    for option, owner in (*((name, "add") for name in _OF_ADD), ("count", "preview"), ("after", "preview")):
        if getattr(args, option) is not None and action != owner:
            raise InvalidInput(f"{option}: requires `{owner}`", field=option)
    if action == "list":
        if args.name is not None:
            raise InvalidInput("name: not allowed with `list`", hint="Use `atb schedule show NAME`.", field="name")
        return _reply(call, {"schedules": call.board.schedules()})
    if args.name is None:
        raise InvalidInput(f"name: missing: `{action}` requires the name of a schedule", field="name")
    if action == "add":
        return _add(call)
    if action == "preview":
        count = 10 if args.count is None else args.count
        found = call.board.preview_schedule(args.name, count=count, after=args.after)
        schedule = call.board.schedule(args.name)
        if schedule["paused"] and args.after is None:
            call.warn("the schedule is paused: these occurrences are skipped until it is resumed")
        return _reply(call, {"schedule": schedule, "occurrences": found})
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
            raise InvalidInput(f"{option}: missing", hint=f"Pass --{option}.", field=option)
    task = call.json("task")
    schedule = call.board.add_schedule(
        args.name, cron=args.cron, zone=args.zone, task=task, catch_up=args.catch_up, actor=call.actor()
    )
    if task.get("dedupe_key") is not None:
        call.warn("task: dedupe_key is ignored: each occurrence creates one task, which has a key of its own")
    return _reply(call, {"schedule": schedule})


def _reply(call: Call, data: dict[str, object]) -> Reply:
    return Reply(data, page="schedules", zone=call.config.settings.timezone)


COMMANDS = {
    "schedule": Command(
        _schedule,
        _arguments,
        "Manage schedules, which create recurring tasks from a cron rule.",
        "`add NAME` takes a cron rule and a template. The rule has five fields, or is @hourly, @daily, @weekly,\n"
        "@monthly or @yearly. The template is a JSON object with the fields title, body, queue, priority,\n"
        "assignee, tags, params, max_attempts and needs_approval. Its due_at and not_before are a time of day in\n"
        "the schedule's zone (17:00) or a length of time after the planned instant (+4h); due_in is such a length\n"
        "for the deadline. {date}, {datetime} and {occurrence} in title and params are replaced by the planned\n"
        "instant. `atb tick` creates the task of each occurrence once, even if it runs late.\n"
        "Occurrences of a paused schedule are skipped; `resume` continues with the next one. `remove` keeps\n"
        "the tasks that were created. `data` is {schedules} for list, {schedule, occurrences} for preview,\n"
        "and {schedule} otherwise. Only `add` creates a board.",
        (
            'atb schedule add nightly --cron "0 2 * * *" --task \'{"title": "Check the links, {date}"}\'',
            'atb schedule add report --cron "0 9 * * mon-fri" --zone Europe/Berlin --task @report.json --catch-up 1',
            "atb schedule preview nightly --count 5 --format table",
            "atb schedule preview nightly --after 2027-01-01",
            "atb schedule pause nightly",
        ),
        creates=("add",),
        reads=("list", "show", "preview"),
    ),
}
