"""The command that looks after hooks: hooks list, retry, test, deliver."""

from __future__ import annotations

from ..config import hooks_warning
from ..errors import InvalidInput
from ..hooks import delivery, outbox
from .command import Call, Command, Reply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .parsing import Parser

ACTIONS = ("list", "retry", "test", "deliver")


def _arguments(parser: Parser) -> None:
    parser.add_argument("action", choices=ACTIONS, help="what to do")
    parser.add_argument("delivery", metavar="DELIVERY", nargs="?", help="with retry: the id of the delivery")
    parser.flag("--all", "with retry: every one that is not delivered")
    parser.option("--status", "STATUS", f"with list: only {', '.join(outbox.STATUSES)} ones")
    parser.whole("--limit", "with list: how many at most, 1 to 10000 (default: 100)")
    parser.option("--task", "ID", "with test: a task to tell of (default: a made-up one)")


def _hooks(call: Call) -> Reply:
    args, action = call.args, call.args.action
    call.reads = action in ("list", "test")
    for option, owner in (
        ("delivery", "retry"),
        ("all", "retry"),
        ("status", "list"),
        ("limit", "list"),
        ("task", "test"),
    ):
        if getattr(args, option) not in (None, False) and action != owner:
            raise InvalidInput(f"{option}: goes with {owner} only", field=option)
    if action == "deliver":
        return Reply({"delivered": delivery.deliver_all(call.board)})
    if action == "retry":
        if (args.delivery is None) != args.all:
            raise InvalidInput("delivery: give the id of one, or --all", field="delivery")
        return _retry(call)
    found = _targets(call)
    if action == "test":
        return Reply(delivery.send_test(call.board, args.task), page="hooks", zone=call.config.settings.timezone)
    rows = outbox.deliveries(call.board, status=args.status, limit=100 if args.limit is None else args.limit)
    return Reply({"targets": found, "deliveries": rows}, page="hooks", zone=call.config.settings.timezone)


def _retry(call: Call) -> Reply:
    count = outbox.retry(call.board, call.args.delivery)
    call.board.has_pending_hooks = count > 0 and call.config.settings.hooks is not None
    return Reply({"retried": count})


def _targets(call: Call) -> list[dict[str, str]]:
    """Return who is told, without secrets; warn of what keeps others from being told."""
    import os

    values = {key: value for key, (value, _) in call.config.values.items()}
    hooks, url = call.config.settings.hooks, values["hooks.webhook_url"]
    call.warnings += filter(None, [hooks_warning(call.config, os.environ)])
    if hooks is None:
        return []
    told = {"command": hooks.command and hooks.command[0], "webhook": url and "/".join(url.split("/")[:3])}
    return [{"target": target, "to": str(told[target])} for target in hooks.targets()]


COMMANDS = {
    "hooks": Command(
        _hooks,
        _arguments,
        "Tell a program or an address of yours when a task gets somewhere: list, retry, test, deliver.",
        "`list` shows who is told, and what was, the newest first; `retry` makes a delivery that failed due now, with\n"
        "all its attempts; `test` tells every target at once, and writes nothing down. `deliver` delivers what is\n"
        "due; commands start it by themselves, and `atb tick` does it, too. `data` of list is {targets, deliveries},\n"
        "of retry {retried}, of test {delivery, results}, of deliver {delivered}. What hooks are, and how they are\n"
        "switched on, is told in docs/hooks.md.",
        (
            "atb hooks list --status failed --format table",
            "atb hooks test",
            "atb hooks retry --all",
        ),
    ),
}
