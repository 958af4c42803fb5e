"""The output of a run that a browser holds open: it ends with the session, and with every right that it began with."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from redis.asyncio import Redis

from tasklore.contracts.callers import Role
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.http.admission.console_sessions import (
    COOKIE,
    LIFE_S,
    ConsoleSessions,
    KeyHolders,
)
from tasklore.supervisor.http.admission.key_file import KeyRing
from tasklore.supervisor.http.admission.limits import ClientLimits
from tests.http_client import Connection, until
from tests.integration.console.browsing import (
    SECRET,
    ConsoleStand,
    Tab,
    console_stand,
)
from tests.integration.console.test_one_run import sent_by
from tests.integration.http_stand import http_stand


@dataclass
class Watched:
    """A console whose keys are looked at each time, and whose clock stands still until it is set."""

    console: ConsoleStand
    now: list[float] = field(default_factory=lambda: [1_800_000_000.0])

    def rewrite(self, name: str, roles: tuple[Role, ...] | None) -> None:
        """Give the key of that *name* other *roles*, or remove it with None."""
        kept = json.loads(self.console.file.read_text())["keys"]
        for one in kept:
            if one["name"] == name:
                one["roles"] = list(roles or ())
        left = [one for one in kept if one["roles"]]
        self.console.file.write_text(json.dumps({"keys": left}))


class WatchingKeys(KeyRing):
    """Keys whose file is looked at each time."""

    def __init__(self, path: Path) -> None:
        self.at = 0.0
        super().__init__(path, self._tick)

    def _tick(self) -> float:
        self.at += 10
        return self.at


@pytest.fixture
async def watched(
    servers: EmbeddedServers, redis: Redis, tmp_path: Path
) -> AsyncIterator[Watched]:
    now = [1_800_000_000.0]
    async with console_stand(servers, redis, tmp_path) as first:
        keys = WatchingKeys(first.file)
        sessions = ConsoleSessions(SECRET, KeyHolders(keys), now=lambda: now[0])
        # No heartbeat comes within the time of a test: the end waits for none.
        async with http_stand(
            servers,
            redis,
            keys=keys,
            console=sessions,
            answers=first.stand.parts.answers,
            heartbeat_s=600.0,
        ) as stand:
            yield Watched(ConsoleStand(stand, first.keys, first.file), now)


@asynccontextmanager
async def open_output(
    console: ConsoleStand, tab: Tab, task_id: str
) -> AsyncIterator[Connection]:
    async with Connection(console.stand.url) as page:
        cookie = f"{COOKIE}={tab.client.cookies[COOKIE]}"
        path = f"/console/runs/{task_id}/output"
        page.send("GET", path, headers={"Cookie": cookie})
        status, headers = await page.head()
        assert status == 200
        assert headers["cache-control"] == "no-store"
        yield page


async def sign_out(_: Watched, tab: Tab) -> None:
    await tab.send("/console/sign-out", 200)


async def remove_key(watched: Watched, _: Tab) -> None:
    watched.rewrite("ana", None)


async def cut_roles(watched: Watched, _: Tab) -> None:
    watched.rewrite("ana", ("approve",))


async def let_it_expire(watched: Watched, _: Tab) -> None:
    watched.now[0] += LIFE_S + 2


@pytest.mark.parametrize("end", [sign_out, remove_key, cut_roles, let_it_expire])
async def test_the_output_ends_with_the_session(
    watched: Watched, end: Callable[[Watched, Tab], Awaitable[None]]
) -> None:
    """Within seconds, cleanly, whether anything is put out or not; whoever comes back is not let in."""
    console = watched.console
    task_id = await sent_by(console, "ana")
    async with (
        console.tab("ana") as tab,
        console.tab("asker") as other,
        open_output(console, tab, task_id) as page,
        open_output(console, other, task_id) as going_on,
    ):
        await tab.open("/console/runs")
        cookie = tab.client.cookies[COOKIE]
        await end(watched, tab)
        names = [name async for _, name, _ in page.events()]
        assert "done" not in names
        tab.client.cookies.set(COOKIE, cookie)
        answer = await tab.client.get(f"/console/runs/{task_id}/output")
        assert answer.status_code in (401, 403)
        if end is not let_it_expire:
            assert not going_on.reader.at_eof()
            assert console.stand.parts.life.streams_of == {"asker": 1}


async def test_one_key_opens_its_share_of_streams(
    servers: EmbeddedServers, redis: Redis, tmp_path: Path
) -> None:
    """The next one is refused and says why; other keys open theirs, and a closed one makes room."""
    limits = ClientLimits(streams=8, share=0.5)
    async with console_stand(servers, redis, tmp_path, limits=limits) as console:
        task_id = await sent_by(console, "asker")
        async with console.tab("asker") as tab, console.tab("admin") as other:
            path = f"/console/runs/{task_id}/output"
            async with (
                open_output(console, tab, task_id),
                open_output(console, tab, task_id),
                open_output(console, tab, task_id),
            ):
                async with open_output(console, tab, task_id):
                    text = await tab.open(path, 429)
                    assert "4 streams of events are open with this key" in text
                    async with open_output(console, other, task_id):
                        pass
                streams = console.stand.parts.life.streams_of
                await until(lambda: streams["asker"] == 3)
                async with open_output(console, tab, task_id):
                    pass
