"""The parts of a document: what an agent returned, read as its section, and the counts of them all. Pure."""

import json
from collections.abc import Iterable, Mapping
from decimal import Decimal

from pydantic import JsonValue, ValidationError

from tasklore.contracts.analysis.pieces import Reduction, Section
from tasklore.contracts.analysis.section_agents import model_of
from tasklore.contracts.analysis.stories import AnalysisGroup
from tasklore.contracts.errors import TaskloreError
from tasklore.contracts.faults import fault_of
from tasklore.memory.stories.arithmetic import roi, total
from tasklore.memory.stories.view import CHANGING
from tasklore.supervisor.pipelines.analysis.records import (
    OVER,
    AnalysisRecord,
    SectionRecord,
)

Body = dict[str, JsonValue]

GROUPS: tuple[AnalysisGroup, ...] = ("background", "immediate")
#: Bytes of one section: ten of them still fit into a message.
MOST_BYTES = 64 * 1024
#: Objects and lists within each other: what is deeper is not read back everywhere.
MOST_DEPTH = 64
#: Items of each list that changes the story: they are settled while others wait.
MOST_ITEMS = 64
#: Keys of a section that no agent writes itself.
_OURS = ("dur", "status", "error")
#: The most that one task is believed to have spent: US dollars, and tokens or milliseconds.
_MOST_USD = Decimal(10**9)
_MOST_COUNT = 10**12


class Nonsense(TaskloreError):
    """The agent's result is no section of the document; mend the agent, or return the section's model from it."""


def read_section(section: str, result: object) -> Section:
    """Return *result* as the section of that key.

    Raises:
        Nonsense: it is none.
    """
    if not isinstance(result, dict):
        raise Nonsense(
            f"section {section!r} has to be a JSON object, this is {type(result).__name__}"
        )
    body = {key: value for key, value in result.items() if key not in _OURS}
    if _is_deep(body):
        raise Nonsense(
            f"section {section!r} is nested deeper than {MOST_DEPTH}; make it flatter"
        )
    for name, items in body.items():
        if section in CHANGING and isinstance(items, list) and len(items) > MOST_ITEMS:
            raise Nonsense(
                f"section {section!r} has {len(items):,} items in {name!r}, at most {MOST_ITEMS}"
            )
    try:
        size = len(json.dumps(body, ensure_ascii=False, allow_nan=False).encode())
    except (ValueError, RecursionError) as error:
        raise Nonsense(
            f"section {section!r} cannot be written as JSON: {error}"
        ) from error
    if size > MOST_BYTES:
        raise Nonsense(
            f"section {section!r} has {size:,} bytes, the most is {MOST_BYTES:,}; leave out what is long"
        )
    try:
        return (model_of(section) or Section).model_validate(body)
    except ValidationError as error:
        first = error.errors(
            include_url=False, include_input=False, include_context=False
        )[0]
        raise Nonsense(
            f"this is not a section {section!r}: {fault_of(first, 'it')}"
        ) from error


def sections_of(document: bytes | None) -> dict[str, Body]:
    """Return the sections of a stored document by their keys; none of what cannot be read."""
    try:
        body: JsonValue = json.loads(document or b"null")
    except ValueError:
        body = None
    groups = [body.get(group) for group in GROUPS] if isinstance(body, dict) else []
    return {
        name: section
        for group in groups
        if isinstance(group, dict)
        for name, section in group.items()
        if isinstance(section, dict)
    }


def meta_of(record: AnalysisRecord, updated: str) -> Body:
    """Return the head of the document: counts are of sections whose end is known, and the late count as failed."""
    states = [seat.state for seat in record.seats]
    ok = states.count("ok")
    skipped = states.count("skipped")
    over = sum(state in OVER for state in states)
    return {
        "resp_num": record.number,
        "updated": updated,
        "status": "fresh" if record.is_fresh else "partial",
        "agents_run": over,
        "agents_ok": ok,
        "agents_fail": over - ok - skipped,
        "agents_skip": skipped,
    }


def stats_of(record: AnalysisRecord, sections: Mapping[str, Body]) -> Body:
    """Return times, costs and savings; unknown ones are left out, and `roi` None at no cost."""
    stats: Body = {}
    total_ms = 0
    total_tokens = 0
    total_cost = Decimal(0)
    for group, prefix in zip(GROUPS, ("bg", "im"), strict=True):
        seats = [seat for seat in record.seats if seat.group == group]
        cost = sum((seat.cost_usd for seat in seats), Decimal(0))
        tokens = sum(seat.input_tokens + seat.output_tokens for seat in seats)
        took_ms = _took_ms(seats)
        if took_ms is not None:
            stats |= {
                f"{prefix}_dur": took_ms,
                f"{prefix}_tokens": tokens,
                f"{prefix}_cost": float(cost),
            }
        total_ms = total_ms + (took_ms or 0)
        total_tokens = total_tokens + tokens
        total_cost = total_cost + cost
    if stats:
        stats |= {
            "total_dur": total_ms,
            "total_tokens": total_tokens,
            "total_cost": float(total_cost),
        }
    saved = total(_reductions(sections.values()))
    if saved is not None:
        stats["total_reduction"] = saved.model_dump(mode="json")
        stats["roi"] = roi(saved.saved or 0, record.usd_per_million, total_cost)
    return stats


def exact_usd(amount: float) -> Decimal:
    """Return *amount* as it was written, so that sums of it are exact; no amount counts as nothing."""
    spelled = Decimal(repr(amount))
    return (
        max(Decimal(0), min(_MOST_USD, spelled)) if spelled.is_finite() else Decimal(0)
    )


def clamp_count(number: int) -> int:
    """Return *number*, of tokens or milliseconds, so that sums of it can be written."""
    return max(0, min(_MOST_COUNT, number))


def _is_deep(body: JsonValue) -> bool:
    level: list[JsonValue] = [body]
    for _ in range(MOST_DEPTH):
        level = [
            one
            for part in level
            if isinstance(part, dict | list)
            for one in (part.values() if isinstance(part, dict) else part)
        ]
    return any(isinstance(one, dict | list) for one in level)


def _took_ms(seats: Iterable[SectionRecord]) -> int | None:
    """Return the wall clock from the first dispatch to the last report, summed over the runs of the analysis."""
    runs: dict[int, tuple[int, int]] = {}
    for seat in seats:
        if seat.asked_ms is not None and seat.reported_ms is not None:
            first, last = runs.get(seat.run, (seat.asked_ms, seat.reported_ms))
            runs[seat.run] = min(first, seat.asked_ms), max(last, seat.reported_ms)
    # A clock that was set back takes no time.
    return sum(max(0, last - first) for first, last in runs.values()) if runs else None


def _reductions(sections: Iterable[Body]) -> Iterable[Reduction]:
    for section in sections:
        try:
            yield Reduction.model_validate(section.get("reduction"))
        except ValidationError:
            # A story's own agent may mean something else by the word.
            continue
