"""The governor against a real store: what it lets through, what it holds back, and what it books."""

import asyncio
import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from redis.asyncio import Redis

from tasklore.contracts.admission.limits import (
    NANO_USD,
    CallUsage,
    ModelCall,
    Payer,
    read_limits,
)
from tasklore.contracts.errors import (
    BudgetSpent,
    LlmThrottled,
    LlmUnavailable,
    MemoryUnavailable,
)
from tasklore.memory import keys
from tasklore.memory.budgets import governor as governing
from tasklore.memory.budgets.governor import ModelBudget
from tasklore.memory.budgets.store import Budgets
from tasklore.memory.functions import load_functions
from tasklore.runtime.models.llm import Llm, LlmRole, LlmSettings
from tasklore.runtime.models.prices import ModelPrice
from tests.llm_double import ScriptedLlm, answer, raw
from tests.llm_questions import GOOD, ask
from tests.servers import PATIENCE_S

#: One cent for a thousand tokens, read or written.
PRICE = 10_000


def price(read: int, written: int) -> int | None:
    """Return what tokens cost."""
    return (read + written) * PRICE


def call(
    text: str = "hello", *, most: int = 100, model: str = "gpt-6-luna", **payer: Any
) -> ModelCall:
    """Return a call of *model* for the payer of these fields."""
    return ModelCall(
        model=model, payer=Payer(**payer), text=text, most_output=most, price=price
    )


async def declare(redis: Redis, *limits: dict[str, Any], **more: Any) -> None:
    """Store *limits*."""
    await load_functions(redis)
    await Budgets(redis).change(read_limits({"limits": limits, **more}), "test")


async def settled(governor: ModelBudget, held: Any, input_: int, output: int) -> None:
    """Settle *held* by the count of a provider, and wait until it is stored."""
    governor.settle(
        held,
        CallUsage(
            input=input_, output=output, cached=0, nano_usd=(input_ + output) * PRICE
        ),
    )
    await governor.flush()


async def test_a_call_without_a_limit_costs_no_round_trip_and_is_booked(
    redis: Redis,
) -> None:
    """The books have it by tenant, agent and model, and by tree."""
    await declare(redis)
    governor = ModelBudget(redis)
    await governor.limits()
    before = (await redis.info("stats"))["total_commands_processed"]
    held = await governor.reserve(
        call(tenant="acme", agent="Reader", task_id="t1", root_id="t0", run="t1:1:1")
    )
    assert (await redis.info("stats"))[
        "total_commands_processed"
    ] - before == 1  # INFO itself
    await settled(governor, held, 70, 30)
    line = (await Budgets(redis).book([f"{datetime.now(UTC):%Y-%m-%d}"]))[0]
    assert (line.tenant, line.agent, line.model, line.spending.calls) == (
        "acme",
        "Reader",
        "gpt-6-luna",
        1,
    )
    assert line.spending.usd == pytest.approx(100 * PRICE / NANO_USD)
    assert (await Budgets(redis).tree("t0")).input == 70


async def test_what_a_call_took_is_booked_when_the_store_is_back(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing that was spent is lost while it is away, and nothing counts twice."""
    await declare(redis)
    governor = ModelBudget(redis)

    async def away(_commands: object) -> list[Any]:
        raise MemoryUnavailable("away")

    for number in range(2):
        held = await governor.reserve(call(agent="Reader", run=f"t{number}:1:1"))
        with monkeypatch.context() as gone:
            gone.setattr(governor._batch, "run", away)
            with pytest.raises(MemoryUnavailable):
                await settled(governor, held, 70, 30)
    await governor.flush()
    await governor.flush()
    [line] = await Budgets(redis).book([f"{datetime.now(UTC):%Y-%m-%d}"])
    assert (line.spending.calls, line.spending.input) == (2, 140)


async def test_what_was_reserved_is_given_back_when_the_call_took_less(
    redis: Redis,
) -> None:
    """A limit of tokens holds the worst case while the call is under way, and the provider's count after it."""
    await declare(
        redis, {"name": "tpm", "model": "gpt-*", "tokens": 300, "every": "minute"}
    )
    governor = ModelBudget(redis)
    first = await governor.reserve(call(most=200))
    with pytest.raises(LlmThrottled, match="'tpm' has no room") as refused:
        await governor.reserve(call(most=200))
    assert 0 < (refused.value.away_s or 0) < 61
    await settled(governor, first, 10, 20)
    await redis.delete(keys.budget("account", "tpm") + ":queue")
    await governor.reserve(call(most=200))


async def test_a_call_that_can_never_fit_is_refused_with_the_cure(redis: Redis) -> None:
    """Waiting would not help it."""
    await declare(redis, {"name": "tpm", "tokens": 300, "every": "minute"})
    with pytest.raises(BudgetSpent, match="more than all; raise the limit"):
        await ModelBudget(redis).reserve(call(most=1000))


@pytest.mark.parametrize(
    ("at_limit", "error"),
    [("park", LlmThrottled), ("next", BudgetSpent), ("refuse", BudgetSpent)],
)
async def test_a_budget_of_a_day_is_never_overspent(
    redis: Redis, at_limit: str, error: type[Exception]
) -> None:
    """Each tenant has an account of its own; what happens at the limit is as declared."""
    await declare(
        redis,
        {
            "name": "day",
            "tenant": "*",
            "usd": "0.01",
            "every": "day",
            "at_limit": at_limit,
        },
    )
    governor = ModelBudget(redis)
    spent = 0
    with pytest.raises(error):  # noqa: PT012 - until it is refused
        while True:
            held = await governor.reserve(call(most=200, tenant="acme"))
            await settled(governor, held, 100, 100)
            spent += 200 * PRICE
    assert NANO_USD * 0.006 < spent <= NANO_USD * 0.01
    await governor.reserve(call(most=200, tenant="other"))


async def test_nothing_of_an_earlier_day_counts_today_confirmed_or_not(
    redis: Redis,
) -> None:
    await declare(redis, {"name": "day", "usd": 1, "every": "day"})
    place = keys.budget("account", "day")
    earlier = {"s": NANO_USD, "u": NANO_USD, "win": "2020-01-01"}
    await redis.hset(place, mapping=earlier)
    await ModelBudget(redis).reserve(call())
    assert await redis.hmget(place, "s", "u") == [b"0", b"0"]


async def test_a_tree_spends_from_the_budget_of_its_root(redis: Redis) -> None:
    """A child finds the account that its parent has emptied."""
    await declare(
        redis, {"name": "run", "usd": "0.005", "every": "tree", "at_limit": "refuse"}
    )
    governor = ModelBudget(redis)
    await settled(
        governor,
        await governor.reserve(call(most=300, task_id="root", run="root:1:1")),
        50,
        300,
    )
    with pytest.raises(BudgetSpent):
        await governor.reserve(
            call(most=300, task_id="child", root_id="root", run="child:1:1")
        )
    await governor.reserve(call(most=300, task_id="alone", run="alone:1:1"))


async def test_calls_at_once_are_bounded_over_processes(redis: Redis) -> None:
    """Two governors share the count; a settled call makes room."""
    await declare(redis, {"name": "two", "model": "gpt-6-luna", "at_once": 2})
    one = ModelBudget(redis)
    other = ModelBudget(redis)
    first = await one.reserve(call())
    await other.reserve(call())
    with pytest.raises(LlmThrottled):
        await one.reserve(call())
    await settled(one, first, 1, 1)
    await asyncio.sleep(0.3)
    await redis.delete(keys.budget("account", "two") + ":queue")
    await other.reserve(call())


async def test_settling_twice_counts_once(redis: Redis) -> None:
    """Also when a settlement is sent again because its reply was lost."""
    await declare(
        redis, {"name": "day", "usd": 1, "every": "day", "at_limit": "refuse"}
    )
    governor = ModelBudget(redis)
    held = await governor.reserve(call())
    governor.settle(held, CallUsage(input=10, output=10, cached=0, nano_usd=20 * PRICE))
    commands = list(governor._settlements)
    await governor.flush()
    governor._settlements = commands
    await governor.flush()
    governor.settle(held, CallUsage(input=10, output=10, cached=0, nano_usd=20 * PRICE))
    await governor.flush()
    standing = (await Budgets(redis).standings())[0]
    assert (standing.spent, standing.reserved, standing.unconfirmed) == (
        20 * PRICE,
        0,
        0,
    )


async def test_what_a_dead_worker_held_is_freed_and_stays_unconfirmed(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rate and its place are free, its money is not: the provider may bill it. A late settlement corrects that."""
    lease_s = governing.LEASE_S
    await declare(
        redis,
        {"name": "day", "usd": "0.005", "every": "day", "at_limit": "refuse"},
        {"name": "one", "at_once": 1},
    )
    dead = ModelBudget(redis)
    living = ModelBudget(redis)
    monkeypatch.setattr(governing, "LEASE_S", 0.2)
    lost = await dead.reserve(call(most=200))
    monkeypatch.setattr(governing, "LEASE_S", lease_s)
    await asyncio.sleep(0.3)
    held = await living.reserve(call(most=100))
    assert held.accounts
    accounts = {one.key: one for one in await Budgets(redis).standings()}
    assert accounts["one"].reserved == 1
    worst = price(lost.input_tokens, 200)
    assert accounts["day"].unconfirmed == worst
    with pytest.raises(BudgetSpent):
        await living.reserve(call(most=200))
    await settled(dead, lost, 5, 5)
    day = next(one for one in await Budgets(redis).standings() if one.key == "day")
    assert (day.spent, day.unconfirmed) == (10 * PRICE, 0)


async def test_a_living_process_renews_what_it_holds(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call may take longer than the lease."""
    monkeypatch.setattr(governing, "LEASE_S", 0.4)
    monkeypatch.setattr(governing, "RENEWED_S", 0.1)
    await declare(redis, {"name": "one", "at_once": 1})
    async with ModelBudget(redis).running() as governor:
        await governor.reserve(call())
        await asyncio.sleep(1)
        with pytest.raises(LlmThrottled):
            await ModelBudget(redis).reserve(call())


async def test_limits_change_without_a_restart(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process looks for them every second."""
    monkeypatch.setattr(governing, "RENEWED_S", 0.05)
    await declare(redis)
    async with ModelBudget(redis).running() as governor:
        await governor.reserve(call())
        await declare(
            redis,
            {"name": "none", "tokens": 1, "every": "minute", "at_limit": "refuse"},
        )
        async with asyncio.timeout(PATIENCE_S):
            with pytest.raises(BudgetSpent):  # noqa: PT012 - until it is refused
                while True:
                    await governor.reserve(call())
                    await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("limit", "choice", "passes"),
    [
        ({"usd": 1, "every": "day"}, {}, False),
        ({"tokens": 10_000, "every": "minute"}, {}, True),
        ({"usd": 1, "every": "day"}, {"money": "pass"}, True),
        ({"tokens": 10_000, "every": "minute"}, {"rates": "refuse"}, False),
    ],
)
async def test_without_the_store_what_was_declared_holds(
    redis: Redis, limit: dict[str, Any], choice: dict[str, str], passes: bool
) -> None:
    """Money is refused and rates pass unless the limits say otherwise, and what passes is counted."""
    await declare(redis, {"name": "it", **limit}, without_store=choice)
    unchecked: list[str] = []
    gone = Redis(host="127.0.0.1", port=1)
    governor = ModelBudget(redis, unchecked=unchecked.append)
    await governor.limits()
    governor._batch = ModelBudget(gone)._batch
    if passes:
        await governor.reserve(call())
    else:
        with pytest.raises(MemoryUnavailable):
            await governor.reserve(call())
    assert unchecked == (["gpt-6-luna"] if passes else [])


async def test_limits_that_were_never_read_let_nothing_pass(redis: Redis) -> None:
    """A process that starts while the store is away does not know what is limited."""
    with pytest.raises(MemoryUnavailable):
        await ModelBudget(Redis(host="127.0.0.1", port=1)).reserve(call())


async def test_what_the_provider_says_of_its_limits_counts(redis: Redis) -> None:
    """Others use the same key: its count goes before ours. A pause that it asks for holds for all."""
    await declare(redis, {"name": "tpm", "tokens": 10_000, "every": "minute"})
    governor = ModelBudget(redis)
    held = await governor.reserve(call())
    governor.settle(
        held,
        CallUsage(input=10, output=10, cached=0, nano_usd=0, tokens_in_minute=9_950),
    )
    await governor.flush()
    with pytest.raises(LlmThrottled):
        await governor.reserve(call(most=100))
    await redis.flushdb()
    await declare(redis, {"name": "tpm", "tokens": 10_000, "every": "minute"})
    governor = ModelBudget(redis)
    governor.settle(
        await governor.reserve(call()), CallUsage(requests=0, pause_ms=50_000)
    )
    await governor.flush()
    with pytest.raises(LlmThrottled) as refused:
        await governor.reserve(call())
    assert refused.value.away_s == pytest.approx(50, abs=20)


async def test_those_who_wait_go_first_and_in_order(redis: Redis) -> None:
    """A newcomer does not overtake them, also when there is room."""
    await declare(redis, {"name": "rpm", "requests": 1, "every": "minute"})
    governor = ModelBudget(redis)
    await governor.reserve(call(run="t0:1:1"))
    waits = []
    for number in range(1, 6):
        with pytest.raises(LlmThrottled) as refused:
            await governor.reserve(call(run=f"t{number}:1:1"))
        waits.append(refused.value.away_s or 0)
    assert waits == sorted(waits)
    assert waits[4] - waits[0] > 100


async def test_a_settlement_counts_also_when_the_store_lost_what_was_reserved(
    redis: Redis,
) -> None:
    """It was spent: the account and the books have it, once."""
    await declare(
        redis, {"name": "day", "usd": 1, "every": "day", "at_limit": "refuse"}
    )
    governor = ModelBudget(redis)
    held = await governor.reserve(call())
    await redis.delete(
        keys.budget("calls"), keys.budget("leases"), keys.budget("account", "day")
    )
    governor.settle(held, CallUsage(input=10, output=10, cached=0, nano_usd=20 * PRICE))
    again = list(governor._settlements)
    await governor.flush()
    governor._settlements = again
    await governor.flush()
    assert int(await redis.hget(keys.budget("account", "day"), "s")) == 20 * PRICE
    assert (await Budgets(redis).book([f"{datetime.now(UTC):%Y-%m-%d}"]))[
        0
    ].spending.calls == 1


# What others' gateways let through, as their users reported it.


async def test_five_calls_at_once_do_not_pass_a_limit_of_a_hundred_tokens(
    redis: Redis,
) -> None:
    """A gateway let 663 tokens through: it counts when the answers are there (litellm 18730)."""
    await declare(redis, {"name": "tpm", "tokens": 100, "every": "minute"})
    governor = ModelBudget(redis)
    asked = [
        governor.reserve(call("hi", most=40, run=f"t{number}:1:1"))
        for number in range(5)
    ]
    held = [
        one
        for one in await asyncio.gather(*asked, return_exceptions=True)
        if not isinstance(one, Exception)
    ]
    assert sum(one.input_tokens + 40 for one in held) <= 100


async def test_calls_of_one_session_at_once_do_not_pass_its_budget(
    redis: Redis,
) -> None:
    """A gateway checks the session's budget before, and counts after (litellm 34732)."""
    await declare(
        redis,
        {"name": "session", "usd": "0.003", "every": "tree", "at_limit": "refuse"},
    )
    processes = [ModelBudget(redis) for _ in range(4)]
    asked = [
        one.reserve(call("hi", most=100, task_id="t", root_id="t", run="t:1:1"))
        for one in processes
    ]
    held = [
        one
        for one in await asyncio.gather(*asked, return_exceptions=True)
        if not isinstance(one, Exception)
    ]
    assert sum(price(one.input_tokens, 100) or 0 for one in held) <= 0.003 * NANO_USD


async def test_the_first_calls_of_an_unknown_user_at_once_do_not_pass_the_budget(
    redis: Redis,
) -> None:
    """A gateway has no account for the first requests of somebody new (litellm 40095)."""
    await declare(
        redis,
        {
            "name": "anybody",
            "user": "*",
            "usd": "0.002",
            "every": "day",
            "at_limit": "refuse",
        },
    )
    governor = ModelBudget(redis)
    asked = [governor.reserve(call("hi", most=64, user="new")) for _ in range(8)]
    held = [
        one
        for one in await asyncio.gather(*asked, return_exceptions=True)
        if not isinstance(one, Exception)
    ]
    assert sum(price(one.input_tokens, 64) or 0 for one in held) <= 0.002 * NANO_USD
    assert held


async def test_a_budget_that_is_spent_stays_spent_in_another_process(
    redis: Redis,
) -> None:
    """A gateway's copies let a key go on whose budget was gone (litellm 26672)."""
    await declare(
        redis,
        {
            "name": "key",
            "tenant": "*",
            "usd": "0.002",
            "every": "month",
            "at_limit": "refuse",
        },
    )
    one = ModelBudget(redis)
    other = ModelBudget(redis)
    await settled(one, await one.reserve(call(most=150, tenant="a")), 30, 150)
    for governor in (one, other):
        with pytest.raises(BudgetSpent):
            await governor.reserve(call(most=150, tenant="a"))


async def test_a_call_without_text_is_held_to_the_limit_too(redis: Redis) -> None:
    """A gateway reserves nothing for a request whose text it does not find (litellm 27001)."""
    await declare(redis, {"name": "tpm", "tokens": 300, "every": "minute"})
    governor = ModelBudget(redis)
    asked = [
        governor.reserve(call("", most=100, run=f"t{number}:1:1"))
        for number in range(6)
    ]
    held = [
        one
        for one in await asyncio.gather(*asked, return_exceptions=True)
        if not isinstance(one, Exception)
    ]
    assert 1 <= len(held) <= 2


async def test_limits_of_a_file_hold_while_the_store_is_away(redis: Redis) -> None:
    """A process that starts in an outage refuses money, and lets rates pass as the file says."""
    gone = Redis(host="127.0.0.1", port=1)
    money = read_limits({"limits": [{"name": "day", "usd": 1, "every": "day"}]})
    with pytest.raises(MemoryUnavailable):
        await ModelBudget(gone, declared=money).reserve(call())
    rates = read_limits(
        {"limits": [{"name": "tpm", "tokens": 1000, "every": "minute"}]}
    )
    assert (await ModelBudget(gone, declared=rates).reserve(call())).accounts


async def test_a_limit_of_other_units_begins_anew(redis: Redis) -> None:
    """What was spent in dollars is no count of tokens; another size of the same keeps what was spent."""
    await declare(
        redis, {"name": "day", "usd": 1, "every": "day", "at_limit": "refuse"}
    )
    governor = ModelBudget(redis)
    await settled(governor, await governor.reserve(call()), 10, 10)
    await declare(
        redis, {"name": "day", "usd": 2, "every": "day", "at_limit": "refuse"}
    )
    assert [one.spent for one in await Budgets(redis).standings()] == [20 * PRICE]
    await declare(
        redis, {"name": "day", "tokens": 1_000, "every": "day", "at_limit": "refuse"}
    )
    assert await Budgets(redis).standings() == []


async def test_a_stream_that_breaks_is_paid_for_as_far_as_it_came(redis: Redis) -> None:
    """The request and the text that came count; the rest of the worst case is free again."""
    await declare(redis, {"name": "tpm", "tokens": 100_000, "every": "minute"})
    governor = ModelBudget(redis)
    prices = {"gpt-6-luna": ModelPrice(input=Decimal(1), output=Decimal(1))}
    async with Llm(
        LlmSettings(base_url="http://127.0.0.1:1", prices=prices), governor=governor
    ) as llm:
        with pytest.raises(LlmUnavailable):  # noqa: PT012 - the block is what breaks
            async with llm.request("default", "gpt-6-luna", text="hello") as sent:
                sent.text = " the" * 40
                raise LlmUnavailable("the connection broke")
    await governor.flush()
    state = (await Budgets(redis).standings())[0]
    assert (state.reserved, state.spent) == (0, 32 + 1 + 40)
    assert (await Budgets(redis).book([f"{datetime.now(UTC):%Y-%m-%d}"]))[
        0
    ].spending.output == 40


@pytest.mark.parametrize("counts", [0, None])
async def test_counts_of_nothing_are_no_counts(
    redis: Redis, counts: int | None
) -> None:
    """A call whose provider counts 0 or null holds all that it may have taken, and is reported by an estimate."""
    await declare(redis, {"name": "tpm", "tokens": 10_000, "every": "minute"})
    governor = ModelBudget(redis)
    body = json.loads(answer(GOOD).body)
    body["usage"] = {"prompt_tokens": counts, "completion_tokens": counts}
    prices = {"own": ModelPrice(input=Decimal(1), output=Decimal(1))}
    async with ScriptedLlm(lambda _asked: raw(json.dumps(body).encode())) as model:
        settings = LlmSettings(
            base_url=model.base_url,
            prices=prices,
            roles={"editor": LlmRole(model="own", max_output_tokens=4_000)},
        )
        async with Llm(settings, governor=governor) as llm:
            for _ in range(2):
                reply = await ask(llm)
                assert reply.usage.input_tokens > 0 < reply.usage.cost_usd
                await governor.flush()
            with pytest.raises(LlmThrottled):
                await ask(llm, deadline_s=1.0)
    assert len(model.requests) == 2


_KEPT = "tl:other"
_CALL = {"at": 1, "usd": 1, "book": keys.budget("book", "x"), "field": "a|b|c"}


@pytest.mark.parametrize(
    "row",
    [
        "no json",
        "[1]",
        json.dumps(_CALL),
        json.dumps(_CALL | {"accounts": [1]}),
        json.dumps(_CALL | {"accounts": [[_KEPT, "c", "usd", 1]]}),
        json.dumps(_CALL | {"accounts": [[keys.budget("account", "x"), "c", "usd"]]}),
        json.dumps(
            _CALL | {"accounts": [[keys.budget("account", "text"), "c", "usd", 1]]}
        ),
        json.dumps(_CALL | {"accounts": [], "book": _KEPT}),
        json.dumps(_CALL | {"accounts": [], "field": None}),
    ],
)
async def test_a_call_that_is_none_keeps_nobody_from_calling(
    redis: Redis, row: str
) -> None:
    """Workers write what is reserved: a row that is none goes with its lease, and touches no other key."""
    await declare(redis, {"name": "day", "usd": 1, "every": "day"})
    await redis.set(keys.budget("account", "text"), "x")
    await redis.hset(keys.budget("calls"), "odd", row)
    await redis.zadd(keys.budget("leases"), {"odd": 1})
    governor = ModelBudget(redis)
    held = await governor.reserve(call())
    governor.settle(held, CallUsage(input=10, output=10, nano_usd=20 * PRICE))
    await governor.flush()
    assert not await redis.hexists(keys.budget("calls"), "odd")
    assert await redis.zscore(keys.budget("leases"), "odd") is None
    assert not await redis.exists(_KEPT)
