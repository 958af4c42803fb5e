"""Turns learned from in batches, on a real store: when a batch is ready, and failures within one."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Literal

import pytest
from redis.asyncio import Redis

from tasklore import Agent
from tasklore.contracts.errors import LlmTimeout
from tasklore.contracts.messages import ChatTurn, Fact
from tasklore.memory.conversations.notices import Notices
from tasklore.memory.queues.claims import Closing
from tasklore.workers.listening.context import ListenContext
from tasklore.workers.listening.debounce import BatchLimits
from tasklore.workers.listening.values import TurnBatch, TurnFacts
from tests.integration.listening import Room, eventually, now, now_ms
from tests.integration.sessions import until
from tests.servers import PATIENCE_S

Learn = Callable[[TurnBatch], Awaitable[Sequence[TurnFacts]]]


@pytest.fixture
def room(redis: Redis) -> Room:
    room = Room(redis, patience=BatchLimits(3, 1_000, 5_000))
    room.services.llm.configured = True
    return room


class Batches:
    """A listener that keeps its batches, and learns the words of each turn."""

    def __init__(self, spoils: str = "") -> None:
        self.given: list[list[str]] = []
        self.batches: list[TurnBatch] = []
        self.spoils = spoils

    @property
    def agent(self) -> Agent:
        agent = Agent("Ears")

        @agent.listen("turns")
        async def hear(batch: TurnBatch, context: ListenContext) -> Sequence[TurnFacts]:
            texts = [turn.text for turn in batch.turns]
            self.given.append(texts)
            self.batches.append(batch)
            if self.spoils in texts and self.spoils:
                raise ValueError("a bug")
            return [a_fact(turn) for turn in batch.turns if turn.text != "hello"]

        return agent


def a_fact(turn: ChatTurn) -> TurnFacts:
    """Return the words of *turn* as its one fact."""
    return TurnFacts(turn.turn_id, (Fact(fact_id=f"{turn.turn_id}-0", text=turn.text),))


async def learned(room: Room, user: str = "ann") -> dict[str, list[str]]:
    """Return the texts of the facts about *user* that became rows, by turn id."""
    found: dict[str, list[str]] = {}
    for one in await room.found(user):
        found.setdefault(one.turn_id, []).extend(fact.text for fact in one.facts)
    return found


async def test_a_full_batch_is_learned_from_at_once(room: Room) -> None:
    ears = Batches()
    await room.say("ann", "one", "hello", "three", "four")
    async with room.listening(ears.agent, "turns"):

        async def are_done() -> bool:
            return list((await room.states("turns", "ann")).values()).count("done") == 3

        await eventually(are_done)
        await asyncio.sleep(0.2)
    assert ears.given == [["one", "hello", "three"]]
    assert await learned(room) == {"t1": ["one"], "t3": ["three"]}
    assert (await room.states("turns", "ann"))["t4"] == "waiting"
    assert room.counts.seen == {"turn:learned": 2, "turn:nothing": 1}


async def test_a_batch_is_ready_when_no_more_was_said_for_a_while(room: Room) -> None:
    ears = Batches()
    await room.say("ann", "one", "two")
    async with room.listening(ears.agent, "turns"):
        await asyncio.sleep(0.3)
        assert ears.given == []
        room.services.at += timedelta(seconds=1_001)
        await room.closed("turns", "ann")
    assert ears.given == [["one", "two"]]


async def test_a_history_is_learned_from_in_full_batches(room: Room) -> None:
    """However long ago it was said: what comes in alone waits for more."""
    ears = Batches()

    async def hand_in(*numbers: int) -> None:
        for number in numbers:
            said = ChatTurn(
                turn_id=f"t{number}",
                conversation_id="c",
                user_id="cy",
                speaker="person",
                text=f"text {number}",
                at=datetime(2020, 1, number, tzinfo=UTC),
            )
            await room.turns.append(
                "cy", [(said.turn_id, said.model_dump_json().encode())]
            )

    await hand_in(1, 2)
    async with room.listening(ears.agent, "turns"):
        await asyncio.sleep(0.3)
        assert ears.given == []
        await hand_in(3, 4)
        await eventually(partial(are_learned, room, 3, "cy"))
        assert ears.given == [["text 1", "text 2", "text 3"]]
        room.services.at += timedelta(seconds=1_001)
        await room.closed("turns", "cy")
    assert ears.given[1:] == [["text 4"]]


async def test_a_batch_waits_for_the_facts_of_the_one_before(room: Room) -> None:
    """It is read beside what these made of the documents; for a reply that waits it is read at once."""
    notices = room.notices = Notices(room.redis, deadline_s=PATIENCE_S)
    room.settles = True
    ears = Batches()
    await room.say("ann", *"abcdefghi")
    async with room.listening(ears.agent, "turns"):
        await eventually(partial(are_learned, room, 3))
        await asyncio.sleep(0.5)
        assert len(ears.given) == 1
        claim = await room.facts.claim(
            "ann", holder="m", limit=9, lease_ms=60_000, now_ms=now_ms()
        )
        assert claim is not None
        outcomes: tuple[Closing, ...] = (
            Closing(row_id="t1-0", state="done"),
            Closing(row_id="t2-0", state="rejected"),
            Closing(row_id="t3-0", state="needs_model"),
        )
        await room.facts.close(claim, outcomes)
        await eventually(partial(are_learned, room, 6))
        assert len(ears.given) == 2
        await notices.hurry("ann", 60)
        await eventually(partial(are_learned, room, 9))


async def test_facts_that_nobody_works_on_are_waited_for_half_a_minute(
    room: Room,
) -> None:
    room.settles = True
    ears = Batches()
    await room.say("ann", *"abcdef")
    async with room.listening(ears.agent, "turns"):
        await eventually(partial(are_learned, room, 3))
        await asyncio.sleep(0.5)
        assert len(ears.given) == 1
        room.services.at += timedelta(seconds=31)
        await eventually(partial(are_learned, room, 6))


async def are_learned(room: Room, count: int, user: str = "ann") -> bool:
    """Return whether *count* turns of *user* have facts."""
    return len(await learned(room, user)) == count


async def test_a_hurried_turn_and_one_without_a_model_wait_for_no_batch(
    room: Room,
) -> None:
    notices = room.notices = Notices(room.redis, deadline_s=PATIENCE_S)
    ears = Batches()
    await room.say("ann", "hello")
    await room.say("ben", "other")
    async with room.listening(ears.agent, "turns"):
        await notices.hurry("ann", 60)
        await room.closed("turns", "ann")
        # It taught nothing: no reply waits any longer.
        await until(partial(is_calm, notices))
    assert ears.given == [["hello"]]
    room.services.llm.configured = False
    async with room.listening(ears.agent, "turns"):
        await room.closed("turns", "ben")
    assert ears.given[1:] == [["other"]]


async def is_calm(notices: Notices) -> bool:
    """Return whether no reply waits for Ann."""
    return not await notices.hurries("ann")


async def test_each_turn_of_a_failed_batch_runs_alone(room: Room) -> None:
    ears = Batches(spoils="poison")
    room.patience = BatchLimits(3, idle_s=0)
    await room.say("ann", "one", "poison", "three")
    async with room.listening(ears.agent, "turns"):
        await room.closed("turns", "ann")
    assert await room.states("turns", "ann") == {
        "t1": "done",
        "t2": "failed",
        "t3": "done",
    }
    assert ears.given[:3] == [["one", "poison", "three"], ["one"], ["poison"]]
    assert await learned(room) == {"t1": ["one"], "t3": ["three"]}


async def test_a_batch_stays_whole_while_a_server_is_away(room: Room) -> None:
    agent = Agent("Ears")
    tries = list[int]()

    @agent.listen("turns")
    async def hear(batch: TurnBatch) -> Sequence[TurnFacts]:
        tries.append(len(batch.turns))
        if len(tries) == 1:
            raise LlmTimeout("late")
        return [a_fact(turn) for turn in batch.turns]

    await room.say("ann", "one", "two", "three")
    async with room.listening(agent, "turns"):
        await room.closed("turns", "ann")
    assert tries == [3, 3]
    assert list(await learned(room)) == ["t1", "t2", "t3"]


async def test_facts_of_a_turn_outside_the_batch_are_refused(room: Room) -> None:
    agent = Agent("Ears")

    @agent.listen("turns")
    async def hear(batch: TurnBatch) -> Sequence[TurnFacts]:
        return [TurnFacts("t9")]

    await room.say("ann", "one", "two", "three")
    async with room.listening(agent, "turns"):
        await room.closed("turns", "ann")
    assert set((await room.states("turns", "ann")).values()) == {"failed"}
    assert "which is not in the batch" in (await room.rows("turns", "ann"))[0].reason


@pytest.mark.parametrize("hangs", ["before", "after"])
async def test_a_worker_that_dies_around_the_hand_over_of_a_batch_leaves_all_or_nothing(
    room: Room, hangs: Literal["before", "after"]
) -> None:
    ears = Batches()
    await room.say("ann", "one", "two", "three")
    await room.die_handing_over(ears.agent, hangs)
    whole = {"t1": ["one"], "t2": ["two"], "t3": ["three"]}
    assert await learned(room) == ({} if hangs == "before" else whole)
    async with room.listening(ears.agent, "turns"):
        await room.closed("turns", "ann")
    assert len(ears.given) == (2 if hangs == "before" else 1)
    assert await learned(room) == whole


async def test_the_facts_of_each_turn_of_a_batch_go_on_in_its_own_trace(
    room: Room,
) -> None:
    traces = {f"t{number}": f"00-{str(number) * 32}-{'b' * 16}-01" for number in (1, 2)}
    await room.say("ann", "one", "two", "three")
    said = {row.row_id: row.body for row in await room.rows("turns", "ann")}
    await room.turns.forget("ann")
    for turn_id, body in said.items():
        trace = traces.get(turn_id, "")
        await room.turns.append("ann", [(turn_id, body)], trace=trace)
    async with room.listening(Batches().agent, "turns"):
        await room.closed("turns", "ann")
    claim = await room.facts.claim("ann", holder="w", limit=9, lease_ms=1000, now_ms=0)
    assert claim is not None
    assert [row.trace for row in claim.rows] == [traces["t1"], traces["t2"], ""]


async def test_a_batch_has_the_turns_around_it(room: Room) -> None:
    begin = now() - timedelta(hours=1)

    def said(number: int, speaker: str, user: str | None, minute: int) -> ChatTurn:
        at = begin + timedelta(minutes=minute)
        return ChatTurn(
            turn_id=f"x{number}", conversation_id="c", user_id=user, speaker=speaker, text=f"said {number}", at=at  # type: ignore[arg-type]
        )  # fmt: skip

    room.services.turns = (
        said(1, "assistant", "ann", 1),
        said(2, "person", "ben", 2),
        said(3, "assistant", None, 3),
        said(4, "assistant", "ann", 600),
    )
    ears = Batches()
    await room.say("ann", "one", "two", "three")
    async with room.listening(ears.agent, "turns"):
        await room.closed("turns", "ann")
    assert [turn.turn_id for turn in ears.batches[0].before] == ["x1", "x3"]


async def test_notices_are_put_once_and_taken_once(redis: Redis) -> None:
    notices = Notices(redis)
    await notices.put("ann", "t1", ["you love sushi"])
    await notices.put("ann", "t2", ["no longer: Acme", "you work at Beta"])
    await notices.put("ann", "t3", [])
    await notices.put("ben", "t1", ["you are Ben"])
    taken = [
        ("t1", ("you love sushi",)),
        ("t2", ("no longer: Acme", "you work at Beta")),
    ]
    assert await notices.take("ann") == taken
    assert await notices.take("ann") == []
    assert await notices.forget("ben") == 1
    assert await notices.take("ben") == []
