"""Who is calling: the actor named in events, and whether it is an agent or a person."""

from __future__ import annotations

import os

from . import inputs
from .errors import InvalidInput
from .model import AGENT, HUMAN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class Actor:
    """A name with its kind: ``agent``, ``human`` or ``system``."""

    __slots__ = ("kind", "name")

    def __init__(self, name: str, kind: str) -> None:
        self.name = name
        self.kind = kind

    def __repr__(self) -> str:
        return f"<Actor {self.name!r} {self.kind}>"


def from_environment(environ: Mapping[str, str] = os.environ) -> Actor:
    """Return the actor of this process: the agent ``ATB_AGENT`` if it is set, else the person."""
    agent = environ.get("ATB_AGENT")
    if agent:
        return Actor(inputs.agent_name(agent, "ATB_AGENT"), AGENT)
    return person(environ)


def person(environ: Mapping[str, str] = os.environ) -> Actor:
    """Return the person who runs this process: ``ATB_ACTOR``, else the login name."""
    actor = environ.get("ATB_ACTOR")
    return Actor(inputs.actor_name(actor, "ATB_ACTOR") if actor else _login_name(environ), HUMAN)


def _login_name(environ: Mapping[str, str]) -> str:
    """Return what ``getpass.getuser()`` returns, without its imports; ``unknown`` if there is no usable name."""
    name = next(filter(None, (environ.get(key) for key in ("LOGNAME", "USER", "LNAME", "USERNAME"))), None)
    try:
        if name is None:
            import pwd

            name = pwd.getpwuid(os.getuid()).pw_name
        return inputs.actor_name(name, "login name")
    except (ImportError, KeyError, InvalidInput):
        return "unknown"
