"""A story after its last response: how it is analysed, who stands how to whom, and what is open."""

from collections.abc import Iterator, Mapping
from typing import Any

from tasklore.commands.render.columns import Column, cells_of
from tasklore.commands.render.screen import lines_of_table, styled
from tasklore.commands.render.words import count_of, one_line

Json = Mapping[str, Any]


def _spell_next(bond: Json) -> str:
    """Return the next tier and the points that it needs, "" on the highest."""
    if bond["next_tier"] is None:
        return ""
    return f"{one_line(bond['next_tier'])} with {bond['points_needed']:g} more"


def _spell_left(count: int | None) -> str:
    return "" if count is None else count_of(count, "response")


_BONDS = (
    Column[Json]("RELATIONSHIP", lambda one: one_line(", ".join(one["characters"]))),
    Column[Json]("SCORE", lambda one: f"{one['score']:g}", right=True),
    Column[Json]("TIER", lambda one: one["tier"]),
    Column[Json]("NEXT", _spell_next),
)
_THREADS = (
    Column[Json]("OPEN THREAD", lambda one: one_line(one["id"]), whole=True),
    Column[Json]("TITLE", lambda one: one_line(one["title"])),
    Column[Json]("STATUS", lambda one: one["status"]),
    Column[Json](
        "CONSEQUENCE IN",
        lambda one: _spell_left(one["consequence_countdown"]),
        right=True,
    ),
    Column[Json]("DUE IN", lambda one: _spell_left(one["time_until"]), right=True),
    Column[Json](
        "LAST IN",
        lambda one: "" if one["last_mention"] is None else f"{one['last_mention']:,}",
        right=True,
    ),
)


def draw(view: Json) -> str:
    """Return the facts of *view*, and its relationships and open threads as tables."""
    return "\n".join(_lines(view))


def _lines(view: Json) -> Iterator[str]:
    title = one_line(view["title"])
    yield styled(view["story_id"], "bold") + (f": {title}" if title else "")
    facts = {name: text for name, text in _facts(view) if text}
    width = max(map(len, facts)) + 2
    for name, text in facts.items():
        yield f"{styled(name.ljust(width), 'dim')}{text}"
    for columns, rows in ((_BONDS, view["relationships"]), (_THREADS, view["threads"])):
        if rows:
            yield ""
            yield from lines_of_table(*cells_of(columns, rows))
    if view["resolved_threads"]:
        yield ""
        yield f"{count_of(view['resolved_threads'], 'thread')} resolved."


def _facts(view: Json) -> Iterator[tuple[str, str]]:
    kept = len(view["responses"])
    kinds = sorted(view["entities"].items(), key=lambda one: -one[1])
    listed = ", ".join(count_of(count, kind) for kind, count in kinds) or "none"
    rules = view["settings"]
    yield (
        "responses",
        f"{kept:,} kept" + (f", the last is {view['last_response']}" if kept else ""),
    )
    yield "entities", f"{listed}; {view['entity_tokens']:,} tokens"
    yield "memories", f"{view['memories']:,}"
    yield "facts", f"{view['facts']:,}"
    yield "critical", f"with {count_of(rules['critical_countdown'], 'response')} left"
    yield (
        "agents wait",
        f"{rules['patience_s']:g} s for each other, {rules['late_s']:g} s for late ones",
    )
    yield (
        "prices",
        f"{rules['reader_usd_per_million']:g} USD for a million tokens read",
    )
    yield "switched off", ", ".join(view["switched_off"])
    own = (f"{one['section']} ({one['agent_id']})" for one in view["own_agents"])
    yield "of its own", ", ".join(own)
