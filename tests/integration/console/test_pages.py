"""Pages of the console: what they show to whom, without a script, and whatever names and errors hold."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from redis.asyncio import Redis

from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.http.console.routes import PAGES
from tests.integration.console.browsing import (
    KEYS,
    PAYLOADS,
    ConsoleStand,
    console_stand,
    list_runs,
    row,
)


@pytest.fixture
async def console(
    servers: EmbeddedServers, redis: Redis, tmp_path: Path
) -> AsyncIterator[ConsoleStand]:
    async with console_stand(servers, redis, tmp_path) as found:
        yield found


@pytest.mark.parametrize("name", list(KEYS))
async def test_every_page_that_a_role_is_offered_opens(
    console: ConsoleStand, redis: Redis, name: str
) -> None:
    """The navigation has what the roles allow, and no page of it is refused; each has one heading, no script in it."""
    await list_runs(redis, row("t1", "ana"), row("t2", "ben", tenant="acme"))
    async with console.tab(name) as tab:
        links = set(re.findall(r'<a href="(/console/[a-z-]*)"', tab.text))
        assert links <= {f"/console/{one.path}" for one in PAGES}
        assert "/console/runs" in links
        for link in links:
            text = await tab.open(link)
            assert text.count("<h1") == 1, link
            assert '<html lang="en">' in text
            assert not re.search(r"<script(?! src=)|\son[a-z]+=|style=", text), link


async def test_what_is_another_users_or_tenants_is_nowhere(
    console: ConsoleStand, redis: Redis
) -> None:
    """A key of one user or tenant sees no run of another, nor counts it; one of all sees each."""
    await list_runs(
        redis,
        row("of-ana", "ana"),
        row("of-ben", "ben", error="BensError"),
        row("of-acme", tenant="acme", error="AcmesError"),
        row("of-rival", tenant="rival", error="RivalsError"),
    )
    seen = {"ana": "of-ana", "ben": "of-ben", "acme": "of-acme", "rival": "of-rival"}
    for name, own in seen.items():
        async with console.tab(name) as tab:
            for path in ("/console/", "/console/runs", "/console/runs?state=failed"):
                text = await tab.open(path)
                found = {one for one in seen.values() if f"runs/{one}" in text}
                assert found == {own}, (name, path)
            assert await tab.open(
                "/console/runs?user=carla", 403 if name in ("ana", "ben") else 200
            )
    async with console.tab("admin") as tab:
        text = await tab.open("/console/runs")
        assert all(f"runs/{one}" in text for one in seen.values())


@pytest.mark.parametrize("payload", PAYLOADS)
async def test_what_others_chose_is_text_and_nothing_else(
    console: ConsoleStand, redis: Redis, payload: str
) -> None:
    """Names of tasks, errors, tenants and users, and what a person typed into a filter."""
    await list_runs(
        redis, row("t1", payload, task=payload, error=payload[:64], tenant=payload)
    )
    async with console.tab("admin") as tab:
        for path in ("/console/", "/console/runs"):
            text = await tab.open(path)
            assert payload not in text or not re.search("[<>\"']", payload)
            assert (
                "49" not in re.sub(r"[0-9]{3,}|:[0-9]{2}", "", text)
                or "{{" not in payload
            )
        for name in ("error", "user", "tenant", "created_after", "parent", "agent"):
            answer = await tab.client.get("/console/runs", params={name: payload})
            assert answer.status_code in (200, 422)
            assert not re.search(
                r"<script(?! src=\"/console/static)|<img|<svg onload", answer.text
            )


async def test_a_filter_says_what_is_wrong_with_it(console: ConsoleStand) -> None:
    """It stays as it was typed, and names its cure."""
    async with console.tab("admin") as tab:
        text = await tab.open("/console/runs?created_after=yesterday&error=Boom", 422)
        assert "must be a span before now" in text
        assert 'value="yesterday"' in text
        assert 'value="Boom"' in text


async def test_pages_of_runs_go_on_where_the_last_ended(
    console: ConsoleStand, redis: Redis
) -> None:
    """With the same filter, to the end."""
    await list_runs(
        redis, *(row(f"t{number}", created_ms=10_000 + number) for number in range(120))
    )
    async with console.tab("admin") as tab:
        path = "/console/runs?error=TaskExpired"
        seen: list[str] = []
        while path:
            text = await tab.open(path)
            seen += re.findall(r'id="run-(t\d+)"', text)
            found = re.search(r'rel="next" href="([^"]+)"', text)
            path = found[1].replace("&amp;", "&") if found else ""
            assert not path or "error=TaskExpired" in path
        assert len(seen) == len(set(seen)) == 120


async def test_several_runs_are_cancelled_once_it_was_said_how_many(
    console: ConsoleStand,
) -> None:
    """Nothing happens before the second form; what is not theirs is not cancelled."""
    async with console.tab("admin") as tab:
        headers = {"Authorization": f"Bearer {console.keys['ana']}"}
        sent = [
            (
                await tab.client.post(
                    "/v1/tasks",
                    headers=headers,
                    json={
                        "agent_id": "EchoAgent",
                        "task": "echo",
                        "parameters": {"word": "hi"},
                        "wait_seconds": 0,
                    },
                )
            ).json()["task_id"]
            for _ in range(2)
        ]
        await tab.open("/console/runs")
        fields = {"task_id": sent, "back": "/console/runs?state=open"}
        text = await tab.send("/console/runs/cancel", 200, **fields)
        assert "Cancel 2 runs?" in text
        assert "This concerns 2" in text
        async with console.tab("ben") as other:
            await other.open("/console/runs")
            text = await other.send("/console/runs/cancel", sure="yes", **fields)
            assert "2 not found" in text
        text = await tab.send("/console/runs/cancel", sure="yes", **fields)
        assert "2 cancelled." in text


@pytest.mark.parametrize(
    ("address", "field"),
    [
        ("runs?state=odd", "state"),
        ("runs?created_after=yesterday", "created_after"),
        ("runs?after=%21%21", "after"),
        ("runs?agent=a%20b", "agent"),
        ("agents?after=a%20b", "after"),
        ("agents/a%20b", "agent_id"),
        ("money?by=moon", "by"),
        ("money?days=0", "days"),
        ("money?days=many", "days"),
        ("money/limits?after=x", "after"),
        ("pipelines?state=odd", "state"),
        ("pipelines?after=%21", "after"),
        ("people?user=ana&view=odd", "view"),
        ("people?user=ana&at=yesterday", "day"),
        ("people?user=ana&view=history&after=x", "after"),
        ("people?user=a%2Fb", "name"),
        ("stories?after=x", "after"),
        ("stories/s?response=x", "response"),
        ("schedules?after=" + "x" * 65, "after"),
        ("worlds?conversation=a&after=x", "after"),
        (f"worlds?conversation={'x' * 300}", "conversation"),
    ],
)
async def test_no_odd_value_of_an_address_is_passed_over(
    console: ConsoleStand, address: str, field: str
) -> None:
    """The page is 422, as the API is, and names the field and the cure."""
    async with console.tab("admin") as tab:
        text = await tab.open(f"/console/{address}", 422)
        main = text.partition("<main")[2].partition("</main>")[0] or text
        assert field in main.lower()
