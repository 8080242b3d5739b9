"""Who may come in, and as whom.

Without keys, these are the processes of this user and of root, and of users that were let in: Linux tells who owns the
other end of a connection on this machine. With ``--auth``, anyone who presents a key (an agent of that name) or the
cookie of a session (a person) may.
"""

from __future__ import annotations

import ipaddress
import os
import socket

from .. import exhaustion, inputs
from ..credentials import KEY_PREFIX, SESSION_LIFE, Credentials
from ..errors import Busy, NotFound, NotPermitted
from ..instants import SECOND
from . import peers
from .guesses import Guesses, too_many
from .messages import Unauthorized
from .peers import Peer
from .wire import Disconnected

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from ..service import Board
    from .messages import Head

_COOKIE = "atb_session_"
_SCHEME = "bearer"
_NETWORK = 64
"""Bits of an address of IPv6 that one household or company shares; guesses are counted by them."""


class Caller:
    """Who sends a request: the peer, and what its key or session says.

    ``agent`` is the name of the agent whose key it is. ``is_known`` says whether it may use the board at all.
    """

    __slots__ = ("agent", "is_known", "key", "peer", "session")

    def __init__(
        self,
        peer: Peer,
        *,
        is_known: bool,
        agent: str | None = None,
        key: str | None = None,
        session: str | None = None,
    ) -> None:
        self.peer = peer
        self.is_known = is_known
        self.agent = agent
        self.key = key
        self.session = session

    def __str__(self) -> str:
        if self.agent is not None:
            return f"agent {self.agent}, {self.peer}"
        return f"session, {self.peer}" if self.session is not None else str(self.peer)

    def speak(self, fields: Iterable[str], body: dict[str, Any]) -> None:
        """Fill in the agent of a key; refuse a body that names another one.

        Raises:
            NotPermitted: the body names another agent or actor than the key does.
        """
        if self.agent is None:
            return
        for name in ("agent", "actor"):
            if body.get(name) is not None and not self.is_agent(body[name]):
                raise NotPermitted(
                    f"{name}: not the agent of this key: {str(body[name])[:100]!r}",
                    hint=f"Leave out `{name}`: this key acts as {self.agent!r}.",
                    field=name,
                )
        body.pop("actor", None)
        if "agent" in fields:
            body["agent"] = self.agent

    def is_agent(self, name: object) -> bool:
        """Say whether a name is that of the key's agent, in any case of its letters."""
        return (
            self.agent is not None
            and isinstance(name, str)
            and (name == inputs.CALLER or inputs.name_key(name) == inputs.name_key(self.agent))
        )


class Access:
    """The rule of one server.

    Args:
        board: the board; its keys and sessions are in the user's state directory.
        allow_users: further users whose processes may connect, or sign in with ``asks``, by name or number.
        asks: whether a key or a session is needed, from whomever.

    Raises:
        InvalidInput: there is no such user.
    """

    def __init__(self, board: Board, *, allow_users: Iterable[str] = (), asks: bool = False) -> None:
        self.asks = asks
        self._board = board
        self._users = peers.user_ids(allow_users)
        self._lookup = peers.find_lookup()
        if self._lookup is not None:
            self._users |= {os.geteuid(), 0}
        self._guesses = Guesses()
        self._credentials: Credentials | None = None

    def close(self) -> None:
        """Release what finding out about peers keeps open."""
        peers.close(self._lookup)

    @property
    def tells_users(self) -> bool:
        """Whether the system tells which user opened a connection."""
        return self._lookup is not None

    @property
    def credentials(self) -> Credentials:
        """The keys and sessions of the board.

        Raises:
            NotFound: there is no board yet.
            Unusable: the board cannot be read.
        """
        if self._credentials is None:
            board_id = self._board.board_id()
            if board_id is None:
                raise NotFound(f"there is no board at {self._board.path}")
            self._credentials = Credentials(board_id)
        return self._credentials

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
        if not (self.asks or peer.uid in self._users):
            raise _stranger(peer)
        return peer

    def recognize(self, head: Head, peer: Peer, *, is_public: bool) -> Caller:
        """Return who sends a request, by its key, else by its session.

        Raises:
            Unauthorized: a wrong key; or none, and no session, where one is needed.
            NotPermitted: a session that is presented by another user of this machine.
            Busy: too many wrong keys or sessions from there.
        """
        key = _bearer(head)
        if key is not None and (self.asks or key.startswith(KEY_PREFIX)):
            self._guesses.allow(_source(peer, "key"), key)
            entry = self.credentials.key_of(key)
            if entry is None:
                self._guesses.wrong(_source(peer, "key"), key)
                raise Unauthorized("unknown key", hint="It may have been revoked. Ask a person for a new one.")
            self._guesses.right(key)
            return Caller(peer, is_known=True, agent=entry["name"], key=key)
        if not self.asks:
            return Caller(peer, is_known=True)
        session = self.session_of(head, peer)
        if session is not None:
            if not self._is_person_here(peer):
                raise _not_yours(peer)
            return Caller(peer, is_known=True, session=session)
        if not is_public:
            raise Unauthorized(
                "a key or a session is needed",
                hint="In a browser, open the link that `atb open` prints. Programs send `Authorization: Bearer KEY`; "
                "a person makes a key with `atb key add NAME`.",
            )
        return Caller(peer, is_known=False)

    def session_of(self, head: Head, peer: Peer) -> str | None:
        """Return the valid session among the cookies of a request, if there is one.

        Any page of the same host name can add cookies to those of the browser, also one at another port: each of the
        board's name is tried.

        Raises:
            Busy: too many wrong sessions from there.
        """
        source, may_try_all = _source(peer, "session"), True
        for value in _cookies(head, self.cookie):
            if not self._guesses.may_try(source, value):
                may_try_all = False
            elif self.credentials.is_session(value):
                self._guesses.right(value)
                return value
            else:
                self._guesses.wrong(source, value)
        if not may_try_all:
            raise too_many()
        return None

    def is_still_known(self, caller: Caller) -> bool:
        """Say whether the key or session of a caller was not revoked and has not expired."""
        if caller.key is not None:
            return self.credentials.key_of(caller.key) is not None
        return caller.session is None or self.credentials.is_session(caller.session)

    def require_still_known(self, caller: Caller) -> None:
        """Refuse a caller whose key or session has ended since it was recognized.

        Raises:
            Unauthorized: it has.
        """
        if not self.is_still_known(caller):
            raise Unauthorized("this key or session has ended", hint="Ask a person for a new one.")

    # Signing in

    @property
    def cookie(self) -> str:
        """The name of the board's cookie. Browsers send a cookie to every port of a host: other boards have another."""
        return f"{_COOKIE}{self.credentials.board_id}"

    def sign_in(self, code: str, head: Head, peer: Peer) -> str:
        """Use up a code and return the ``Set-Cookie`` of a new session; a session that the browser had ends.

        Raises:
            Unauthorized: the code is wrong, expired or used.
            NotPermitted: another user of this machine presents it.
            NotFound: this server asks for nothing.
            Busy: too many wrong codes from there.
        """
        self._refuse_if_open()
        if not self._is_person_here(peer):
            raise _not_yours(peer)
        self._guesses.allow(_source(peer, "code"), code)
        session = self.credentials.redeem(code, instead_of=self.session_of(head, peer))
        if session is None:
            self._guesses.wrong(_source(peer, "code"), code)
            raise Unauthorized(
                "this sign-in code is wrong, expired or used", hint="Run `atb open` for a new link; each works once."
            )
        self._guesses.right(session)
        return self._set_cookie(head, session, SESSION_LIFE // SECOND)

    def sign_out(self, caller: Caller, head: Head) -> str:
        """End the session of a caller, if it has one; return the ``Set-Cookie`` that removes the cookie.

        Raises:
            NotFound: this server asks for nothing.
        """
        self._refuse_if_open()
        if caller.session is not None:
            self.credentials.end_session(caller.session)
        return self._set_cookie(head, "", 0)

    def _refuse_if_open(self) -> None:
        if not self.asks:
            raise NotFound("this server needs no sign-in", hint="Use it without; `atb serve --auth` asks for one.")

    def _set_cookie(self, head: Head, value: str, seconds: int) -> str:
        is_secure = (head.single("origin") or "").startswith("https://")
        attributes = f"Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict"
        return f"{self.cookie}={value}; {attributes}{'; Secure' if is_secure else ''}"

    def _is_person_here(self, peer: Peer) -> bool:
        """Say whether a peer may act as a person: from another machine, or as a user who may connect.

        The browser sends the cookie also to a server that another user of this machine runs at another port of the
        same host name; what that user learns so must not be of use.
        """
        if self._lookup is None or peer.uid in self._users:
            return True
        return peer.uid is None and not is_own_address(peer.address)


def is_own_address(address: str) -> bool:
    """Say whether an address is one of this machine."""
    try:
        if ipaddress.ip_address(address).is_loopback:
            return True
        with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as trial:
            trial.bind((address, 0))
        return True
    except (OSError, ValueError):
        return False


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


def _not_yours(peer: Peer) -> NotPermitted:
    name = "somebody" if peer.uid is None else peers.user_name(peer.uid)
    return NotPermitted(
        f"sign-in by another user of this machine: {name}",
        hint=f"Sign in as {peers.user_name(os.geteuid())}, or start `atb serve` with --allow-user.",
    )


def _source(peer: Peer, kind: str) -> str:
    """Return what guesses of a kind are counted by: the user on this machine, else the address or its network."""
    if peer.uid is not None:
        return f"{kind} user {peer.uid}"
    if ":" in peer.address:
        return f"{kind} {ipaddress.ip_network((peer.address, _NETWORK), strict=False)}"
    return f"{kind} {peer.address}"


def _bearer(head: Head) -> str | None:
    """Return the key of an ``Authorization`` field; other schemes are those of a proxy.

    Raises:
        BadRequest: the field is repeated.
    """
    scheme, _, value = (head.single("authorization") or "").partition(" ")
    return value.strip(" ") if scheme.lower() == _SCHEME else None


def _cookies(head: Head, name: str) -> list[str]:
    """Return the different values of a cookie."""
    pairs = (item.partition("=") for item in ";".join(head.headers.get("cookie", ())).split(";"))
    return list(dict.fromkeys(value.strip() for found, _, value in pairs if found.strip() == name and value.strip()))
