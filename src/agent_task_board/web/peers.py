"""The user at the other end of a connection within this machine, as far as the system tells.

Any user of a machine can connect to its loopback address. Linux tells which user owns the other end: by ``sock_diag``
(one question about one connection), or in ``/proc/net/tcp`` and ``tcp6`` (a list of all of them, which takes longer the
more there are). Other systems do not tell.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import sys
import threading

from ..errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    End = tuple[str, int]
    Lookup = Callable[[End, End], int | None]
    """Takes the other end and ours; returns the id of the user who owns the other end, ``None`` if nobody does."""

_ANSWER_TIMEOUT = 1.0
"""Seconds; the kernel answers at once."""
_UID_DIGITS = 10
_LISTENING = 10
_MAPPED = "::ffff:"
"""Before an address of IPv4: its form in IPv6."""
_NO_INTERFACE, _ANY_COOKIE = 0, 0xFFFF_FFFF
_ALL_STATES = 0xFFFF_FFFF
_SOCK_DIAG, _SOCK_DIAG_BY_FAMILY, _REQUEST = 4, 20, 1
"""``NETLINK_SOCK_DIAG``, ``SOCK_DIAG_BY_FAMILY`` and ``NLM_F_REQUEST``."""
_HEADER = struct.Struct("=IHHII")
_QUESTION = struct.Struct("=BBBBI")
_STATE = struct.Struct("=BBBB")
_OWNER = struct.Struct("=IIIII")
_SOCKET_ID = 48
"""Bytes of ``struct inet_diag_sockid``."""


class Peer:
    """The other end of a connection: its address, and the user who owns it if it is on this machine.

    ``uid`` is ``None`` for another machine, for an end that is closed already, and where the system does not tell.
    """

    __slots__ = ("address", "uid")

    def __init__(self, address: str, uid: int | None) -> None:
        self.address = address
        self.uid = uid

    def __str__(self) -> str:
        return self.address if self.uid is None else f"user {user_name(self.uid)}"


class Kernel:
    """Looks up one connection by ``sock_diag``; see sock_diag(7). Its socket is kept, and needs to be closed.

    Raises:
        OSError: this kernel does not answer such questions.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._number = 0
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG)
        self._socket.settimeout(_ANSWER_TIMEOUT)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def __call__(self, other: End, ours: End) -> int | None:
        """Look up a connection."""
        family = socket.AF_INET6 if ":" in other[0] else socket.AF_INET
        question = _QUESTION.pack(family, socket.IPPROTO_TCP, 0, 0, _ALL_STATES) + _in_binary(family, other, ours)
        question += struct.pack("=III", _NO_INTERFACE, _ANY_COOKIE, _ANY_COOKIE)
        answer = self._ask(question)
        if len(answer) < _HEADER.size + _STATE.size + _SOCKET_ID + _OWNER.size:
            return None  # no such connection
        if _HEADER.unpack_from(answer)[1] != _SOCK_DIAG_BY_FAMILY:
            return None
        found = answer[_HEADER.size + _STATE.size :]
        family, state, _, _ = _STATE.unpack_from(answer, _HEADER.size)  # a socket of IPv6 may be one end of IPv4
        uid, inode = _OWNER.unpack_from(found, _SOCKET_ID)[3:]
        if state == _LISTENING or not found.startswith(_in_binary(family, other, ours)) or not inode:
            return None  # without an inode, no process has it open
        return int(uid)

    def _ask(self, question: bytes) -> bytes:
        """Return the kernel's answer to a question; an answer that came too late for an earlier one is dropped."""
        with self._lock:
            self._number = self._number % _ANY_COOKIE + 1
            header = _HEADER.pack(_HEADER.size + len(question), _SOCK_DIAG_BY_FAMILY, _REQUEST, self._number, 0)
            self._socket.sendto(header + question, (0, 0))
            while True:
                answer, sender = self._socket.recvfrom(4_096)
                if sender[0] == 0 and _HEADER.unpack_from(answer)[3] == self._number:
                    return answer


def _in_binary(family: int, other: End, ours: End) -> bytes:
    """Return the first fields of ``struct inet_diag_sockid``: both ports, both addresses."""
    addresses = [address.removeprefix(_MAPPED) for address, _ in (other, ours)]
    if family == socket.AF_INET6:
        addresses = [address if ":" in address else f"{_MAPPED}{address}" for address in addresses]
    packed = (socket.inet_pton(family, address).ljust(16, b"\0") for address in addresses)
    return struct.pack("!HH", other[1], ours[1]) + b"".join(packed)


def read_tables(other: End, ours: End) -> int | None:
    """Look up a connection in ``/proc/net/tcp`` and ``tcp6``.

    Raises:
        OSError: the tables cannot be read.
    """
    other, ours = ((address.removeprefix(_MAPPED), port) for address, port in (other, ours))
    for _ in range(2):  # a table that changes while it is read may lack a line
        if ":" in other[0]:
            owners = _owners_in("/proc/net/tcp6", other, ours)
        else:
            owners = _owners_in("/proc/net/tcp", other, ours)
            mapped = [(f"{_MAPPED}{address}", port) for address, port in (other, ours)]  # a socket of IPv6 for IPv4
            owners |= _owners_in("/proc/net/tcp6", *mapped)
        if owners:
            return owners.pop() if len(owners) == 1 else None
    return None


def _owners_in(path: str, other: End, ours: End) -> set[int]:
    try:
        with open(path, "rb", buffering=0) as file:
            table = file.readall() or b""
    except FileNotFoundError:  # a kernel without IPv6
        return set()
    ends = f" {_in_hex(other)} {_in_hex(ours)} ".encode()
    owners, at = set(), table.find(ends)
    while at >= 0:
        fields = table[at + len(ends) : table.find(b"\n", at)].split()
        uid, inode = int(fields[4]), int(fields[6])
        if inode:  # without one, no process has it open: a closed connection shows the user 0
            owners.add(uid)
        at = table.find(ends, at + 1)
    return owners


def _in_hex(end: End) -> str:
    """Return an end as the tables show it: each 32 bits of the address as a number of this machine's byte order."""
    family = socket.AF_INET6 if ":" in end[0] else socket.AF_INET
    packed = socket.inet_pton(family, end[0])
    words = struct.unpack(f"={len(packed) // 4}I", packed)
    return "".join(f"{word:08X}" for word in words) + f":{end[1]:04X}"


def find_lookup() -> Lookup | None:
    """Return the quickest lookup that works here, tried on a connection of this process; ``None`` if none does."""
    if not sys.platform.startswith("linux"):
        return None
    with contextlib.suppress(OSError):
        kernel = Kernel()
        if _works(kernel):
            return kernel
        kernel.close()
    return read_tables if _works(read_tables) else None


def close(lookup: Lookup | None) -> None:
    """Release what a lookup keeps open."""
    if isinstance(lookup, Kernel):
        lookup.close()


def _works(lookup: Lookup) -> bool:
    with contextlib.suppress(OSError), socket.socket() as listener, socket.socket() as client:
        listener.bind(("127.0.0.1", 0))
        listener.listen(1)
        client.connect(listener.getsockname())
        return lookup(client.getsockname(), client.getpeername()) == os.geteuid()
    return False


def user_name(uid: int) -> str:
    """Return the name of a user; the number where there is no name."""
    try:
        import pwd

        return pwd.getpwuid(uid).pw_name
    except (ImportError, KeyError):
        return str(uid)


def user_ids(names: Iterable[str]) -> set[int]:
    """Return the ids of users, given by name or by number.

    Raises:
        InvalidInput: there is no such user.
    """
    found = set()
    for name in names:
        try:
            import pwd

            is_number = name.isascii() and name.isdigit() and len(name) <= _UID_DIGITS
            found.add(int(name) if is_number else pwd.getpwnam(name).pw_uid)
        except (ImportError, KeyError, ValueError):  # ValueError: a NUL in the name
            raise InvalidInput(
                f"allow_user: no such user: {name[:60]!r}",
                hint="Give the name or the number of a user of this machine.",
                field="allow_user",
            ) from None
    return found
