"""The guide for agents, in the form that each client expects."""

from __future__ import annotations


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
lease that expires.{scope} Use the MCP tools of `agent-task-board`, or a shell:

```sh
{command} prime
```

- Start with `prime`, and run it again after your context was cut. It prints your name, what you hold, what is ready and
  how to work. Pass your name as `agent` in every MCP call, and as `--agent` or `ATB_AGENT` in a shell. Without it, the
  MCP server uses another name, and nothing reminds you of what you hold. Two agents with the same name can take each
  other's leases.
- Claim a task before you work on it (`claim_task`, `claim`). Keep the id and the token. If nothing is ready, stop or
  ask for work.
- Renew the lease after every third of it (`heartbeat`), with progress and a note.
- End each claim: complete, fail with the error, release if you did nothing, or hand off with a note.
- On `lease_lost`, another agent may hold the task. Stop at once; do not push or publish.
- If you lost the token, get a new one with `resume_task` or `resume ID`.
- If you find more work, add it as a task (`create_task`, `add`), with its dependencies.
- Only people approve and reject."""


def block(command: str, *, user: bool) -> str:
    """Return the body of the block in a file that is not ours."""
    return f"<!-- Written by `atb setup`; add --remove to remove it. -->\n\n{guide(command, user=user)}\n"


def skill(command: str, *, user: bool) -> str:
    """Return the content of the skill file."""
    head = f"name: agent-task-board\ndescription: {description(user=user)}"
    return f"---\n{head}\n---\n\n{guide(command, user=user)}\n\n"


def rule(command: str, *, user: bool) -> str:
    """Return the content of the rule file, which an editor always shows to its agent."""
    head = f"description: {description(user=user)}\nalwaysApply: true"
    return f"---\n{head}\n---\n\n{guide(command, user=user)}\n\n"
