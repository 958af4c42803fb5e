"""Operations on limits and on the budget, on a real Valkey: changes, versions, accounts, and who may see them."""

from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError
from redis.asyncio import Redis

from tasklore.contracts.admission.limits import NANO_USD, Payer, parse_limits
from tasklore.contracts.callers import Caller
from tasklore.contracts.errors import InvalidInput, NotPermitted, VersionConflict
from tasklore.memory import keys
from tasklore.memory.budgets.store import Budgets, book_field, book_of
from tasklore.supervisor.operations import budget
from tasklore.supervisor.operations.budget import BudgetServices, show_budget
from tasklore.supervisor.operations.limits import (
    OPERATIONS,
    ChangedLimits,
    LimitEdit,
    LimitServices,
    NewLimits,
    Restoration,
    apply_limits,
    list_limit_versions,
    remove_limit,
    restore_limits,
    set_limit,
    show_limits,
)
from tasklore.supervisor.operations.refusals import Refused

BOSS = Caller(name="boss", roles=frozenset({"admin"}))
READER = Caller(name="reader", roles=frozenset({"read"}))
FILE = """
time_zone = "Europe/Berlin"
[[limits]]
name = "openai"
model = "gpt-*"
tokens = 200_000
every = "minute"
[[limits]]
name = "tenants"
tenant = "*"
usd = 20
every = "day"
at_limit = "refuse"
[fallbacks]
gpt-6 = ["gpt-6-mini", "local"]
"""


@pytest.fixture
def services(redis: Redis) -> LimitServices:
    return LimitServices(budgets=Budgets(redis, deadline_s=5.0))


async def put(services: LimitServices, name: str, **fields: Any) -> ChangedLimits:
    return await set_limit(services, BOSS, name, LimitEdit(**fields))


def new(text: object = FILE, **fields: Any) -> NewLimits:
    return NewLimits.model_validate({"limits": text, **fields})


def told(changed: ChangedLimits) -> list[tuple[str, bool, bool]]:
    """Return the name of each thing that differs, and whether it was there before and after."""
    assert changed.difference is not None
    return [
        (one.name, one.before is not None, one.after is not None)
        for one in (*changed.difference.limits, *changed.difference.settings)
    ]


def test_limits_that_are_nested_too_deeply_are_a_fault_of_the_field() -> None:
    with pytest.raises(ValidationError, match="nested too deeply") as refused:
        new("limits = " + "[" * 100_000)
    assert refused.value.errors()[0]["loc"] == ("limits",)


async def test_a_limit_is_set_changed_and_removed_and_each_change_is_a_version(
    services: LimitServices,
) -> None:
    """What is not given stays; another size takes the place of the one before."""
    assert (await show_limits(services, READER)).version == 0
    made = await put(
        services, "acme", tenant="acme", usd="20", every="day", at_limit="refuse"
    )
    assert (made.version, made.who, told(made)) == (
        1,
        "key:boss",
        [("acme", False, True)],
    )
    for fields, size in (
        ({"tokens": "5000"}, {"tokens": 5_000, "every": "day", "tenant": "acme"}),
        ({"at_once": 3, "tenant": ""}, {"at_once": 3}),
    ):
        [limit] = (await put(services, "acme", **fields)).limits.limits
        rest = {"name": "acme", "at_limit": "refuse"}
        assert limit.model_dump(exclude_defaults=True) == rest | size
    same = await put(services, "acme", at_once=3)
    assert (same.version, same.concerns, told(same)) == (3, 0, [])
    await put(services, "runs", tenant="*", agent="Research", at_most=2)
    gone = await remove_limit(services, BOSS, "runs")
    assert (gone.version, told(gone)) == (5, [("runs", True, False)])
    shown = await show_limits(services, READER)
    assert (shown.version, [one.name for one in shown.limits.limits]) == (5, ["acme"])
    with pytest.raises(Refused, match="no limit 'acne'; did you mean 'acme'") as error:
        await remove_limit(services, BOSS, "acne")
    assert error.value.problem.status == 404


async def test_a_version_says_who_made_it(services: LimitServices) -> None:
    """A key, or a person at the servers."""
    person = BOSS.model_copy(update={"name": "operator:ann@here"})
    edit = LimitEdit(at_once=1)
    assert (await set_limit(services, person, "a", edit)).who == "operator:ann@here"
    await remove_limit(services, BOSS, "a")
    history = await list_limit_versions(services, READER)
    assert [one.who for one in history.versions] == ["key:boss", "operator:ann@here"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"usd": "1"}, "set every ="),
        ({"usd": "0", "every": "day"}, "limit 'a'.usd"),
        ({"usd": "1", "every": "tree"}, "never refills: set at_limit"),
        (
            {"every": "day"},
            "name one of requests, tokens, usd, at_once and at_most, not none",
        ),
        ({"usd": "1", "tokens": 2, "every": "day"}, "not tokens and usd"),
        (
            {"at_most": 2, "model": "gpt-6"},
            "limit 'a': at_most counts runs of tasks: remove model",
        ),
    ],
)
async def test_fields_that_do_not_fit_change_nothing(
    services: LimitServices, fields: dict[str, Any], message: str
) -> None:
    """They are named with their cure."""
    with pytest.raises(InvalidInput, match=message):
        await put(services, "a", **fields)
    assert (await show_limits(services, BOSS)).version == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [("limits", "limits"), ("[[limits]]\nname = 'a'\nat_once = 0", "at_once")],
)
def test_a_text_of_limits_is_read_as_toml(text: str, message: str) -> None:
    assert new().limits == parse_limits(FILE)
    with pytest.raises(ValidationError, match=message):
        new(text)


async def test_all_limits_are_tried_replaced_and_restored(
    services: LimitServices,
) -> None:
    """A trial changes nothing, and says what would differ, settings too."""
    await put(services, "old", at_once=1)
    tried = await apply_limits(services, BOSS, new(dry_run=True))
    assert told(tried) == [
        ("old", True, False),
        ("openai", False, True),
        ("tenants", False, True),
        ("fallbacks", True, True),
        ("time_zone", True, True),
    ]
    assert (tried.version, tried.concerns, tried.dry_run) == (1, 5, True)
    assert (await show_limits(services, BOSS)).version == 1
    done = await apply_limits(services, BOSS, new(version=tried.version))
    assert (done.version, done.dry_run, told(done)) == (2, False, told(tried))
    assert (await apply_limits(services, BOSS, new())).version == 2
    tried = await restore_limits(services, BOSS, 1, Restoration(dry_run=True))
    assert (tried.version, tried.concerns) == (2, 5)
    back = await restore_limits(services, BOSS, 1, Restoration())
    assert (back.version, [one.name for one in back.limits.limits]) == (3, ["old"])
    with pytest.raises(Refused, match="9 is not kept; those from 1 to 3 are") as error:
        await restore_limits(services, BOSS, 9, Restoration())
    assert error.value.problem.status == 404


@pytest.mark.parametrize(
    "text",
    [
        "[shares.weights]\nacme = 2",
        "[without_store]\nmoney = 'pass'",
    ],
)
async def test_a_setting_alone_is_a_change(services: LimitServices, text: str) -> None:
    assert (await apply_limits(services, BOSS, new(text))).version == 1
    assert (await show_limits(services, BOSS)).limits == parse_limits(text)


async def test_another_order_of_the_limits_is_a_change(services: LimitServices) -> None:
    names = [{"name": name, "at_once": 1} for name in ("a", "b")]
    await apply_limits(services, BOSS, new({"limits": names}))
    turned = await apply_limits(services, BOSS, new({"limits": names[::-1]}))
    assert (turned.version, told(turned)) == (2, [("order", True, True)])


async def test_a_change_is_over_the_version_that_was_seen(
    services: LimitServices,
) -> None:
    """Over another one it is refused, and so is one that comes while it is made."""
    await put(services, "a", at_once=1)
    for change in (
        apply_limits(services, BOSS, new(version=0)),
        apply_limits(services, BOSS, new(version=0, dry_run=True)),
        set_limit(services, BOSS, "a", LimitEdit(at_once=2, version=2)),
        remove_limit(services, BOSS, "a", version=2),
        restore_limits(services, BOSS, 1, Restoration(version=2)),
    ):
        with pytest.raises(VersionConflict, match="version 1 of the limits holds"):
            await change
    assert (await show_limits(services, BOSS)).version == 1


async def test_a_change_that_another_one_overtakes_is_refused(
    services: LimitServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = services.budgets.read

    async def read() -> Any:
        found = await real()
        await services.budgets.change(parse_limits(FILE), "key:eve")
        return found

    monkeypatch.setattr(services.budgets, "read", read)
    with pytest.raises(VersionConflict, match="changed meanwhile"):
        await put(services, "a", at_once=1)


async def test_versions_are_listed_in_pages_with_what_each_changed(
    services: LimitServices,
) -> None:
    """Of the oldest that is kept that is not known, unless it is the first."""
    for number in range(1, 102):
        await put(services, "a", at_once=number)
    first = await list_limit_versions(services, READER, limit=60)
    assert first.after == "42"
    rest = await list_limit_versions(services, READER, after=first.after, limit=60)
    versions = [*first.versions, *rest.versions]
    assert rest.after is None
    assert [one.version for one in versions] == list(range(101, 1, -1))
    assert versions[-1].difference is None
    [change] = versions[0].difference.limits if versions[0].difference else ()
    assert (change.before and change.before.at_once) == 100
    assert (change.after and change.after.at_once) == 101


async def test_limits_and_budgets_are_of_everybody(services: LimitServices) -> None:
    """A key of one user or tenant sees neither; who only reads changes nothing."""
    spending = BudgetServices(budgets=services.budgets)
    for change in ({"user": "ann"}, {"tenant": "t"}):
        caller = BOSS.model_copy(update=change)
        for work in (
            show_limits(services, caller),
            apply_limits(services, caller, new()),
            set_limit(services, caller, "a", LimitEdit(at_once=1)),
            remove_limit(services, caller, "a"),
            list_limit_versions(services, caller),
            restore_limits(services, caller, 1, Restoration()),
            show_budget(spending, caller),
        ):
            with pytest.raises(NotPermitted, match="for one"):
                await work
    for operation in (*OPERATIONS, *budget.OPERATIONS):
        with pytest.raises(NotPermitted, match="does not have the role"):
            operation.demand_role(Caller(roles=frozenset({"ask", "operate"})))
        if operation.http.startswith("GET "):
            operation.demand_role(READER)
            continue
        with pytest.raises(NotPermitted, match="'admin'"):
            operation.demand_role(READER)
    assert (await show_limits(services, BOSS)).version == 0


async def fill(services: LimitServices, redis: Redis) -> None:
    """Spend by two tenants in the present day."""
    await apply_limits(services, BOSS, new())
    now = datetime.now(UTC)
    for tenant, agent, usd in (("acme", "Research", 3), ("b", "Writer", 1)):
        line = book_field(Payer(tenant=tenant, agent=agent), "gpt-6")
        fields = {
            "calls": 2,
            "input": 1_000,
            "output": 500,
            "usd": usd * NANO_USD,
            "saved": NANO_USD // 2,
        }
        await redis.hset(
            book_of(now),
            mapping={f"{line}|{name}": amount for name, amount in fields.items()},
        )
    limits = (await services.budgets.read()).limits
    [_, account] = limits.accounts_of("gpt-6", Payer(tenant="acme"), now)
    place = keys.budget("account", account.key)
    state = {"s": 15 * NANO_USD, "u": NANO_USD, "r": NANO_USD // 2}
    await redis.hset(place, mapping={**state, "win": account.window})
    await redis.zadd(keys.budget("accounts"), {place: 1})
    await redis.hset(
        keys.budget("tree", "root"), mapping={"calls": 3, "usd": NANO_USD // 2}
    )


async def test_a_budget_has_accounts_and_spending(
    services: LimitServices, redis: Redis
) -> None:
    """By tenant, agent, model or day, of today and the month, of some days, or of one tree."""
    await fill(services, redis)
    spending = BudgetServices(budgets=services.budgets)
    shown = await show_budget(spending, READER, by="tenant")
    assert [(one.limit, one.left) for one in shown.accounts] == [
        ("openai", 200_000),
        ("tenants", 3.5),
    ]
    assert shown.accounts[1].whose == {"tenant": "acme"}
    assert len(shown.periods) == 2
    assert [(one.name, one.spending.usd) for one in shown.periods[0].lines] == [
        ("acme", 3.0),
        ("b", 1.0),
    ]
    assert shown.periods[0].total.calls == 4
    few = await show_budget(spending, READER, days=3, by="model", limit=1)
    assert [one.limit for one in few.accounts] == ["openai"]
    [period] = few.periods
    assert [(one.name, one.spending.usd) for one in period.lines] == [("gpt-6", 4.0)]
    [period] = (await show_budget(spending, READER, days=3, by="day")).periods
    days = [(one.name, one.spending.usd) for one in period.lines]
    assert days == [(period.last, 4.0)]
    tree = (await show_budget(spending, READER, tree="root")).tree
    assert tree is not None
    assert (tree.calls, tree.usd) == (3, 0.5)
