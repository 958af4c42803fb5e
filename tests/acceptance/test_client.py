"""The client asks a real system: tasks in words and by name, and memory handed in, searched, changed and forgotten."""

import json
import time
from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import NamedTuple

import pytest

from runtime.servers.claims import free_port
from supervisor.http.admission.key_file import Role, make_key
from tasklore.client import ApiError, AsyncClient, Client, NotDone, Turn, Unreachable
from tests.acceptance.house import BUDGET, NAPPER, PATIENCE_S, running_house
from tests.acceptance.talk import MEMORY, SWITCHBOARD


class Open(NamedTuple):
    """Where the API is, and keys by name."""

    url: str
    keys: dict[str, str]

    def client(self, who: str = "anybody") -> Client:
        """Return a client with the key of *who*."""
        return Client(self.url, self.keys[who], call_s=PATIENCE_S)


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Open]:
    """Run a supervisor, a worker and a memory worker without a model."""
    folder = tmp_path_factory.mktemp("client")
    file = folder / "keys.json"
    callers: dict[str, tuple[tuple[Role, ...], str | None]] = {
        "anybody": (("ask", "read"), None),
        "ana": (("ask", "read"), "ana"),
        "reader": (("read",), None),
    }
    keys = {name: make_key(file, name, roles, user) for name, (roles, user) in callers.items()}
    with running_house(folder) as house:
        worker = house.worker(BUDGET, NAPPER, SWITCHBOARD, MEMORY, llm_base_url="", llm_api_key="")
        supervisor = house.supervisor(api_keys_file=file, llm_base_url="", llm_api_key="")
        worker.ready()
        supervisor.ready().await_log("api_ready")
        told = next(line for line in supervisor.log().splitlines() if "api_ready" in line)
        yield Open(json.loads(told)["url"], keys)


def test_tasks_are_asked_for_in_words_and_by_name(system: Open) -> None:
    """The same id again starts nothing twice, and what takes longer is told so."""
    with system.client() as client:
        reply = client.ask("Check my budget: limit 50000, spent 42000, history [5000, 7000]", request_id="budget-1")
        again = client.ask("Check my budget: limit 50000, spent 42000, history [5000, 7000]", request_id="budget-1")
        assert (reply.kind, reply.result["remaining"]) == ("answer", 8000)
        assert again.report == reply.report
        done = client.run("NapAgent", "take_nap", {"ms": 1})
        assert done.state == "done"
        with pytest.raises(NotDone) as late:
            client.run("NapAgent", "take_nap", {"ms": 3_000}, within_s=0.3)
        assert late.value.identity
        with pytest.raises(ApiError, match="agent"):
            client.run("NobodyAgent", "take_nap", {})


def test_items_are_added_changed_and_deleted_and_each_can_be_undone(system: Open) -> None:
    with system.client("ana") as client:
        memory = client.memory("ana")
        added = memory.add("food.likes", "Ramen", since=date(2026, 5, 1), key="ramen")
        assert memory.add("food.likes", "Ramen", since=date(2026, 5, 1), key="ramen").plan_id == added.plan_id
        (item,) = memory.items(category="food.likes")
        assert (item.text, item.since, item.state) == ("Ramen", date(2026, 5, 1), "current")

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


def test_a_wrong_change_is_refused_with_the_cure(system: Open) -> None:
    """A place that no kind has, an item that is not there, dates that cannot be, and a key that may only read."""
    with system.client() as client, system.client("reader") as reader:
        memory = client.memory("bo")
        with pytest.raises(ApiError, match=r"food\.likes"):
            memory.add("food.adores", "Ramen")
        with pytest.raises(ApiError, match=r"GET \.\.\./items"):
            memory.delete("resource_user_food_prefs:food.likes.ramen")
        with pytest.raises(ApiError, match="until is before since"):
            memory.add("food.likes", "Ramen", since=date(2026, 5, 2), until=date(2026, 5, 1))
        with pytest.raises(ApiError, match="role"):
            reader.memory("bo").add("food.likes", "Ramen")
        assert memory.items() == ()


def test_turns_are_handed_in_found_within_bounds_and_forgotten(system: Open) -> None:
    """By day, by speaker and by conversation; forgetting leaves nothing to find."""
    with system.client() as client:
        memory = client.memory("cy")
        said = [
            Turn(turn_id="c1", conversation_id="a", text="We moved to Porto", at=datetime(2026, 3, 1, tzinfo=UTC)),
            Turn(turn_id="c2", conversation_id="b", text="Porto is lovely", at=datetime(2026, 8, 1, tzinfo=UTC)),
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


def test_another_scope_is_kept_apart_and_for_keys_without_a_user(system: Open) -> None:
    """A user of the same name has nothing of it, and no user id can name it."""
    with system.client() as client, system.client("ana") as ana:
        client.memory("Planner", "agent").add("general.other", "Plans are made on Mondays")
        assert len(client.memory("Planner", "agent").items()) == 1
        assert client.memory("Planner").items() == ()
        with pytest.raises(ApiError, match="for one user"):
            ana.memory("Planner", "agent").items()
        with pytest.raises(ApiError, match="another scope"):
            client.ask("hello", user="agent/Planner")


async def test_the_client_of_an_event_loop_does_the_same(system: Open) -> None:
    async with AsyncClient(system.url, system.keys["anybody"], call_s=PATIENCE_S) as client:
        assert (await client.run("NapAgent", "take_nap", {"ms": 1})).state == "done"
        memory = client.memory("dee")
        await memory.add("food.dislikes", "Olives")
        assert [one.text for one in await memory.items()] == ["Olives"]
        assert (await memory.search("olives")).memories[0].text == "Olives"
        assert await memory.waiting() == ()
        assert (await memory.forget()).left.get("documents", 0) == 0


def test_a_server_that_is_not_there_is_named(system: Open) -> None:
    with Client(f"http://127.0.0.1:{free_port()}", call_s=0.5) as client, pytest.raises(Unreachable, match="127"):
        client.memory("ana").items()
    with Client(system.url, "wrong") as client, pytest.raises(ApiError) as refused:
        client.memory("ana").items()
    assert refused.value.status == 401


def _texts(client: Client, user: str, **bounds: object) -> list[str]:
    return [one.text for one in client.memory(user).search("Porto", **bounds).memories if one.source == "turn"]


def _await_found(client: Client, user: str, count: int) -> None:
    gives_up_at = time.monotonic() + PATIENCE_S
    while len(_texts(client, user)) < count:
        assert time.monotonic() < gives_up_at
        time.sleep(0.05)
