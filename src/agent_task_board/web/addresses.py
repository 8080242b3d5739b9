"""The addresses of this machine, for a server that listens on all of them."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_ELSEWHERE = {socket.AF_INET: "192.0.2.1", socket.AF_INET6: "2001:db8::1"}
"""Addresses of documents (RFC 5737, RFC 3849): choosing the way there sends nothing."""
_ANY_PORT = 9
_INTERFACE_ADDRESS = 0x8915
"""``SIOCGIFADDR`` of Linux, which answers with a ``struct ifreq``."""
_REQUEST = struct.Struct("256s")
_TABLE_OF_IPV6 = "/proc/net/if_inet6"


def reachable(family: int) -> list[str]:
    """Return the numeric addresses of this machine, that of the way to other machines first, loopback last.

    Link-local addresses are left out: no URL can name one.
    """
    found = [_on_the_way(family), *(_of_interfaces() if family == socket.AF_INET else _in_table())]
    found.append("127.0.0.1" if family == socket.AF_INET else "::1")
    usable = [
        address for address in dict.fromkeys(found) if address and not ipaddress.ip_address(address).is_link_local
    ]
    return sorted(usable, key=lambda address: ipaddress.ip_address(address).is_loopback)


def _on_the_way(family: int) -> str | None:
    with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as trial:
        trial.connect((_ELSEWHERE[socket.AddressFamily(family)], _ANY_PORT))
        return str(trial.getsockname()[0])
    return None


def _of_interfaces() -> Iterator[str]:
    try:
        import fcntl
    except ImportError:  # Windows
        return
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for _, name in socket.if_nameindex():
            with contextlib.suppress(OSError):  # an interface without an address
                answer = fcntl.ioctl(any_socket, _INTERFACE_ADDRESS, _REQUEST.pack(name.encode()[:15]))
                yield socket.inet_ntoa(answer[20:24])


def _in_table() -> Iterator[str]:
    with contextlib.suppress(OSError), open(_TABLE_OF_IPV6, encoding="ascii") as table:
        for line in table:
            yield str(ipaddress.IPv6Address(bytes.fromhex(line.split()[0])))
