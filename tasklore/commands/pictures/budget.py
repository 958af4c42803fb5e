"""The accounts of the limits, and the spending by tenant, agent or model."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tasklore.commands.render.columns import Cells, Column, cells_of
from tasklore.commands.render.durations import read_aloud
from tasklore.commands.render.limit_words import Json, spell_amount, spell_size
from tasklore.commands.render.screen import lines_of_table, styled
from tasklore.commands.render.words import money


def _amount(field: str, *, is_optional: bool = False) -> Column[Json]:
    def cell(account: Json) -> str:
        amount = account[field]
        is_shown = amount or not is_optional
        return spell_amount(account["measure"], amount) if is_shown else ""

    return Column(field.upper(), cell, right=True, optional=is_optional)


def _spell_account(account: Json) -> str:
    whose = (f"{name}={value or '-'}" for name, value in account["whose"].items())
    return " ".join([account["limit"], *whose])


def _used(account: Json) -> str:
    taken = account["spent"] + account["reserved"] + account["unconfirmed"]
    return f"{taken / account['amount']:.0%}"


def _refills(account: Json) -> str:
    seconds = account["refills_in_s"]
    return "" if seconds is None else read_aloud(seconds * 1000)


_ACCOUNTS = (
    Column[Json]("ACCOUNT", _spell_account),
    Column[Json](
        "LIMIT", lambda one: spell_size(one["measure"], one["amount"], one["every"])
    ),
    _amount("spent"),
    _amount("reserved", is_optional=True),
    _amount("unconfirmed", is_optional=True),
    _amount("left"),
    Column[Json]("USED", _used, right=True),
    Column[Json](
        "WAITING",
        lambda one: f"{one['waiting']:,}" if one["waiting"] else "",
        right=True,
        optional=True,
    ),
    Column[Json]("REFILLS IN", _refills, right=True, optional=True),
)


def _spent(
    field: str,
    spell: Callable[[float], str],
    *,
    title: str = "",
    is_optional: bool = False,
) -> Column[Json]:
    def cell(line: Json) -> str:
        amount = line["spending"][field]
        return spell(amount) if amount or not is_optional else ""

    return Column(title or field.upper(), cell, right=True, optional=is_optional)


def _spell_count(amount: float) -> str:
    return f"{amount:,}"


_SPENDING = (
    _spent("calls", _spell_count),
    _spent("input", _spell_count),
    _spent("output", _spell_count),
    _spent("cached", _spell_count, is_optional=True),
    _spent("usd", money, title="COST"),
    _spent("unconfirmed", money, is_optional=True),
    _spent("saved", money, is_optional=True),
)


def draw(view: Mapping[str, Any]) -> str:
    """Return the accounts of *view* and its spending, each as a table below its title."""
    lines: list[str] = []
    for title, cells in _tables(view):
        if lines:
            lines.append("")
        lines.append(styled(title, "dim"))
        if cells is not None:
            lines += lines_of_table(*cells)
    return "\n".join(lines)


def _tables(view: Mapping[str, Any]) -> Iterator[tuple[str, Cells | None]]:
    """Yield each table below its title; one without rows is None."""
    tree = view["tree"]
    if view["accounts"]:
        title = f"accounts of the limits, version {view['version']}"
        yield title, cells_of(_ACCOUNTS, view["accounts"])
    elif tree is None:
        cure = "`tasklore limits show` lists them, `set` adds one"
        yield f"no limit has an account yet: {cure}", None
    if tree is not None:
        if any(tree.values()):
            yield "spent by the tree", cells_of(_SPENDING, [{"spending": tree}])
        else:
            yield "the tree has spent nothing", None
    for period in view["periods"]:
        yield _draw_period(view["by"], period)


def _draw_period(by: str, period: Json) -> tuple[str, Cells | None]:
    lines = list(period["lines"])
    when = _spell_period(period)
    if not lines:
        return f"nothing was spent {when}", None
    if len(lines) > 1:
        lines.append({"name": "in all", "spending": period["total"]})
    name = Column[Json](by.upper(), lambda one: one["name"] or "-")
    return f"spent {when}", cells_of((name, *_SPENDING), lines)


def _spell_period(period: Json) -> str:
    first = period["first"]
    last = period["last"]
    return f"on {first}, UTC" if first == last else f"from {first} to {last}, UTC"
