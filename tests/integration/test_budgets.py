"""Limits, accounts and books on a real Valkey: versions and their conflicts, and what readers see of them."""

import asyncio
import time
from datetime import UTC, datetime, timedelta

import pytest
from redis.asyncio import Redis

from tasklore.contracts.admission.limits import NANO_USD, Limits, Payer, read_limits
from tasklore.contracts.errors import VersionConflict
from tasklore.memory import keys
from tasklore.memory.budgets.overview import read_overview
from tasklore.memory.budgets.store import (
    FROM_FILE,
    KEPT_COSTS,
    Budgets,
    Spending,
    book_field,
    book_of,
)

NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)
DAY = f"{NOW:%Y-%m-%d}"


def limits(*names: str, tokens: int = 100) -> Limits:
    return read_limits(
        {
            "limits": [
                {"name": name, "tokens": tokens, "every": "minute"} for name in names
            ]
        }
    )


async def test_a_change_over_an_old_version_is_refused_and_the_history_has_every_version(
    redis: Redis,
) -> None:
    """Of two people who read the same version one is told to look again."""
    budgets = Budgets(redis)
    assert (await budgets.read()).version == 0
    assert await budgets.change(limits("a"), "ada", over=0) == 1
    with pytest.raises(VersionConflict, match="read them again"):
        await budgets.change(limits("b"), "bob", over=0)
    assert await budgets.change(limits("b"), "bob", over=1) == 2
    assert await budgets.change(limits("c"), "eve") == 3
    assert (await budgets.read()).limits == limits("c")
    assert [(one.version, one.who, one.limits) for one in await budgets.history()] == [
        (3, "eve", limits("c")),
        (2, "bob", limits("b")),
        (1, "ada", limits("a")),
    ]


async def test_a_file_is_applied_once_and_stands_back_until_it_differs(
    redis: Redis,
) -> None:
    """Also when several supervisors start at once, and after more changes than the history holds."""
    budgets = Budgets(redis)
    versions = await asyncio.gather(
        *(Budgets(redis).apply_file(limits("a"), "limits.toml") for _ in range(5))
    )
    assert sorted(versions, key=bool) == [None] * 4 + [1]
    assert (await budgets.read()).who == f"{FROM_FILE}limits.toml"
    for _ in range(101):
        await budgets.change(limits("by-hand"), "ada")
    assert await budgets.apply_file(limits("a"), "limits.toml") is None
    assert (await budgets.read()).limits == limits("by-hand")
    assert await budgets.apply_file(limits("b"), "limits.toml") == 103


async def test_a_rate_counts_the_last_minute_whether_it_was_tidied_or_not(
    redis: Redis,
) -> None:
    """By the server's clock; it refills when the oldest half second leaves, or when the provider wants calls again."""
    budgets = Budgets(redis)
    slot = int(time.time() * 2)
    await budgets.change(limits("rate", "blocked"), "ada")
    fields = {
        f"s{slot - 140}": 50,
        f"s{slot - 60}": 20,
        f"s{slot}": 5,
        "t": 75,
        "r": 10,
        "at": slot,
    }
    blocked_until_ms = int(time.time() * 1000) + 9_000
    for name, more in (("rate", {}), ("blocked", {"blocked": blocked_until_ms})):
        await redis.hset(keys.budget("account", name), mapping=fields | more)
        await redis.zadd(keys.budget("accounts"), {keys.budget("account", name): 1})
    now_ms = time.time() * 1000
    await redis.zadd(
        keys.budget("account", "rate") + ":queue",
        {"a": now_ms + 500, "lost": now_ms - 60_000},
    )
    before_s = time.time()
    overview = await read_overview(budgets, datetime.now(UTC))
    after_s = time.time()
    rate, blocked = overview.accounts
    assert (rate.spent, rate.reserved, rate.left, rate.waiting) == (25, 10, 65, 1)
    for account, refills_at_s in (
        (rate, slot / 2 + 30),
        (blocked, blocked_until_ms / 1000),
    ):
        assert account.refills_in_s is not None
        assert before_s - 1 <= refills_at_s - account.refills_in_s <= after_s + 1


async def test_a_budget_of_another_day_is_unspent_and_dollars_are_dollars(
    redis: Redis,
) -> None:
    """What is reserved stays: those calls are under way now."""
    budgets = Budgets(redis)
    usd = {"usd": "2.5", "every": "day"}
    made = [
        {"name": "old", **usd},
        {"name": "each", "tenant": "*", **usd},
        {"name": "calls", "at_once": 3},
    ]
    await budgets.change(read_limits({"limits": made}), "ada")
    spent = {"s": 2 * NANO_USD, "u": NANO_USD // 4, "r": NANO_USD // 8}
    for name, window in (
        ("old", "2026-11-26"),
        ("each;tenant=x", DAY),
        ("each;tenant=y;z", DAY),
        ("gone", DAY),
    ):
        half = {
            field: amount // (2 if "y" in name else 1)
            for field, amount in spent.items()
        }
        await redis.hset(keys.budget("account", name), mapping={**half, "win": window})
        await redis.zadd(keys.budget("accounts"), {keys.budget("account", name): 1})
    # Left behind by the limit when it was one for all.
    await redis.hset(keys.budget("account", "each"), mapping={**spent, "win": DAY})
    await redis.sadd(keys.budget("account", "calls"), "c1", "c2")
    await redis.zadd(
        keys.budget("accounts"),
        {keys.budget("account", name): 1 for name in ("each", "calls", "expired")},
    )
    old, x, y, calls = (await read_overview(budgets, NOW)).accounts
    assert (old.spent, old.unconfirmed, old.reserved, old.left) == (0, 0, 0.125, 2.375)
    assert (x.whose, x.spent, x.left, x.used) == ({"tenant": "x"}, 2.0, 0.125, 0.95)
    assert (y.whose, y.spent, y.refills_in_s) == ({"tenant": "y;z"}, 1.0, 12 * 3600)
    assert (calls.reserved, calls.left, calls.refills_in_s) == (2, 1, None)


async def test_books_are_summed_by_tenant_agent_or_model_over_days(
    redis: Redis,
) -> None:
    """Names with the letters that part a line are whole; a tree has a line of its own."""
    budgets = Budgets(redis)
    odd = Payer(tenant="a|b%", agent="Research")
    for ago, payer, model in (
        (0, odd, "gpt-6"),
        (0, Payer(agent="Other"), "gpt-6"),
        (2, odd, "mini"),
        (40, odd, "old"),
    ):
        line = book_field(payer, model)
        counted = {
            "calls": 2,
            "input": 10,
            "output": 5,
            "cached": 4,
            "usd": NANO_USD,
            "unconfirmed": 5,
            "saved": 7,
        }
        fields = {f"{line}|{name}": amount for name, amount in counted.items()}
        await redis.hset(book_of(NOW - timedelta(days=ago)), mapping=fields)
    await redis.hset(
        keys.budget("tree", "root"), mapping={"calls": 3, "usd": NANO_USD // 2}
    )
    today, month = (await read_overview(budgets, NOW)).periods
    assert [(line.name, line.spending.usd) for line in today.lines] == [
        ("Other", 1.0),
        ("Research", 1.0),
    ]
    assert (today.total.calls, month.total.calls, month.first) == (4, 6, "2026-11-01")
    assert month.total == Spending(6, 30, 15, 12, 3.0, 1.5e-8, 2.1e-8)
    [days] = (await read_overview(budgets, NOW, by="tenant", days=41)).periods
    first = NOW.date() - timedelta(days=40)
    assert (days.first, days.last) == (f"{first}", f"{NOW.date()}")
    assert [(line.name, line.spending.calls) for line in days.lines] == [
        ("a|b%", 6),
        ("", 2),
    ]
    [by_day] = (await read_overview(budgets, NOW, by="day", days=41)).periods
    names = [line.name for line in by_day.lines]
    assert names == sorted(names)
    assert (names[-1], sum(line.spending.calls for line in by_day.lines)) == (
        f"{NOW.date()}",
        8,
    )
    tree = await read_overview(budgets, NOW, tree="root")
    assert (tree.tree, tree.periods) == (Spending(calls=3, usd=0.5), ())


async def test_only_the_last_costs_of_a_task_are_kept(redis: Redis) -> None:
    """The newest last; a task without any has none."""
    budgets = Budgets(redis)
    name = ("Research", "read")
    await budgets.note_costs({name: [5, 7]})
    await budgets.note_costs({name: list(range(KEPT_COSTS))})
    assert await budgets.costs_of([name, ("Research", "other")]) == {
        name: list(range(KEPT_COSTS)),
        ("Research", "other"): [],
    }
    await budgets.note_costs({})
    assert await budgets.costs_of([]) == {}
