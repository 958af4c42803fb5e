"""A kept reading of a request is followed as it was kept: by another version, and without the memory."""

from dataclasses import replace
from typing import Any

import pytest
from redis.asyncio import Redis

from tasklore.contracts.errors import MemoryUnavailable
from tasklore.contracts.identifiers import new_id
from tasklore.memory.conversations.conversation import Conversations
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.understanding import Interpretation, Understood
from tasklore.supervisor.understanding.outcome import Several
from tests.integration.test_hostile_dispatch import standing
from tests.integration.test_repeats import ONE, OTHER, TWO, Desk, Fickle, tasks_of

#: What of a kept reading a later version would write otherwise.
LATER = [(b'"kind":"task"', b'"kind":"dream"'), (b'"form":1', b'"form":3')]


def by_model(found: Interpretation) -> Interpretation:
    if isinstance(found, Several):
        return Several(
            tuple(
                replace(one, by_model=True)
                for one in found.parts
                if isinstance(one, Understood)
            )
        )
    return replace(found, by_model=True) if isinstance(found, Understood) else found


@pytest.mark.parametrize("written", LATER, ids=["another kind of part", "another form"])
async def test_a_reading_of_a_later_version_is_refused_and_left_as_it_is(
    servers: EmbeddedServers, redis: Redis, written: tuple[bytes, bytes]
) -> None:
    async with standing(servers, redis) as stand:
        desk = Desk(stand, redis)
        store = Conversations(redis)
        request = desk.request(request_id=new_id(0))
        fickle = Fickle([TWO, ONE])
        handed = await desk.kill(desk.service(fickle), request, 2)
        [kept] = await store.recent(desk.conversation_id)
        later = kept.replace(*written)
        before = await stand.last()
        assert await store.replace(desk.conversation_id, kept, later)
        told = [await desk.service(fickle).answer(request) for _ in range(2)]
        assert await store.recent(desk.conversation_id) == [later]
        assert await store.replace(desk.conversation_id, later, kept)
        assert tasks_of(await desk.service(fickle).answer(request)) == [
            one.task for one in handed
        ]
        assert await stand.last() == before
    assert fickle.asked == 1
    assert [reply.kind for reply in told] == ["failed"] * 2
    assert "another version" in told[0].text


@pytest.mark.parametrize("read", [ONE, TWO], ids=["one task", "two tasks"])
async def test_what_a_model_read_starts_nothing_until_it_is_kept(
    servers: EmbeddedServers, redis: Redis, read: Interpretation
) -> None:
    """Another supervisor could get another answer; what the rules read alone is begun all the same."""

    class Away(Conversations):
        async def append(self, *_arguments: object, **_named: object) -> bool:
            raise MemoryUnavailable("away")

    async with standing(servers, redis) as stand:
        before = await stand.last()
        desk = Desk(stand, redis)
        request = desk.request(request_id=new_id(0))
        away = Away(redis)
        refused = await desk.service(
            Fickle([by_model(read)]), conversations=away
        ).answer(request)
        assert await stand.last() == before
        begun = await desk.service(Fickle([by_model(OTHER)])).answer(request)
        assert await stand.last() == before + 1
        await desk.service(Fickle([read]), conversations=away).answer(
            desk.request(request_id=new_id(0))
        )
        assert await stand.last() > before + 1
    assert (refused.kind, tasks_of(refused)) == ("failed", [None])
    assert "Nothing was started now" in refused.text
    assert tasks_of(begun) == [OTHER.task]


@pytest.mark.parametrize(
    "away", [(True, True), (True, False), (False, True)], ids=["both", "first", "then"]
)
async def test_other_words_under_an_id_are_refused_also_without_the_memory(
    servers: EmbeddedServers, redis: Redis, away: tuple[bool, bool]
) -> None:
    """Their task would have the id of the first one, whose result would stand under them."""
    is_away = iter(away)

    class Shaky(Conversations):
        gone = False

        async def append(self, *arguments: Any, **named: Any) -> bool:
            self._fail()
            return await super().append(*arguments, **named)

        async def recent(self, *arguments: Any) -> list[bytes]:
            self._fail()
            return await super().recent(*arguments)

        def _fail(self) -> None:
            if self.gone:
                raise MemoryUnavailable("away")

    async with standing(servers, redis) as stand:
        before = await stand.last()
        desk = Desk(stand, redis)
        store = Shaky(redis)
        request_id = new_id(0)
        service = desk.service(Fickle([ONE, OTHER]), conversations=store)
        told = []
        for text in ("hm", "something else"):
            store.gone = next(is_away)
            told.append(await service.answer(desk.request(text, request_id=request_id)))
        assert await stand.last() == before + 1
    assert [reply.kind for reply in told] == ["pending", "failed"]
    assert "came with other words before" in told[1].text
