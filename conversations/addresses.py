"""Where a request comes from."""

from __future__ import annotations

from ipaddress import IPv6Address, IPv6Network, ip_address

from allauth.account.adapter import get_adapter
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest

HOUSEHOLD = 64  # bits of an IPv6 address that one network has


def client_address(request: HttpRequest) -> str | None:
    """Return the address of the client, None if it cannot be told; PAR_TRUSTED_PROXIES says whom to believe."""
    try:
        return str(ip_address(get_adapter(request).get_client_ip(request)))
    except (PermissionDenied, ValueError):
        return None


def client_network(request: HttpRequest) -> str:
    """Return what stands for one client: its address, or of IPv6 the network whose addresses it can have all of."""
    found = client_address(request)
    if found is None:
        return "unknown"
    address = ip_address(found)
    if isinstance(address, IPv6Address) and address.ipv4_mapped is None:
        return str(IPv6Network((int(address), HOUSEHOLD), strict=False))
    return found
