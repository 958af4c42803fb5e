"""Money keeps its currency at every door, in the memory of results and over the runs of a task."""

import asyncio
import json
from typing import Any

import pytest

from tests.acceptance.system import AGENTS, Served, System
from tests.http_client import Answer, ask

TILL = str(AGENTS / "till.py")


@pytest.fixture
async def till(own_system: System) -> Served:
    """Run the agent and a supervisor that has heard of it."""
    own_system.worker(TILL).ready()
    supervisor = own_system.supervisor().ready()
    await asyncio.to_thread(supervisor.await_agents, 1)
    return supervisor


async def start(door: Served, task: str, **parameters: Any) -> Answer:
    """Send a task over HTTP and return the answer once it has ended."""
    body = {
        "agent_id": "TillAgent",
        "task": task,
        "parameters": parameters,
        "wait_seconds": 60,
    }
    return await ask(door.api, "POST", "/v1/tasks", body)


async def send(door: Served, task: str, **parameters: Any) -> dict[str, Any]:
    """Return the report of a task that is sent over HTTP."""
    answer = await start(door, task, **parameters)
    assert answer.status == 200, answer
    return dict(answer.body["report"])


async def test_what_is_remembered_of_one_currency_serves_no_other(
    till: Served,
) -> None:
    """Through a worker, on a server, however the amount is spelled."""
    told = []
    for given in ("50 USD", "50 EUR", {"value": "50", "unit": "JPY"}, "$50", "50.00 €"):
        report = await send(till, "price", price=given)
        told.append((report["result"], report["memory"]["outcome"]))
    assert told == [
        ("50 USD and 0 more", "miss"),
        ("50 EUR and 0 more", "miss"),
        ("50 JPY and 0 more", "miss"),
        ("50 USD and 0 more", "hit"),
        ("50 EUR and 0 more", "hit"),
    ]
    # 50 of the worker's own currency is what was asked in it, and no other.
    settled = [await send(till, "settle", amount=one) for one in (50, "50 EUR")]
    assert [one["memory"]["outcome"] for one in settled] == ["miss", "hit"]
    assert (await send(till, "settle", amount="50 USD"))["memory"]["outcome"] == "miss"
    # A currency beside the amount counts as well, said with it or apart.
    fees = [
        await send(till, "charge", **one)
        for one in (
            {"amount": "120", "currency": "EUR"},
            {"amount": "120 euros"},
            {"amount": "120 yen"},
            {"amount": 120, "currency": "JPY"},
        )
    ]
    assert [(one["result"], one["memory"]["outcome"]) for one in fees] == [
        ("120 EUR", "miss"),
        ("120 EUR", "hit"),
        ("120 JPY", "miss"),
        ("120 JPY", "hit"),
    ]


async def test_a_later_run_goes_on_with_the_rate_of_the_first(till: Served) -> None:
    """The next rate would be another one."""
    report = await send(till, "settle_again", amount="50 USD")
    assert (report["attempt"], report["result"]) == (2, {"value": 50, "unit": "EUR"})
    again = await send(till, "settle_again", amount="50 USD")
    assert again["result"] == {"value": 100, "unit": "EUR"}


async def test_what_names_no_currency_is_refused_with_field_and_cure(
    till: Served,
) -> None:
    for task, parameters, said in (
        ("price", {"price": 50}, "price: 50 names no currency where money is expected"),
        ("price", {"price": 50}, "send it with its currency, as '50 EUR'"),
        ("price", {"price": "80 kr"}, "price: '80 kr' can mean 80 SEK or 80 NOK"),
        ("price", {"price": "5 EUR", "parts": ["5 km"]}, "parts: '5 km' is in km"),
        ("settle", {"amount": "5 km"}, "amount: '5 km' is in km"),
        ("charge", {"amount": "9 yen", "currency": "EUR"}, "currency is EUR, and"),
    ):
        answer = await start(till, task, **parameters)
        assert answer.status == 422
        assert said in answer.body["detail"]


async def test_the_document_and_the_command_take_money(
    till: Served, own_system: System
) -> None:
    """A typed client learns both shapes, and -p takes what people write."""
    document = (await ask(till.api, "GET", "/v1/openapi.json")).body
    said = json.dumps(document)
    assert '"format": "money"' in said
    for given, told in (("50 CHF", "50 CHF"), ('{"value": 7, "unit": "SEK"}', "7 SEK")):
        sent = await asyncio.to_thread(
            own_system.command,
            *("tasks", "send", "TillAgent", "price", "-p", f"price={given}", "--json"),
        )
        assert sent.returncode == 0, sent.stderr
        assert json.loads(sent.stdout)["report"]["result"] == f"{told} and 0 more"


async def test_words_keep_the_currency(till: Served) -> None:
    """A sentence, a question for the currency, and the answer in one word."""
    told = []
    for text in ("till price 50 quid", "till price 50, in yen", "till price 80 kr"):
        answer = await ask(
            till.api, "POST", "/v1/requests", {"text": text, "wait_seconds": 60}
        )
        told.append(answer.body["reply"]["text"])
    assert told[:2] == ["50 GBP and 0 more", "50 JPY and 0 more"]
    assert "which may be SEK, NOK, DKK" in told[2]
    body = {
        "text": "Norwegian kroner",
        "conversation": answer.body["reply"]["conversation_id"],
        "wait_seconds": 60,
    }
    settled = await ask(till.api, "POST", "/v1/requests", body)
    assert settled.status == 200, settled
    assert settled.body["reply"]["text"] == "80 NOK and 0 more"
