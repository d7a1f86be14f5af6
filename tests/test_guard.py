"""Which addresses may be connected to, and which hosts may have others."""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.errors import Misuse
from recrawl.fetch.guard import AddressRule, ForbiddenAddress, guarded_socket, is_public

SPECIAL = [
    "0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.255.255.254",
    "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.0.8", "192.0.0.9", "192.0.0.170",
    "192.0.2.1", "192.88.99.1", "192.168.0.1", "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.255",
    "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
    "::", "::1", "::7f00:1", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "::ffff:0:127.0.0.1", "64:ff9b::7f00:1",
    "64:ff9b::808:808", "64:ff9b:1::1", "100::1", "2001::1", "2001:0:4136:e378::1", "2001:2::1", "2001:10::1",
    "2001:20::1", "2001:db8::1", "2002:7f00:1::", "2002:808:808::1", "3fff::1", "5f00::1", "fc00::1", "fd12::1",
    "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "ff0e::1",
]  # fmt: skip
PUBLIC = [
    "1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.1",
    "169.253.255.255", "172.15.255.255", "172.32.0.0", "192.0.1.0", "192.167.255.255", "192.169.0.0", "198.17.255.255",
    "198.20.0.0", "223.255.255.255",
    "2001:200::1", "2001:4860:4860::8888", "2003::1", "2400:cb00::1", "2606:4700::1111", "2a00:1450::1",
]  # fmt: skip


@pytest.mark.parametrize("address", SPECIAL)
def test_special_addresses_are_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    "address", ["", "localhost", "127.1", "0x7f000001", "1.2.3.4.5", "[::1]", "8.8.8.8 ", "::%", "8.8.8.8/32"]
)
def test_what_is_no_address_is_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", PUBLIC)
def test_addresses_of_the_internet_are_public(address: str) -> None:
    assert is_public(address)


@given(st.ip_addresses(v=4))
def test_nothing_that_python_calls_private_is_public(address: IPv4Address) -> None:
    assert not is_public(str(address)) or (address.is_global and not address.is_multicast)


@given(st.ip_addresses(v=4))
def test_no_form_of_a_special_ipv4_address_in_ipv6_is_public(address: IPv4Address) -> None:
    number = int(address)
    forms = (number, 0xFFFF << 32 | number, 0x64FF9B << 96 | number, 0x2002 << 112 | number << 80)
    assert not any(is_public(str(IPv6Address(form))) for form in forms)


@given(st.ip_addresses(v=6))
def test_only_global_unicast_is_public(address: IPv6Address) -> None:
    assert not is_public(str(address)) or address.is_global


def test_a_guarded_socket_is_made_for_public_addresses_only() -> None:
    with guarded_socket((socket.AF_INET, socket.SOCK_STREAM, 0, "", ("8.8.8.8", 80))) as made:
        assert made.family is socket.AF_INET
    with pytest.raises(ForbiddenAddress, match="fe80::1%eth0 is not a public address"):
        guarded_socket((socket.AF_INET6, socket.SOCK_STREAM, 0, "", ("fe80::1%eth0", 80, 0, 2)))


# Named hosts


@pytest.mark.parametrize(
    "host",
    ["", " ", "a b", "http://shop.example/", "user@shop.example", "shop.example/path", "[::1", "1.2.3.4.5", "\ud800"],
)
def test_what_is_no_host_is_a_misuse(host: str) -> None:
    with pytest.raises(Misuse):
        AddressRule(hosts=frozenset({host}))


def test_a_rule_trusts_nobody_by_default() -> None:
    assert not AddressRule().trusts("localhost", 80)


def test_allow_private_trusts_all() -> None:
    assert AddressRule(allow_private=True).trusts("anything.example", 80)


@pytest.mark.parametrize(
    ("named", "hostname", "port", "trusted"),
    [
        ("shop.example", "shop.example", 80, True),
        ("shop.example", "shop.example", 8443, True),
        ("shop.example", "shop.example.", 80, True),
        ("Shop.Example.", "shop.example", 80, True),
        ("shop.example", "sub.shop.example", 80, False),
        ("shop.example", "shop.example.evil.example", 80, False),
        ("shop.example:8080", "shop.example", 8080, True),
        ("shop.example:8080", "shop.example", 80, False),
        ("shop.example:80", "shop.example", 80, True),
        ("shop.example:80", "shop.example", 443, False),
        ("bücher.example", "xn--bcher-kva.example", 443, True),
        ("127.1", "127.0.0.1", 80, True),
        ("127.0.0.1", "localhost", 80, False),
        ("::1", "[::1]", 80, True),
        ("[::1]", "[::1]", 80, True),
        ("[::1]:81", "[::1]", 81, True),
        ("[::1]:81", "[::1]", 80, False),
        ("0:0:0:0:0:0:0:1", "[::1]", 80, True),
    ],
)  # fmt: skip
def test_a_named_host_is_trusted_by_its_very_name(named: str, hostname: str, port: int, trusted: bool) -> None:
    assert AddressRule(hosts=frozenset({named})).trusts(hostname, port) is trusted
