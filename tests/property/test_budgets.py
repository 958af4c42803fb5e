"""The scripts of budgets beside a model in Python: no sequence of calls makes them differ."""

import heapq
import os
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from redis import Redis

from tasklore.memory import keys
from tasklore.memory.budgets import scripts
from tasklore.memory.budgets.store import WAITING
from tasklore.memory.scripts import LIBRARIES
from tasklore.runtime.servers.embedded import EmbeddedServers

#: Sequences of calls in a usual run; each has some forty steps.
SEQUENCES = int(os.environ.get("TASKLORE_BUDGET_SEQUENCES", "100"))
LEASE_MS = 20_000
MINUTE = 60_000
SLOT = 500
#: A rate, a budget without end, a budget of a day, a count.
ACCOUNTS = [
    ("w", "tokens", 1_000),
    ("c", "usd", 5_000),
    ("c", "tokens", 20_000),
    ("l", "at_once", 3),
]


@dataclass
class Open:
    """A call under way in the model."""

    at: int
    needs: list[int]
    until: int
    is_lost: bool = False


@dataclass
class Model:
    """Accounts as they should be."""

    open: dict[str, Open] = field(default_factory=dict)
    closed: set[str] = field(default_factory=set)
    spent: list[int] = field(default_factory=lambda: [0, 0, 0, 0])
    unconfirmed: list[int] = field(default_factory=lambda: [0, 0, 0, 0])
    rate: list[tuple[int, int]] = field(default_factory=list)

    def expire(self, now: int) -> None:
        """Take calls whose lease is over off what is reserved."""
        for call in self.open.values():
            if call.until <= now and not call.is_lost:
                call.is_lost = True
                self.rate.append((min(now, call.at + 2_000) // SLOT, call.needs[0]))
                for index in (1, 2):
                    self.unconfirmed[index] += call.needs[index]

    def reserved(self, index: int) -> int:
        """Return what is reserved on an account."""
        return sum(call.needs[index] for call in self.open.values() if not call.is_lost)

    def used(self, index: int, now: int) -> int:
        """Return what counts against an account."""
        if index == 0:
            counted = sum(
                amount for slot, amount in self.rate if (slot + 1) * SLOT + MINUTE > now
            )
            return counted + self.reserved(0)
        return self.spent[index] + self.unconfirmed[index] + self.reserved(index)

    def reserve(self, call: str, needs: list[int], now: int) -> bool:
        """Return whether there is room on every account, and take it."""
        self.expire(now)
        if call in self.open:
            return True
        if any(
            self.used(index, now) + need > ACCOUNTS[index][2]
            for index, need in enumerate(needs)
        ):
            return False
        self.open[call] = Open(now, needs, now + LEASE_MS)
        return True

    def settle(self, call: str, taken: list[int] | None, now: int) -> None:
        """Close a call by what it took; None is not known."""
        self.expire(now)
        if taken is None:
            if call in self.open:
                self.open[call].until = min(now, self.open[call].until)
                self.expire(now)
            return
        found = self.open.pop(call, None)
        if found is not None:
            if not found.is_lost:
                self.rate.append((min(now, found.at + 2_000) // SLOT, taken[0]))
            for index in (1, 2):
                if found.is_lost:
                    self.unconfirmed[index] -= found.needs[index]
                self.spent[index] += taken[index]
        elif call not in self.closed:
            self.rate.append((now // SLOT, taken[0]))
            for index in (1, 2):
                self.spent[index] += taken[index]
        self.closed.add(call)


@pytest.fixture
def store(servers: EmbeddedServers) -> Iterator[Redis]:
    """Open a client on an empty store that has the scripts."""
    with Redis.from_url(servers.redis_url) as client:
        client.flushdb()
        for name in (scripts.RESERVE, scripts.SETTLE):
            client.function_load(LIBRARIES[name], replace=True)
        yield client


def run(store: Redis, seed: int) -> None:
    """Play one sequence against the scripts, sent at once, and the model."""
    draw = random.Random(seed)
    model = Model()
    now = 1_790_000_000_000 + seed * 1_000_000
    sent = store.pipeline(transaction=False)
    expected = list[tuple[Any, ...]]()
    own = f"s{seed}"
    accounts = [
        keys.budget("account", f"{own}-{index}") for index in range(len(ACCOUNTS))
    ]
    heads = [keys.budget(own, "calls"), keys.budget(own, "leases")]
    book = keys.budget("book", own)
    for _ in range(draw.randint(5, 60)):
        now += draw.choice((0, 10, 700, 3_000, 15_000, 61_000))
        call = f"{own}-c{draw.randint(1, 12)}"
        if draw.random() < 0.55:
            if call in model.closed:
                continue
            tokens = draw.randint(1, 600)
            needs = [tokens, tokens * 2, tokens, 1]
            rows: list[Any] = []
            for (kind, measure, limit), need in zip(ACCOUNTS, needs, strict=True):
                rows += kind, measure, limit, need, "", "", 0
            places = [*heads, keys.budget(own, "accounts")]
            places += [keys.budget(own, name) for name in WAITING]
            for account in accounts:
                places += account, f"{account}:queue"
            given = now, call, call, LEASE_MS, book, "a|b|c", needs[1]
            sent.fcall(scripts.RESERVE, len(places), *places, *given, "", *rows)
            answer = int(model.reserve(call, needs, now))
        else:
            taken = None if draw.random() < 0.2 else draw.randint(0, 400)
            amounts = None if taken is None else [taken, taken * 2, taken]
            model.settle(call, amounts, now)
            kinds = [word for kind, measure, _ in ACCOUNTS for word in (kind, measure)]
            numbers = ["", 0, 0] if taken is None else [1, taken, taken * 2]
            places = [*heads, book, book, *accounts]
            given = (
                now,
                call,
                "a|b|c",
                *numbers,
                taken or 0,
                0,
                0,
                1_000_000,
                "",
                "",
                "",
            )
            sent.fcall(scripts.SETTLE, len(places), *places, *given, *kinds)
            answer = None
        for index in (1, 2):
            sent.hmget(accounts[index], "s", "u", "r")
        sent.scard(accounts[3])
        spent = [
            [model.spent[index], model.unconfirmed[index], model.reserved(index)]
            for index in (1, 2)
        ]
        expected.append((answer, *spent, model.reserved(3)))
    answers = iter(sent.execute())
    for step, (fits, budget, budget_of_day, under_way) in enumerate(expected):
        found = next(answers)
        assert fits is None or found[0] == fits, (seed, step, found)
        assert [int(value or 0) for value in next(answers)] == budget, (seed, step)
        assert [int(value or 0) for value in next(answers)] == budget_of_day, (
            seed,
            step,
        )
        assert next(answers) == under_way, (seed, step)


def test_the_scripts_do_what_the_model_does(store: Redis) -> None:
    """What is reserved, spent and not confirmed is the same after every step, whatever expires in between."""
    for seed in range(SEQUENCES):
        run(store, seed)
        if seed % 500 == 499:
            store.flushdb()


@pytest.mark.parametrize("answers_ms", [(100, 400), (2_000, 6_000)])
def test_turns_are_kept_when_all_who_wait_come_at_theirs(
    store: Redis, answers_ms: tuple[int, int]
) -> None:
    """No turn is given before there is room, so that lateness does not add up over the minutes that a queue takes."""
    draw = random.Random(1)
    opened = 1_790_000_060_000
    account = keys.budget("account", "rpm")
    places = [
        *(keys.budget(name) for name in ("calls", "leases", "accounts", *WAITING)),
        account,
        f"{account}:queue",
    ]
    store.hset(account, "blocked", str(opened))
    due: dict[int, float] = {}
    begun: dict[int, int] = {}
    # Each waiter asks for its turn, comes back up to 0.3 s after it, and settles its call when that is answered.
    events = [(opened - 50_000 + waiter, "reserve", waiter) for waiter in range(3_000)]
    while events:
        now, event, waiter = heapq.heappop(events)
        if event == "settle":
            taken = "a|b|c", 1, 1, 0, 0, 0, 0, 1_000_000, "", "", "", "w", "requests"
            store.fcall(
                scripts.SETTLE,
                5,
                *places[:2],
                keys.budget("book", "x"),
                keys.budget("book", "x"),
                account,
                now,
                f"c{waiter}",
                *taken,
            )
            continue
        given = (
            now,
            f"c{waiter}",
            f"w{waiter}",
            LEASE_MS,
            keys.budget("book", "x"),
            "a|b|c",
            0,
            300_000,
            "w",
            "requests",
            900,
            1,
            "",
            "",
            1,
        )
        has_room, *rest = store.fcall(scripts.RESERVE, len(places), *places, *given)
        if has_room:
            begun[waiter] = now
            heapq.heappush(events, (now + draw.randint(*answers_ms), "settle", waiter))
        else:
            due.setdefault(waiter, store.zscore(places[-1], f"w{waiter}"))  # type: ignore[arg-type]
            heapq.heappush(
                events, (now + rest[1] + draw.randint(0, 300), "reserve", waiter)
            )
    assert max(begun[waiter] - due[waiter] for waiter in due) <= 400
    # Three cycles of the window and a third, of which less than 5 % is left unused.
    assert max(begun.values()) - opened <= 3_000 / 900 * 60_000 / 0.95
