"""`tasklore budget`: the accounts of the limits, and the spending by tenant, agent or model."""

import asyncio
import dataclasses
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, get_args

from tasklore.commands.limits.views import open_budgets, spell_amount, spell_size
from tasklore.commands.render.columns import Cells, Column, cells_of
from tasklore.commands.render.durations import read_aloud
from tasklore.commands.render.screen import (
    patience,
    print_json,
    print_table,
    printable,
    rich_table,
    say,
    styled,
)
from tasklore.commands.render.words import money
from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.identifiers import checked_name
from tasklore.memory.budgets.overview import (
    AccountView,
    By,
    Overview,
    Period,
    SpendingLine,
    read_overview,
)
from tasklore.memory.budgets.store import KEEP, Spending

if TYPE_CHECKING:
    from rich.console import Group, RenderableType

#: Seconds between two looks of a view that stays.
LOOK_S = 1.0


def _amount(field: str, *, is_optional: bool = False) -> Column[AccountView]:
    def cell(account: AccountView) -> str:
        amount = getattr(account, field)
        return (
            spell_amount(account.measure, amount) if amount or not is_optional else ""
        )

    return Column(field.upper(), cell, right=True, optional=is_optional)


def _spell_account(account: AccountView) -> str:
    return " ".join(
        [
            account.limit,
            *(f"{name}={value or '-'}" for name, value in account.whose.items()),
        ]
    )


ACCOUNTS = (
    Column[AccountView]("ACCOUNT", lambda one: printable(_spell_account(one))),
    Column[AccountView](
        "LIMIT", lambda one: spell_size(one.measure, one.amount, one.every)
    ),
    _amount("spent"),
    _amount("reserved", is_optional=True),
    _amount("unconfirmed", is_optional=True),
    _amount("left"),
    Column[AccountView]("USED", lambda one: f"{one.used:.0%}", right=True),
    Column[AccountView](
        "WAITING",
        lambda one: f"{one.waiting:,}" if one.waiting else "",
        right=True,
        optional=True,
    ),
    Column[AccountView](
        "REFILLS IN",
        lambda one: (
            "" if one.refills_in_s is None else read_aloud(one.refills_in_s * 1000)
        ),
        right=True,
        optional=True,
    ),
)


def _count(
    title: str, field: str, *, is_optional: bool = False
) -> Column[SpendingLine]:
    def cell(line: SpendingLine) -> str:
        amount = getattr(line.spending, field)
        return f"{amount:,}" if amount or not is_optional else ""

    return Column(title, cell, right=True, optional=is_optional)


def _usd(title: str, field: str, *, is_optional: bool = True) -> Column[SpendingLine]:
    def cell(line: SpendingLine) -> str:
        amount = getattr(line.spending, field)
        return money(amount) if amount or not is_optional else ""

    return Column(title, cell, right=True, optional=is_optional)


SPENDING = (
    _count("CALLS", "calls"),
    _count("INPUT", "input"),
    _count("OUTPUT", "output"),
    _count("CACHED", "cached", is_optional=True),
    _usd("COST", "usd", is_optional=False),
    _usd("UNCONFIRMED", "unconfirmed"),
    _usd("SAVED", "saved"),
)


async def print_budget(
    by: str,
    days: int | None,
    tree: str | None,
    *,
    limit: int,
    is_watched: bool,
    as_json: bool,
) -> None:
    """Print at most *limit* accounts, and the spending in groups by *by*; one that *is_watched* until a signal.

    Raises:
        InvalidInput: *by*, *days* or *tree* is none.
        Unreachable: no system runs here, or its Redis does not answer.
    """
    known: dict[str, By] = {one: one for one in get_args(By)}
    if by not in known:
        raise InvalidInput(f"--by must be one of {', '.join(known)}, not {by!r}")
    if days is not None and days > KEEP.days:
        raise InvalidInput(
            f"--days {days} is more than the books hold; say at most {KEEP.days}"
        )
    if tree is not None:
        checked_name(tree, "--tree")
    async with open_budgets() as budgets:

        async def look() -> Overview:
            return await read_overview(
                budgets, datetime.now(UTC), by=known[by], days=days, tree=tree
            )

        if is_watched and sys.stdout.isatty() and not as_json:
            from rich.live import Live

            shown = await look()
            with Live(
                get_renderable=lambda: _draw(shown, limit),
                refresh_per_second=1 / LOOK_S,
            ):
                while True:
                    await asyncio.sleep(LOOK_S)
                    shown = await look()
        async with patience("reading the books"):
            shown = await look()
        _print(shown, limit, as_json=as_json)
        while is_watched:
            await asyncio.sleep(LOOK_S)
            last = shown
            shown = await look()
            if _facts_of(shown) != _facts_of(last):
                _print(shown, limit, as_json=as_json)


def _facts_of(overview: Overview) -> Overview:
    """Return *overview* without its times, which always differ."""
    accounts = tuple(
        dataclasses.replace(one, refills_in_s=None) for one in overview.accounts
    )
    return dataclasses.replace(
        overview, at=datetime.min.replace(tzinfo=UTC), accounts=accounts
    )


def _print(overview: Overview, limit: int, *, as_json: bool) -> None:
    if as_json:
        print_json(
            dataclasses.asdict(overview)
            | {"at": overview.at.isoformat(timespec="seconds")}
        )
        return
    for number, (title, cells) in enumerate(_tables(overview, limit)):
        print(("\n" if number else "") + styled(title, "dim"))
        if cells is not None:
            print_table(*cells)
    if len(overview.accounts) > limit:
        say(
            f"these are {limit:,} of {len(overview.accounts):,} accounts; raise --limit"
        )
    sys.stdout.flush()


def _draw(overview: Overview, limit: int) -> "Group":
    from rich.console import Group
    from rich.text import Text

    parts: list[RenderableType] = []
    for title, cells in _tables(overview, limit):
        parts += [
            Text(title, style="dim"),
            *([rich_table(*cells)] if cells is not None else []),
            Text(),
        ]
    return Group(*parts)


def _tables(overview: Overview, limit: int) -> Iterator[tuple[str, Cells | None]]:
    """Yield each table below its title; one without rows is None."""
    if overview.accounts:
        yield (
            f"accounts of the limits, version {overview.version}",
            cells_of(ACCOUNTS, overview.accounts[:limit]),
        )
    elif overview.tree is None:
        yield "there are no limits; `tasklore limits set` makes one", None
    if overview.tree is not None:
        is_known = overview.tree != Spending()
        lines = [SpendingLine("", overview.tree)]
        yield (
            ("spent by the tree", cells_of(SPENDING, lines))
            if is_known
            else ("the tree has spent nothing", None)
        )
    by = Column[SpendingLine](
        overview.by.upper(), lambda one: printable(one.name) or "-"
    )
    for period in overview.periods:
        lines = [*period.lines, SpendingLine("in all", period.total)]
        title = _spell_period(period)
        if len(period.lines) > 1:
            yield f"spent {title}", cells_of((by, *SPENDING), lines)
        else:
            yield (
                (f"spent {title}", cells_of((by, *SPENDING), period.lines))
                if period.lines
                else (
                    f"nothing was spent {title}",
                    None,
                )
            )


def _spell_period(period: Period) -> str:
    return (
        f"on {period.first}, UTC"
        if period.first == period.last
        else f"from {period.first} to {period.last}, UTC"
    )
