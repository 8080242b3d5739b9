"""The tool that was meant by the name of a tool that does not exist."""

from __future__ import annotations

import re

from .. import inputs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

FOR_PEOPLE = "Approving and rejecting are for people. Continue with another task: claim_task."

_WORDS = {
    "create_task": "add new insert enqueue submit_new split add_subtask subtask",
    "claim_task": "next get_next next_ready take take_next start begin work pick pick_up pull pop fetch_next checkout "
    "acquire lock lease request",
    "resume_task": "reclaim recover restore renew_token refresh_token new_token",
    "heartbeat": "renew extend ping keepalive keep_alive touch progress report_progress update_progress set_progress "
    "renew_lease extend_lease",
    "complete_task": "finish done mark_done close end submit resolve mark_complete mark_completed finalize success",
    "fail_task": "error report_error mark_failed failure report_failure",
    "release_task": "return give_up giveup unclaim drop abandon unlock put_back requeue skip defer postpone",
    "handoff_task": "hand_off hand_over handover delegate assign reassign transfer pass forward",
    "list_tasks": "ls search find query all ready list_ready board show_board get_board status overview queue stats "
    "filter browse help",
    "get_task": "show read view describe detail details fetch info inspect open get_status",
    "add_comment": "comment note add_note log message ask question ask_question report",
    "cancel_task": "delete remove destroy kill discard",
    "update_task": "edit modify change set patch rename set_priority set_title set_body tag add_tag set_tags "
    "add_dependency depend depends_on block",
}
MEANT = {word: tool for tool, words in _WORDS.items() for word in words.split()}
"""The tool of each other name, without `task`."""
_REVIEWS = frozenset("approve accept reject review judge approval".split())

_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_PREFIXES = ("mcp_", "atb_", "agent_task_board_")
"""What clients and models put before the name of a tool."""


def hint(name: str, offered: Sequence[str]) -> str:
    """Return the hint for an unknown tool: the offered one that does this, or all offered ones."""
    plain = re.sub(r"[^a-z0-9]+", "_", _CAPITAL.sub("_", name[:60]).lower()).strip("_")
    for prefix in _PREFIXES:
        plain = plain.removeprefix(prefix)
    bare = "_".join(word for word in plain.split("_") if word not in ("task", "tasks"))
    if bare in _REVIEWS:
        return FOR_PEOPLE
    by_verb = {one.removesuffix("_tasks").removesuffix("_task"): one for one in offered}
    for meant in (plain, by_verb.get(bare), MEANT.get(bare)):
        if meant in offered:
            return f"Did you mean {meant!r}?"
    return inputs.did_you_mean(name, offered, similarity=inputs.CLOSE) or f"Known names: {', '.join(offered)}."
