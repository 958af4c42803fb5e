"""Clients without a known key: their address, and limits in bounded memory."""

import pytest

from tasklore.runtime.networks import networks_in
from tasklore.supervisor.http.admission.clients import Origins, UnknownClients
from tasklore.supervisor.http.admission.limits import Rates

PROXIES = networks_in("10.0.0.0/8, ::1,fd00::/8,::ffff:172.16.0.0/108")


class Clock:
    """Seconds that a test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("host", "forwarded", "origin"),
    [
        ("192.0.2.1", ["198.51.100.7"], "192.0.2.1"),
        ("10.0.0.5", ["6.6.6.6, 198.51.100.7"], "198.51.100.7"),
        ("10.0.0.5", ["6.6.6.6", "198.51.100.7, 10.0.0.9"], "198.51.100.7"),
        ("10.0.0.5", ["198.51.100.7:4711"], "198.51.100.7"),
        ("::1", ["[2001:db8:1:2:3::4]:80"], "2001:db8:1:2::/64"),
        ("10.0.0.5", ["10.1.1.1, 10.2.2.2"], "10.1.1.1"),
        ("172.16.0.9", ["[::ffff:198.51.100.7]:4711"], "198.51.100.7"),
        ("fe80::1%eth0", [], "fe80::/64"),
        ("10.0.0.5", ["6.6.6.6, " + ", ".join(["10.0.0.1"] * 50)], "10.0.0.1"),
        ("", [], ""),
    ],
)
def test_the_origin_is_the_nearest_address_that_is_no_trusted_proxy(
    host: str, forwarded: list[str], origin: str
) -> None:
    assert Origins(PROXIES).of(host, forwarded) == origin


def test_without_trusted_proxies_the_header_is_ignored() -> None:
    assert Origins().of("10.0.0.5", ["198.51.100.7"]) == "10.0.0.5"
    assert not Origins().is_proxy("127.0.0.1")


@pytest.mark.parametrize(
    "wrong",
    [
        "10.0.0.0/33",
        "proxy.example",
    ],
)
def test_an_invalid_network_is_named_with_a_valid_example(wrong: str) -> None:
    with pytest.raises(ValueError, match=r"write one such as 10\.0\.0\.0/8"):
        networks_in(f"10.0.0.0/8,{wrong}")


def test_rates_keep_a_limited_number_of_buckets() -> None:
    clock = Clock()
    rates = Rates(1.0, 2, clock, most=2)
    assert [rates.take(name) for name in ("a", "b", "b")] == [0, 0, 0]
    assert [rates.take(name) for name in ("c", "d", "e", "c")] == [0, 0, 1, 1]
    assert (len(rates), rates.take("b"), rates.take("a")) == (2, 1, 0)
    clock.now += 1.0
    assert [rates.take("c"), rates.take("c")] == [0, 1]
    clock.now += 1.0
    assert [rates.take("c"), rates.take("c"), len(rates)] == [0, 0, 2]


def test_each_address_or_ipv6_network_has_its_own_rate() -> None:
    unknown = UnknownClients(rate=1.0, burst=2, monotonic=Clock())
    for host in ("192.0.2.1", "2001:db8::1"):
        assert [unknown.take((host, port)) for port in (1, 2, 3)] == [0, 0, 1]
    assert unknown.take(("192.0.2.2", 1)) == 0
    assert unknown.take(("2001:db8::ffff", 9)) == 1
    assert unknown.take(None) == 0


def test_the_oldest_connection_without_a_key_makes_room() -> None:
    unknown = UnknownClients(Origins(PROXIES))
    closed: list[int] = []
    for host, port in (
        ("192.0.2.1", 1),
        ("192.0.2.1", 2),
        ("192.0.2.2", 3),
        ("10.0.0.5", 4),
    ):
        unknown.connect((host, port), lambda port=port: closed.append(port))  # type: ignore[misc]
    unknown.settle(("192.0.2.1", 1))
    assert [unknown.make_room() for _ in range(3)] == [True, True, False]
    assert closed == [2, 3]
    assert not unknown.is_unknown(("192.0.2.2", 3))
