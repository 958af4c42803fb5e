"""Money: spending and savings by day, tenant, agent and model, the room under each limit, and limits changed."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from http import HTTPStatus
from typing import Any, Literal, cast, get_args

from pydantic import ValidationError

from tasklore.contracts.admission.limits import AtLimit, Every, Limit, Measure
from tasklore.contracts.errors import InvalidInput, VersionConflict
from tasklore.contracts.faults import fault_of
from tasklore.supervisor.http.console.helpers import spell_money, spell_number
from tasklore.supervisor.http.console.pages import (
    ConsolePage,
    FormAction,
    Notice,
    RenderedPage,
    Visit,
    address,
    ask_first,
)
from tasklore.supervisor.operations.budget import show_budget
from tasklore.supervisor.operations.limits import (
    LimitEdit,
    LimitsDifference,
    Restoration,
    list_limit_versions,
    remove_limit,
    restore_limits,
    set_limit,
    show_limits,
)
from tasklore.supervisor.operations.refusals import Refused

Grouping = Literal["agent", "tenant", "model"]

GROUPINGS: tuple[Grouping, ...] = get_args(Grouping)
#: Days that can be chosen, the first without a word; spending is kept for 41.
DAYS = (30, 7, 40)
#: Lines of a group and accounts that are shown; the command has all.
_MOST_LINES = 100
_MOST_ACCOUNTS = 100
_VERSIONS = 20
#: The height of the picture of days, and the width that one takes.
HEIGHT = 100.0
STEP = 20.0
_THINNEST = 1.0
_DIMENSIONS = ("model", "tenant", "user", "agent", "task")
UNITS = {
    "requests": "requests",
    "tokens": "tokens",
    "at_once": "requests at once",
    "at_most": "runs at once",
}
_AT_LIMIT = {
    "park": "then tasks wait",
    "next": "then the next model answers",
    "refuse": "then calls are refused",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DayBar:
    """The spending of one day as a bar at *x*, saved beside it, and both in words."""

    day: str
    usd: float
    saved: float
    calls: int
    x: float
    spent_height: float
    saved_height: float
    label: str


async def show(visit: Visit) -> RenderedPage:
    """Return spending and the room under each limit."""
    by = cast("Grouping", visit.choose("by", GROUPINGS))
    days = int(visit.choose("days", [f"{one}" for one in DAYS]))
    today, by_day, grouped = await asyncio.gather(
        visit.call(show_budget, limit=_MOST_ACCOUNTS),
        visit.call(show_budget, by="day", days=days, limit=1),
        visit.call(show_budget, by=by, days=days, limit=1),
    )
    [period] = by_day.periods
    [groups] = grouped.periods
    spent = {
        one.name: (one.spending.usd, one.spending.saved, one.spending.calls)
        for one in period.lines
    }
    return RenderedPage(
        values={
            "budget": today,
            "period": period,
            "bars": draw_days(period.first, period.last, spent),
            "highest": max((one.spending.usd for one in period.lines), default=0.0),
            "lines": groups.lines[:_MOST_LINES],
            "left_out": max(0, len(groups.lines) - _MOST_LINES),
            "most_usd": max((one.spending.usd for one in groups.lines), default=0.0),
            "by": by,
            "groupings": GROUPINGS,
            "days": days,
            "choices": sorted(DAYS),
            "may_edit": visit.may(set_limit),
        }
    )


def draw_days(
    first: str, last: str, spent: Mapping[str, tuple[float, float, int]]
) -> tuple[DayBar, ...]:
    """Return a bar for each day from *first* to *last*; *spent* has dollars, saved dollars and calls by day."""
    began = date.fromisoformat(first)
    count = (date.fromisoformat(last) - began).days + 1
    highest = max((max(usd, saved) for usd, saved, _ in spent.values()), default=0.0)
    return tuple(
        _draw_day(f"{began + timedelta(days=number)}", number, highest, spent)
        for number in range(count)
    )


def _draw_day(
    day: str,
    number: int,
    highest: float,
    spent: Mapping[str, tuple[float, float, int]],
) -> DayBar:
    usd, saved, calls = spent.get(day, (0.0, 0.0, 0))
    words = f"{day}: {spell_money(usd)}" + (
        f", {spell_money(saved)} saved" if saved else ""
    )
    return DayBar(
        day=day,
        usd=usd,
        saved=saved,
        calls=calls,
        x=number * STEP,
        spent_height=_height_of(usd, highest),
        saved_height=_height_of(saved, highest),
        label=words,
    )


def _height_of(usd: float, highest: float) -> float:
    """Return the height of a bar: the smallest amount is seen."""
    return max(_THINNEST, HEIGHT * usd / highest) if usd > 0 else 0.0


async def show_limit_list(visit: Visit) -> RenderedPage:
    """Return the limits that hold, and their earlier versions."""
    holding, history = await asyncio.gather(
        visit.call(show_limits),
        visit.call(
            list_limit_versions,
            after=visit.after,
            limit=_VERSIONS,
        ),
    )
    return RenderedPage(
        values={
            "holding": holding,
            "limits": [(one, spell_limit(one)) for one in holding.limits.limits],
            "versions": [
                (one, _read_time(one.when), tuple(_spell_difference(one.difference)))
                for one in history.versions
            ],
            "paging": visit.paging("money/limits", history.after),
            "may_edit": visit.may(set_limit),
            "may_remove": visit.may(remove_limit),
            "may_restore": visit.may(restore_limits),
        }
    )


def _read_time(text: str) -> datetime | None:
    """Return the time that a version has as a text, None where it has none."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def _digits(given: str) -> str:
    return given if given.isdecimal() and given.isascii() and len(given) < 17 else ""


def spell_limit(limit: Limit) -> str:
    """Return in words the payers of a limit, its size, and its effect."""
    whose = [
        f"each {name}" if value == "*" else f"{name} {value}"
        for name in _DIMENSIONS
        if (value := getattr(limit, name))
    ]
    size = (
        spell_money(float(limit.usd))
        if limit.usd is not None
        else f"{spell_number(limit.amount)} {UNITS[limit.measure]}"
    )
    window = f" a {limit.every}" if limit.every is not None else ""
    then = "" if limit.measure == "at_most" else f", {_AT_LIMIT[limit.at_limit]}"
    return f"{', '.join(whose) or 'all together'}: {size}{window}{then}"


def _spell_difference(difference: LimitsDifference | None) -> Iterator[str]:
    """Yield each change of a version in words."""
    if difference is None:
        yield "the version before it is no longer kept"
        return
    for one in difference.limits:
        if one.after is None:
            yield f"removed {one.name}"
        elif one.before is None:
            yield f"new {one.name}: {spell_limit(one.after)}"
        else:
            yield f"{one.name}: {spell_limit(one.after)} (was {spell_limit(one.before)})"
    for each in difference.settings:
        yield f"{each.name}: {each.after} (was {each.before})"


async def show_limit_form(visit: Visit) -> RenderedPage:
    """Return the form of one limit, or of a new one."""
    holding = await visit.call(show_limits)
    name = visit.query.get("name", "")
    found = next((one for one in holding.limits.limits if one.name == name), None)
    return _make_form(
        {} if found is None else _read_limit(found), holding.version, bool(found)
    )


def _read_limit(limit: Limit) -> dict[str, str]:
    """Return the fields of the form of *limit*."""
    size = limit.usd if limit.usd is not None else limit.amount
    return {
        "name": limit.name,
        **{name: getattr(limit, name) for name in _DIMENSIONS},
        "measure": limit.measure,
        "size": f"{size:f}" if limit.usd is not None else f"{size}",
        "every": limit.every or "",
        "at_limit": limit.at_limit,
    }


def _make_form(
    given: Mapping[str, str],
    version: int,
    is_there: bool,
    faults: Sequence[str] = (),
) -> RenderedPage:
    fields = ("name", *_DIMENSIONS, "measure", "size", "every", "at_limit")
    return RenderedPage(
        title=f"Limit {given['name']}" if is_there else "New limit",
        values={
            "given": {name: given.get(name, "") for name in fields},
            "version": version,
            "is_there": is_there,
            "faults": faults,
            "dimensions": _DIMENSIONS,
            "measures": tuple(
                (one, "US dollars" if one == "usd" else UNITS[one])
                for one in get_args(Measure)
            ),
            "windows": get_args(Every),
            "endings": tuple((one, _AT_LIMIT[one]) for one in get_args(AtLimit)),
        },
    )


async def save_limit(visit: Visit) -> Notice | RenderedPage:
    """Set a limit over the version that the form was made of; one that cannot be kept is shown with its faults."""
    given = {name: values[0].strip() for name, values in visit.fields.items()}
    name = given.get("name", "")
    is_there = given.get("is_there") == "yes"
    version = int(_digits(given.get("version", "")) or "0")
    try:
        if not is_there:
            await _demand_new(visit, name)
        changed = await visit.call(set_limit, name, _read_edit(given, version))
    except VersionConflict:
        return _make_form(
            given,
            (await visit.call(show_limits)).version,
            is_there,
            ["Somebody changed the limits meanwhile: look at them, then save again."],
        )
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_input=False)
        faults = [fault_of(one) for one in wrong]
        return _make_form(given, version, is_there, faults)
    except InvalidInput as error:
        return _make_form(given, version, is_there, [str(error)])
    except Refused as error:
        if error.problem.status != HTTPStatus.UNPROCESSABLE_ENTITY:
            raise
        faults = [f"{one.where}: {one.message}" for one in error.problem.problems]
        return _make_form(given, version, is_there, faults)
    text = f"{name} is in effect, in version {changed.version} of the limits."
    if not changed.concerns:
        text = "Nothing was changed."
    return Notice(to=address("money/limits"), text=text)


def _read_edit(given: Mapping[str, str], version: int) -> LimitEdit:
    """Return the change that the fields of the form mean, over *version*.

    Raises:
        InvalidInput: they say no size.
        ValidationError: one of them cannot be used.
    """
    measure = given.get("measure", "")
    if measure not in get_args(Measure) or not given.get("size"):
        raise InvalidInput("size: give how much of what the limit allows")
    edit: dict[str, Any] = {one: given.get(one, "") for one in _DIMENSIONS}
    edit["version"] = version
    edit[measure] = given["size"].replace(",", "")
    if given.get("every") and measure not in ("at_once", "at_most"):
        edit["every"] = given["every"]
    # A run that finds no place waits for one, whatever is chosen.
    edit["at_limit"] = "park" if measure == "at_most" else given.get("at_limit")
    return LimitEdit.model_validate(edit)


async def _demand_new(visit: Visit, name: str) -> None:
    """Return when *name* can be that of a new limit.

    Raises:
        InvalidInput: it cannot.
    """
    if not name:
        raise InvalidInput("name: is needed")
    holding = await visit.call(show_limits)
    if any(one.name == name for one in holding.limits.limits):
        raise InvalidInput(f"name: there is a limit {name} already; edit that one")


async def drop_limit(visit: Visit) -> Notice | RenderedPage:
    """Remove a limit, once it was said so, over the version that was looked at then."""
    name = visit.one("name")
    back = address("money/limits")
    if visit.one("sure") != "yes":
        holding = await visit.call(show_limits)
        found = [one for one in holding.limits.limits if one.name == name]
        return ask_first(
            question=f"Remove the limit {name}?",
            explained="Work that waits for it continues at once. Its recorded spending "
            "is kept.",
            concerns=len(found),
            lines=[spell_limit(one) for one in found],
            to="money/remove",
            verb="Remove it",
            kept=[("name", name), ("version", f"{holding.version}")],
            back=back,
            is_grave=True,
        )
    try:
        changed = await visit.call(
            remove_limit, name, version=int(_digits(visit.one("version")) or "0")
        )
    except (VersionConflict, InvalidInput, Refused) as error:
        return Notice(to=back, text=f"It stays: {error}.", tone="bad")
    return Notice(
        to=back, text=f"{name} is removed, in version {changed.version} of the limits."
    )


async def restore(visit: Visit) -> Notice | RenderedPage:
    """Set the limits of an earlier version again, once it was shown what that changes."""
    back = address("money/limits")
    earlier = int(_digits(visit.one("earlier")) or "0")
    is_sure = visit.one("sure") == "yes"
    over = int(_digits(visit.one("version")) or "0") if is_sure else None
    if earlier < 1:
        return Notice(to=back, text="There is no such version.", tone="bad")
    wanted = Restoration(version=over, dry_run=not is_sure)
    try:
        found = await visit.call(restore_limits, earlier, wanted)
    except (VersionConflict, InvalidInput, Refused) as error:
        return Notice(to=back, text=f"Nothing was changed: {error}.", tone="bad")
    if is_sure:
        text = f"Version {earlier} is in effect again, as version {found.version}."
        return Notice(to=back, text=text)
    return ask_first(
        question=f"Set version {earlier} again?",
        explained="It becomes a new version; those between stay in the history.",
        concerns=found.concerns,
        lines=tuple(_spell_difference(found.difference)),
        to="money/restore",
        verb="Set it again",
        kept=[("earlier", f"{earlier}"), ("version", f"{found.version}")],
        back=back,
    )


PAGE = ConsolePage(
    path="money",
    title="Money",
    operation=show_budget,
    show=show,
    template="money.html",
    group="System",
    is_of_all=True,
)
LIMITS = ConsolePage(
    path="money/limits",
    title="Limits",
    operation=show_limits,
    show=show_limit_list,
    template="limits.html",
    actions=(
        FormAction(path="money/remove", operation=remove_limit, run=drop_limit),
        FormAction(path="money/restore", operation=restore_limits, run=restore),
    ),
)
LIMIT = ConsolePage(
    path="money/limit",
    title="Limit",
    operation=set_limit,
    show=show_limit_form,
    template="limit_form.html",
    actions=(FormAction(path="money/set", operation=set_limit, run=save_limit),),
)
