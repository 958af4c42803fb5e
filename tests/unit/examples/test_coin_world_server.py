"""The server of the coin world's page."""

import asyncio
import json
from collections.abc import Mapping

import pytest
from fastapi.testclient import TestClient

from examples.coin_world.running import Answer, Runner
from examples.coin_world.server import make_app
from examples.coin_world.world import Choice, World

HOST = "http://127.0.0.1"


async def _wait(world: World) -> Mapping[str, Answer]:
    return {
        name: Answer(Choice("wait", by="a test"), prompt=f"I am {name}.")
        for name in world.plan.names
    }


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
    assert (
        client.get("/page/page.js")
        .headers["content-type"]
        .startswith("text/javascript")
    )
    for path in (
        "/page/../server.py",
        "/page/%2e%2e/server.py",
        "/docs",
        "/redoc",
        "/openapi.json",
    ):
        assert client.get(path).status_code == 404


def test_the_state_is_the_picture(client: TestClient, runner: Runner) -> None:
    assert client.get("/state").json() == json.loads(json.dumps(runner.picture()))


@pytest.mark.parametrize(
    "path", ["/", "/page/style.css", "/state", "/agents/Nobody", "/nothing"]
)
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
    assert (told["name"], told["prompt"], told["decision"]["action"]) == (
        "B/ob",
        "I am B/ob.",
        "wait",
    )
    nobody = client.get("/agents/Dan")
    assert nobody.status_code == 404
    assert nobody.json() == {
        "detail": "nobody is called 'Dan'; names are those in /state"
    }


def test_the_world_is_controlled(client: TestClient, runner: Runner) -> None:
    assert client.post(
        "/control", json={"action": "play", "interval_ms": 60_000}
    ).json() == {"running": True}
    assert client.post("/control", json={"action": "pause"}).json() == {
        "running": False
    }
    assert client.post(
        "/control", json={"action": "step", "interval_ms": None}
    ).json() == {"running": False}


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
def test_an_invalid_order_changes_nothing(
    client: TestClient, runner: Runner, order: object
) -> None:
    before = runner.version
    assert client.post("/control", json=order).status_code == 422
    assert runner.version == before


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "http://127.0.0.1:9", "null"]
)
def test_orders_from_another_origin_are_refused(
    client: TestClient, runner: Runner, origin: str
) -> None:
    before = runner.version
    reply = client.post("/control", json={"action": "play"}, headers={"origin": origin})
    assert reply.status_code == 403
    assert runner.version == before
    assert (
        client.post(
            "/control", json={"action": "pause"}, headers={"origin": HOST}
        ).status_code
        == 200
    )


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1.evil.example",
    ],
)
def test_a_foreign_host_is_refused(client: TestClient, host: str) -> None:
    assert client.get("/state", headers={"host": host}).status_code == 400
