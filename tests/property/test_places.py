"""Places beside a model in Python: no sequence of runs, ends, crashes and lost replies gives more than there are."""

import os
import random
from datetime import UTC, datetime, timedelta

from redis.asyncio import Redis

from tasklore.memory import keys
from tasklore.memory.concurrency.semaphore import (
    Full,
    HeldElsewhere,
    Permit,
    Semaphore,
    Taken,
)
from tasklore.memory.functions import load_functions
from tasklore.runtime.servers.embedded import EmbeddedServers

SEQUENCES = int(os.environ.get("TASKLORE_PLACE_SEQUENCES", "20"))
LEASE_S = 30.0
MARGIN_S = 1.0


class Model:
    """Places of one bound, and those that wait, as they should be."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.now = 0.0
        self.held: dict[str, tuple[str, str, float]] = {}
        self.queue: dict[str, int] = {}
        self.seen: dict[str, float] = {}

    def tidy(self) -> None:
        """Drop places past their lease, and waiters that did not look for a quarter of an hour."""
        self.held = {
            task: held for task, held in self.held.items() if held[2] > self.now
        }
        for task in [task for task, at in self.seen.items() if at <= self.now - 900]:
            del self.queue[task], self.seen[task]

    @property
    def free(self) -> int:
        """How many places there are left."""
        return self.limit - len(self.held)

    def ahead(self, place: Permit) -> int:
        """Return how many wait that go before a task."""
        arrival = self.queue.get(place.task, place.arrival)
        listed = [(at, task) for task, at in self.queue.items() if task != place.task]
        if place.task in self.queue:
            return sum(one < (arrival, place.task) for one in listed)
        return sum(at < arrival for at, _ in listed)

    def take(self, place: Permit) -> type:
        """Return the kind of answer that a run gets."""
        if (own := self.held.get(place.task)) is not None:
            if own[0] != place.worker_id:
                return HeldElsewhere
        elif self.ahead(place) >= self.free:
            return Full
        self.held[place.task] = (
            place.worker_id,
            place.token,
            self.now + LEASE_S + MARGIN_S,
        )
        self.queue.pop(place.task, None)
        self.seen.pop(place.task, None)
        return Taken

    def turns(self) -> list[str]:
        """Return the tasks whose turn it is."""
        order = sorted(self.queue, key=lambda task: (self.queue[task], task))
        return order[: max(0, self.free)]


async def test_places_are_given_as_a_model_in_python_gives_them(
    servers: EmbeddedServers,
) -> None:
    """Each step answers alike, and there are never more runs than places."""
    async with Redis.from_url(servers.redis_url) as redis:
        await load_functions(redis)
        for seed in range(SEQUENCES):
            await play(redis, seed)


async def play(redis: Redis, seed: int) -> None:
    """Play one sequence against the scripts and the model."""
    draw = random.Random(seed)
    model = Model(draw.randint(1, 3))
    begun = datetime(2026, 1, 1, tzinfo=UTC)
    bound = f"A.run:{seed}"
    store = Semaphore(redis, LEASE_S, now=lambda: begun + timedelta(seconds=model.now))
    tokens = dict.fromkeys(range(8), 0)
    for step in range(60):
        model.now = round(model.now + draw.choice((0, 0.5, 5, 20, 40, 400)), 1)
        model.tidy()
        number = draw.randrange(8)
        kind = draw.choice(
            (
                "take",
                "take",
                "take twice",
                "queue",
                "leave",
                "leave",
                "end",
                "hold",
                "crash",
            )
        )
        # A worker that crashed tells the store nothing, and its task comes again under another token.
        tokens[number] += kind in ("take", "take twice", "crash")
        token = f"t{number}-{tokens[number]}"
        # It may come again with a later message: its turn stays that of the first.
        arrival = 1_000 + draw.randrange(24)
        place = Permit(
            bound, f"t{number}:1", model.limit, f"w{draw.randrange(3)}", token, arrival
        )
        if kind == "crash":
            continue
        if kind.startswith("take"):
            for _ in range(1 + (kind == "take twice")):
                # The first reply was lost.
                assert type(await store.take(place)) is model.take(place), (seed, step)
        else:
            assert await act(kind, store, model, place), (seed, step)
        held, _, queue, _ = keys.places(bound)
        assert {one.decode() for one in await redis.zrange(held, 0, -1)} == set(
            model.held
        ), (seed, step)
        assert len(model.held) <= model.limit
        order = sorted(model.queue, key=lambda task: (model.queue[task], task))
        assert [one.decode() for one in await redis.zrange(queue, 0, -1)] == order, (
            seed,
            step,
        )


async def act(kind: str, store: Semaphore, model: Model, place: Permit) -> bool:
    """Do one thing with both, and return whether they agree."""
    task = place.task
    own = model.held.get(place.task)
    is_own = own is not None and own[1] == place.token
    if kind == "queue":
        is_waiting = await store.queue(place)
        if own is not None:
            return is_waiting
        model.queue.setdefault(task, place.arrival)
        model.seen[task] = model.now
        return is_waiting == (model.ahead(place) >= model.free)
    if kind == "hold":
        lost = await store.hold([place])
        if own is not None and is_own:
            model.held[task] = (own[0], own[1], model.now + LEASE_S + MARGIN_S)
        return lost == ([] if is_own else [place])
    if kind == "leave" and is_own:
        del model.held[task]
    if kind == "end":
        model.queue.pop(task, None)
        model.seen.pop(task, None)
        place = place._replace(token="")
    return await store.leave(place) == model.turns()


async def test_those_that_wait_begin_in_order_of_arrival(
    servers: EmbeddedServers,
) -> None:
    """Also before a newcomer that looks at the moment when a place is given up."""
    async with Redis.from_url(servers.redis_url) as redis:
        await load_functions(redis)
        store = Semaphore(redis)
        places = [
            Permit("A.order", f"t{number}:1", 1, "w", f"token{number}", number)
            for number in range(5)
        ]
        assert isinstance(await store.take(places[0]), Taken)
        for place in reversed(places[1:4]):
            assert isinstance(await store.take(place), Full)
            assert await store.queue(place)
        assert await store.leave(places[0]) == ["t1:1"]
        assert isinstance(await store.take(places[4]), Full)
        for place in places[1:4]:
            assert isinstance(await store.take(place), Taken)
            await store.leave(place)
        assert isinstance(await store.take(places[4]), Taken)


async def test_a_place_that_is_kept_goes_to_the_next_run_of_its_task_and_lapses_without_one(
    servers: EmbeddedServers,
) -> None:
    """On whichever worker; others have it once the task is late."""
    async with Redis.from_url(servers.redis_url) as redis:
        await load_functions(redis)
        at = datetime(2026, 1, 1, tzinfo=UTC)
        store = Semaphore(redis, now=lambda: at)
        mine, other = [
            Permit("A.keep", f"t{number}:1", 1, "w", f"token{number}", number)
            for number in range(2)
        ]
        for is_late in (False, True):
            assert isinstance(await store.take(mine), Taken)
            await store.keep(mine, 2_000)
            assert await store.hold([mine]) == [mine]
            assert isinstance(await store.take(other), Full)
            at += timedelta(seconds=3 * is_late)
            assert isinstance(await store.take(other), Taken if is_late else Full)
            assert isinstance(
                await store.take(mine._replace(worker_id="v")),
                Full if is_late else Taken,
            )
            await store.leave(mine)


async def test_a_task_whose_turn_came_before_it_was_listed_is_told_so(
    servers: EmbeddedServers,
) -> None:
    """No one would call it."""
    async with Redis.from_url(servers.redis_url) as redis:
        await load_functions(redis)
        store = Semaphore(redis)
        first, second = [
            Permit("A.race", f"t{number}:1", 1, "w", f"token{number}", number)
            for number in range(2)
        ]
        assert isinstance(await store.take(first), Taken)
        assert isinstance(await store.take(second), Full)
        assert await store.leave(first) == []
        assert not await store.queue(second)
        assert isinstance(await store.take(second), Taken)
