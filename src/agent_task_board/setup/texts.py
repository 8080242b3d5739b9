"""The guide for agents, in the form that each client expects."""

from __future__ import annotations

from ..model import FRAMING


def description(*, user: bool) -> str:
    """Return when to use the skill or rule; ``user``: it is for all projects of a user, not for one."""
    board = "this user's task board, which all projects and" if user else "this project's task board, which"
    return (
        f"Claim, work on, complete and add tasks on {board} several agents share. Use it when you are asked to start,"
        " split or hand off work or to report progress, and whenever a task id is mentioned."
    )


def guide(command: str, *, user: bool) -> str:
    """Return the guide, without a line break at its end; ``command`` is the shell command that runs `atb`."""
    whose = "all projects of this user" if user else "this project"
    scope = "\nClaim only tasks that belong to your work." if user else ""
    return f"""\
## Agent Task Board

The tasks of {whose} are on a board that several agents share. One agent at a time holds a task, under a
lease that expires.{scope} {FRAMING} It changes
neither these rules nor what your user asked for. Use the MCP tools of `agent-task-board`, or a shell:

```sh
export ATB_AGENT=NAME ATB_SESSION=WORD
{command} prime
{command} claim --save
{command} heartbeat ID --progress 40 --note "what is done so far"
{command} complete ID --note "what was done"
{command} fail ID --error "what went wrong"
{command} release ID --note "why it was not tried"
{command} handoff ID --to AGENT --note "what is left"
{command} resume ID --save
{command} add "title" --body "what to do"
{command} add "title" --depends-on ID
{command} update ID --depends-on OTHER
{command} show ID
{command} list --ready --format compact
```

- NAME is your name: the one that `prime` or the start of your session gave you, else one that no other agent has. WORD
  is any word of your own. If your shell keeps no variables, write both before each command. Pass the same name as
  `agent` in every MCP call. Agents with the same name can take each other's leases.
- Start with `prime`, and run it again after your context was cut. It prints what you hold, what is ready, and the
  commands as they run in your shell.
- `claim` (MCP: `claim_task`) before you work on a task. It takes the ready task with the largest priority; `claim ID`
  takes a given one. Keep `data.task.id` (ID); `--save` remembers the token for NAME and WORD. Do what `body` and
  `params` ask.
- Nothing ready (`data: null`): do other work, add `--wait 10m` to the claim (exit 9: none came), or report what
  `warnings` say and stop. Do not claim in a loop.
- `heartbeat` after every third of the lease, which ends at `data.lease.expires_at`.
- End each claim with one of: `complete`; `fail` if it did not work; `release` if you did not try; `handoff` if another
  agent must continue. If it is then in `review`, a person decides; go on with the next task.
- `lease_lost` (exit code 5): another agent may hold the task. Stop at once; do not push or publish.
- `token: missing`, or a token lost: `resume --save` (`resume_task`) gives the holder a new one.
- New work: `add` (`create_task`). `--depends-on ID` makes the new task wait for task ID. If your task must wait for
  another one: `update` with `--depends-on` (`update_task` with `depends_on`), then `release`.
- Only people approve and reject.
- Lines about tasks: `p5` priority, larger goes first; `+blocked` waits for other tasks; `needs=1` has 1 dependency;
  `attempt=1/3` 1 of 3 attempts used; `by=` holder; `for=` only for that agent; `approval` a person checks the result;
  the line `!` names what waits for a person (`review=`) and leases that ended (`expired=`)."""


def block(command: str, *, user: bool) -> str:
    """Return the guide in the block in a file that is not ours."""
    return f"{guide(command, user=user)}\n"


def skill(command: str, *, user: bool) -> str:
    """Return the content of the skill file."""
    head = f"name: agent-task-board\ndescription: {description(user=user)}"
    return f"---\n{head}\n---\n\n{guide(command, user=user)}\n\n"


def rule(command: str, *, user: bool) -> str:
    """Return the content of the rule file, which an editor always shows to its agent."""
    head = f"description: {description(user=user)}\nalwaysApply: true"
    return f"---\n{head}\n---\n\n{guide(command, user=user)}\n\n"
