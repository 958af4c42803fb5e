"""A browser's EventSource opens one stream by a token, at any supervisor, and nothing else."""

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import structlog
from redis.asyncio import Redis

from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.http.admission.cross_origin import CrossOrigin
from tasklore.supervisor.http.admission.key_file import KeyRing, make_key
from tasklore.supervisor.http.admission.stream_tokens import StreamTokens
from tests.http_client import Answer, Connection, ask, until
from tests.integration.http_stand import Stand, http_stand

SECRET = "0123456789abcdef0123456789abcdef"
PAGE = "https://app.example.com"


class Watching(KeyRing):
    """Keys whose file is looked at each time."""

    def __init__(self, path: Path) -> None:
        self.at = 0.0
        super().__init__(path, self._tick)

    def _tick(self) -> float:
        self.at += 10
        return self.at


@dataclass
class Pair:
    """Two supervisors of one deployment, and the headers of each key."""

    first: Stand
    second: Stand
    headers: dict[str, dict[str, str]]
    file: Path

    async def token_for(self, who: str, path: str, **more: Any) -> Answer:
        """Return the answer to the wish of *who* for a token."""
        body = {"path": path, **more}
        return await ask(
            self.first.url, "POST", "/v1/stream-tokens", body, self.headers[who]
        )

    async def request_of(self, who: str) -> str:
        """Return the path of the stream of a request that *who* sent."""
        sent = await ask(
            self.first.url, "POST", "/v1/requests", {"text": "hello"}, self.headers[who]
        )
        return f"/v1/requests/{sent.body['request_id']}/events"

    def remove(self, name: str) -> None:
        """Remove a key from the file."""
        found = json.loads(self.file.read_text())
        found["keys"] = [one for one in found["keys"] if one["name"] != name]
        self.file.write_text(json.dumps(found))


@pytest.fixture
async def pair(
    servers: EmbeddedServers, redis: Redis, tmp_path: Path
) -> AsyncIterator[Pair]:
    file = tmp_path / "keys.json"
    headers = {}
    for name, role, user in (
        ("ann", "ask", "ann"),
        ("bob", "ask", "bob"),
        ("reader", "read", None),
        ("shop", "ask", None),
    ):
        key = make_key(file, name, (role,), user)  # type: ignore[arg-type]  # roles
        headers[name] = {"Authorization": f"Bearer {key}"}
    async with AsyncExitStack() as stack:
        stands = []
        for _ in range(2):
            keys = Watching(file)
            stand = await stack.enter_async_context(
                http_stand(
                    servers,
                    redis,
                    keys=keys,
                    stream_tokens=StreamTokens(SECRET, keys),
                    cross_origin=CrossOrigin([PAGE], ["GET", "POST"], ["*"]),
                    heartbeat_s=0.1,
                )
            )
            stand.service.gate.set()
            stands.append(stand)
        yield Pair(stands[0], stands[1], headers, file)


async def names_of(
    stand: Stand, url: str, headers: dict[str, str] | None = None
) -> list[str]:
    """Return the names of the events of the stream at *url*, to its end."""
    async with Connection(stand.url) as page:
        page.send("GET", url, headers=headers)
        status, _ = await page.head()
        assert status == 200
        return [name async for _, name, _ in page.events() if name != ":"]


async def test_a_page_without_a_key_reads_the_stream_at_any_supervisor(
    pair: Pair,
) -> None:
    path = await pair.request_of("ann")
    made = await pair.token_for("ann", path)
    assert made.status == 200
    assert made.headers["cache-control"] == "no-store"
    assert made.body["url"] == f"{path}?stream_token={made.body['token']}"
    for stand in (pair.first, pair.second, pair.second):
        names = await names_of(stand, made.body["url"], {"Origin": PAGE})
        assert names == ["accepted", "done"]
    # Its browser comes back with the last event that it read, and hears that there is no other.
    back = await ask(
        pair.second.url, "GET", made.body["url"], headers={"Last-Event-ID": "4"}
    )
    assert back.status == 204


async def test_a_page_goes_on_behind_an_event_by_a_new_token(pair: Pair) -> None:
    """A new EventSource cannot say where the last one was cut off; the token does."""
    path = await pair.request_of("ann")
    made = await pair.token_for("ann", path, last_event_id="2")
    assert await names_of(pair.second, made.body["url"]) == ["done"]
    ended = {"Last-Event-ID": "4"}
    assert (
        await ask(pair.second.url, "GET", made.body["url"], headers=ended)
    ).status == 204


async def test_a_token_is_made_for_streams_of_its_caller_alone(pair: Pair) -> None:
    hers = await pair.request_of("ann")
    for who, path, status in (
        ("ann", hers, 200),
        ("shop", hers, 404),
        ("bob", hers, 404),
        ("reader", hers, 403),
        ("ann", "/v1/tasks/none/output", 404),
        ("ann", "/v1/requests/none/events", 404),
        ("ann", "/v1/pipelines/none/events", 404),
        ("ann", "/v1/webhooks", 422),
        ("ann", f"{hers}?a=b", 422),
        ("ann", f"{hers}\n", 422),
        ("ann", "/v1/tasks/../output", 422),
        ("ann", f"https://evil.example{hers}", 422),
    ):
        made = await pair.token_for(who, path)
        assert (who, path, made.status) == (who, path, status)
    nobody = await ask(pair.first.url, "POST", "/v1/stream-tokens", {"path": hers})
    assert nobody.status == 401


@pytest.mark.parametrize(
    ("path", "taken", "refused"),
    [
        ("/v1/tasks/none/output", ("1.1.5", "1.2.end"), ("5", "1.1.", "1.1.ends")),
        (
            "/v1/requests/none/events",
            ("2",),
            ("1.1.5", "abc", "-1", "1\r\nX: y", "2\n"),
        ),
        ("/v1/pipelines/none/events", (), ("2", "1.1.5", "")),
    ],
)
async def test_only_an_event_of_the_stream_is_signed_into_its_token(
    pair: Pair, path: str, taken: tuple[str, ...], refused: tuple[str, ...]
) -> None:
    """What the stream would refuse is refused when its token is asked for, before anything is looked up."""
    for last_event_id in taken:
        made = await pair.token_for("ann", path, last_event_id=last_event_id)
        assert (last_event_id, made.status) == (last_event_id, 404)
    for last_event_id in refused:
        made = await pair.token_for("ann", path, last_event_id=last_event_id)
        assert (last_event_id, made.status) == (last_event_id, 422)
        assert "last_event_id: " in made.body["detail"]


async def test_a_token_opens_nothing_but_its_stream(pair: Pair) -> None:
    path = await pair.request_of("ann")
    other = await pair.request_of("ann")
    token = (await pair.token_for("ann", path)).body["token"]
    query = f"?stream_token={token}"
    request = path.removesuffix("/events")
    attempts: list[tuple[str, str, Any, dict[str, str]]] = [
        ("GET", other + query, None, {}),
        ("GET", f"{request}{query}", None, {}),
        ("DELETE", f"{request}{query}", None, {}),
        ("DELETE", f"{path}{query}", None, {}),
        ("POST", f"{path}{query}", {"text": "a"}, {}),
        ("POST", f"/v1/requests{query}", {"text": "a"}, {}),
        ("POST", f"/v1/stream-tokens{query}", {"path": path}, {}),
        ("GET", f"/v1/models{query}", None, {}),
        ("GET", f"{path}/{query}", None, {}),
        ("GET", f"{path}{query}{query.replace('?', '&')}", None, {}),
        ("GET", f"{path}{query}x", None, {}),
        ("GET", f"{path}?stream_token=.", None, {}),
        ("GET", path, None, {}),
        ("GET", path, None, {"Authorization": f"Bearer {token}"}),
        ("GET", f"/v1/agents{query}", None, {"Authorization": f"Bearer {token}"}),
    ]
    for stand in (pair.first, pair.second):
        for method, url, body, headers in attempts:
            refused = await ask(stand.url, method, url, body, headers)
            assert (method, url, refused.status) == (method, url, 401)
    # A key that is wrong is not mended by a token.
    wrong = {"Authorization": "Bearer tlk_wrong"}
    assert (await ask(pair.first.url, "GET", path + query, headers=wrong)).status == 401
    said = await ask(pair.first.url, "GET", other + query)
    assert "POST /v1/stream-tokens" in said.body["detail"]
    assert await names_of(pair.first, path + query) == ["accepted", "done"]


async def test_a_removed_key_ends_its_tokens_and_its_open_streams(pair: Pair) -> None:
    for stand in (pair.first, pair.second):
        stand.service.gate.clear()
    body = {"text": "hello", "wait_seconds": 0}
    sent = await ask(pair.first.url, "POST", "/v1/requests", body, pair.headers["ann"])
    path = f"/v1/requests/{sent.body['request_id']}/events"
    made = (await pair.token_for("ann", path)).body
    kept = (await pair.token_for("ann", path)).body
    async with Connection(pair.second.url) as page:
        page.send("GET", made["url"])
        assert (await page.head())[0] == 200
        events = page.events()
        assert (await anext(events))[1] == "accepted"
        pair.remove("ann")
        assert [name async for _, name, _ in events if name != ":"] == []
    for stand in (pair.first, pair.second):
        assert (await ask(stand.url, "GET", kept["url"])).status == 401
    await until(lambda: not pair.second.parts.life.streams)


async def test_a_key_that_is_made_anew_under_its_name_ends_the_streams_of_the_old_one(
    pair: Pair,
) -> None:
    pair.second.service.gate.clear()
    body = {"text": "hello", "wait_seconds": 0}
    sent = await ask(pair.second.url, "POST", "/v1/requests", body, pair.headers["ann"])
    path = f"/v1/requests/{sent.body['request_id']}/events"
    token = (await pair.token_for("ann", path)).body["url"]
    async with (
        Connection(pair.second.url) as by_token,
        Connection(pair.second.url) as by_key,
    ):
        by_token.send("GET", token)
        by_key.send("GET", path, headers=pair.headers["ann"])
        streams = []
        for page in (by_token, by_key):
            assert (await page.head())[0] == 200
            events = page.events()
            assert (await anext(events))[1] == "accepted"
            streams.append(events)
        pair.remove("ann")
        anew = make_key(pair.file, "ann", ("ask",), "ann")
        for events in streams:
            assert [name async for _, name, _ in events if name != ":"] == []
    pair.second.service.gate.set()
    assert (await ask(pair.second.url, "GET", token)).status == 401
    headers = {"Authorization": f"Bearer {anew}"}
    assert await names_of(pair.second, path, headers) == ["accepted", "done"]


async def test_a_token_counts_as_the_key_that_it_was_made_with(pair: Pair) -> None:
    """In its share of streams; one that opens nothing counts as a client without a key."""
    path = await pair.request_of("ann")
    url = (await pair.token_for("ann", path)).body["url"]
    life = pair.second.parts.life
    most = pair.second.parts.share(pair.second.parts.limits.streams)
    life.streams_of["ann"] = most
    assert (await ask(pair.second.url, "GET", url)).status == 429
    del life.streams_of["ann"]
    statuses = {
        (await ask(pair.second.url, "GET", f"{url}x")).status for _ in range(60)
    }
    assert statuses == {401, 429}


async def test_a_token_is_in_no_log(
    pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    path = await pair.request_of("ann")
    made = (await pair.token_for("ann", path)).body

    async def failing(*_: object, **__: object) -> None:
        raise RuntimeError("unforeseen")

    with structlog.testing.capture_logs() as logged:
        await names_of(pair.second, made["url"])
        await ask(pair.second.url, "GET", f"{made['url']}x")
        pair.second.parts.records.find = failing  # type: ignore[assignment,method-assign]
        assert (await ask(pair.second.url, "GET", made["url"])).status == 500
    assert [one for one in logged if one["event"] == "http_request_failed"]
    for secret in (made["token"], made["token"].partition(".")[2], path):
        assert secret not in f"{logged} {caplog.text}"


async def test_without_keys_no_token_is_needed_and_without_a_secret_none_is_made(
    servers: EmbeddedServers, redis: Redis, tmp_path: Path
) -> None:
    async with http_stand(servers, redis) as stand:
        stand.service.gate.set()
        sent = await ask(stand.url, "POST", "/v1/requests", {"text": "hello"})
        path = f"/v1/requests/{sent.body['request_id']}/events"
        made = await ask(stand.url, "POST", "/v1/stream-tokens", {"path": path})
        assert made.body == {"url": path, "token": None, "expires_at": None}
        assert await names_of(stand, f"{path}?stream_token=a") == ["accepted", "done"]
    file = tmp_path / "keys.json"
    key = {"Authorization": f"Bearer {make_key(file, 'page', ('ask',), None)}"}
    async with http_stand(servers, redis, keys=KeyRing(file)) as stand:
        stand.service.gate.set()
        sent = await ask(stand.url, "POST", "/v1/requests", {"text": "hello"}, key)
        path = f"/v1/requests/{sent.body['request_id']}/events"
        made = await ask(stand.url, "POST", "/v1/stream-tokens", {"path": path}, key)
        assert made.status == 404
        assert "TASKLORE_APPROVAL_SECRET" in made.body["detail"]
