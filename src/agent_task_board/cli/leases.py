"""The commands of an agent at work: claim, resume, heartbeat, complete, fail, release, handoff."""

from __future__ import annotations

from ..errors import Empty
from .command import Call, Command, Reply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..model import Receipt
    from .parsing import Parser


def receipt_reply(call: Call, receipt: Receipt, verb: str) -> Reply:
    """Return the answer of a verb; ``verb`` is what became of the task, as compact text has it."""

    def in_brief(warnings: list[str]) -> str:
        from ..text import compact

        return compact.receipt(receipt, verb, warnings=warnings)

    return Reply(
        receipt.to_dict(),
        page="receipt",
        warnings=receipt.warnings,
        zone=call.config.settings.timezone,
        compact=in_brief,
    )


def _nothing_ready(reasons: list[str]) -> Reply:
    def in_brief(warnings: list[str]) -> str:
        from ..text import compact

        return compact.nothing(warnings)

    return Reply(None, page="receipt", warnings=reasons, compact=in_brief)


def _claim_arguments(parser: Parser) -> None:
    parser.add_argument("id", metavar="ID", nargs="?", help="this very task (default: the best one that is ready)")
    parser.option("--agent", "NAME", "who claims (default: ATB_AGENT)")
    parser.repeated("--queue", "NAME", "only from this queue")
    parser.repeated("--tag", "TAG", "only a task with this tag")
    parser.option("--lease", "LENGTH", "how long the lease lasts, 1s to 7d (default: the configuration, 15m)")
    parser.flag("--fail-empty", "exit 9 when nothing is ready, instead of `data: null` and exit 0")
    parser.option("--if-status", "STATUS", "claim ID only if it has this status")
    parser.option("--request-id", "ID", "a name for this call: repeating it gives the same claim again")
    parser.option("--comment", "TEXT", "a remark to leave on the task with the claim")
    parser.option("--actor", "NAME", "who does this (default: the agent)")


def _claim(call: Call) -> Reply:
    args, agent = call.args, call.agent()
    receipt = call.board.claim(
        agent,
        task=args.id,
        queues=args.queue,
        tags=args.tag,
        lease=args.lease,
        if_status=args.if_status,
        comment=args.comment,
        request_id=args.request_id,
        actor=call.actor(),
    )
    if receipt is not None:
        return receipt_reply(call, receipt, "claimed")
    reasons = call.board.nothing_ready(agent, queues=args.queue, tags=args.tag)
    if args.fail_empty:
        call.warnings.extend(reasons)
        raise Empty("nothing is ready")
    return _nothing_ready(reasons)


def _resume_arguments(parser: Parser) -> None:
    parser.task()
    parser.option("--agent", "NAME", "who holds the task (default: ATB_AGENT)")
    parser.option("--lease", "LENGTH", "renew the lease for this long (default: its end stays)")
    parser.option("--actor", "NAME", "who does this (default: the agent)")


def _resume(call: Call) -> Reply:
    args = call.args
    return receipt_reply(
        call, call.board.resume(args.id, call.agent(), lease=args.lease, actor=call.actor()), "resumed"
    )


def _heartbeat_arguments(parser: Parser) -> None:
    parser.holder()
    parser.option("--lease", "LENGTH", "from now on this long (default: as last asked for on this claim)")
    parser.whole("--progress", "how much is done, 0 to 100")
    parser.note("what is going on")


def _heartbeat(call: Call) -> Reply:
    args = call.args
    receipt = call.board.heartbeat(
        args.id,
        call.token(),
        lease=args.lease,
        progress=args.progress,
        note=call.text("note"),
        actor=call.actor(),
    )
    return receipt_reply(call, receipt, "renewed")


def _complete_arguments(parser: Parser) -> None:
    parser.holder()
    parser.option("--result", "JSON", "what came out: JSON, @FILE, or - for standard input")
    parser.repeated("--artifact", "PATH", "a file that came out")
    parser.note("a remark for whoever reads the history")


def _complete(call: Call) -> Reply:
    args = call.args
    receipt = call.board.complete(
        args.id,
        call.token(),
        result=call.json("result"),
        artifacts=args.artifact,
        note=call.text("note"),
        actor=call.actor(),
    )
    return receipt_reply(call, receipt, "completed")


def _fail_arguments(parser: Parser) -> None:
    parser.holder()
    parser.option("--error", "TEXT", "what went wrong")
    parser.option("--error-file", "FILE", "read it from a file, or from standard input with -")
    parser.option("--retry-in", "LENGTH", "wait this long before the next attempt (default: 30s, 1m, 2m ...)")
    parser.flag("--no-retry", "give up for good, whatever attempts are left")


def _fail(call: Call) -> Reply:
    args = call.args
    receipt = call.board.fail(
        args.id,
        call.token(),
        call.text("error") or "",
        retry_in=args.retry_in,
        no_retry=args.no_retry,
        actor=call.actor(),
    )
    return receipt_reply(call, receipt, "failed")


def _release_arguments(parser: Parser) -> None:
    parser.holder()
    parser.option("--after", "LENGTH", "keep it from being claimed for this long")
    parser.note("why, for whoever claims it next")


def _release(call: Call) -> Reply:
    args = call.args
    receipt = call.board.release(args.id, call.token(), after=args.after, note=call.text("note"), actor=call.actor())
    return receipt_reply(call, receipt, "released")


def _handoff_arguments(parser: Parser) -> None:
    parser.holder()
    parser.option("--to", "AGENT", "who goes on with it", required=True)
    parser.note("what the other agent must know")


def _handoff(call: Call) -> Reply:
    args = call.args
    receipt = call.board.handoff(args.id, call.token(), args.to, note=call.text("note"), actor=call.actor())
    return receipt_reply(call, receipt, "handed_off")


LOST = "Refused with `lease_lost` (exit 5) when the token is wrong, expired or replaced: stop working on the task."

COMMANDS = {
    "claim": Command(
        _claim,
        _claim_arguments,
        "Take one task, and nobody else can: the best that is ready, or the one named.",
        "queued -> claimed. The answer has the task and the lease: `token` goes with every later call, `fence` is\n"
        "for resources outside the board, `expires_at` is when the right to work ends. The best task is the one of\n"
        "largest priority, then the oldest. With nothing ready, `data` is null and `warnings` say why. A task by ID\n"
        "that is not ready is a `conflict` (exit 4) that names its state and holder: choose another one.",
        (
            "atb claim --agent ada",
            "atb claim --agent ada --queue docs --queue default --lease 30m",
            "atb claim 9F3K2A --agent ada --if-status queued",
            "atb claim --agent ada --fail-empty || sleep 30",
        ),
    ),
    "resume": Command(
        _resume,
        _resume_arguments,
        "Get a new token for a task that you hold, after losing yours.",
        "claimed, running -> same. The old token is dead at once, the fence grows, the attempt goes on.",
        ("atb resume 9F3K2A --agent ada",),
    ),
    "heartbeat": Command(
        _heartbeat,
        _heartbeat_arguments,
        "Renew your lease, and tell how far you are.",
        "claimed -> running at the first one. The lease lasts its length again, counted from now.\n" + LOST,
        (
            'atb heartbeat 9F3K2A --token "$TOKEN"',
            'atb heartbeat 9F3K2A --token "$TOKEN" --progress 40 --note "tests written"',
        ),
    ),
    "complete": Command(
        _complete,
        _complete_arguments,
        "Hand in finished work.",
        "claimed, running -> done, or review when the task needs approval. What waits for it may start once it is\n"
        "done. Repeating the call after a lost reply is safe: it answers `replayed` and changes nothing.\n" + LOST,
        (
            'atb complete 9F3K2A --token "$TOKEN" --result \'{"tests": 12}\' --artifact build/report.html',
            'make report | atb complete 9F3K2A --token "$TOKEN" --result -',
        ),
    ),
    "fail": Command(
        _fail,
        _fail_arguments,
        "Give up on the work, saying why.",
        "claimed, running -> queued after a wait, or failed when no attempt is left. Repeating the call is safe.\n"
        + LOST,
        (
            'atb fail 9F3K2A --token "$TOKEN" --error "registry is down" --retry-in 10m',
            'atb fail 9F3K2A --token "$TOKEN" --error-file build.log --no-retry',
        ),
    ),
    "release": Command(
        _release,
        _release_arguments,
        "Put a task back untouched; the attempt does not count.",
        "claimed, running -> queued. Repeating the call is safe.\n" + LOST,
        ('atb release 9F3K2A --token "$TOKEN" --after 1h --note "waits for the nightly build"',),
    ),
    "handoff": Command(
        _handoff,
        _handoff_arguments,
        "Pass a task on to another agent, with a note.",
        "claimed, running -> queued, assigned to the other agent; the attempt does not count. Whoever claims it\n"
        "next finds the note in `warnings`. Repeating the call is safe.\n" + LOST,
        ('atb handoff 9F3K2A --token "$TOKEN" --to reviewer --note "parser done, printer missing"',),
    ),
}
