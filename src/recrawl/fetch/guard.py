"""The address guard: what a stranger's link may not make us connect to.

A page can link to, redirect to, or let its name resolve to an address inside the network that recrawl runs in. So the
final address of every connection is judged, whatever name or redirect led to it.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network, IPv6Network, ip_address
from typing import Any

import can_ada

from recrawl.errors import Misuse

# Own lists, since `ipaddress.is_global` has changed between releases of Python and takes multicast, 192.0.0.8 and
# translated addresses for global. From the IANA special-purpose registries (RFC 6890).
_SPECIAL_V4 = tuple(
    IPv4Network(block)
    for block in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # carrier-grade NAT
        "127.0.0.0/8",  # loopback
        "169.254.0.0/16",  # link-local, metadata services of clouds
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, broadcast
    )
)
# Global unicast is 2000::/3 and nothing else: loopback, link-local, unique local, multicast, mapped (::ffff:0:0/96)
# and NAT64 (64:ff9b::/96, 64:ff9b:1::/48) addresses lie outside of it.
_GLOBAL_V6 = IPv6Network("2000::/3")
_SPECIAL_V6 = tuple(
    IPv6Network(block)
    for block in (
        "2001::/23",  # protocol assignments: Teredo, ORCHID, benchmarks
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4
        "3fff::/20",  # documentation
    )
)


def is_public(address: str) -> bool:
    """Whether an IP address belongs to the public internet. What is no IP address does not."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    if isinstance(parsed, IPv4Address):
        return not any(parsed in block for block in _SPECIAL_V4)
    return parsed in _GLOBAL_V6 and not any(parsed in block for block in _SPECIAL_V6)


class ForbiddenAddress(OSError):
    """A connection that the guard refused."""


def guarded_socket(info: tuple[Any, ...]) -> socket.socket:
    """A socket for a public address, from what getaddrinfo says of it. Raises ForbiddenAddress for any other."""
    family, kind, protocol, _, address = info
    if not is_public(address[0]):
        raise ForbiddenAddress(f"{address[0]} is not a public address")
    return socket.socket(family, kind, protocol)


@dataclass(frozen=True, slots=True)
class AddressRule:
    """Which hosts may have an address that is not public: all of them, or those that the user named himself.

    `hosts` holds names or IP addresses, with a port or without one (then any port). Raises Misuse for what is neither.
    """

    allow_private: bool = False
    hosts: frozenset[str] = frozenset()
    _named: frozenset[tuple[str, int | None]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_named", frozenset(map(_host_and_port, self.hosts)))

    def trusts(self, hostname: str, port: int) -> bool:
        """Whether connections for this host (as the WHATWG URL standard writes it) go unguarded."""
        if self.allow_private:
            return True
        name = hostname.rstrip(".")
        return (name, port) in self._named or (name, None) in self._named


def _host_and_port(text: str) -> tuple[str, int | None]:
    name, _, port = text.rpartition(":")
    if not name or not port.isascii() or not port.isdigit() or (":" in name and not name.endswith("]")):
        name, port = text, ""
    if ":" in name and not name.startswith("["):
        name = f"[{name}]"
    try:
        host = str(can_ada.parse(f"http://{name}/").hostname).rstrip(".")
    except (ValueError, TypeError):
        host = ""
    if not host or any(c in "/@?#\\" for c in name):
        raise Misuse(f"{text!r} is not a host", action="Write a name or an IP address, like shop.example or [::1]:8080")
    return host, int(port) if port else None
