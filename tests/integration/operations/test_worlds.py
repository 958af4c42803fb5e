"""Operations on worlds, on a real Valkey: what is told to an agent, what waits for it, and who may do that."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from redis.asyncio import Redis

from tasklore.contracts.callers import Caller
from tasklore.contracts.errors import InvalidInput, NotPermitted, OwnerFull
from tasklore.contracts.observations import Observation
from tasklore.memory.conversations.conversation import Conversations
from tasklore.memory.conversations.inbox import Inbox
from tasklore.memory.conversations.observations import Observations
from tasklore.memory.ledger.ledger import Ledger
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.admission.owner_bounds import OwnerBounds
from tasklore.supervisor.dispatch import Dispatch
from tasklore.supervisor.operations.refusals import Refused
from tasklore.supervisor.operations.worlds import (
    OPERATIONS,
    DeliveredMessage,
    WorldMessage,
    WorldServices,
    list_unheard,
    tell_agent,
)
from tests.integration.operations.doors import door_of

RADIO = Caller(name="radio", roles=frozenset({"ask", "read"}))
ANN = RADIO.model_copy(update={"name": "ann", "user": "ann"})
BOB = RADIO.model_copy(update={"name": "bob", "user": "bob"})
ACME = RADIO.model_copy(update={"name": "acme", "tenant": "acme"})
RIVAL = RADIO.model_copy(update={"name": "rival", "tenant": "rival"})


@pytest.fixture
def services(redis: Redis) -> WorldServices:
    return serve(redis, OwnerBounds())


def serve(redis: Redis, bounds: OwnerBounds) -> WorldServices:
    return WorldServices(
        conversations=Conversations(redis, deadline_s=30.0),
        inbox=Inbox(redis, deadline_s=30.0),
        dispatch=Dispatch(None, Ledger(redis), bounds=bounds),  # type: ignore[arg-type]  # nothing is sent
    )


async def tell(
    services: WorldServices,
    caller: Caller,
    place: str = "coins.Ana",
    *,
    key: str | None = None,
    **more: object,
) -> DeliveredMessage:
    said = {"sender": "Bob", "message": "A storm!", "conversation_id": place}
    wanted = WorldMessage.model_validate({**said, **more})
    return await tell_agent(services, caller, wanted, idempotency_key=key)


async def unheard(
    services: WorldServices, caller: Caller, place: str = "coins.Ana"
) -> list[str]:
    found = await list_unheard(services, caller, conversation_id=place)
    return [one.message for one in found.messages]


async def test_what_is_told_waits_until_a_task_takes_it(
    services: WorldServices,
) -> None:
    told = await tell(services, RADIO, time=8, message_id="Bob-17", user="bob")
    assert told.model_dump() == {
        "conversation_id": "coins.Ana",
        "message_id": "Bob-17",
        "time": 8.0,
        "is_new": True,
    }
    waiting = await list_unheard(services, RADIO, conversation_id="coins.Ana")
    assert [one.model_dump() for one in waiting.messages] == [
        {"message_id": "Bob-17", "sender": "Bob", "message": "A storm!", "time": 8.0}
    ]
    assert await services.conversations.of_user("bob") == ["coins.Ana"]
    taken = await services.inbox.take("coins.Ana", "t1")
    assert [one.message for one in taken.history.current] == ["A storm!"]
    assert await unheard(services, RADIO) == []


async def test_the_same_message_is_told_once_and_an_id_is_its_senders(
    services: WorldServices,
) -> None:
    for is_new in (True, False):
        assert (await tell(services, RADIO, message_id="m1")).is_new is is_new
    assert (await tell(services, RADIO, message_id="m1", sender="Eve")).is_new
    first = await tell(services, RADIO, key="once")
    again = await tell(services, RADIO, key="once")
    assert (first.message_id, first.is_new, again.is_new) == (again.message_id, True, False)  # fmt: skip
    ids = {(await tell(services, RADIO)).message_id for _ in range(2)}
    assert len(ids) == 2


async def test_without_a_time_it_is_that_of_what_the_agent_observed_last(
    services: WorldServices, redis: Redis
) -> None:
    assert (await tell(services, RADIO)).time == 0.0
    seen = Observation(time=41.5)
    await Observations(redis, 30.0).note("coins.Ana", "t1", seen)
    assert (await tell(services, RADIO)).time == 41.5
    # As a command sends it.
    assert (await tell(services, RADIO, time="8")).time == 8.0


@pytest.mark.parametrize(
    "wrong",
    [
        {"message": " "},
        {"sender": ""},
        {"time": -1},
        {"time": True},
        {"time": "soon"},
        {"message_id": "a b"},
    ],
)
async def test_what_cannot_be_said_is_refused(
    services: WorldServices, wrong: Mapping[str, object]
) -> None:
    with pytest.raises((InvalidInput, ValueError)):
        await tell(services, RADIO, **wrong)
    assert await unheard(services, RADIO) == []


async def test_nobody_speaks_or_looks_into_the_world_of_somebody_else(
    services: WorldServices,
) -> None:
    assert (await tell(services, ANN, "hers")).is_new
    assert (await tell(services, ACME, "acmes")).is_new
    for caller, place in ((BOB, "hers"), (ACME, "hers"), (RIVAL, "acmes"), (ANN, "acmes")):  # fmt: skip
        with pytest.raises(Refused) as refused:
            await tell(services, caller, place)
        assert refused.value.problem.status == 403
        with pytest.raises(Refused) as refused:
            await unheard(services, caller, place)
        assert refused.value.problem.status == 404
    with pytest.raises(NotPermitted, match="another user"):
        await tell(services, ANN, "hers", user="bob")
    for caller, place in ((ANN, "hers"), (ACME, "acmes"), (RADIO, "hers")):
        assert await unheard(services, caller, place) == ["A storm!"]
    # Of what is said to her agent only her own words are shown to ann.
    await tell(services, RADIO, "hers", message="Theirs", user="bob")
    assert await unheard(services, ANN, "hers") == ["A storm!"]
    assert await unheard(services, RADIO, "hers") == ["A storm!", "Theirs"]


async def test_who_keeps_too_much_says_nothing(redis: Redis) -> None:
    class Full(OwnerBounds):
        """Bounds that are met."""

        async def demand(self, *_: object) -> None:
            raise OwnerFull("too much", 30.0)

    services = serve(redis, Full())
    with pytest.raises(OwnerFull):
        await tell(services, RADIO)
    assert await unheard(services, RADIO) == []


async def test_messages_are_told_and_listed_over_http_in_pages(
    servers: EmbeddedServers, redis: Redis, tmp_path: Path, services: WorldServices
) -> None:
    door = door_of(
        servers, redis, tmp_path, services, OPERATIONS, radio=("ask",), reader=("read",)
    )  # fmt: skip
    path = "/v1/worlds/messages"
    async with door as desks:
        for word in ("one", "two", "three"):
            body = {"conversation_id": "coins.Ana", "sender": "Bob", "message": word}
            told = await desks["radio"].ask("POST", path, json=body)
            assert (told.status_code, told.json()["is_new"]) == (200, True)
        seen: list[str] = []
        after = ""
        while True:
            page = f"{path}?conversation_id=coins.Ana&limit=2&after={after}"
            found = (await desks["reader"].ask("GET", page)).json()
            seen += [one["message"] for one in found["messages"]]
            if found["after"] is None:
                break
            after = found["after"]
        assert seen == ["one", "two", "three"]
        assert (await desks["reader"].ask("POST", path, json=body)).status_code == 403
        assert (await desks["radio"].ask("GET", path)).status_code == 403
