"""The commands that manage hooks: hooks list, retry, test, deliver."""

from __future__ import annotations

from ..config import hooks_warning
from ..errors import InvalidInput, Unusable
from ..hooks import delivery, outbox
from .command import Call, Command, Reply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .parsing import Parser

ACTIONS = ("list", "retry", "test", "deliver")


def _arguments(parser: Parser) -> None:
    parser.add_argument("action", choices=ACTIONS, help="the operation")
    parser.add_argument("delivery", metavar="DELIVERY", nargs="?", help="with retry: the delivery id")
    parser.flag("--all", "with retry: retry every delivery that is pending or failed")
    parser.option("--status", "STATUS", f"with list: only deliveries with this status: {', '.join(outbox.STATUSES)}")
    parser.whole("--limit", "with list: the maximum number of deliveries, 1 to 10000 (default: 100)")
    parser.option("--task", "ID", "with test: send this task (default: a sample task)")


def _hooks(call: Call) -> Reply:
    args, action = call.args, call.args.action
    for option, owner in (
        ("delivery", "retry"),
        ("all", "retry"),
        ("status", "list"),
        ("limit", "list"),
        ("task", "test"),
    ):
        if getattr(args, option) not in (None, False) and action != owner:
            raise InvalidInput(f"{option}: requires `{owner}`", field=option)
    if action == "deliver":
        return Reply({"delivered": delivery.deliver_all(call.board)})
    if action == "retry":
        if (args.delivery is None) != args.all:
            raise InvalidInput("delivery: pass one id or --all", field="delivery")
        return _retry(call)
    found = _targets(call)
    if action == "test":
        return _test(call)
    rows = outbox.deliveries(call.board, status=args.status, limit=100 if args.limit is None else args.limit)
    return Reply({"targets": found, "deliveries": rows}, page="hooks", zone=call.config.settings.timezone)


def _test(call: Call) -> Reply:
    outcome = delivery.send_test(call.board, call.args.task)
    failed = [result["target"] for result in outcome["results"] if not result["delivered"]]
    error = None
    if len(failed) == len(outcome["results"]):
        error = Unusable(
            f"no target took the message: {', '.join(failed)}",
            hint="See `error` of each target.",
            results=outcome["results"],
        )
    return Reply(outcome, page="hooks", zone=call.config.settings.timezone, error=error)


def _retry(call: Call) -> Reply:
    from . import detached

    count = outbox.retry(call.board, call.args.delivery)
    is_due = count > 0 and call.config.settings.hooks is not None
    return Reply({"retried": count}, then=(lambda: detached.deliver(call.config)) if is_due else None)


def _targets(call: Call) -> list[dict[str, str]]:
    """Return the targets, without secrets; warn if the configuration disables some of them."""
    import os

    values = {key: value for key, (value, _) in call.config.values.items()}
    hooks, url = call.config.settings.hooks, values["hooks.webhook_url"]
    call.warn(*filter(None, [hooks_warning(call.config, os.environ)]))
    if hooks is None:
        return []
    addresses = {"command": hooks.command and hooks.command[0], "webhook": url and "/".join(url.split("/")[:3])}
    return [{"target": target, "to": str(addresses[target])} for target in hooks.targets()]


COMMANDS = {
    "hooks": Command(
        _hooks,
        _arguments,
        "Notify a command or webhook when a task changes state.",
        "`list` shows the targets and the deliveries, newest first. `retry` makes a delivery due now, with a\n"
        "new set of attempts. `test` sends a message to every target and stores nothing. `deliver` delivers\n"
        "what is due; other commands and `atb tick` do this automatically. `data` is {targets, deliveries}\n"
        "for list, {retried} for retry, {delivery, results} for test and {delivered} for deliver.\n"
        "docs/hooks.md explains how to enable hooks.",
        (
            "atb hooks list --status failed --format table",
            "atb hooks test",
            "atb hooks retry --all",
        ),
        reads=("list", "test"),
    ),
}
