"""Who may come in: on loopback, the processes of this user and of root, and those of users that were let in."""

from __future__ import annotations

import os

from .. import exhaustion
from ..errors import Busy, NotPermitted
from . import peers
from .peers import Peer
from .wire import Disconnected

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Iterable


class Access:
    """The rule of one server.

    Args:
        allow_users: further users whose processes may connect, by name or number.
        open_to_all: let every connection in, whoever owns its other end.

    Raises:
        InvalidInput: there is no such user.
    """

    def __init__(self, *, allow_users: Iterable[str] = (), open_to_all: bool = False) -> None:
        self._lookup = peers.find_lookup()
        self._users = peers.user_ids(allow_users)
        if self._lookup is not None:
            self._users |= {os.geteuid(), 0}
        self._open_to_all = open_to_all

    @property
    def tells_users(self) -> bool:
        """Whether the system tells which user opened a connection."""
        return self._lookup is not None

    def meet(self, connection: socket.socket) -> Peer:
        """Find out who is at the other end, before anything is read.

        Raises:
            NotPermitted: a user who may not come in, or nobody that the system knows.
            Busy: the system could not be asked.
            Disconnected: the client has left.
        """
        try:
            other, ours = (_end(*one[:2]) for one in (connection.getpeername(), connection.getsockname()))
        except OSError as error:
            raise Disconnected from error
        if self._lookup is None:
            return Peer(other[0], None)
        try:
            peer = Peer(other[0], self._lookup(other, ours))
        except OSError as error:
            raise exhaustion.refusal(error) or Busy("cannot tell who opened this connection") from error
        if not (self._open_to_all or peer.uid in self._users):
            raise _stranger(peer)
        return peer


def _end(address: str, port: int) -> tuple[str, int]:
    return address.partition("%")[0], port


def _stranger(peer: Peer) -> NotPermitted:
    owner = peers.user_name(os.geteuid())
    if peer.uid is None:
        return NotPermitted(
            f"unknown user at {peer.address}",
            hint=f"This server is for processes of the user {owner} on this machine that keep their connection open.",
        )
    name = peers.user_name(peer.uid)
    return NotPermitted(
        f"connection of another user: {name}",
        hint=f"This server is for the user {owner}. To let another one in, start `atb serve` with --allow-user {name}.",
        user=name,
    )
