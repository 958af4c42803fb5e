"""Accounts and spending as people and programs see them: the command line, HTTP and metrics read the same."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from typing import Literal

from tasklore.contracts.admission.limits import (
    NANO_USD,
    AtLimit,
    Every,
    Limit,
    Limits,
    Measure,
    window_of,
)
from tasklore.contracts.zones import read_zone
from tasklore.memory.budgets.store import AccountState, BookLine, Budgets, Spending

By = Literal["tenant", "agent", "model", "day"]

#: What a key may name after its limit.
_DIMENSIONS = ("model", "tenant", "user", "agent", "task", "tree")
_WHOSE = re.compile(rf";(?=(?:{'|'.join(_DIMENSIONS)})=)")


@dataclass(frozen=True, kw_only=True)
class AccountView:
    """One account of a limit; amounts are requests, tokens or US dollars, by `measure`.

    `whose` has the values that the limit counts apart, by dimension. `left` is the part of `amount` that is neither
    spent nor reserved nor unconfirmed. `waiting` are calls in its queue. `refills_in_s` is None where nothing refills.
    """

    limit: str
    whose: dict[str, str]
    measure: Measure
    every: Every | None
    at_limit: AtLimit
    amount: float
    spent: float
    reserved: float
    unconfirmed: float
    left: float
    waiting: int
    refills_in_s: float | None = None

    @property
    def used(self) -> float:
        """The part of the limit that is not left: 0 to 1, or more after the limit was lowered."""
        return (self.spent + self.reserved + self.unconfirmed) / self.amount


@dataclass(frozen=True)
class SpendingLine:
    """What a tenant, agent or model has spent, or was spent in a day; the name is empty for calls without one."""

    name: str
    spending: Spending


@dataclass(frozen=True)
class SpendingPeriod:
    """The spending of the days `first` to `last`, in UTC: the lines by cost, the highest first, and their sum.

    Lines that are days come in their order; a day without any has none.
    """

    first: str
    last: str
    lines: tuple[SpendingLine, ...]
    total: Spending


@dataclass(frozen=True, kw_only=True)
class BudgetOverview:
    """The budgets of a deployment at one time; `tree` is what the tree that was asked for has spent."""

    version: int
    at: datetime
    by: By
    accounts: tuple[AccountView, ...]
    periods: tuple[SpendingPeriod, ...] = ()
    tree: Spending | None = field(default=None)


async def read_overview(
    budgets: Budgets,
    now: datetime,
    *,
    by: By = "agent",
    days: int | None = None,
    tree: str | None = None,
) -> BudgetOverview:
    """Return the accounts, and the spending of today and of this month, or of the last *days*, in groups by *by*.

    With *tree*, the id of a task at the top of a tree, only its accounts and its spending.

    Raises:
        MemoryUnavailable: Redis does not answer.
    """
    stored = await budgets.read()
    accounts = await read_accounts(budgets, stored.limits, now)
    if tree is not None:
        own = tuple(
            one
            for one in accounts
            if tree in (one.whose.get("tree"), one.whose.get("task"))
        )
        return BudgetOverview(
            version=stored.version,
            at=now,
            by=by,
            accounts=own,
            tree=await budgets.tree(tree),
        )
    today = now.astimezone(UTC).date()
    firsts = (
        [today, today.replace(day=1)]
        if days is None
        else [today - timedelta(days=days - 1)]
    )
    span = (today - min(firsts)).days
    lines = await budgets.book(
        [f"{today - timedelta(days=ago)}" for ago in range(span + 1)]
    )
    periods = (
        _sum_up(
            [one for one in lines if one.day >= f"{first}"], f"{first}", f"{today}", by
        )
        for first in firsts
    )
    return BudgetOverview(
        version=stored.version, at=now, by=by, accounts=accounts, periods=tuple(periods)
    )


async def read_accounts(
    budgets: Budgets, limits: Limits, now: datetime
) -> tuple[AccountView, ...]:
    """Return the accounts in the order of their limits, the fullest of each first.

    A limit without any has an empty one, but for those on runs that count values apart. Accounts of limits that were
    removed are left out.

    Raises:
        MemoryUnavailable: Redis does not answer.
    """
    bounds = {
        one.name: one.own_bound for one in limits.limits if one.own_bound is not None
    }
    runs = zip(bounds, await budgets.runs_under(bounds.values()), strict=True)
    standings = [
        *await budgets.standings(),
        *(
            AccountState(key=name, spent=0, reserved=held, unconfirmed=0, waiting=lined)
            for name, (held, lined) in runs
        ),
    ]
    found: dict[str, list[AccountState]] = {limit.name: [] for limit in limits.limits}
    apart = {limit.name: _dimensions_of(limit) for limit in limits.limits}
    for standing in standings:
        name, *values = _WHOSE.split(standing.key)
        # A limit that counts by something else since has left accounts behind.
        if apart.get(name) == [value.partition("=")[0] for value in values]:
            found[name].append(standing)
    views = []
    for limit in limits.limits:
        window, refills_at = window_of(limit.every, now, read_zone(limits.time_zone))
        refills_in_s = (
            None if refills_at is None else (refills_at - now).total_seconds()
        )
        present = found[limit.name] or [
            AccountState(key=limit.name, spent=0, reserved=0, unconfirmed=0, waiting=0)
        ] * (limit.at_most is None)
        own = [_view(limit, standing, window, refills_in_s) for standing in present]
        views += sorted(own, key=lambda one: one.used, reverse=True)
    return tuple(views)


def _dimensions_of(limit: Limit) -> list[str]:
    """Return what the accounts of *limit* are apart by, as their keys name it."""
    return [
        one
        for one in _DIMENSIONS
        if getattr(limit, one, "") == "*" or limit.every == one
    ]


def _view(
    limit: Limit, standing: AccountState, window: str, refills_in_s: float | None
) -> AccountView:
    is_past = window != standing.window
    spent, unconfirmed = (0, 0) if is_past else (standing.spent, standing.unconfirmed)
    unit = NANO_USD if limit.measure == "usd" else 1
    left = max(0, limit.amount - spent - standing.reserved - unconfirmed)
    return AccountView(
        limit=limit.name,
        whose=dict(part.split("=", 1) for part in _WHOSE.split(standing.key)[1:]),
        measure=limit.measure,
        every=limit.every,
        at_limit=limit.at_limit,
        amount=limit.amount / unit,
        spent=spent / unit,
        reserved=standing.reserved / unit,
        unconfirmed=unconfirmed / unit,
        left=left / unit,
        waiting=standing.waiting,
        refills_in_s=standing.refills_in_s if refills_in_s is None else refills_in_s,
    )


def _sum_up(lines: Sequence[BookLine], first: str, last: str, by: By) -> SpendingPeriod:
    groups: dict[str, list[Spending]] = {}
    for line in lines:
        groups.setdefault(getattr(line, by), []).append(line.spending)
    sums = [SpendingLine(name, _add(one)) for name, one in groups.items()]
    if by == "day":
        sums.sort(key=lambda one: one.name)
    else:
        sums.sort(key=lambda one: (-one.spending.usd, -one.spending.calls, one.name))
    return SpendingPeriod(
        first, last, tuple(sums), _add([line.spending for line in lines])
    )


def _add(spendings: Sequence[Spending]) -> Spending:
    # To a billionth of a dollar, as the books have them.
    return Spending(
        *(
            round(sum(getattr(one, each.name) for one in spendings), 9)
            for each in fields(Spending)
        )
    )
