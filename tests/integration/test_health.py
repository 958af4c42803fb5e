"""The health server over real HTTP, also while the event loop that it watches is blocked."""

import asyncio
import http.client
import json
import socket
import threading
import time
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

import pytest

from tasklore.contracts.errors import ConfigurationError
from tasklore.runtime.health import BEAT_S, Check, HealthServer, Pulse
from tasklore.runtime.metrics import Metrics

PATIENCE_S = 60.0


def well() -> tuple[bool, str]:
    return True, "fine"


def ill() -> tuple[bool, str]:
    return False, "the consumer is gone"


def crash() -> tuple[bool, str]:
    raise KeyError("a secret")


def server(
    alive: dict[str, Check] | None = None,
    ready: dict[str, Check] | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
) -> HealthServer:
    return HealthServer(
        host, port, alive=alive or {}, ready=ready or {}, metrics=lambda: b"up 1\n"
    )


def get(
    url: str, method: str = "GET", body: bytes | None = None
) -> tuple[int, str, bytes]:
    parts = urlsplit(url)
    with closing(
        http.client.HTTPConnection(parts.netloc, timeout=PATIENCE_S)
    ) as connection:
        connection.request(method, url.removeprefix(f"http://{parts.netloc}"), body)
        reply = connection.getresponse()
        return reply.status, reply.headers["Content-Type"], reply.read()


def threads() -> int:
    return sum(thread.name == "tasklore-health" for thread in threading.enumerate())


def test_a_healthy_process_serves_checks_and_metrics() -> None:
    with server(alive={"loop": well, "engines": well}) as health:
        status, kind, body = get(f"{health.url}/healthz?verbose=1")
        assert (status, kind) == (200, "application/json")
        assert json.loads(body) == {
            "status": "ok",
            "checks": {
                "loop": {"ok": True, "detail": "fine"},
                "engines": {"ok": True, "detail": "fine"},
            },
        }
        assert get(f"{health.url}/health")[::2] == (404, b"/healthz /readyz /metrics")
        assert get(f"{health.url}/healthz", "POST", b"x" * 1000)[0] == 501
        with closing(
            http.client.HTTPConnection(urlsplit(health.url).netloc, timeout=PATIENCE_S)
        ) as connection:
            connection.request("HEAD", "/metrics")
            reply = connection.getresponse()
            assert (reply.status, reply.headers["Content-Length"], reply.read()) == (
                200,
                "5",
                b"",
            )
    with HealthServer(
        "127.0.0.1", 0, alive={}, ready={}, metrics=Metrics("9.9").render
    ) as health:
        status, kind, body = get(f"{health.url}/metrics")
    assert (status, kind.startswith("text/plain; version=")) == (200, True)
    assert b'tasklore_build_info{version="9.9"} 1.0' in body


@pytest.mark.parametrize("check", [ill, crash])
def test_a_failing_check_is_a_503_that_names_it(check: Check) -> None:
    """A crash counts as a failure and does not repeat what it crashed on; being alive is another page."""
    with server(
        alive={"loop": well}, ready={"consumers": check, "redis": well}
    ) as health:
        status, _, body = get(f"{health.url}/readyz")
        assert get(f"{health.url}/healthz")[0] == 200
    answer: dict[str, Any] = json.loads(body)
    assert (status, answer["status"]) == (503, "failing")
    assert (answer["checks"]["consumers"]["ok"], answer["checks"]["redis"]["ok"]) == (
        False,
        True,
    )
    assert b"secret" not in body


def test_oversized_and_broken_requests_are_refused_and_not_printed(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with server() as health:
        host, _, port = health.url.removeprefix("http://").partition(":")
        for sent in (
            b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\n\r\n",
            b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 200 + b"\r\n",
            b"\x00\r\n\r\n",
        ):
            with socket.create_connection(
                (host, int(port)), timeout=PATIENCE_S
            ) as client:
                client.sendall(sent)
                assert b" 4" in client.recv(200).split(b"\n")[
                    0
                ] or b"Error" in client.recv(2000)
        assert get(f"{health.url}/healthz")[0] == 200
    assert capfd.readouterr() == ("", "")


def test_silent_clients_do_not_keep_a_probe_out() -> None:
    """Each has a thread; past the limit a newcomer is hung up on, and those that leave make room."""
    with server() as health:
        host, _, port = health.url.removeprefix("http://").partition(":")
        silent = [
            socket.create_connection((host, int(port)), timeout=PATIENCE_S)
            for _ in range(10)
        ]
        assert get(f"{health.url}/healthz")[0] == 200
        more = [
            socket.create_connection((host, int(port)), timeout=PATIENCE_S)
            for _ in range(6)
        ]
        with socket.create_connection(
            (host, int(port)), timeout=PATIENCE_S
        ) as newcomer:
            assert newcomer.recv(1) == b""
        for client in [*silent, *more]:
            client.close()
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            try:
                assert get(f"{health.url}/healthz")[0] == 200
                break
            except (OSError, http.client.HTTPException):
                continue
        else:
            pytest.fail("those that left made no room")


def test_a_taken_port_is_named_with_its_setting_and_leaves_no_thread() -> None:
    with server() as first:
        port = int(first.url.rpartition(":")[2])
        with pytest.raises(ConfigurationError, match=rf":{port}: .*TASKLORE_HTTP_PORT"):
            server(port=port).start()
        assert threads() == 1


def test_stopping_frees_the_port_and_ends_the_thread() -> None:
    with server() as health:
        url = health.url
    assert threads() == 0
    with server(port=int(url.rpartition(":")[2])) as again:
        assert again.url == url
        assert get(f"{url}/healthz")[0] == 200


def test_it_listens_on_ipv6_too() -> None:
    with server(host="::1") as health:
        assert health.url.startswith("http://[::1]:")
        assert get(f"{health.url}/healthz")[0] == 200


async def test_a_blocked_event_loop_is_a_503_while_it_is_blocked() -> None:
    pulse = Pulse(stuck_after_s=2 * BEAT_S)
    with server(alive={"loop": pulse.check}) as health:
        pulse.start()
        # A busy machine may be slow to turn the loop, too.
        async with asyncio.timeout(PATIENCE_S):
            while (await asyncio.to_thread(get, f"{health.url}/healthz"))[0] != 200:
                pass
        answers: list[int] = []
        seen = threading.Event()

        def watch() -> None:
            end = time.monotonic() + PATIENCE_S
            while 503 not in answers and time.monotonic() < end:
                answers.append(get(f"{health.url}/healthz")[0])
            seen.set()

        watcher = threading.Thread(target=watch)
        watcher.start()
        seen.wait(
            PATIENCE_S + 1
        )  # the loop stands still here, as under a long computation
        watcher.join()
        assert answers[-1] == 503
        assert pulse.lag_s() >= BEAT_S / 2
        async with asyncio.timeout(PATIENCE_S):
            while (await asyncio.to_thread(get, f"{health.url}/healthz"))[0] != 200:
                pass
        pulse.stop()


def test_a_pulse_is_alive_until_it_was_silent_for_too_long() -> None:
    now = [100.0]
    pulse = Pulse(stuck_after_s=10.0, monotonic=lambda: now[0])
    now[0] = 109.9
    assert pulse.check()[0]
    now[0] = 110.0
    assert pulse.check() == (False, "the event loop beat 10.0 s ago")
    assert pulse.lag_s() == pytest.approx(10 - BEAT_S)
    pulse.beat()
    assert pulse.check()[0]
    assert pulse.lag_s() == pytest.approx(10 - BEAT_S)
    now[0] += BEAT_S
    pulse.beat()
    assert pulse.lag_s() == pytest.approx(0.0)
