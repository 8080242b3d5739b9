"""The command that was meant by the name of a command that does not exist."""

from __future__ import annotations

from .. import inputs
from .registry import ALIASES, MODULES

_WORDS = {
    "add": "create insert enqueue post subtask split",
    "claim": "next take start begin work pick pull pop get-next take-next checkout acquire lock lease",
    "list --ready": "ready available todo",
    "list": "tasks all search find query status board overview queues",
    "show ID": "get read view cat describe detail details info inspect get-status",
    "heartbeat ID --token TOKEN": "renew extend ping keepalive keep-alive touch progress renew-lease extend-lease",
    "complete ID --token TOKEN": "finish finalize submit resolve mark-done success succeed",
    "fail ID --token TOKEN --error TEXT": "error failed mark-failed",
    "release ID --token TOKEN": "return give-up giveup unclaim drop abandon unlock put-back skip defer postpone",
    "handoff ID --token TOKEN --to AGENT": "hand-off hand-over handover delegate transfer pass",
    "reassign ID --to AGENT": "assign unassign",
    "resume ID": "reclaim recover refresh-token new-token",
    "retry ID": "reopen requeue restart",
    "update ID": "modify change set patch rename set-priority tag",
    "update ID --depends-on ID": "depend depends-on add-dependency block",
    "comment ID TEXT": "note add-note add-comment log message",
    "cancel ID": "delete remove rm destroy kill discard",
    "approve ID": "accept",
    "events": "history audit",
    "events --follow": "follow tail",
    "prime": "brief-me instructions onboard whoami context",
    "serve": "ui web browser server dashboard",
    "where": "path locate",
    "doctor": "check verify repair fsck",
    "trust": "allow admit safe-directory",
    "stats": "metrics statistics report",
}
MEANT = {word: command for command, words in _WORDS.items() for word in words.split()}
"""The command of each other name, with `-` for `_` and without `task`."""


def hint(name: str) -> str:
    """Return the hint for an unknown command: the one that does this, or how to see all."""
    plain = name[:60].strip().lower().replace("_", "-")
    bare = "-".join(word for word in plain.split("-") if word not in ("task", "tasks")) or plain
    for one in (plain, bare):
        meant = one if one in MODULES else ALIASES.get(one) or MEANT.get(one)
        if meant is not None:
            return f"Did you mean `atb {meant}`?"
    return inputs.did_you_mean(name, [*MODULES, *ALIASES], similarity=inputs.CLOSE) or "See `atb --help`."
