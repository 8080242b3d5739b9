"""The commands of an agent that works on tasks: claim, resume, heartbeat, complete, fail, release, handoff."""

from __future__ import annotations

from ..errors import Empty, LeaseLost
from ..model import FRAMING
from .command import Call, Command, Reply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ..model import Grant, Receipt
    from .parsing import Parser


def receipt_reply(call: Call, receipt: Receipt, verb: str) -> Reply:
    """Return the answer of a verb; ``verb`` is its past tense, as compact text prints it."""

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
    parser.add_argument("id", metavar="ID", nargs="?", help="claim this task (default: the best task that is ready)")
    parser.option("--agent", "NAME", "the agent that claims (default: ATB_AGENT)")
    parser.repeated("--queue", "NAME", "only claim from this queue")
    parser.repeated("--tag", "TAG", "only claim a task with this tag")
    parser.option("--lease", "LENGTH", "the length of the lease, 1s to 7d (default: as configured, 15m)")
    parser.flag(
        "--fail-empty", "if nothing is ready, exit with 9; without this flag, `data` is null and the exit code is 0"
    )
    parser.option("--wait", "LENGTH", "wait this long for a task that is ready, at most 7d; then exit with 9")
    parser.flag("--until-idle", "wait, but only while a task is held or delayed; then exit with 9")
    parser.option("--if-status", "STATUS", "claim ID only if the task has this status")
    parser.option(
        "--request-id", "ID", "a name for this call; a repeated call with the same name returns the same claim"
    )
    parser.option("--comment", "TEXT", "add a comment to the task")
    parser.flag("--save", "remember the token for this session: its calls on the task then need none")
    parser.option("--actor", "NAME", "who makes the change (default: the agent)")


def _claim(call: Call) -> Reply:
    args, agent = call.args, call.agent()
    _require_session(call)
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
        wait=args.wait,
        until_idle=args.until_idle,
    )
    if receipt is not None:
        _keep(call, agent, receipt, resumed=False)
        return receipt_reply(call, receipt, "claimed")
    reasons = [] if args.id else call.board.nothing_ready(agent, queues=args.queue, tags=args.tag)
    if args.fail_empty or args.wait is not None or args.until_idle:
        call.warn(*reasons)
        raise Empty("nothing is ready")
    return _nothing_ready(reasons)


def _resume_arguments(parser: Parser) -> None:
    parser.task()
    parser.option("--agent", "NAME", "the agent that holds the task (default: ATB_AGENT)")
    parser.option("--lease", "LENGTH", "also renew the lease, for this length (default: its end does not change)")
    parser.flag("--save", "remember the token for this session: its calls on the task then need none")
    parser.option("--actor", "NAME", "who makes the change (default: the agent)")


def _resume(call: Call) -> Reply:
    args, agent = call.args, call.agent()
    _require_session(call)
    receipt = call.board.resume(args.id, agent, lease=args.lease, actor=call.actor())
    _keep(call, agent, receipt, resumed=True)
    return receipt_reply(call, receipt, "resumed")


def _require_session(call: Call) -> None:
    """Refuse ``--save`` before anything is claimed where it cannot work."""
    if call.args.save:
        from .remembered import require_session

        require_session()


def _keep(call: Call, agent: str, grant: Grant, *, resumed: bool) -> None:
    if call.args.save:
        from .remembered import keep

        call.warn(*keep(call.board.path, agent, grant, resumed=resumed))


def _held(call: Call, verb: Callable[[str], Receipt], done: str) -> Reply:
    """Call a verb under a lease with its token; a remembered one is forgotten when the lease has ended."""
    token = call.token()
    try:
        receipt = verb(token)
    except LeaseLost:
        if call.lease is not None:
            call.lease.forget()
        raise
    if call.lease is not None:
        if receipt.lease is None:
            call.lease.forget()
        else:
            call.lease.renew(receipt.lease)
    return receipt_reply(call, receipt, done)


def _heartbeat_arguments(parser: Parser) -> None:
    parser.holder()
    parser.option(
        "--lease", "LENGTH", "the length of the lease from now on (default: the last length requested for this claim)"
    )
    parser.whole("--progress", "the progress in percent, 0 to 100")
    parser.note("a note about the current state")


def _heartbeat(call: Call) -> Reply:
    args = call.args
    return _held(
        call,
        lambda token: call.board.heartbeat(
            args.id,
            token,
            lease=args.lease,
            progress=args.progress,
            note=call.text("note"),
            actor=call.actor(),
        ),
        "renewed",
    )


def _complete_arguments(parser: Parser) -> None:
    parser.holder()
    parser.option("--result", "JSON", "the result: JSON, @FILE, or - for standard input")
    parser.repeated("--artifact", "PATH", "the path of a file that the work produced")
    parser.note("a note for the history")


def _complete(call: Call) -> Reply:
    args = call.args
    return _held(
        call,
        lambda token: call.board.complete(
            args.id,
            token,
            result=call.json("result"),
            artifacts=args.artifact,
            note=call.text("note"),
            actor=call.actor(),
        ),
        "completed",
    )


def _fail_arguments(parser: Parser) -> None:
    parser.holder()
    parser.option("--error", "TEXT", "the reason for the failure")
    parser.option("--error-file", "FILE", "read the reason from a file, or from standard input with -")
    parser.option("--retry-in", "LENGTH", "the wait before the next attempt (default: 30s, 1m, 2m ...)")
    parser.flag("--no-retry", "fail permanently, even if attempts are left")


def _fail(call: Call) -> Reply:
    args = call.args
    return _held(
        call,
        lambda token: call.board.fail(
            args.id,
            token,
            call.text("error") or "",
            retry_in=args.retry_in,
            no_retry=args.no_retry,
            actor=call.actor(),
        ),
        "failed",
    )


def _release_arguments(parser: Parser) -> None:
    parser.holder()
    parser.option("--after", "LENGTH", "nobody can claim the task for this long")
    parser.note("the reason, for the next agent")


def _release(call: Call) -> Reply:
    args = call.args
    return _held(
        call,
        lambda token: call.board.release(args.id, token, after=args.after, note=call.text("note"), actor=call.actor()),
        "released",
    )


def _handoff_arguments(parser: Parser) -> None:
    parser.holder()
    parser.option("--to", "AGENT", "the agent that continues the work", required=True)
    parser.note("what the other agent needs to know")


def _handoff(call: Call) -> Reply:
    args = call.args
    return _held(
        call,
        lambda token: call.board.handoff(args.id, token, args.to, note=call.text("note"), actor=call.actor()),
        "handed_off",
    )


LOST = (
    "Without a token, the call presents the one that `claim --save` remembers for this agent and session.\n"
    "Refused with `lease_lost` (exit 5) if the token is wrong, expired or replaced: stop working."
)

COMMANDS = {
    "claim": Command(
        _claim,
        _claim_arguments,
        "Claim one task under a lease: the best one that is ready, or the one named.",
        "queued -> claimed. The answer has the task and the lease. Pass `token` with every later call on the\n"
        "task. Send `fence` to resources outside the board, so that they can refuse a stale holder. The lease\n"
        "ends at `expires_at`. The best task is the one with the highest priority, then the oldest. If\n"
        "nothing is ready, `data` is null and `warnings` say why. If the task ID is not ready, the claim is\n"
        "refused with `conflict` (exit 4), which names its state and holder: choose another task.\n"
        "`data.notes` has what others left for the next holder, if they did.\n" + FRAMING + "\n"
        "With --save the token is kept in your state directory, for this board, task, agent and session; other\n"
        "users can read the arguments of a process. ATB_SESSION names the session; else it is that of the shell.\n"
        "With --wait the call returns as soon as it has a task. It holds no lock and no connection to a server\n"
        "meanwhile. If the time is over, or with --until-idle nothing can become ready by itself, it is\n"
        "refused with `empty` (exit 9).",
        (
            "atb claim --agent ada --save",
            "atb claim --agent ada --queue docs --queue default --lease 30m",
            "atb claim 9F3K2A --agent ada --if-status queued",
            "atb claim --agent ada --wait 10m",
        ),
    ),
    "resume": Command(
        _resume,
        _resume_arguments,
        "Get a new lease token for a task that you hold.",
        "claimed, running -> same. Use it if you lost the token. The old token stops working at once, the\n"
        "fence increases, and the attempt continues. With --save the new one is remembered, as by claim --save.",
        ("atb resume 9F3K2A --agent ada --save",),
    ),
    "heartbeat": Command(
        _heartbeat,
        _heartbeat_arguments,
        "Renew your lease and report progress.",
        "claimed -> running at the first heartbeat. The lease starts again, with its full length, from now.\n" + LOST,
        (
            "atb heartbeat 9F3K2A",
            'atb heartbeat 9F3K2A --progress 40 --note "tests written"',
        ),
    ),
    "complete": Command(
        _complete,
        _complete_arguments,
        "Complete a task and submit its result.",
        "claimed, running -> done, or review if the task needs approval. Tasks that wait only for it become\n"
        "ready once it is done. After a lost reply, repeat the call: the answer has `replayed`, and nothing\n"
        "changes.\n" + LOST,
        (
            "atb complete 9F3K2A --result '{\"tests\": 12}' --artifact build/report.html",
            "make report | atb complete 9F3K2A --result -",
        ),
    ),
    "fail": Command(
        _fail,
        _fail_arguments,
        "Report that an attempt failed.",
        "claimed, running -> queued after a wait, or failed if no attempt is left. Repeating the call is\n"
        "safe.\n" + LOST,
        (
            'atb fail 9F3K2A --error "registry is down" --retry-in 10m',
            "atb fail 9F3K2A --error-file build.log --no-retry",
        ),
    ),
    "release": Command(
        _release,
        _release_arguments,
        "Return a task to its queue; the attempt does not count.",
        "claimed, running -> queued. Repeating the call is safe.\n" + LOST,
        ('atb release 9F3K2A --after 1h --note "waits for the nightly build"',),
    ),
    "handoff": Command(
        _handoff,
        _handoff_arguments,
        "Hand a task off to another agent, with a note.",
        "claimed, running -> queued, assigned to the other agent; the attempt does not count. The next claim\n"
        "has the note in `data.notes`. Repeating the call is safe.\n" + LOST,
        ('atb handoff 9F3K2A --to reviewer --note "parser done, printer missing"',),
    ),
}
