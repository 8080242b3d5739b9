"""The commands that create and manage tasks: add, done, update, edit, comment, and those of the lifecycle."""

from __future__ import annotations

import os

from ..errors import InvalidInput
from .command import Call, Command, Reply
from .leases import receipt_reply
from .parsing import whole_number
from .several import SEVERAL, for_each

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..model import Receipt
    from .parsing import Parser


def _fields(parser: Parser) -> None:
    """Add the options of the fields that add and update share."""
    parser.option("--body", "TEXT", "the full description of the work, in Markdown")
    parser.option("--body-file", "FILE", "read the body from a file, or from standard input with -")
    parser.option("--queue", "NAME", "the queue (default: default)")
    parser.option("--assignee", "AGENT", "only this agent may claim it; me: the caller")
    parser.option(
        "--due", "INSTANT", "the deadline: ISO 8601, today, tomorrow, friday or +2d; a day means the end of that day"
    )
    parser.option("--not-before", "INSTANT", "the earliest start, written as --due; a day means its beginning")
    parser.option("--params", "JSON", "parameters for the agent: a JSON object, @FILE, or - for standard input")
    parser.option("--max-runtime", "LENGTH", "how long `atb run` lets the command of an attempt work, 1s to 7d")
    parser.option("--dedupe-key", "KEY", "a key that at most one unfinished task can hold")
    parser.actor()


def _add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "title",
        metavar="TITLE",
        nargs="*",
        help="the title: one line of at most 500 characters; - reads one title a line from standard input",
    )
    parser.option("--lines", "FILE", "add a task for each line of a file, all in one transaction")
    parser.whole("--priority", "the priority; higher numbers are claimed first (default: 0)")
    parser.whole("--max-attempts", "the number of attempts, 1 to 1000 (default: as configured, 3)")
    parser.flag("--needs-approval", "a person must approve the result")
    parser.repeated("--tag", "TAG", "add a tag")
    parser.repeated("--depends-on", "ID", "a task that must be done before this one")
    _fields(parser)
    parser.option(
        "--request-id", "ID", "a name for this call; a repeated call with the same name returns the same task"
    )
    parser.flag("--claim", "also claim the task, in the same transaction")
    parser.option("--agent", "NAME", "the calling agent; with --claim, it claims (default: ATB_AGENT, the assignee)")
    parser.option("--lease", "LENGTH", "with --claim: the length of the lease")


def _add(call: Call) -> Reply:
    args = call.args
    lines = _lines(call)
    params = call.json("params")
    given = {
        "body": call.text("body") or "",
        "queue": args.queue if args.queue is not None else "default",
        "priority": args.priority or 0,
        "assignee": args.assignee,
        "due_at": args.due,
        "not_before": args.not_before,
        "tags": args.tag,
        "depends_on": args.depends_on,
        "params": {} if params is None and args.params is None else params,
        "max_attempts": args.max_attempts,
        "max_runtime": args.max_runtime,
        "needs_approval": args.needs_approval,
        "agent": call.agent_if_any() if args.claim or args.agent else None,
        "actor": call.actor(),
    }
    if lines is not None:
        tasks, sentences = call.board.add_lines(lines, **given)
        data = {"tasks": [task.to_dict() for task in tasks], "created": len(tasks)}

        def in_brief(warnings: list[str]) -> str:
            from ..model import Receipt
            from ..text import compact

            receipts = (Receipt(task, created=True) for task in tasks)
            return compact.several((compact.receipt(receipt, "created") for receipt in receipts), warnings)

        return Reply(data, page="added", warnings=sentences, compact=in_brief)
    receipt = call.board.add(
        args.title[0],
        **given,
        dedupe_key=args.dedupe_key,
        request_id=args.request_id,
        claim=args.claim,
        lease=args.lease,
    )
    return receipt_reply(call, receipt, "created")


def _lines(call: Call) -> str | None:
    """Return the text whose lines are titles; ``None`` if the title is given.

    Raises:
        InvalidInput: neither one title nor such a text is given, or an option that makes sense for one task only.
    """
    args = call.args
    if len(args.title) > 1:
        words = " ".join(args.title)[:60]
        raise InvalidInput(
            f"title: one argument expected, not {len(args.title)}",
            hint=f'Quote a title of several words: atb add "{words}"',
            field="title",
        )
    file = "-" if args.title == ["-"] else args.lines
    if file is None:
        if not args.title:
            raise InvalidInput("title: missing", hint='For example: atb add "Fix the bug"', field="title")
        return None
    if args.title and args.lines is not None:
        raise InvalidInput("title: pass a title or --lines, not both", field="title")
    for name in ("claim", "lease", "dedupe_key", "request_id"):
        if getattr(args, name):
            raise InvalidInput(f"{name}: not available with several lines", field=name)
    return call.read_text(file, "lines")


def _done_arguments(parser: Parser) -> None:
    parser.tasks()
    parser.option("--result", "JSON", "the result: JSON, @FILE, or - for standard input")
    parser.repeated("--artifact", "PATH", "the path of a file that the work produced")
    parser.note("a note for the history")
    parser.option("--agent", "NAME", "the agent that did it (default: ATB_AGENT; without either, a person did it)")
    parser.actor()


def _done(call: Call) -> Reply:
    args = call.args
    agent = call.agent() if args.agent or os.environ.get("ATB_AGENT") else None
    given = {"result": call.json("result"), "note": call.text("note"), "actor": call.actor()}

    def done(task: str) -> Receipt:
        return call.board.done(task, artifacts=args.artifact, agent=agent, **given)

    return for_each(call, done, "completed")


def _edit_arguments(parser: Parser) -> None:
    parser.task()
    parser.actor()


def _edit(call: Call) -> Reply:
    from .editor import edit

    return edit(call)


def _number_or_empty(text: str) -> int | None:
    return None if text == "" else whole_number(text)


def _update_arguments(parser: Parser) -> None:
    parser.task()
    parser.option("--title", "TEXT", "the new title")
    parser.option(
        "--priority", "N", "the priority; higher numbers are claimed first", type=_number_or_empty, default=...
    )
    parser.option("--max-attempts", "N", "the number of attempts", type=_number_or_empty, default=...)
    parser.repeated("--tag", "TAG", "add a tag; an empty value removes all tags")
    parser.repeated("--drop-tag", "TAG", "remove a tag")
    parser.repeated("--depends-on", "ID", "add a dependency on this task; an empty value removes all dependencies")
    parser.repeated("--drop-depends-on", "ID", "remove the dependency on this task")
    _fields(parser)
    parser.flag("--needs-approval", "a person must approve the result")
    parser.flag("--no-needs-approval", "the result needs no approval; only a person can set this")
    parser.option("--if-status", "STATUS", "update only if the task has this status")
    parser.whole("--if-version", "update only if the task has this version")


def _update(call: Call) -> Reply:
    args = call.args
    if args.needs_approval and args.no_needs_approval:
        raise InvalidInput(
            "needs_approval: pass --needs-approval or --no-needs-approval, not both", field="needs_approval"
        )
    given: dict[str, Any] = {}
    for option, field in (("title", "title"), ("dedupe_key", "dedupe_key"), ("assignee", "assignee")):
        if getattr(args, option) is not None:
            given[field] = getattr(args, option)
    if args.queue is not None:
        given["queue"] = args.queue or "default"
    for option, field in (("due", "due_at"), ("not_before", "not_before")):
        if getattr(args, option) is not None:
            given[field] = getattr(args, option) or None
    body = call.text("body")
    if body is not None:
        given["body"] = body
    if args.params is not None:
        given["params"] = call.json("params") if args.params else None
    if args.priority is not ...:
        given["priority"] = args.priority or 0
    if args.max_attempts is not ...:
        given["max_attempts"] = args.max_attempts
    if args.max_runtime is not None:
        given["max_runtime"] = args.max_runtime or None
    if args.needs_approval or args.no_needs_approval:
        given["needs_approval"] = args.needs_approval
    for values, field in ((args.tag, "tags"), (args.depends_on, "depends_on")):
        if "" in values:
            given[field] = []
        given[f"add_{field}"] = [value for value in values if value]
    receipt = call.board.update(
        args.id,
        **given,
        drop_tags=args.drop_tag,
        drop_depends_on=args.drop_depends_on,
        if_status=args.if_status,
        if_version=args.if_version,
        actor=call.actor(),
    )
    return receipt_reply(call, receipt, "updated")


def _comment_arguments(parser: Parser) -> None:
    parser.task()
    parser.add_argument("text", metavar="TEXT", help="the text of the comment")
    parser.actor()


def _comment(call: Call) -> Reply:
    event = call.board.comment(call.args.id, call.args.text, actor=call.actor())

    def in_brief(warnings: list[str]) -> str:
        from ..text import compact

        return compact.commented(event, warnings=warnings)

    return Reply({"event": event}, page="comment", zone=call.config.settings.timezone, compact=in_brief)


def _verdict_arguments(parser: Parser) -> None:
    parser.tasks()
    parser.note("a note for the agents")
    parser.actor()


def _approve(call: Call) -> Reply:
    note, actor = call.text("note"), call.actor()
    return for_each(call, lambda task: call.board.approve(task, note=note, actor=actor), "approved")


def _reject(call: Call) -> Reply:
    note, actor = call.text("note"), call.actor()
    if note is None:
        raise InvalidInput(
            "note: missing", hint="Say what is to be done: --note TEXT, or --note-file FILE.", field="note"
        )
    return for_each(call, lambda task: call.board.reject(task, note=note, actor=actor), "rejected")


def _reassign_arguments(parser: Parser) -> None:
    parser.option("--to", "AGENT", "the new assignee; me: the caller; none: no assignee", required=True)
    _verdict_arguments(parser)


def _reassign(call: Call) -> Reply:
    to, note, actor = call.args.to, call.text("note"), call.actor()
    return for_each(call, lambda task: call.board.reassign(task, to, note=note, actor=actor), "reassigned")


def _retry_arguments(parser: Parser) -> None:
    parser.tasks()
    parser.actor()


def _retry(call: Call) -> Reply:
    actor = call.actor()
    return for_each(call, lambda task: call.board.retry(task, actor=actor), "retried")


def _cancel(call: Call) -> Reply:
    note, actor = call.text("note"), call.actor()
    return for_each(call, lambda task: call.board.cancel(task, note=note, actor=actor), "cancelled")


PEOPLE = "For people: refused with `not_permitted` (exit 6) to agents and to whoever has held the task."

COMMANDS = {
    "add": Command(
        _add,
        _add_arguments,
        "Add a task to the board.",
        "-> queued, or claimed with --claim. Creates the board if it is missing. If an unfinished task\n"
        "already holds the dedupe key, the answer has that task, with `created` false. With --claim, that is\n"
        "refused with `conflict` (exit 4), and so is a task that is not ready.\n"
        "With - or --lines, each line is the title of a task: all are added, or, if one is refused, none. Empty\n"
        "lines and lines that begin with # are left out. The other options go for all of them, and `data` is\n"
        '{"tasks", "created"}, the tasks and their number.',
        (
            'atb add "Write the parser" --priority 5 --tag core',
            'atb add "Write the printer" --depends-on 9F3K2A --needs-approval --due friday',
            "atb add --lines plan.txt --queue docs --tag plan",
            'atb add "Fix the build" --claim --agent ada --lease 30m',
            'atb add "Nightly report" --dedupe-key report --params \'{"days": 7}\'',
        ),
        creates=True,
    ),
    "done": Command(
        _done,
        _done_arguments,
        "Finish a task that is done already, without claiming it first.",
        "queued -> done. For something small; it counts as one attempt of yours. An agent may do it where it\n"
        "could claim the task (else `conflict`, exit 4); the task then goes to review if it needs approval. A\n"
        "person may also finish a blocked, delayed or assigned task; `warnings` say so.\n" + SEVERAL,
        (
            'atb done 9F3K2A --note "was fixed by the upgrade"',
            'atb done 9F3K2A 7QW2ZX --agent ada --result \'{"commit": "1f3c2d4"}\'',
        ),
    ),
    "update": Command(
        _update,
        _update_arguments,
        "Update the fields of an unfinished task.",
        "The status does not change. An empty value clears a field. --if-status and --if-version make it a\n"
        "compare-and-set: if the task has another status or version, nothing changes and the call is refused\n"
        "with `conflict` (exit 4).",
        (
            "atb update 9F3K2A --priority 10 --tag urgent --drop-tag later",
            "atb update 9F3K2A --depends-on 7QW2ZX --if-status queued --if-version 4",
            'atb update 9F3K2A --due "" --assignee ""',
        ),
    ),
    "edit": Command(
        _edit,
        _edit_arguments,
        "Edit the fields and the body of a task in your editor.",
        "Opens VISUAL or EDITOR on one text file, and writes what you changed in one compare-and-set: if the task\n"
        "was changed meanwhile, the call is refused with `conflict` (exit 4). A refused text stays in its file,\n"
        "whose path `details.file` has.",
        ("atb edit 9F3K2A",),
    ),
    "comment": Command(
        _comment,
        _comment_arguments,
        "Add a comment to a task.",
        "Works in every status; the task itself does not change.",
        ('atb comment 9F3K2A "The customer prefers the blue one."',),
    ),
    "approve": Command(
        _approve,
        _verdict_arguments,
        "Approve a task in review.",
        "review -> done. Tasks that wait only for it become ready.\n" + PEOPLE + "\n" + SEVERAL,
        ('atb approve 9F3K2A --note "well done"', "atb approve 9F3K2A 7QW2ZX"),
    ),
    "reject": Command(
        _reject,
        _verdict_arguments,
        "Reject a task in review, with a note.",
        "review -> queued, with a new set of attempts. The result stays readable. The note is required.\n"
        + PEOPLE
        + "\n"
        + SEVERAL,
        ('atb reject 9F3K2A --note "the error messages are missing"',),
    ),
    "reassign": Command(
        _reassign,
        _reassign_arguments,
        "Assign a task to another agent, or to no agent.",
        "queued, claimed, running -> queued. A live lease is revoked: every later call of its holder\n"
        "is refused.\n" + SEVERAL,
        ("atb reassign 9F3K2A --to bob", 'atb reassign 9F3K2A --to none --note "ada is gone"'),
    ),
    "retry": Command(
        _retry,
        _retry_arguments,
        "Return a failed or cancelled task to its queue.",
        "failed, cancelled -> queued, with a new set of attempts.\n" + SEVERAL,
        ("atb retry 9F3K2A", "atb retry 9F3K2A 7QW2ZX"),
    ),
    "cancel": Command(
        _cancel,
        _verdict_arguments,
        "Cancel an unfinished task.",
        "queued, claimed, running, review -> cancelled. Tasks that depend on it stay blocked until it is\n"
        "retried and done. A task in review is cancelled by a person only.\n" + SEVERAL,
        ('atb cancel 9F3K2A --note "no longer needed"',),
    ),
}
