"""Owned records on a real server beside a model in a dict: owners, makers, due times, lost replies and forgetting."""

import asyncio
import itertools
import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from redis.asyncio import Redis

from tasklore.contracts.identifiers import user_token
from tasklore.memory import keys
from tasklore.memory.command_batch import CommandBatch
from tasklore.memory.functions import load_functions
from tasklore.memory.records.owned import OwnedRecords, RecordBounds, RecordPlace
from tasklore.runtime.servers.embedded import EmbeddedServers
from tests.property.examples import examples
from tests.servers import PATIENCE_S

BOUNDS = RecordBounds(of_owner=3, of_maker=2, of_all=6)
LEASE = timedelta(seconds=30)
#: Users, those of code, and nobody; and who made a record, nobody too.
OWNERS = (user_token("ann"), user_token("bob"), "~code", "")
MAKERS = ("", "acme", "acmes")
IDS = tuple("abcdefghij")
#: Tells the keys of one example from those of another.
NUMBERS = itertools.count()


@dataclass
class Held:
    """A record as it should be: its text with its version, its state, and when to look at it."""

    place: RecordPlace
    version: int
    text: str
    state: str
    due: datetime | None


Kept = tuple[dict[str, Any], str]


def read(record: bytes, state: bytes) -> Kept:
    return json.loads(record), state.decode()


def place_of(kept: Kept) -> RecordPlace:
    return RecordPlace(*kept[0]["place"])


class Records(RuleBasedStateMachine):
    """Steps on records, as several processes take them."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.url = url
        self.runner = asyncio.Runner()
        self.held: dict[str, Held] = {}
        self.now = datetime(2026, 1, 1, tzinfo=UTC)
        self.states = itertools.count()

    @initialize()
    def connect(self) -> None:
        self.keys = keys.schedules(f"property-{next(NUMBERS)}")
        self.redis = Redis.from_url(self.url, socket_timeout=PATIENCE_S)
        self.run(load_functions(self.redis))
        self.records = OwnedRecords[Kept](
            CommandBatch(self.redis, PATIENCE_S), self.keys, read=read, place=place_of
        )

    def run(self, waited: Any) -> Any:
        return self.runner.run(waited)

    def teardown(self) -> None:
        if hasattr(self, "redis"):
            self.run(self.redis.unlink(*self.keys))
            self.run(self.redis.aclose())
        self.runner.close()

    def in_order(self, owner: str | None) -> list[Held]:
        """Return the records of *owner*, or all, as they are listed."""
        return sorted(
            (
                one
                for one in self.held.values()
                if owner is None or one.place.owner == owner
            ),
            key=lambda one: f"{one.place.owner}:{one.place.id}",
        )

    def expect_put(self, held: Held) -> int:
        """Return what storing *held* is answered with, and keep it where that is 1."""
        place, before = held.place, self.held.get(held.place.id)
        if before is not None:
            if before.text == held.text:
                return 1
            if before.version != held.version - 1:
                return 0
        else:
            if held.version != 1:
                return 0
            made = [one for one in self.held.values() if one.place.maker == place.maker]
            if len(self.in_order(place.owner)) >= BOUNDS.of_owner:
                return -1
            if len(self.held) >= BOUNDS.of_all:
                return -2
            if place.maker and len(made) >= BOUNDS.of_maker:
                return -3
        self.held[place.id] = held
        return 1

    @rule(
        record_id=st.sampled_from(IDS),
        owner=st.sampled_from(OWNERS),
        maker=st.sampled_from(MAKERS),
        skipped=st.sampled_from((0, 0, 0, 1)),
        due_in=st.none() | st.integers(0, 90),
        times=st.sampled_from((1, 1, 2)),
    )
    def put(
        self,
        record_id: str,
        owner: str,
        maker: str,
        skipped: int,
        due_in: int | None,
        times: int,
    ) -> None:
        """Store a new record, or the next version; once more where the first reply was lost."""
        before = self.held.get(record_id)
        place = before.place if before else RecordPlace(record_id, owner, maker)
        version = (before.version if before else 0) + 1 + skipped
        body = {"version": version, "place": place, "said": f"zebra {place.owner}"}
        held = Held(
            place,
            version,
            text=json.dumps(body),
            state=f"state {next(self.states)}",
            due=None if due_in is None else self.now + timedelta(seconds=due_in),
        )
        for _ in range(times):
            done = self.records.put(
                place,
                held.text,
                version=version,
                state=held.state,
                look_at=held.due,
                bounds=BOUNDS,
            )
            assert self.run(done) == self.expect_put(held)

    @rule(seconds=st.integers(0, 60), limit=st.integers(1, 4))
    def take(self, seconds: int, limit: int) -> None:
        """Take what is due after a while; whoever has it may be gone, then it is due again."""
        self.now += timedelta(seconds=seconds)
        due = sorted(
            (one.due, one.place.id)
            for one in self.held.values()
            if one.due is not None and one.due <= self.now
        )
        taken = self.run(
            self.records.take(
                self.now, lease_ms=LEASE // timedelta(milliseconds=1), limit=limit
            )
        )
        assert taken == [record_id for _, record_id in due[:limit]]
        for record_id in taken:
            self.held[record_id].due = self.now + LEASE

    @rule(
        record_id=st.sampled_from(IDS),
        is_stale=st.booleans(),
        is_older=st.booleans(),
        due_in=st.none() | st.integers(0, 90),
    )
    def note(
        self, record_id: str, is_stale: bool, is_older: bool, due_in: int | None
    ) -> None:
        """Note how far a record is, or what somebody else had noted, or changed, before."""
        held = self.held.get(record_id)
        state = f"state {next(self.states)}"
        look_at = None if due_in is None else self.now + timedelta(seconds=due_in)
        done = self.records.note(
            record_id,
            version=(held.version if held else 1) - is_older,
            before="another" if is_stale or held is None else held.state,
            state=state,
            look_at=look_at,
        )
        is_right = held is not None and not is_stale and not is_older
        assert self.run(done) is is_right
        if held is not None and is_right:
            held.state, held.due = state, look_at

    @rule(record_id=st.sampled_from(IDS), times=st.sampled_from((1, 2)))
    def remove(self, record_id: str, times: int) -> None:
        """Remove a record, once more where the first reply was lost."""
        for _ in range(times):
            held = self.held.pop(record_id, None)
            place = held.place if held else RecordPlace(record_id, OWNERS[0])
            assert self.run(self.records.remove(place)) is (held is not None)

    @rule(owner=st.sampled_from(OWNERS[:2]))
    def forget(self, owner: str) -> None:
        """Leave no byte of an owner, and everybody else's as it was."""
        theirs = self.in_order(owner)
        assert self.run(self.records.count(owner)) == len(theirs)
        assert self.run(self.records.forget(owner)) == len(theirs)
        for one in theirs:
            del self.held[one.place.id]
        assert owner not in self.run(self.everything())

    @rule(owner=st.sampled_from((None, *OWNERS)), limit=st.integers(1, 4))
    def list(self, owner: str | None, limit: int) -> None:
        """List page by page what an owner has, or all have."""
        found: list[Kept] = []
        after = ""
        while page := self.run(self.records.list(owner, after=after, limit=limit)):
            assert len(page) <= limit
            found += page
            after = place_of(page[-1]).id
        expected = [(json.loads(one.text), one.state) for one in self.in_order(owner)]
        assert found == expected
        if owner is not None:
            assert self.run(self.records.count(owner)) == len(expected)

    @rule(record_id=st.sampled_from(IDS))
    def read(self, record_id: str) -> None:
        held = self.held.get(record_id)
        (found,) = self.run(self.records.read(record_id))
        assert found == (held and (json.loads(held.text), held.state))

    @invariant()
    def keeps_nothing_else(self) -> None:
        """Each set has what the model has, and nothing lies beside the declared keys."""
        if not hasattr(self, "redis"):
            return
        at = self.keys
        held = self.held.values()

        pipeline = self.redis.pipeline(transaction=False)
        pipeline.hlen(at.records)
        pipeline.hlen(at.state)
        pipeline.zrange(at.due, 0, -1, withscores=True)
        pipeline.zcard(at.owned)
        pipeline.zcard(at.made)
        pipeline.keys(f"{at.records}*")
        *sizes, found = self.run(pipeline.execute())
        sizes[2] = dict(sizes[2])
        assert {one.decode() for one in found} <= {*at}
        assert sizes == [
            len(held),
            len(held),
            {
                one.place.id.encode(): one.due.timestamp() * 1000
                for one in held
                if one.due is not None
            },
            len(held),
            sum(one.place.maker != "" for one in held),
        ]

    async def everything(self) -> str:
        """Return all that lies in the keys, as one text."""
        redis, at = self.redis, self.keys
        hashes = [await redis.hgetall(one) for one in (at.records, at.state)]
        sets = [await redis.zrange(one, 0, -1) for one in (at.due, at.owned, at.made)]
        return repr((hashes, sets))


def test_owned_records_are_kept_as_a_model_in_a_dict_keeps_them(
    servers: EmbeddedServers,
) -> None:
    run_state_machine_as_test(  # type: ignore[no-untyped-call]  # hypothesis has no types for it
        lambda: Records(servers.redis_url),
        settings=examples(40, stateful_step_count=40),
    )
