"""Who comes without a known key is told apart by address, believed or not, and limited in bounded memory."""

import pytest

from runtime.networks import networks_in
from supervisor.http.admission.addresses import Origins
from supervisor.http.admission.limits import Rates
from supervisor.http.admission.unknown_clients import Strangers

PROXIES = networks_in("10.0.0.0/8, ::1,fd00::/8,::ffff:172.16.0.0/108")


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


@pytest.mark.parametrize(
    ("host", "forwarded", "origin"),
    [
        ("192.0.2.1", [], "192.0.2.1"),
        ("192.0.2.1", ["198.51.100.7"], "192.0.2.1"),
        ("10.0.0.5", [], "10.0.0.5"),
        ("10.0.0.5", ["198.51.100.7"], "198.51.100.7"),
        ("10.0.0.5", ["6.6.6.6, 198.51.100.7"], "198.51.100.7"),
        ("10.0.0.5", ["6.6.6.6", "198.51.100.7, 10.0.0.9"], "198.51.100.7"),
        ("10.0.0.5", ["198.51.100.7:4711"], "198.51.100.7"),
        ("::1", ["[2001:db8:1:2:3::4]:80"], "2001:db8:1:2::/64"),
        ("10.0.0.5", ["6.6.6.6, unknown"], "10.0.0.5"),
        ("10.0.0.5", [""], "10.0.0.5"),
        ("10.0.0.5", ["10.1.1.1, 10.2.2.2"], "10.1.1.1"),
        ("::ffff:192.0.2.1", [], "192.0.2.1"),
        ("::ffff:10.0.0.5", ["198.51.100.7"], "198.51.100.7"),
        ("172.16.0.9", ["[::ffff:198.51.100.7]:4711"], "198.51.100.7"),
        ("2001:db8:1:2:aaaa::1", [], "2001:db8:1:2::/64"),
        ("fe80::1%eth0", [], "fe80::/64"),
        ("", [], ""),
    ],
)
def test_a_request_is_from_the_nearest_that_no_believed_proxy_is(host: str, forwarded: list[str], origin: str) -> None:
    """What a stranger writes into the header before it reaches a proxy of ours says nothing."""
    assert Origins(PROXIES).of(host, forwarded) == origin


def test_without_believed_proxies_the_header_says_nothing() -> None:
    """Anybody can send it."""
    assert Origins().of("10.0.0.5", ["198.51.100.7"]) == "10.0.0.5"
    assert not Origins().is_proxy("127.0.0.1")


def test_a_header_without_an_end_is_not_read_to_its_end() -> None:
    """Nor does it choose what is counted beyond that."""
    assert Origins(PROXIES).of("10.0.0.5", ["6.6.6.6, " + ", ".join(["10.0.0.1"] * 50)]) == "10.0.0.1"


@pytest.mark.parametrize("wrong", ["10.0.0.0/33", "proxy.example", "10.0.0.1/8"])
def test_what_is_no_network_is_named(wrong: str) -> None:
    """With one that is."""
    with pytest.raises(ValueError, match=r"write one such as 10\.0\.0\.0/8"):
        networks_in(f"10.0.0.0/8,{wrong}")


def test_only_so_many_names_are_told_apart() -> None:
    """One more takes the place of a name that has its whole burst again, and shares with all others till then."""
    clock = Clock()
    rates = Rates(1.0, 2, clock, most=2)
    assert [rates.take(name) for name in ("a", "b", "b")] == [0, 0, 0]
    assert [rates.take(name) for name in ("c", "d", "e", "c")] == [0, 0, 1, 1]
    assert (len(rates), rates.take("b"), rates.take("a")) == (2, 1, 0)
    clock.now += 1.0
    assert [rates.take("c"), rates.take("c")] == [0, 1]
    clock.now += 1.0
    assert [rates.take("c"), rates.take("c"), len(rates)] == [0, 0, 2]


def test_a_stranger_may_come_so_often_and_others_all_the_same() -> None:
    """By address; a whole network of one subscriber is one."""
    strangers = Strangers(rate=1.0, burst=2, monotonic=Clock())
    for host in ("192.0.2.1", "2001:db8::1"):
        assert [strangers.take((host, port)) for port in (1, 2, 3)] == [0, 0, 1]
    assert strangers.take(("192.0.2.2", 1)) == 0
    assert strangers.take(("2001:db8::ffff", 9)) == 1
    assert strangers.take(None) == 0


class Ends:
    """Connections by their ports, and which of them were ended."""

    def __init__(self, strangers: Strangers) -> None:
        self.ended: list[int] = []
        self._strangers = strangers

    def open(self, host: str, *ports: int) -> None:
        """Connect from each of *ports*."""
        for port in ports:
            self._strangers.connect((host, port), lambda port=port: self.ended.append(port))  # type: ignore[misc]


def test_of_connections_that_show_no_key_the_oldest_makes_room() -> None:
    """By address, until it shows one or is closed; a believed proxy's are those of many."""
    strangers = Strangers(Origins(PROXIES), connections=2)
    ends = Ends(strangers)
    ends.open("192.0.2.1", 1, 2)
    ends.open("192.0.2.2", 3)
    ends.open("10.0.0.5", *range(10, 20))
    assert ends.ended == []
    strangers.settle(("192.0.2.1", 1))
    ends.open("192.0.2.1", 4, 5, 6)
    assert ends.ended == [2, 4]
    strangers.settle(("192.0.2.1", 2))
    assert [strangers.is_one(("192.0.2.1", port)) for port in (1, 2, 4, 5, 6)] == [False, False, False, True, True]


def test_where_all_connections_are_open_the_oldest_that_shows_no_key_makes_room() -> None:
    """Of whatever address; where everybody has shown one, or is a believed proxy, nobody does."""
    strangers = Strangers(Origins(PROXIES))
    ends = Ends(strangers)
    ends.open("192.0.2.1", 1, 2)
    ends.open("192.0.2.2", 3)
    ends.open("10.0.0.5", 4)
    strangers.settle(("192.0.2.1", 1))
    assert [strangers.make_room() for _ in range(3)] == [True, True, False]
    assert ends.ended == [2, 3]
