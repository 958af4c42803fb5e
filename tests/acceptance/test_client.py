"""The client asks a real system: tasks in words and by name, and memory handed in, searched, changed and forgotten."""

import time
from collections.abc import Iterator
from datetime import UTC, date, datetime

import pytest

from tasklore.client import (
    ApiError,
    AsyncClient,
    Client,
    NotDone,
    ServerUnreachable,
    TaskFailed,
)
from tasklore.client.models import Said
from tasklore.runtime.servers.claims import free_port
from tests.acceptance.keyed_api import KeyedApi, keyed_api
from tests.acceptance.system import PATIENCE_S


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyedApi]:
    """Run a system for all tests here."""
    with keyed_api(tmp_path_factory.mktemp("client")) as system:
        yield system


def client_of(system: KeyedApi, who: str = "anybody") -> Client:
    """Return a client with the key of *who*."""
    return Client(system.url, system.keys[who], call_s=PATIENCE_S)


def test_tasks_are_asked_for_in_words_and_by_name(system: KeyedApi) -> None:
    """The same id again starts nothing twice, and what takes longer is told so."""
    with client_of(system) as client:
        reply = client.ask(
            "Check my budget: limit 50000, spent 42000, history [5000, 7000]",
            request_id="budget-1",
        )
        again = client.ask(
            "Check my budget: limit 50000, spent 42000, history [5000, 7000]",
            request_id="budget-1",
        )
        assert (reply.kind, reply.result["remaining"]) == ("answer", 8000)
        assert again.report == reply.report
        done = client.run("NapAgent", "take_nap", {"ms": 1})
        assert done.state == "done"
        with pytest.raises(NotDone) as late:
            client.run("NapAgent", "take_nap", {"ms": 3_000}, within_s=0.3)
        assert late.value.identity
        with pytest.raises(ApiError, match="agent"):
            client.run("NobodyAgent", "take_nap", {})


def test_schedules_are_added_seen_paused_run_and_removed(system: KeyedApi) -> None:
    """The same id with the same content again is one schedule."""
    with client_of(system) as client:
        schedules = client.schedules
        nap = {"agent_id": "NapAgent", "task": "take_nap", "parameters": {"ms": 1}}
        weekdays = "0 9 * * mon-fri"
        added = schedules.add(**nap, cron=weekdays, id="morning")
        assert schedules.add(**nap, cron=weekdays, id="morning") == added
        assert (len(added.next), added.paused, {one.hour for one in added.next}) == (
            5,
            False,
            {9},
        )
        other = schedules.add(**nap, every="24h")
        assert {one.id for one in schedules.each()} == {"morning", other.id}
        assert schedules.pause("morning").next == ()
        assert not schedules.resume("morning").paused
        assert schedules.run("morning").task_id
        schedules.remove("morning")
        with pytest.raises(ApiError, match="no schedule"):
            schedules.show("morning")


def test_a_task_is_looked_at_followed_and_cancelled(system: KeyedApi) -> None:
    """What becomes of it comes as typed events, and one that failed raises its error."""
    with client_of(system) as client:
        nap = {"agent_id": "NapAgent", "task": "take_nap"}
        sent = client.tasks.send(**nap, parameters={"ms": 60_000}, wait_seconds=0)
        assert client.tasks.show(sent.task_id).state in ("accepted", "running")
        assert client.tasks.cancel(sent.task_id).outcome == "cancelled"
        events = list(client.tasks.follow(sent.task_id))
        assert events[-1].event == "done"
        done = client.run("NapAgent", "take_nap", {"ms": 1})
        assert client.call("NapAgent.take_nap", {"ms": 1}) == done.result
        trace = client.tasks.trace(done.task_id)
        assert trace.root.task_id == done.task_id
        later = {"task_key": "gone", "after": 3600, "within_s": 0}
        waiting = client.run("NapAgent", "take_nap", {"ms": 1}, **later)
        client.tasks.cancel(waiting.task_id)
        with pytest.raises(TaskFailed, match="cancelled") as failed:
            client.run("NapAgent", "take_nap", {"ms": 1}, **later | {"within_s": 5})
        assert failed.value.task_id == waiting.task_id


def test_items_are_added_changed_and_deleted_and_each_can_be_undone(
    system: KeyedApi,
) -> None:
    with client_of(system, "ana") as client:
        memory = client.memory
        ramen = {
            "category": "food.likes",
            "value": "Ramen",
            "since": date(2026, 5, 1),
            "idempotency_key": "ramen",
        }
        added = memory.add_item("ana", **ramen)
        assert memory.add_item("ana", **ramen).plan_id == added.plan_id
        (item,) = memory.items("ana", category="food.likes").items
        assert (item.text, item.since, item.state) == (
            "Ramen",
            date(2026, 5, 1),
            "current",
        )

        memory.change_item("ana", item.reference, value="Spicy ramen")
        (changed,) = memory.items("ana", category="food").items
        assert (changed.text, changed.since) == ("Spicy ramen", date(2026, 5, 1))

        gone = memory.delete_item("ana", changed.reference)
        assert memory.items("ana", category="food.likes").items == ()
        assert gone.plan_id is not None
        memory.undo("ana", plan_id=gone.plan_id)
        assert [one.text for one in memory.items("ana").items] == ["Spicy ramen"]

        memory.add_item("ana", category="general.name", value="Ana")
        memory.add_item("ana", category="general.name", value="Anna")
        names = memory.items("ana", category="general.name").items
        states = {one.text: one.state for one in names}
        assert states == {"Ana": "past", "Anna": "current"}


def test_a_wrong_change_is_refused_with_the_cure(system: KeyedApi) -> None:
    """A place that no kind has, an item that is not there, dates that cannot be, and a key that may only read."""
    with client_of(system) as client, client_of(system, "reader") as reader:
        memory = client.memory
        with pytest.raises(ApiError, match=r"food\.likes"):
            memory.add_item("bo", category="food.adores", value="Ramen")
        with pytest.raises(ApiError, match=r"GET /v1/memory/\{user\}/items"):
            memory.delete_item("bo", "resource_user_food_prefs:food.likes.ramen")
        ramen = {"category": "food.likes", "value": "Ramen"}
        with pytest.raises(ApiError, match="until is before since"):
            memory.add_item(
                "bo", **ramen, since=date(2026, 5, 2), until=date(2026, 5, 1)
            )
        with pytest.raises(ApiError, match="role"):
            reader.memory.add_item("bo", **ramen)
        assert memory.items("bo").items == ()


def test_turns_are_handed_in_found_within_bounds_and_forgotten(
    system: KeyedApi,
) -> None:
    """By day, by speaker and by conversation; forgetting leaves nothing to find."""
    with client_of(system) as client:
        memory = client.memory
        said = [
            Said(
                turn_id="c1",
                conversation_id="a",
                text="We moved to Porto",
                at=datetime(2026, 3, 1, tzinfo=UTC),
            ),
            Said(
                turn_id="c2",
                conversation_id="b",
                text="Porto is lovely",
                at=datetime(2026, 8, 1, tzinfo=UTC),
            ),
        ]
        assert memory.hand_in("cy", turns=said).taken == 2
        _await_found(client, "cy", 2)
        assert _texts(client, "cy", until=date(2026, 4, 1)) == ["We moved to Porto"]
        assert _texts(client, "cy", since=date(2026, 4, 1)) == ["Porto is lovely"]
        assert _texts(client, "cy", speaker="assistant") == []
        block = memory.block("cy", q="where did we move?")
        assert '"We moved to Porto"' in block.text
        assert memory.change_settings("cy", is_on=False).is_on is False
        assert memory.settings("cy").is_on is False

        removed = memory.clear("cy", confirm="forget").removed
        assert removed is not None
        assert removed["episodes"] == 2
        assert memory.search("cy", q="Porto").memories == ()
        assert memory.settings("cy").is_on is True


def test_another_scope_is_kept_apart_and_for_keys_without_a_user(
    system: KeyedApi,
) -> None:
    """A user of the same name has nothing of it, and no user id can name it."""
    with client_of(system) as client, client_of(system, "ana") as ana:
        client.memory.add_item(
            "Planner",
            scope="agent",
            category="general.other",
            value="Plans are made on Mondays",
        )
        assert len(client.memory.items("Planner", scope="agent").items) == 1
        assert client.memory.items("Planner").items == ()
        with pytest.raises(ApiError, match="for one user"):
            ana.memory.items("Planner", scope="agent")
        with pytest.raises(ApiError, match="another scope"):
            client.ask("hello", user="agent/Planner")


async def test_the_client_of_an_event_loop_does_the_same(system: KeyedApi) -> None:
    async with AsyncClient(
        system.url, system.keys["anybody"], call_s=PATIENCE_S
    ) as client:
        assert (await client.run("NapAgent", "take_nap", {"ms": 1})).state == "done"
        memory = client.memory
        await memory.add_item("dee", category="food.dislikes", value="Olives")
        assert [one.text for one in (await memory.items("dee")).items] == ["Olives"]
        found = await memory.search("dee", q="olives")
        assert found.memories[0].text == "Olives"
        assert (await memory.waiting("dee")).rows == ()
        left = (await memory.clear("dee", confirm="forget")).left
        assert (left or {}).get("documents", 0) == 0
        nap = {"agent_id": "NapAgent", "task": "take_nap", "parameters": {"ms": 1}}
        sent = await client.tasks.send(**nap, wait_seconds=0)
        events = [event.event async for event in client.tasks.follow(sent.task_id)]
        assert events[-1] == "done"


def test_a_server_that_is_not_there_is_named(system: KeyedApi) -> None:
    with (
        Client(f"http://127.0.0.1:{free_port()}", call_s=0.5) as client,
        pytest.raises(ServerUnreachable, match="127"),
    ):
        client.memory.items("ana")
    with Client(system.url, "wrong") as client, pytest.raises(ApiError) as refused:
        client.memory.items("ana")
    assert refused.value.status == 401


def _texts(client: Client, user: str, **bounds: object) -> list[str]:
    return [
        one.text
        for one in client.memory.search(user, q="Porto", **bounds).memories
        if one.source == "turn"
    ]


def _await_found(client: Client, user: str, count: int) -> None:
    gives_up_at = time.monotonic() + PATIENCE_S
    while len(_texts(client, user)) < count:
        assert time.monotonic() < gives_up_at
        time.sleep(0.05)
