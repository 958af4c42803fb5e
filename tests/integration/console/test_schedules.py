"""Schedules in the console: their next times, what is done to one, and the form of a task that adds one."""

import re
from collections.abc import AsyncIterator
from html import unescape
from pathlib import Path

import pytest
from redis.asyncio import Redis

from tasklore.runtime.servers.embedded import EmbeddedServers
from tests.integration.console.browsing import (
    PAYLOADS,
    ConsoleStand,
    Tab,
    console_stand,
)

ADD = "/console/schedules/add"


@pytest.fixture
async def console(
    servers: EmbeddedServers, redis: Redis, tmp_path: Path
) -> AsyncIterator[ConsoleStand]:
    async with console_stand(servers, redis, tmp_path) as found:
        yield found


async def add(tab: Tab, status: int = 303, **fields: str) -> str:
    """Send the form of a schedule of EchoAgent.echo, every six hours where *fields* say nothing else."""
    await tab.open("/console/schedules/new?task=EchoAgent.echo")
    given = {
        "agent_id": "EchoAgent",
        "task": "echo",
        "kind": "every",
        "when": "6h",
        "parameter.word": "tick",
    }
    return await tab.send(ADD, status, **(given | fields))


async def test_a_schedule_is_added_paused_resumed_run_and_removed(
    console: ConsoleStand,
) -> None:
    """By forms alone; it is asked before one is removed."""
    async with console.tab("asker") as tab:
        text = await tab.open("/console/schedules/new")
        assert "<option>EchoAgent.echo</option>" in text
        text = await add(tab, 200, id="nightly", dry_run="yes")
        assert len(re.findall(r"<li><time", text)) == 5
        assert "There are no schedules." in await tab.open("/console/schedules")
        text = await add(tab, id="nightly")
        assert "nightly is kept: every 6 hours" in text
        assert len(re.findall(r"<li><time", text)) == 4
        assert ">active<" in text
        fields = {"schedule_id": "nightly", "back": "/console/schedules"}
        text = await tab.send("/console/schedules/pause", **fields)
        assert "nightly is paused." in text
        assert ">paused<" in text
        text = await tab.send("/console/schedules/resume", **fields)
        assert "nightly goes on." in text
        text = await tab.send("/console/schedules/run", **fields)
        begun = re.search(r"nightly runs now, as ([\w-]+)\.", text)
        assert begun is not None
        assert "tick" in await tab.open(f"/console/runs/{begun[1]}")
        await tab.open("/console/schedules")
        text = await tab.send("/console/schedules/remove", 200, **fields)
        assert "Remove nightly?" in text
        text = await tab.send("/console/schedules/remove", sure="yes", **fields)
        assert "nightly is removed." in text
        assert "There are no schedules." in text


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"parameter.word": ""}, "is needed"),
        ({"when": "often"}, "every: must be a span of time"),
        ({"when": "1.5"}, "every: must be a whole number"),
        ({"kind": "cron", "when": "7"}, "cron"),
        ({"kind": "at", "when": "1999-01-01T00:00"}, "at: has passed"),
        ({"time_zone": "Mars/Olympus"}, "time_zone"),
        ({"missed": "some"}, "missed"),
        ({"when": ""}, "every"),
    ],
)
async def test_times_that_cannot_be_kept_are_said(
    console: ConsoleStand, fields: dict[str, str], said: str
) -> None:
    """The form stays as it was typed, and nothing is kept."""
    async with console.tab("asker") as tab:
        text = await add(tab, 200, id="mine", **fields)
        faults = re.findall(r'<p(?: class="error" id="[^"]*")?>([^<]+)</p>', text)
        assert any(said in unescape(one) for one in faults), faults
        assert 'value="mine"' in text
        assert "There are no schedules." in await tab.open("/console/schedules")


async def test_a_schedule_of_another_user_or_tenant_is_not_there(
    console: ConsoleStand,
) -> None:
    """It is in no list, and no form reaches it; who only reads is offered none."""
    async with console.tab("ana") as tab:
        text = await tab.open("/console/schedules/new?task=EchoAgent.echo")
        assert 'name="user"' not in text
        await add(tab, id="of-ana")
        await tab.open("/console/schedules/new?task=EchoAgent.echo")
    async with console.tab("acme") as tab:
        await add(tab, id="of-acme")
    for name, others in (
        ("ben", ("of-ana", "of-acme")),
        ("rival", ("of-ana", "of-acme")),
        ("acme", ("of-ana",)),
    ):
        async with console.tab(name) as tab:
            text = await tab.open("/console/schedules")
            for one in others:
                assert one not in text
                await tab.open("/console/schedules/new?task=EchoAgent.echo")
                for verb in ("pause", "resume", "run", "remove"):
                    page = tab.text
                    await tab.send(
                        f"/console/schedules/{verb}", 404, schedule_id=one, sure="yes"
                    )
                    tab.text = page
    async with console.tab("admin") as tab:
        text = await tab.open("/console/schedules")
        assert "of-ana" in text
        assert "of-acme" in text
        assert "of-acme" not in await tab.open("/console/schedules?user=ana")
    async with console.tab("reader") as tab:
        assert "/console/schedules" not in tab.text
        await tab.open("/console/schedules", 403)


@pytest.mark.parametrize("payload", PAYLOADS)
async def test_words_of_a_schedule_are_text(
    console: ConsoleStand, payload: str
) -> None:
    """Its parameters and its user, and what a person typed."""
    async with console.tab("admin") as tab:
        text = await add(tab, user=payload, **{"parameter.word": payload})
        assert payload in unescape(text)
        found = re.search(r'name="schedule_id" value="([^"]+)"', text)
        assert found is not None
        pages = [text, await add(tab, 200, when=payload, time_zone=payload, id=payload)]
        await tab.open("/console/schedules")
        pages.append(
            await tab.send("/console/schedules/remove", 200, schedule_id=found[1])
        )
        pages.append(
            (
                await tab.client.get(
                    "/console/schedules/new", params={"task": f"EchoAgent.{payload}"}
                )
            ).text
        )
        for page in pages:
            assert not re.search(r'<script(?! src="/console/static)|<img|<svg on', page)
