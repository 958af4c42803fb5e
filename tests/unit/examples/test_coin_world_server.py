"""The server of the coin world's page."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from examples.coin_world import server
from examples.coin_world.running import Answer, Runner
from examples.coin_world.server import make_app
from examples.coin_world.world import Choice, World

HOST = "http://127.0.0.1"


async def _wait(world: World) -> Mapping[str, Answer]:
    return {name: Answer(Choice("wait", by="a test"), prompt=f"I am {name}.") for name in world.plan.names}


def _runner() -> Runner:
    return Runner(World.new(7, ["Ana", "B/ob"], 5, 3), _wait, paused=True)


@pytest.fixture
def runner() -> Runner:
    """Make a world that waits for its first step."""
    return _runner()


@pytest.fixture
def client(runner: Runner) -> TestClient:
    """Ask the page of that world, as somebody of this machine."""
    return TestClient(make_app(runner), base_url=HOST)


def test_the_page_is_served_and_nothing_else(client: TestClient) -> None:
    page = client.get("/")

    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "http://" not in page.text
    assert "https://" not in page.text
    assert client.get("/page/page.js").headers["content-type"].startswith("text/javascript")
    for path in ("/page/../server.py", "/page/%2e%2e/server.py", "/docs", "/redoc", "/openapi.json"):
        assert client.get(path).status_code == 404


@pytest.mark.parametrize("path", ["/", "/page/style.css", "/state", "/agents/Nobody", "/nothing"])
def test_answers_have_a_strict_content_policy(client: TestClient, path: str) -> None:
    headers = client.get(path).headers

    assert "default-src 'none'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert "require-trusted-types-for 'script'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers.get_list("cache-control") == ["no-store"]


async def test_an_agent_is_shown_by_name(runner: Runner) -> None:
    runner.single_step()
    async with asyncio.TaskGroup() as group:
        running = group.create_task(runner.run())
        await runner.changed(runner.version)
        running.cancel()
    client = TestClient(make_app(runner), base_url=HOST)

    told = client.get("/agents/B%2Fob").json()
    assert (told["name"], told["prompt"], told["decision"]["action"]) == ("B/ob", "I am B/ob.", "wait")
    nobody = client.get("/agents/Dan")
    assert nobody.status_code == 404
    assert nobody.json() == {"detail": "nobody is called 'Dan'; names are those in /state"}


def test_the_world_is_controlled(client: TestClient, runner: Runner) -> None:
    assert client.post("/control", json={"action": "play", "interval_ms": 60_000}).json() == {"running": True}
    assert client.post("/control", json={"action": "pause"}).json() == {"running": False}
    assert client.post("/control", json={"action": "step", "interval_ms": None}).json() == {"running": False}


@pytest.mark.parametrize(
    "order",
    [
        {},
        {"action": "stop"},
        {"action": "play", "interval_ms": -1},
        {"action": "play", "interval_ms": "NaN"},
        [],
    ],
)
def test_an_invalid_order_changes_nothing(client: TestClient, runner: Runner, order: object) -> None:
    before = runner.version

    assert client.post("/control", json=order).status_code == 422
    assert runner.version == before


@pytest.mark.parametrize("origin", ["http://evil.example", "http://127.0.0.1:9", "null"])
def test_orders_from_another_origin_are_refused(client: TestClient, runner: Runner, origin: str) -> None:
    before = runner.version
    reply = client.post("/control", json={"action": "play"}, headers={"origin": origin})

    assert reply.status_code == 403
    assert runner.version == before
    assert client.post("/control", json={"action": "pause"}, headers={"origin": HOST}).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1.evil.example",
    ],
)
def test_a_foreign_host_is_refused(client: TestClient, host: str) -> None:
    assert client.get("/state", headers={"host": host}).status_code == 400


async def test_events_tell_every_change_until_the_end(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "BEAT_S", 0.01)
    leaving = asyncio.Event()
    async with asyncio.timeout(60), _listening(make_app(runner, leaving)) as events:
        assert (await anext(events))[0] == "world"
        name, picture = await anext(events)
        assert (name, picture) == ("picture", json.loads(json.dumps(runner.picture())))
        assert (await anext(events))[0] == "beat"
        runner.play()
        name, picture = await _after_beats(events)
        assert (name, picture["running"]) == ("picture", True)
        leaving.set()
        assert {name async for name, _ in events} <= {"beat"}
    assert runner.version > 0


async def _after_beats(events: AsyncIterator[tuple[str, Any]]) -> tuple[str, Any]:
    return await anext(event async for event in events if event[0] != "beat")


@asynccontextmanager
async def _listening(app: FastAPI) -> AsyncIterator[AsyncIterator[tuple[str, Any]]]:
    """Ask *app* for its events, and yield their names and data as they come."""
    bodies: asyncio.Queue[bytes | None] = asyncio.Queue()
    hung_up = asyncio.Event()

    async def receive() -> dict[str, Any]:
        await hung_up.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.body":
            await bodies.put(message.get("body", b"") if message.get("more_body") else None)

    async def events() -> AsyncIterator[tuple[str, Any]]:
        while (body := await bodies.get()) is not None:
            lines = dict(line.split(": ", 1) for line in body.decode().strip().splitlines())
            yield lines["event"], json.loads(lines["data"])

    scope = {
        "type": "http",
        "method": "GET",
        "path": "/events",
        "query_string": b"",
        "headers": [(b"host", b"localhost")],
    }
    asked = asyncio.ensure_future(app(scope, receive, send))
    try:
        yield events()
    finally:
        hung_up.set()
        await asked
