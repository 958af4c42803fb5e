"""Limits in words, from their JSON, in which a field that has its default is left out."""

from collections.abc import Iterator, Mapping
from typing import Any

from tasklore.commands.render.words import money

Json = Mapping[str, Any]

_UNITS = {
    "requests": " requests",
    "tokens": " tokens",
    "usd": "",
    "at_once": " at once",
    "at_most": " tasks at once",
}
_DIMENSIONS = ("model", "tenant", "user", "agent", "task")


def spell_amount(measure: str, amount: float) -> str:
    """Return an amount of an account: "$12.40", "42,000"."""
    return money(amount) if measure == "usd" else f"{amount:,.0f}"


def spell_size(measure: str, amount: float, every: str | None) -> str:
    """Return how much a limit allows in which time: "200,000 tokens a minute", "8 at once"."""
    span = "" if every is None else f" a {every}"
    return f"{spell_amount(measure, amount)}{_UNITS.get(measure, '')}{span}"


def size_of(limit: Json) -> str:
    """Return how much *limit* allows in which time."""
    for measure in _UNITS:
        if limit.get(measure) is not None:
            return spell_size(measure, float(limit[measure]), limit.get("every"))
    return ""


def spell_scope(limit: Json) -> str:
    """Return what *limit* covers: "model gpt-*, each tenant"; "" for everything."""
    values = {name: limit.get(name) for name in _DIMENSIONS}
    return ", ".join(
        f"each {name}" if value == "*" else f"{name} {value}"
        for name, value in values.items()
        if value
    )


def choice_of(limit: Json) -> str:
    """Return what happens at *limit*."""
    return str(limit.get("at_limit", "park"))


def spell_limit(limit: Json) -> str:
    """Return *limit* in a line."""
    parts = (size_of(limit), spell_scope(limit), choice_of(limit))
    return ", ".join(part for part in parts if part)


def spell_setting(value: Any) -> str:
    """Return the value of a setting beside the limits: "gpt-6: gpt-6-mini, local"; "" for none."""
    if isinstance(value, Mapping):
        return "; ".join(f"{name}: {spell_setting(one)}" for name, one in value.items())
    if isinstance(value, list):
        return ", ".join(map(spell_setting, value))
    return "" if value is None else str(value)


def spell_difference(difference: Json) -> Iterator[str]:
    """Yield a line for each limit or setting that differs: `+` is new, `-` is gone, `~` is another than it was."""
    for one in difference["limits"]:
        before = one["before"]
        after = one["after"]
        if after is None:
            yield f"- {one['name']}: {spell_limit(before)}"
        elif before is None:
            yield f"+ {one['name']}: {spell_limit(after)}"
        else:
            yield f"~ {one['name']}: {spell_limit(before)} -> {spell_limit(after)}"
    for one in difference["settings"]:
        was, now = (spell_setting(one[name]) or "none" for name in ("before", "after"))
        yield f"~ {one['name'].replace('_', ' ')}: {was} -> {now}"
