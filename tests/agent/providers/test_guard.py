"""Which addresses may be connected to (B79)."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from agent.providers.guard import is_permitted

PRIVATE = ["127.0.0.1", "::1", "10.0.0.8", "172.16.3.4", "192.168.1.1", "fd12:3456::1", "100.64.0.9", "::ffff:10.0.0.1"]
NEVER = [
    "169.254.169.254",
    "::ffff:169.254.169.254",
    "64:ff9b::a9fe:a9fe",
    "2002:a9fe:a9fe::1",
    "::169.254.169.254",
    "fe80::1",
    "fe80::1%1",
    "fec0::1",
    "fd00:ec2::254",
    "100.100.100.200",
    "168.63.129.16",
    "224.0.0.1",
    "ff02::1",
    "ff0e::1",
    "0.0.0.0",
    "::",
    "::ffff:0.0.0.0",
    "64:ff9b:1::7f00:1",
    "240.0.0.1",
    "255.255.255.255",
    "::ffff:0:a9fe:a9fe",
]
PUBLIC = ["93.184.216.34", "2606:4700::1111", "::ffff:93.184.216.34", "64:ff9b::5db8:d822"]
HIDDEN_PRIVATE = ["::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "::127.0.0.1", "::ffff:0:7f00:1"]


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_open_to_all(address: str) -> None:
    assert is_permitted(ip_address(address), allow_private=False)


@pytest.mark.parametrize("address", PRIVATE + HIDDEN_PRIVATE)
def test_private_addresses_need_the_setting_in_every_form(address: str) -> None:
    assert not is_permitted(ip_address(address), allow_private=False)
    assert is_permitted(ip_address(address), allow_private=True)


@pytest.mark.parametrize("address", NEVER)
def test_some_addresses_are_never_permitted(address: str) -> None:
    assert not is_permitted(ip_address(address), allow_private=False)
    assert not is_permitted(ip_address(address), allow_private=True)
