"""One run, and the questions that it asks: parameters, waits and answers, for those whom they are meant for."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from tasklore.contracts.admission.waits import Wait
from tasklore.memory.ledger.ledger import Ended, RunPermission
from tasklore.memory.ledger.waits import WaitName
from tasklore.runtime.servers.embedded import EmbeddedServers
from tests.integration.console.browsing import (
    PAYLOADS,
    ConsoleStand,
    Tab,
    console_stand,
)
from tests.integration.http_stand import assigned


@pytest.fixture
async def console(
    servers: EmbeddedServers, redis: Redis, tmp_path: Path
) -> AsyncIterator[ConsoleStand]:
    async with console_stand(servers, redis, tmp_path) as found:
        yield found


async def sent_by(console: ConsoleStand, name: str, word: str = "hi") -> str:
    """Return the id of a task that waits for a worker."""
    async with console.tab() as tab:
        answer = await tab.client.post(
            "/v1/tasks",
            headers={"Authorization": f"Bearer {console.keys[name]}"},
            json={
                "agent_id": "EchoAgent",
                "task": "echo",
                "parameters": {"word": word},
                "wait_seconds": 0,
            },
        )
    assert answer.status_code == 202, answer.text
    return str(answer.json()["task_id"])


async def asks(
    console: ConsoleStand, task_id: str, text: str = "Pay?", **fields: Any
) -> None:
    """Have a task ask persons of finance."""
    parts = console.stand.parts
    now = datetime.now(UTC)
    wait = Wait(
        kind="ask",
        slot="0",
        digest="0" * 32,
        agent_id="EchoAgent",
        task_name="echo",
        generation=1,
        text=text,
        who="role:finance",
        asked_at=now,
        until=now + timedelta(hours=1),
        **fields,
    )
    begun = await parts.ledger.begin(task_id, 1, "w", 1, 30_000, token="run")
    assert isinstance(begun, RunPermission)
    body = assigned(task_id, text).model_dump_json().encode()
    assert await parts.answers.waits.begin(
        Ended(task_id, 1, "run"), [wait], wait_s=86_400, due_s=86_400, assignment=body
    )
    await parts.answers.waits.look_at_many({WaitName("ask", task_id, "0"): now})


async def test_a_run_shows_its_parameters_to_its_own(console: ConsoleStand) -> None:
    """To another user it is not there, with or without its output."""
    task_id = await sent_by(console, "ana", "of ana alone")
    async with console.tab("ana") as tab:
        text = await tab.open(f"/console/runs/{task_id}")
        assert "EchoAgent.echo" in text
        assert "of ana alone" in text
        assert "queued" in text
    async with console.tab("ben") as tab:
        for path in (f"/console/runs/{task_id}", f"/console/runs/{task_id}/output"):
            text = await tab.open(path, 404)
            assert "ana" not in text.replace(task_id, "")
    async with console.tab("reader") as tab:
        await tab.open(f"/console/runs/{task_id}", 403)
        assert f"runs/{task_id}" not in await tab.open("/console/runs")


async def test_a_run_that_no_worker_will_take_says_so(console: ConsoleStand) -> None:
    """It is no matter of a turn: nobody lives who could take it."""
    task_id = await sent_by(console, "asker")
    async with console.tab("asker") as tab:
        text = await tab.open(f"/console/runs/{task_id}")
        assert "waits for a free worker" in text
        assert 'No worker of <a href="/console/agents/EchoAgent">' in text


async def test_a_run_is_cancelled_from_its_page(console: ConsoleStand) -> None:
    """It is asked first, and what follows is the run again."""
    task_id = await sent_by(console, "asker")
    async with console.tab("asker") as tab:
        await tab.open(f"/console/runs/{task_id}")
        fields = {"task_id": task_id, "back": f"/console/runs/{task_id}"}
        assert "Cancel 1 run?" in await tab.send("/console/runs/cancel", 200, **fields)
        text = await tab.send("/console/runs/cancel", sure="yes", **fields)
        assert "1 cancelled." in text
        assert "EchoAgent.echo" in text


async def test_an_open_run_is_run_once_more_as_a_copy(console: ConsoleStand) -> None:
    task_id = await sent_by(console, "asker", "twice")
    async with console.tab("asker") as tab:
        await tab.open(f"/console/runs/{task_id}")
        text = await tab.send("/console/runs/repeat", task_id=task_id)
        assert f"a new run with the parameters of {task_id}" in text
        assert text.count("twice") == 1


async def test_a_form_leads_nowhere_else(console: ConsoleStand) -> None:
    """The way back is a page of the console, whatever a form says."""
    async with console.tab("asker") as tab:
        await tab.open("/console/runs")
        for wrong in ("https://evil.example/", "//evil.example/console/", "/v1/tasks"):
            token = tab.text.partition('form_token" value="')[2].partition('"')[0]
            answer = await tab.client.post(
                "/console/runs/cancel", data={"form_token": token, "back": wrong}
            )
            assert answer.headers["location"] == "/console/runs"


async def test_a_question_is_answered_as_it_was_shown(console: ConsoleStand) -> None:
    """Of a question that is another one by now nothing is answered; the first answer counts."""
    await asks(console, "t1", "Pay 4711?")
    async with console.tab("admin") as tab:
        text = await tab.open("/console/approvals")
        assert "Pay 4711?" in text
        assert '<span class="count">1<' in text
        fields = {"id": "t1.0", "decision": "approve", "note": "as ordered"}
        text = await tab.send("/console/approvals/decide", digest="f" * 32, **fields)
        assert "Your answer was not accepted" in text
        text = await tab.send("/console/approvals/decide", digest="0" * 32, **fields)
        assert "Approved: Pay 4711?" in text
        assert "Nothing waits for you." in text
        text = await tab.send("/console/approvals/decide", digest="0" * 32, **fields)
        assert "Your answer was not accepted" in text


async def test_several_questions_are_approved_at_once(console: ConsoleStand) -> None:
    """It is said which before; one that was answered meanwhile does not count."""
    for task_id in ("t1", "t2", "t3"):
        await asks(console, task_id, f"Pay {task_id}?")
    async with console.tab("admin") as tab:
        await tab.open("/console/approvals")
        chosen = [f"{one}.0 {'0' * 32}" for one in ("t1", "t3")]
        text = await tab.send("/console/approvals/approve", 200, question=chosen)
        assert "Approve 2 questions?" in text
        assert "Pay t2?" not in text
        text = await tab.send("/console/approvals/approve", question=chosen, sure="yes")
        assert "2 approved." in text
        assert "Pay t2?" in text


async def test_another_tenant_sees_no_question(console: ConsoleStand) -> None:
    """Nor answers it, by whatever id."""
    await asks(console, "t1", "Pay 4711?")
    async with console.tab("rival") as tab:
        assert "Pay 4711?" not in await tab.open("/console/approvals")
        await tab.open("/console/runs")
        text = await tab.send(
            "/console/approvals/decide",
            id="t1.0",
            decision="approve",
            digest="0" * 32,
        )
        assert "was not accepted" in text


@pytest.mark.parametrize("payload", PAYLOADS)
async def test_words_of_a_run_and_its_question_are_text(
    console: ConsoleStand, payload: str
) -> None:
    """Parameters, questions, schemas, ids in addresses, and what is said after an action."""
    task_id = await sent_by(console, "admin", payload)
    await asks(console, "t1", payload, answer_schema={"title": payload})

    def check(tab: Tab) -> None:
        text = tab.text.replace('<script src="/console/static/', "")
        for wrong in (
            "<script",
            "<img",
            "<svg onload",
            "onerror=alert(1)>",
        ):
            assert wrong not in text or wrong not in payload, wrong

    async with console.tab("admin") as tab:
        for path in (
            "/console/",
            "/console/approvals",
            f"/console/runs/{task_id}",
            "/console/runs/t1",
        ):
            await tab.open(path)
            check(tab)
        answer = await tab.client.get("/console/runs/x", params={"q": payload})
        assert answer.status_code == 404
        await tab.open("/console/approvals")
        await tab.send(
            "/console/approvals/answer", id="t1.0", answer=payload, digest="0" * 32
        )
        assert "The answer is not valid JSON" in tab.text
        check(tab)
