"""Who is calling: the actor that an event names, and whether it is an agent or a person."""

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
    """Return who this process speaks for: ``ATB_AGENT`` makes it an agent, else ``ATB_ACTOR`` or the login name."""
    agent = environ.get("ATB_AGENT")
    if agent:
        return Actor(inputs.agent_name(agent, "ATB_AGENT"), AGENT)
    return person(environ)


def person(environ: Mapping[str, str] = os.environ) -> Actor:
    """Return the person whose process this is: ``ATB_ACTOR`` or the login name."""
    actor = environ.get("ATB_ACTOR")
    return Actor(inputs.actor_name(actor, "ATB_ACTOR") if actor else _login_name(environ), HUMAN)


def _login_name(environ: Mapping[str, str]) -> str:
    """Do as ``getpass.getuser()`` does, without its imports; a name that cannot be had or used is ``unknown``."""
    name = next(filter(None, (environ.get(key) for key in ("LOGNAME", "USER", "LNAME", "USERNAME"))), None)
    try:
        if name is None:
            import pwd

            name = pwd.getpwuid(os.getuid()).pw_name
        return inputs.actor_name(name, "login name")
    except (ImportError, KeyError, InvalidInput):
        return "unknown"
