"""The client asks a real system: tasks in words and by name, and memory handed in, searched, changed and forgotten."""

import time
from collections.abc import Iterator
from datetime import UTC, date, datetime

import pytest

from tasklore.client import ApiError, AsyncClient, Client, NotDone, Turn, Unreachable
from tasklore.runtime.servers.claims import free_port
from tests.acceptance.house import PATIENCE_S
from tests.acceptance.keyed_api import KeyedApi, keyed_api


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
        added = client.add_schedule(
            "NapAgent",
            "take_nap",
            {"ms": 1},
            cron="0 9 * * mon-fri",
            schedule_id="morning",
        )
        assert (
            client.add_schedule(
                "NapAgent",
                "take_nap",
                {"ms": 1},
                cron="0 9 * * mon-fri",
                schedule_id="morning",
            )
            == added
        )
        assert (len(added.next), added.paused, {one.hour for one in added.next}) == (
            5,
            False,
            {9},
        )
        other = client.add_schedule("NapAgent", "take_nap", {"ms": 2}, every_s=86_400)
        assert {one.id for one in client.schedules()} == {"morning", other.id}
        assert client.pause_schedule("morning").next == ()
        assert not client.pause_schedule("morning", paused=False).paused
        assert client.run_schedule("morning")
        client.remove_schedule("morning")
        with pytest.raises(ApiError, match="no schedule"):
            client.schedule("morning")


def test_items_are_added_changed_and_deleted_and_each_can_be_undone(
    system: KeyedApi,
) -> None:
    with client_of(system, "ana") as client:
        memory = client.memory("ana")
        added = memory.add("food.likes", "Ramen", since=date(2026, 5, 1), key="ramen")
        assert (
            memory.add(
                "food.likes", "Ramen", since=date(2026, 5, 1), key="ramen"
            ).plan_id
            == added.plan_id
        )
        (item,) = memory.items(category="food.likes")
        assert (item.text, item.since, item.state) == (
            "Ramen",
            date(2026, 5, 1),
            "current",
        )

        memory.change(item.reference, value="Spicy ramen")
        (changed,) = memory.items(category="food")
        assert (changed.text, changed.since) == ("Spicy ramen", date(2026, 5, 1))

        gone = memory.delete(changed.reference)
        assert memory.items(category="food.likes") == ()
        assert gone.plan_id is not None
        memory.undo(gone.plan_id)
        assert [one.text for one in memory.items()] == ["Spicy ramen"]

        memory.add("general.name", "Ana")
        memory.add("general.name", "Anna")
        states = {one.text: one.state for one in memory.items(category="general.name")}
        assert states == {"Ana": "past", "Anna": "current"}


def test_a_wrong_change_is_refused_with_the_cure(system: KeyedApi) -> None:
    """A place that no kind has, an item that is not there, dates that cannot be, and a key that may only read."""
    with client_of(system) as client, client_of(system, "reader") as reader:
        memory = client.memory("bo")
        with pytest.raises(ApiError, match=r"food\.likes"):
            memory.add("food.adores", "Ramen")
        with pytest.raises(ApiError, match=r"GET \.\.\./items"):
            memory.delete("resource_user_food_prefs:food.likes.ramen")
        with pytest.raises(ApiError, match="until is before since"):
            memory.add(
                "food.likes", "Ramen", since=date(2026, 5, 2), until=date(2026, 5, 1)
            )
        with pytest.raises(ApiError, match="role"):
            reader.memory("bo").add("food.likes", "Ramen")
        assert memory.items() == ()


def test_turns_are_handed_in_found_within_bounds_and_forgotten(
    system: KeyedApi,
) -> None:
    """By day, by speaker and by conversation; forgetting leaves nothing to find."""
    with client_of(system) as client:
        memory = client.memory("cy")
        said = [
            Turn(
                turn_id="c1",
                conversation_id="a",
                text="We moved to Porto",
                at=datetime(2026, 3, 1, tzinfo=UTC),
            ),
            Turn(
                turn_id="c2",
                conversation_id="b",
                text="Porto is lovely",
                at=datetime(2026, 8, 1, tzinfo=UTC),
            ),
        ]
        assert memory.hand_in(said) == 2
        _await_found(client, "cy", 2)
        assert _texts(client, "cy", until=date(2026, 4, 1)) == ["We moved to Porto"]
        assert _texts(client, "cy", since=date(2026, 4, 1)) == ["Porto is lovely"]
        assert _texts(client, "cy", speaker="assistant") == []
        assert '"We moved to Porto"' in memory.block("where did we move?")
        assert memory.settle(is_on=False).is_on is False
        assert memory.settings().is_on is False

        removed = memory.forget().removed
        assert removed["episodes"] == 2
        assert memory.search("Porto").memories == ()
        assert memory.settings().is_on is True


def test_another_scope_is_kept_apart_and_for_keys_without_a_user(
    system: KeyedApi,
) -> None:
    """A user of the same name has nothing of it, and no user id can name it."""
    with client_of(system) as client, client_of(system, "ana") as ana:
        client.memory("Planner", "agent").add(
            "general.other", "Plans are made on Mondays"
        )
        assert len(client.memory("Planner", "agent").items()) == 1
        assert client.memory("Planner").items() == ()
        with pytest.raises(ApiError, match="for one user"):
            ana.memory("Planner", "agent").items()
        with pytest.raises(ApiError, match="another scope"):
            client.ask("hello", user="agent/Planner")


async def test_the_client_of_an_event_loop_does_the_same(system: KeyedApi) -> None:
    async with AsyncClient(
        system.url, system.keys["anybody"], call_s=PATIENCE_S
    ) as client:
        assert (await client.run("NapAgent", "take_nap", {"ms": 1})).state == "done"
        memory = client.memory("dee")
        await memory.add("food.dislikes", "Olives")
        assert [one.text for one in await memory.items()] == ["Olives"]
        assert (await memory.search("olives")).memories[0].text == "Olives"
        assert await memory.waiting() == ()
        assert (await memory.forget()).left.get("documents", 0) == 0


def test_a_server_that_is_not_there_is_named(system: KeyedApi) -> None:
    with (
        Client(f"http://127.0.0.1:{free_port()}", call_s=0.5) as client,
        pytest.raises(Unreachable, match="127"),
    ):
        client.memory("ana").items()
    with Client(system.url, "wrong") as client, pytest.raises(ApiError) as refused:
        client.memory("ana").items()
    assert refused.value.status == 401


def _texts(client: Client, user: str, **bounds: object) -> list[str]:
    return [
        one.text
        for one in client.memory(user).search("Porto", **bounds).memories
        if one.source == "turn"
    ]


def _await_found(client: Client, user: str, count: int) -> None:
    gives_up_at = time.monotonic() + PATIENCE_S
    while len(_texts(client, user)) < count:
        assert time.monotonic() < gives_up_at
        time.sleep(0.05)
