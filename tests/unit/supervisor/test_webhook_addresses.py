"""Addresses of webhooks: no text, no name and no second look-up leads to an address that is not public."""

import asyncio
import socket
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from tasklore.contracts.errors import ConfigurationError
from tasklore.runtime.networks import is_public, networks_in, plain_address
from tasklore.supervisor.webhooks.addresses import Addresses, NotAllowed
from tasklore.supervisor.webhooks.delivery import (
    NotDelivered,
    Sender,
    parse_secrets,
    sign,
)
from tests.receiver import SECRET
from tests.unit.supervisor.webhooks import a_webhook

SECRETS = parse_secrets(SECRET)


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com/",
        "ftp://example.com/",
        "https://user:password@example.com/",
        "https://example.com@127.0.0.1/",
        "https://127.0.0.1\\@example.com/",
        "https://example.com/#part",
        "https://example.com/a b",
        "https://example.com/\r\nX-Other: 1",
        "https://example.com:0/",
        "https://example.com:65536/",
        "https://exämple.com/",
        "https://[::1%25lo]/",
        "https:///path",
        "//example.com/",
        "",
        "https://example.com/" + "a" * 2_000,
        "https://127.0.0.1/",
        "https://10.1.2.3:8443/",
        "https://169.254.169.254/latest/meta-data/",
        "https://[::1]/",
        "https://[::ffff:127.0.0.1]/",
        "https://[fd00:ec2::254]/",
    ],
)
def test_an_address_that_is_not_public_or_not_plain_is_refused(url: str) -> None:
    with pytest.raises(NotAllowed):
        Addresses().read(url)


@pytest.mark.parametrize(
    "address",
    [
        *(
            "0.0.0.0",
            "10.0.0.1",
            "100.64.0.1",
            "100.100.100.200",
            "127.0.0.1",
            "127.255.255.254",
            "169.254.169.254",
        ),
        *(
            "172.16.0.1",
            "192.0.0.192",
            "192.168.1.1",
            "198.18.0.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
        ),
        *(
            "168.63.129.16",
            "192.88.99.1",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:169.254.169.254",
        ),
        *(
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "2001::1",
            "2002:7f00:1::",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1%eth0",
        ),
        *("fec0::1", "ff02::1", "2001:db8::1", "3fff::1", "5f00::1"),
    ],
)
def test_these_addresses_are_not_public(address: str) -> None:
    assert not is_public(plain_address(address))


@pytest.mark.parametrize(
    "address", ["1.1.1.1", "93.184.215.14", "2606:4700::1111", "::ffff:1.1.1.1"]
)
def test_these_addresses_are_public(address: str) -> None:
    assert is_public(plain_address(address))


def resolver(monkeypatch: pytest.MonkeyPatch, *answers: Sequence[str]) -> list[str]:
    """Let the name have the addresses of each of *answers* in turn; return the names that were looked up."""
    asked: list[str] = []

    def look_up(host: str, port: int, **_options: Any) -> list[Any]:
        asked.append(host)
        found = answers[min(len(asked), len(answers)) - 1]
        return [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))
            for address in found
        ]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    return asked


async def test_a_name_that_leads_elsewhere_the_second_time_is_asked_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The connection goes to the address that was checked, under the name that was written."""
    asked = resolver(monkeypatch, ["93.184.215.14"], ["127.0.0.1"])
    connected: list[tuple[Any, ...]] = []

    async def connect(host: str, port: int, **options: Any) -> Any:
        connected.append(
            (host, port, options["server_hostname"], options["ssl"] is not None)
        )
        raise ConnectionRefusedError

    monkeypatch.setattr(asyncio, "open_connection", connect)
    with pytest.raises(NotDelivered, match="no connection"):
        await Sender(Addresses(), SECRETS).send(
            a_webhook("https://rebind.example/hook")
        )
    assert connected == [("93.184.215.14", 443, "rebind.example", True)]
    assert asked == ["rebind.example"]


@pytest.mark.parametrize(
    "found", [["127.0.0.1"], ["93.184.215.14", "169.254.169.254"], ["::ffff:127.0.0.1"]]
)
async def test_a_name_with_an_address_that_is_not_public_is_not_connected_to(
    monkeypatch: pytest.MonkeyPatch, found: list[str]
) -> None:
    resolver(monkeypatch, found)

    async def connect(*_: Any, **__: Any) -> Any:
        raise AssertionError

    monkeypatch.setattr(asyncio, "open_connection", connect)
    with pytest.raises(NotDelivered, match="not public") as refused:
        await Sender(Addresses(), SECRETS).send(a_webhook("https://inside.example/"))
    assert not any(address in str(refused.value) for address in found)


async def test_names_that_are_never_found_take_no_thread_of_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A hundred look-ups that hang end in time, and the event loop still has threads for other work."""
    over = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: over.wait(60))
    sender = Sender(Addresses(), SECRETS, deadline_s=0.5)
    sending = [
        asyncio.create_task(sender.send(a_webhook(f"https://h{number}.example/")))
        for number in range(100)
    ]
    try:
        await asyncio.sleep(0.1)
        async with asyncio.timeout(30):
            assert await asyncio.to_thread(lambda: "free") == "free"
        problems = await asyncio.gather(*sending, return_exceptions=True)
    finally:
        over.set()
    assert {str(one) for one in problems} == {"no answer within 0.5 s"}


async def test_plain_http_is_for_allowed_networks_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    addresses = Addresses(networks_in("10.0.0.0/8"))
    resolver(monkeypatch, ["10.2.3.4"], ["93.184.215.14"], ["127.0.0.1"])
    receiver = addresses.read("http://inside.example/hook?a=b")
    assert (receiver.port, receiver.target) == (80, "/hook?a=b")
    assert await addresses.look_up(receiver) == "10.2.3.4"
    for _ in range(2):
        with pytest.raises(NotAllowed):
            await addresses.look_up(receiver)


def test_the_signature_is_that_of_the_specification() -> None:
    """The example of Standard Webhooks; two secrets sign twice."""
    secrets = parse_secrets("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    given = "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}'
    assert sign(secrets, *given) == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    assert sign(secrets * 2, *given).split(" ") == [sign(secrets, *given)] * 2


@pytest.mark.parametrize(
    "text",
    ["whsec_short", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_!!!!", f"{SECRET},x"],
)
def test_a_secret_that_is_none_is_refused_and_not_shown(text: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        parse_secrets(text)
    assert text not in str(refused.value)
