"""`tasklore limits show|check|history`: limits in words, and how versions differ."""

import contextlib
from collections.abc import AsyncIterator, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from tasklore.commands.places import open_redis
from tasklore.commands.render.columns import Column, print_facts, print_records
from tasklore.commands.render.screen import patience, print_json, printable, styled
from tasklore.commands.render.words import age, count_of, money, one_line
from tasklore.contracts.admission.limits import Every, Limit, Limits, Measure
from tasklore.memory.budgets.store import Budgets, StoredLimits, read_limits_file

#: Seconds for one read: a person waits, and an answer late is better than none.
_DEADLINE_S = 5.0
_UNITS: dict[Measure, str] = {
    "requests": " requests",
    "tokens": " tokens",
    "usd": "",
    "at_once": " at once",
    "at_most": " tasks at once",
}


def _size_of(limit: Limit) -> str:
    return spell_size(limit.measure, float(getattr(limit, limit.measure)), limit.every)


LIMITS = (
    Column[Limit]("NAME", lambda limit: limit.name, whole=True),
    Column[Limit]("LIMIT", _size_of),
    Column[Limit]("COVERS", lambda limit: _spell_scope(limit) or "everything"),
    Column[Limit]("AT THE LIMIT", lambda limit: limit.at_limit),
)


@contextlib.asynccontextmanager
async def open_budgets() -> AsyncIterator[Budgets]:
    """Open the limits and accounts of the system that runs here.

    Raises:
        Unreachable: no system runs here, or its Redis does not answer.
    """
    async with open_redis("tasklore-limits", _DEADLINE_S) as client:
        yield Budgets(client, deadline_s=_DEADLINE_S)


def spell_amount(measure: Measure, amount: float) -> str:
    """Return an amount of an account: "$12.40", "42,000"."""
    return money(amount) if measure == "usd" else f"{amount:,.0f}"


def spell_size(measure: Measure, amount: float, every: Every | None) -> str:
    """Return how much a limit allows in which time: "200,000 tokens a minute", "8 at once"."""
    return (
        spell_amount(measure, amount)
        + _UNITS[measure]
        + ("" if every is None else f" a {every}")
    )


def _spell_scope(limit: Limit) -> str:
    """Return what a limit covers: "model gpt-*, each tenant"; empty for everything."""
    values = {
        one: getattr(limit, one) for one in ("model", "tenant", "user", "agent", "task")
    }
    return ", ".join(
        f"each {name}" if value == "*" else f"{name} {printable(value)}"
        for name, value in values.items()
        if value
    )


def spell_limit(limit: Limit) -> str:
    """Return a limit in a line."""
    return ", ".join(
        filter(None, (_size_of(limit), _spell_scope(limit), limit.at_limit))
    )


def spell_changes(before: Limits, after: Limits) -> Iterator[str]:
    """Yield a line for each limit or option that differs: `+` is new, `-` is gone, `~` is another than it was."""
    old, new = ({limit.name: limit for limit in one.limits} for one in (before, after))
    for name in dict.fromkeys([*old, *new]):
        if name not in new:
            yield f"- {name}: {spell_limit(old[name])}"
        elif name not in old:
            yield f"+ {name}: {spell_limit(new[name])}"
        elif old[name] != new[name]:
            yield f"~ {name}: {spell_limit(old[name])} -> {spell_limit(new[name])}"
    had = spell_options(before)
    has = spell_options(after)
    for title in had:
        if had[title] != has[title]:
            yield f"~ {title}: {had[title] or 'none'} -> {has[title] or 'none'}"


def spell_options(limits: Limits) -> dict[str, str]:
    """Return the options beside the limits, by their titles."""
    return {
        "fallbacks": "; ".join(
            f"{printable(model)}: {printable(', '.join(to))}"
            for model, to in limits.fallbacks.items()
        ),
        "without store": ", ".join(
            f"{kind}: {limits.without_store[kind]}"
            for kind in sorted(limits.without_store)
        ),
        "time zone": limits.time_zone,
    }


def as_document(stored: StoredLimits) -> dict[str, Any]:
    """Return a version for programs, as `GET /v1/limits` does."""
    limits = stored.limits.model_dump(mode="json", exclude_defaults=True)
    return {
        "version": stored.version,
        "who": stored.who,
        "when": stored.when,
        "limits": limits,
    }


def spell_version(stored: StoredLimits) -> str:
    """Return which version it is, who set it, and how long ago."""
    since = age(datetime.fromisoformat(stored.when).timestamp() * 1000)
    return f"version {stored.version}, set by {printable(stored.who)} {since} ago ({stored.when})"


async def print_limits(*, as_json: bool) -> None:
    """Print the limits that hold.

    Raises:
        Unreachable: Redis does not answer.
    """
    async with open_budgets() as budgets, patience("reading the limits"):
        stored = await budgets.read()
    if as_json:
        print_json(as_document(stored))
        return
    if not stored.version:
        print("There are no limits; `tasklore limits set` makes one.")
        return
    print(styled(spell_version(stored), "dim"))
    if stored.limits.limits:
        print()
        print_records(LIMITS, stored.limits.limits)
    print()
    print_facts(spell_options(stored.limits))


def print_check(path: Path) -> None:
    """Print how many limits are in a file.

    Raises:
        InvalidInput: a field does not fit.
    """
    print(
        f"{printable(path.name)}: {count_of(len(read_limits_file(path).limits), 'limit')}, nothing is wrong."
    )


async def print_history(*, as_json: bool) -> None:
    """Print a line for each version that is kept, the newest first.

    Raises:
        Unreachable: Redis does not answer.
    """
    async with open_budgets() as budgets, patience("reading the history"):
        versions = await budgets.history()
    if as_json:
        print_json([as_document(one) for one in versions])
    elif not versions:
        print("The limits were never set.")
    else:
        before = {one.version + 1: one.limits for one in versions} | {1: Limits()}

        def changes(stored: StoredLimits) -> str:
            if stored.version not in before:
                return count_of(len(stored.limits.limits), "limit")
            return one_line(
                "; ".join(spell_changes(before[stored.version], stored.limits))
                or "nothing"
            )

        columns = (
            Column[StoredLimits]("VERSION", lambda one: str(one.version), right=True),
            Column[StoredLimits](
                "WHEN",
                lambda one: one.when.removesuffix("+00:00").replace("T", " "),
                whole=True,
            ),
            Column[StoredLimits]("WHO", lambda one: printable(one.who)),
            Column[StoredLimits]("CHANGE", changes),
        )
        print_records(columns, versions)
