"""Pages of what is remembered of people: who sees whose, why an entry is there, undoing, and forgetting."""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis
from structlog.testing import capture_logs

from tasklore.contracts.callers import Caller
from tasklore.contracts.messages import AgentCard, TaskCard
from tasklore.memory.ledger.requests import RequestRecords
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.http.console import items, people
from tasklore.supervisor.http.console.calls import OperationCalls
from tasklore.supervisor.http.console.pages import Notice, RenderedPage, Visit
from tasklore.supervisor.operations.console import ConsoleServices
from tasklore.supervisor.operations.memory import tasks
from tasklore.supervisor.operations.memory.hand_edits import (
    Forgetting,
    Redoing,
    forget_everything,
    redo_plan,
)
from tasklore.supervisor.operations.refusals import Refused
from tasklore.supervisor.operations.table import BoundOperation
from tests.integration.console.browsing import (
    PAYLOADS,
    ConsoleStand,
    Tab,
    console_stand,
)
from tests.integration.documents import FOOD, commit, like, plan, store_on
from tests.integration.http_stand import CARD

TASKS = ("undo", "change_item", "forget_me")
MEMORY = AgentCard(
    agent_id="MemoryAgent",
    tasks=tuple(TaskCard(name=one, parameters={"type": "object"}) for one in TASKS),
    digest="0011223344556678",
)
VIEWS = tuple(people.VIEWS)


@pytest.fixture
async def console(
    servers: EmbeddedServers, redis: Redis, tmp_path: Path
) -> AsyncIterator[ConsoleStand]:
    catalogue = Catalogue([CARD, MEMORY])
    async with console_stand(
        servers, redis, tmp_path, catalogue=lambda: catalogue
    ) as found:
        yield found


async def remember(
    redis: Redis, user: str, words: str = "Omelettes", **more: Any
) -> None:
    """Have an entry in the memory of *user*."""
    edit = plan(f"plan-of-{user}", like(words), **more)
    await commit(store_on(redis), edit, user=user)


async def test_a_memory_is_opened_by_the_name_of_a_person(
    console: ConsoleStand, redis: Redis
) -> None:
    """Its entries lead to why they are there; each look is noted, and says nothing of whom."""
    more = {"evidence": "I love omelettes!", "fact_text": "Ana likes omelettes."}
    await remember(redis, "ana", **more)
    async with console.tab("reader") as tab:
        text = await tab.open("/console/people")
        assert 'name="user"' in text
        with capture_logs() as noted:
            text = await tab.open("/console/people?user=ana")
        assert "Omelettes" in text
        looks = [one for one in noted if one.get("operation") == "memory_show"]
        assert [one["caller"] for one in looks] == ["reader"]
        assert "ana" not in str(looks)
        found = re.search(r'href="(/console/people/why[^"]+)"', text)
        assert found is not None
        text = await tab.open(found[1].replace("&amp;", "&"))
        assert "<blockquote>I love omelettes!</blockquote>" in text
        assert "Ana likes omelettes." in text
        assert "Take back" not in text
        text = await tab.open("/console/people?user=ana&view=search&q=omelettes")
        assert 'class="words">Omelettes' in text
        text = await tab.open("/console/people?user=ana&view=facts")
        assert "Nothing waits." in text
        text = await tab.open("/console/people?user=ana&at=2020-01-01")
        assert "Nothing was stored about ana on that day." in text
        text = await tab.open("/console/people?user=ana&at=yesterday", 422)
        assert "is not a valid day" in text
        text = await tab.open("/console/people?user=a/b", 422)
        assert "A name has no slash" in text


async def test_a_key_of_one_user_opens_their_own_memory_alone(
    console: ConsoleStand, redis: Redis
) -> None:
    """Without the right to read, no page says that there is any."""
    await remember(redis, "ana", "The words of Ana")
    await remember(redis, "ben", "The words of Ben")
    async with console.tab("ana") as tab:
        assert "The words of Ana" in await tab.open("/console/people")
        for view in VIEWS:
            text = await tab.open(f"/console/people?user=ben&view={view}&q=words", 403)
            assert "The words of Ben" not in text
        place = f"user=ben&path=food.likes%5B0%5D&resource={FOOD}"
        assert "The words" not in await tab.open(f"/console/people/why?{place}", 403)
        await tab.open("/console/people")
        await tab.open("/console/people/forget?user=ana")
        text = await tab.send("/console/people/clear", 403, user="ben", typed="ben")
        assert "another user" in text
    async with console.tab("asker") as tab:
        assert "/console/people" not in tab.text
        for path in ("people?user=ana", "people/why?user=ana", "people/forget?user=a"):
            assert "The words" not in await tab.open(f"/console/{path}", 403)


async def test_an_edit_is_taken_back_from_the_history(
    console: ConsoleStand, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a task of the memory agent, which no worker takes here; what cannot be is said."""
    monkeypatch.setattr(people, "EDIT_S", 0.1)
    await remember(redis, "ana")
    async with console.tab("ana") as tab:
        text = await tab.open("/console/people?view=history")
        assert "Take back" in text
        text = await tab.send(
            "/console/people/undo",
            plan_id="plan-of-none",
            back="/console/people?view=history",
        )
        assert "It was not undone: there is no plan" in text
        assert 'aria-current="true">History' in text
        text = await tab.send("/console/people/undo", plan_id="plan-of-ana")
        assert "It is being undone" in text
        answer = await tab.client.get(
            "/v1/tasks?agent=MemoryAgent",
            headers={"Authorization": f"Bearer {console.keys['ana']}"},
        )
        assert [one["task"] for one in answer.json()["tasks"]] == ["undo"]


async def sent_to_memory(console: ConsoleStand, tab: Tab) -> list[dict[str, Any]]:
    """Return the parameters of each task that the memory agent was sent, the newest first."""
    headers = {"Authorization": f"Bearer {console.keys['ana']}"}
    listed = await tab.client.get("/v1/tasks?agent=MemoryAgent", headers=headers)
    found = []
    for one in listed.json()["tasks"]:
        path = f"/v1/tasks/{one['task_id']}/assignment"
        assignment = (await tab.client.get(path, headers=headers)).json()
        found.append(assignment["parameters"])
    return found


async def test_an_item_is_added_changed_and_removed_by_hand(
    console: ConsoleStand, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is a task of the memory agent, which no worker takes here, and a line of the audit."""
    monkeypatch.setattr(items, "EDIT_S", 0.1)
    await remember(redis, "ana")
    place = f"{FOOD}:food.likes.omelettes"
    async with console.tab("ana") as tab:
        text = await tab.open("/console/people?view=items")
        assert "1 item<" in text
        [link] = re.findall(r'href="([^"]+reference=[^"]+)"', text)
        assert "There is no such item" in await tab.open(
            "/console/people?view=items&category=routine"
        )
        text = await tab.open(unescape(link))
        assert "Omelettes</textarea>" in text
        assert f'value="{place}"' in text
        with capture_logs() as noted:
            changed = {"value": "Eggs", "until": "2030-01-02", "subject": ""}
            text = await tab.send(
                "/console/people/change-item", user="ana", reference=place, **changed
            )
        assert "It is being changed" in text
        edits = [one for one in noted if one.get("operation") == "memory_change_item"]
        assert [one["caller"] for one in edits] == ["ana"]
        assert "Eggs" not in str(edits)
        await tab.open("/console/people/item?user=ana")
        new = {"category": "food.likes", "value": "Tea", "key": "once"}
        for _ in range(2):
            text = await tab.send("/console/people/add-item", user="ana", **new)
            assert "It is being stored" in text
            await tab.open("/console/people/item?user=ana")
        assert await sent_to_memory(console, tab) == [
            {"operation": "add", "category": "food.likes", "value": "Tea"},
            {
                "operation": "change",
                "reference": place,
                "value": "Eggs",
                "until": "2030-01-02",
            },
        ]


async def test_removing_an_item_asks_first(
    console: ConsoleStand, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page says what goes; only then is it told to the memory agent."""
    monkeypatch.setattr(tasks, "WAIT_S", 0.1)
    await remember(redis, "ana")
    place = f"{FOOD}:food.likes.omelettes"
    async with console.tab("ana") as tab:
        await tab.open(f"/console/people/item?user=ana&reference={place}")
        text = await tab.send(
            "/console/people/delete-item", 200, user="ana", reference=place
        )
        assert "food.likes: Omelettes" in text
        assert "This concerns 1" in text
        assert await sent_to_memory(console, tab) == []
        fields = {"user": "ana", "reference": place, "sure": "yes"}
        text = await tab.send("/console/people/delete-item", **fields)
        assert "It is being removed" in text
        assert await sent_to_memory(console, tab) == [
            {"operation": "delete", "reference": place}
        ]


async def test_a_form_of_an_item_says_what_is_wrong(
    console: ConsoleStand, redis: Redis
) -> None:
    """With what was typed, and of nobody else's memory."""
    await remember(redis, "ana")
    await remember(redis, "ben", "The words of Ben")
    place = f"{FOOD}:food.likes.omelettes"
    async with console.tab("ana") as tab:
        await tab.open(f"/console/people/item?user=ana&reference={place}")
        fields = {"user": "ana", "reference": place, "since": "yesterday"}
        text = await tab.send("/console/people/change-item", 200, **fields)
        assert 'role="alert"><p>since' in text
        text = await tab.send("/console/people/add-item", 200, user="ana", value="Tea")
        assert "category" in text
        assert "Tea</textarea>" in text
        fields = {"user": "ana", "reference": place}
        text = await tab.send("/console/people/change-item", **fields)
        assert "each field was empty" in text
        await tab.open("/console/people/item?user=ana&reference=none", 404)
        for page in ("people?user=ben&view=items", "people/item?user=ben"):
            text = await tab.open(f"/console/{page}", 403)
            assert "The words" not in text
        await tab.open("/console/people/item?user=ana")
        for action in ("add-item", "change-item", "delete-item"):
            fields = {"category": "food.likes", "value": "x", "reference": place}
            text = await tab.send(
                f"/console/people/{action}", 403, user="ben", sure="yes", **fields
            )
            assert "another user" in text
            await tab.open("/console/people/item?user=ana")
    async with console.tab("reader") as tab:
        text = await tab.open("/console/people?user=ana&view=items")
        assert "Omelettes" in text
        assert "Add an item" not in text
        assert "people/item" not in text
        await tab.open("/console/people/item?user=ana", 403)


async def test_an_edit_that_was_taken_back_is_applied_again(redis: Redis) -> None:
    """Where operations run; what cannot be is said."""
    asked: list[str | None] = []

    async def redo(_caller: Caller, user: str, wanted: Redoing) -> None:
        assert user == "ana"
        asked.append(wanted.plan_id)
        if wanted.plan_id == "p-2":
            raise Refused(409, "undo-refused", "p-2 was not taken back")

    bound = BoundOperation(operation=redo_plan, run=redo)
    services = ConsoleServices(links=None, records=RequestRecords(redis))
    calls = OperationCalls([bound], console=services)
    boss = Caller(name="boss", roles=frozenset({"admin"}))
    said = []
    for plan_id in ("p-1", "p-2"):
        fields = {"user": ("ana",), "plan_id": (plan_id,)}
        visit = Visit(caller=boss, calls=calls, path={}, query={}, fields=fields)
        said.append(await people.redo(visit))
    assert asked == ["p-1", "p-2"]
    assert [one.tone for one in said] == ["good", "bad"]
    assert "p-2 was not taken back" in said[1].text


@pytest.mark.parametrize("payload", PAYLOADS)
async def test_words_of_people_are_text(
    console: ConsoleStand, redis: Redis, payload: str
) -> None:
    """Entries, evidence, facts, reasons, and names in the address, also as Markdown."""
    words = f"{payload} [x](javascript:alert(1)) <b>bold</b>"
    more = {
        "evidence": words,
        "fact_text": words,
        "reasoning": words,
        "finder": {payload: words},
        "editor": words,
    }
    await remember(redis, "ana", words, **more)
    async with console.tab("admin") as tab:
        pages = [f"people?user=ana&view={view}&q=bold" for view in VIEWS]
        pages.append(f"people/why?user=ana&path=food.likes%5B0%5D&resource={FOOD}")
        listed = await tab.open("/console/people?user=ana&view=items")
        [link] = re.findall(r'href="/console/([^"]+reference=[^"]+)"', listed)
        pages.append(unescape(link))
        for page in pages:
            text = await tab.open(f"/console/{page}")
            _demand_text(text, payload)
        for page in ("people", "people/forget", "people/why", "people/item"):
            for name in ("user", "at", "q", "view", "after", "path", "reference"):
                query = {"user": "ana", name: payload}
                answer = await tab.client.get(f"/console/{page}", params=query)
                assert answer.status_code in (200, 404, 422), (page, name)
                _demand_text(answer.text, payload)


def _demand_text(page: str, payload: str) -> None:
    assert not re.search(r"<script(?! src=\"/console/static)|<img|<b>bold", page)
    assert not re.search(r'href="javascript|<svg onload', page)
    assert payload not in page or not re.search("[<>\"']", payload)


@dataclass
class Eraser:
    """Forgets, and notes whom; something is *left* of the first."""

    left: dict[str, int] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    async def forget(self, caller: Caller, user: str) -> Forgetting:
        assert caller.name == "boss"
        self.asked.append(user)
        return Forgetting(user=user, removed={"turns": 3}, left=self.left, beside={})


@pytest.mark.parametrize("left", [{}, {"turns": 0}, {"turns": 1}])
async def test_a_person_is_forgotten_once_their_name_was_typed(
    redis: Redis, left: dict[str, int]
) -> None:
    """The page that follows is the proof, or says that something is left."""
    eraser = Eraser(left)
    bound = BoundOperation(operation=forget_everything, run=eraser.forget)
    services = ConsoleServices(links=None, records=RequestRecords(redis))
    calls = OperationCalls([bound], console=services)
    boss = Caller(name="boss", roles=frozenset({"admin"}))

    def visit(typed: str) -> Visit:
        fields = {"user": ("ana",), "typed": (typed,)}
        return Visit(caller=boss, calls=calls, path={}, query={}, fields=fields)

    for typed in ("", "Ana", "ana ben"):
        refused = await people.forget(visit(typed))
        assert isinstance(refused, Notice)
        assert refused.tone == "bad"
    assert eraser.asked == []
    done = await people.forget(visit(" ana "))
    assert isinstance(done, RenderedPage)
    assert eraser.asked == ["ana"]
    proof = done.values["proof"]
    assert isinstance(proof, people.Proof)
    assert proof.is_all_gone == (left != {"turns": 1})
