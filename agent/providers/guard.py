"""Which addresses a model endpoint may be connected to (B79).

The check sits where the socket is made, on the address that is really connected, so that nothing can change between
check and use, and URL, Host header and TLS name stay untouched. A resolver would be no guard: literal addresses never
reach one.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Any, TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address

_NAT64 = IPv6Network("64:ff9b::/96")
_NAT64_LOCAL = IPv6Network("64:ff9b:1::/48")
_IPV4_COMPATIBLE = IPv6Network("::/96")
_IPV4_TRANSLATED = IPv6Network("::ffff:0:0:0/96")

# Instance metadata and platform services of the large clouds that are no link-local addresses.
_METADATA = frozenset(
    map(ip_address, ("100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254"))
)


class AddressRefused(OSError):
    """Raised when a name or URL leads to an address that the endpoint may not reach; an OSError for aiohttp's sake."""


def is_permitted(ip: Address, *, allow_private: bool) -> bool:
    """Return whether a socket to `ip` may be opened; `allow_private` admits loopback and private networks.

    Link-local, multicast, unspecified and metadata addresses are never permitted, nor are IPv6 forms of them.
    """
    if isinstance(ip, IPv6Address):
        ip = IPv6Address(int(ip))  # without its scope
        embedded = _embedded(ip)
        if embedded is not None:
            return is_permitted(embedded, allow_private=allow_private)
        if ip.is_site_local or ip in _NAT64_LOCAL:
            return False
    if ip.is_multicast or ip.is_link_local or ip.is_unspecified or ip in _METADATA:
        return False
    if ip.is_global:
        return True
    return allow_private and (not ip.is_reserved or ip.is_loopback)


def _embedded(ip: IPv6Address) -> IPv4Address | None:
    if ip.ipv4_mapped or ip.sixtofour:
        return ip.ipv4_mapped or ip.sixtofour
    if ip in _NAT64 or ip in _IPV4_TRANSLATED or (ip in _IPV4_COMPATIBLE and int(ip) > 0xFFFF):
        return IPv4Address(int(ip) & 0xFFFFFFFF)
    return None


def socket_factory(*, allow_private: bool) -> Callable[[Any], socket.socket]:
    """Return what makes aiohttp's sockets; it raises `AddressRefused` before anything is sent."""

    def make_socket(info: Any) -> socket.socket:
        family, kind, protocol, _, address = info
        ip = ip_address(address[0])
        if not is_permitted(ip, allow_private=allow_private):
            raise AddressRefused("it is local, private or reserved")  # one text: aiohttp blends differing ones
        return socket.socket(family, kind, protocol)

    return make_socket
