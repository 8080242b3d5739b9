"""What an agent reads about the board, in each client's own place for it."""

from __future__ import annotations


def description(*, user: bool) -> str:
    """Return when a skill or rule is to be used; ``user``: for all projects of a user, not for one."""
    which = "this user's task board, which all projects and" if user else "this project's task board, which"
    return (
        f"Claim, work on, hand in and add tasks of {which} several agents share. Use it when asked to take up work, to"
        " split it, to hand it over, or to tell how far it is, and whenever a task id is mentioned."
    )


def guide(command: str, *, user: bool) -> str:
    """Return the way of working, without a line break at its end; ``command`` is `atb` as a shell takes it."""
    whose = "all projects of this user" if user else "this project"
    own = "\nTake only what belongs to your work." if user else ""
    return f"""\
## Agent Task Board

Tasks of {whose} lie on a board that several agents share. One agent holds a task at a time, under a lease
that runs out.{own} Use the MCP tools of `agent-task-board`, or in a shell:

```sh
{command} prime   # who you are, what you hold, what is ready, how to work
```

- Begin with `prime`, and call it again when your context was cut. It tells your name: give it as `agent` in every MCP
  call, as `--agent` or `ATB_AGENT` in a shell. Without it the MCP server takes a name of its own, under which nothing
  reminds you of what you hold. Two agents with one name can take each other's leases.
- Claim before you work (`claim_task`, `claim`). Keep the id and the token. Nothing ready: stop, or ask for work.
- Renew every third of the lease (`heartbeat`), with progress and a note.
- End each claim: complete, fail with the error, release if you did nothing, or hand off with a note.
- `lease_lost`: somebody else may have the task. Stop at once; do not push or publish.
- A lost token comes back with `resume_task` or `resume ID`.
- What you find on the way becomes a task of its own (`create_task`, `add`), with what it waits for.
- Approving and rejecting is for people."""


def block(command: str, *, user: bool) -> str:
    """Return the body of the block in a file of somebody else."""
    return f"<!-- Written by `atb setup`; the same with --remove takes it out. -->\n\n{guide(command, user=user)}\n"


def skill(command: str, *, user: bool) -> str:
    """Return the file of a skill."""
    head = f"name: agent-task-board\ndescription: {description(user=user)}"
    return f"---\n{head}\n---\n\n{guide(command, user=user)}\n\n"


def rule(command: str, *, user: bool) -> str:
    """Return the file of a rule that an editor always shows to its agent."""
    head = f"description: {description(user=user)}\nalwaysApply: true"
    return f"---\n{head}\n---\n\n{guide(command, user=user)}\n\n"
