"""Money in the console: spending by day, tenant, agent and model, limits with what is left, and their edits."""

import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from html import unescape
from pathlib import Path

import pytest
from redis.asyncio import Redis

from tasklore.contracts.admission.limits import NANO_USD, Payer, read_limits
from tasklore.memory.budgets.store import Budgets, book_field, book_of
from tasklore.runtime.servers.embedded import EmbeddedServers
from tests.integration.console.browsing import (
    PAYLOADS,
    ConsoleStand,
    Tab,
    console_stand,
)

LIMIT = {
    "is_there": "no",
    "version": "0",
    "name": "tenants",
    "size": "20",
    "measure": "usd",
    "every": "day",
    "at_limit": "refuse",
    "tenant": "*",
}


@pytest.fixture
async def console(
    servers: EmbeddedServers, redis: Redis, tmp_path: Path
) -> AsyncIterator[ConsoleStand]:
    async with console_stand(servers, redis, tmp_path) as found:
        yield found


async def spend(redis: Redis, payer: Payer, model: str, usd: float, ago: int) -> None:
    """Have *usd* dollars spent so many days ago, and a half of it saved."""
    line = book_field(payer, model)
    counted = {"calls": 2, "usd": usd * NANO_USD, "saved": usd * NANO_USD / 2}
    await redis.hset(
        book_of(datetime.now(UTC) - timedelta(days=ago)),
        mapping={f"{line}|{name}": int(value) for name, value in counted.items()},
    )


async def set_limit(tab: Tab, status: int = 303, **fields: str) -> str:
    """Send the form of a limit."""
    await tab.open("/console/money/limit")
    return await tab.send("/console/money/set", status, **(LIMIT | fields))


async def test_spending_is_shown_by_day_and_by_whose_it_is(
    console: ConsoleStand, redis: Redis
) -> None:
    """Each day has its bar, days without any stay empty, and what memory saved stands beside."""
    acme = Payer(tenant="acme", agent="Research")
    await spend(redis, acme, "gpt-6", 3.0, 0)
    await spend(redis, Payer(tenant="b", agent="Other"), "small", 1.0, 5)
    await spend(redis, acme, "gpt-6", 8.0, 20)
    async with console.tab("reader") as tab:
        text = await tab.open("/console/money?days=7&by=tenant")
        assert len(re.findall(r'<rect class="touch"', text)) == 7
        assert len(re.findall(r'<rect class="spent"', text)) == 7
        assert len(re.findall(r'<rect class="saved"', text)) == 2
        today = f"{datetime.now(UTC).date()}"
        assert f"<title>{today}: $3.00, $1.50 saved</title>" in text
        assert re.search(r"acme.*\$3\.00.*b.*\$1\.00", text, re.DOTALL)
        assert "$4.00" in text
        assert "small" in await tab.open("/console/money?days=7&by=model")
        text = await tab.open("/console/money")
        assert 'href="/console/agents/Research"' in text
        assert "$12.00" in text
        # A word that nobody offered is the first choice.
        text = await tab.open("/console/money?by=user&days=9999999999", 422)
        assert "must be one of agent, tenant, model" in text
        assert "/console/money/limit?" not in text
        await tab.open("/console/money/limit", 403)


async def test_limits_are_set_edited_removed_and_restored(
    console: ConsoleStand,
) -> None:
    """Each by a form; what removes or restores says first what it changes."""
    async with console.tab("admin") as tab:
        text = await set_limit(tab)
        assert "tenants is in effect, in version 1" in text
        assert "each tenant: $20.00 a day, then calls are refused" in unescape(text)
        text = await tab.open("/console/money/limit?name=tenants")
        assert 'name="size" value="20"' in text
        assert '<option value="usd" selected>' in text
        text = await set_limit(
            tab, is_there="yes", version="1", size="2,000", measure="tokens"
        )
        assert "2,000 tokens a day" in text
        assert "(was each tenant: $20.00 a day" in unescape(text)
        text = await set_limit(
            tab,
            version="2",
            name="runs",
            size="3",
            measure="at_most",
            agent="EchoAgent",
        )
        assert "each tenant, agent EchoAgent: 3 runs at once" in text
        assert "tenants" in await tab.open("/console/money")
        await tab.open("/console/money/limits")
        text = await tab.send("/console/money/remove", 200, name="runs")
        assert "Remove the limit runs?" in text
        text = await tab.send(
            "/console/money/remove", name="runs", version="3", sure="yes"
        )
        assert "runs is removed, in version 4" in text
        text = await tab.send("/console/money/restore", 200, earlier="3")
        assert "new runs: each tenant, agent EchoAgent" in text
        text = await tab.send(
            "/console/money/restore", earlier="3", version="4", sure="yes"
        )
        assert "Version 3 is in effect again, as version 5." in text


async def test_a_limit_that_cannot_be_kept_says_why(console: ConsoleStand) -> None:
    """Its form stays as it was typed, also where somebody changed the limits meanwhile."""
    async with console.tab("admin") as tab:
        await set_limit(tab)
        for fields, said in (
            ({"version": "1"}, "there is a limit tenants already"),
            ({"version": "1", "name": "other", "size": ""}, "give how much"),
            ({"version": "1", "name": "other", "size": "x"}, "usd: "),
            ({"version": "1", "name": "other", "size": "-1"}, "usd"),
            ({"version": "1", "name": "no name"}, "name"),
            ({"version": "1", "name": "other", "every": "week"}, "every: "),
            ({"version": "1", "name": "other", "every": ""}, "every"),
            ({"version": "0", "name": "other"}, "Somebody changed the limits"),
        ):
            text = await set_limit(tab, 200, user="zoe", **fields)
            alert = text.partition('role="alert"')[2].partition("</div>")[0]
            assert said in unescape(alert), (fields, alert)
            assert 'value="zoe"' in text
        text = await tab.open("/console/money/limits")
        assert "Version 1 holds" in text
        await tab.send("/console/money/restore", earlier="9", sure="yes")
        assert "Nothing was changed" in tab.text


async def test_money_of_all_is_for_no_key_of_one(
    console: ConsoleStand, redis: Redis
) -> None:
    """It is not offered to a key of a user or tenant, and refused; who reads changes nothing."""
    await spend(redis, Payer(tenant="acme", agent="Research"), "gpt-6", 3.0, 0)
    pages = ("/console/money", "/console/money/limits")
    for name in ("ana", "acme"):
        async with console.tab(name) as tab:
            assert "/console/money" not in tab.text
            for path in pages:
                assert "Research" not in await tab.open(path, 403)
    async with console.tab("reader") as tab:
        assert "/console/money" in tab.text
        for path in pages:
            await tab.open(path)
        page = tab.text
        for path, fields in (
            ("set", LIMIT),
            ("remove", {"name": "x"}),
            ("restore", {"earlier": "1"}),
        ):
            tab.text = page
            await tab.send(f"/console/money/{path}", 403, sure="yes", **fields)


async def test_names_of_payers_and_limits_are_text(
    console: ConsoleStand, redis: Redis
) -> None:
    """Tenants, agents and models, and what a person typed into a form."""
    for payload in PAYLOADS:
        await spend(redis, Payer(tenant=payload, agent=payload), payload, 1.0, 0)
    await Budgets(redis).change(
        read_limits(
            {
                "limits": [
                    {"name": f"n{number}", "tenant": payload, "usd": 1, "every": "day"}
                    for number, payload in enumerate(PAYLOADS)
                ]
            }
        ),
        PAYLOADS[0],
        over=0,
    )
    async with console.tab("admin") as tab:
        shown = [
            await tab.open(f"/console/money{path}")
            for path in ("?by=tenant", "?by=agent", "?by=model", "/limits")
        ]
        for number, payload in enumerate(PAYLOADS):
            assert all(payload in unescape(text) for text in shown[:4])
            shown.append(await tab.open(f"/console/money/limit?name=n{number}"))
            shown.append(
                await set_limit(tab, 200, version=payload, name=payload, size=payload)
            )
        for text in shown:
            assert not re.search(r'<script(?! src="/console/static)|<img|<svg on', text)
