"""How the reader of a text runs this `atb` on this board, from the working directory and environment of the call."""

from __future__ import annotations

import os
import shlex
import shutil

from .. import config
from ..errors import BoardError
from .remembered import VARIABLES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .command import Call


def command(
    call: Call, agent: str | None, program: Sequence[str], environ: Mapping[str, str], session: str | None = None
) -> str:
    """Return the shell command that runs `atb` as this agent, to be followed by arguments.

    It has only what the shell would not find by itself: the path of the program, the agent's name, the session that
    remembers leases, the data directory, the configuration file. An agent without a name gets one.

    Args:
        call: the call that the text answers.
        agent: the name of the agent.
        program: the absolute words that run this `atb`.
        environ: the environment that the shell will have.
        session: what names the agent's session; ``None``: a new name.
    """
    name = agent or f"agent-{os.urandom(2).hex()}"
    before = [] if environ.get("ATB_AGENT") == name else [f"ATB_AGENT={shlex.quote(name)}"]
    if not any(
        environ.get(variable) for variable in VARIABLES
    ):  # each command may run in a shell, and session, of its own
        before.append(f"ATB_SESSION={shlex.quote(session or os.urandom(2).hex())}")
    words = ["atb"] if _is_on_path(program, environ) else [shlex.quote(word) for word in program]
    return " ".join([*before, *words, *(shlex.quote(option) for option in _options(call, environ))])


def _is_on_path(program: Sequence[str], environ: Mapping[str, str]) -> bool:
    """Say whether `atb` in a shell starts this program."""
    found = shutil.which("atb", path=environ.get("PATH"))
    try:
        return found is not None and len(program) == 1 and os.path.samefile(found, program[0])
    except OSError:
        return False


def _options(call: Call, environ: Mapping[str, str]) -> list[str]:
    """Return the options without which a call from here would use another board or configuration."""
    named = None if call.args.config is None else os.path.abspath(os.path.expanduser(call.args.config))
    options = [] if named is None else ["--config", named]
    if call.args.data_dir is None:
        return options
    try:
        found = config.load(data_dir=None, config=named, environ=environ)
        if named is not None and config.load(data_dir=None, config=None, environ=environ).file == named:
            options = []
        if os.path.realpath(found.data_dir) == os.path.realpath(call.config.data_dir):
            return options
    except BoardError:
        pass
    return [*options, "--data-dir", call.config.data_dir]
