"""The counts of a document: who came through, how long it took, what it cost and what it saved."""

from collections.abc import Iterable, Mapping
from decimal import Decimal

from pydantic import JsonValue, ValidationError

from contracts.analysis.pieces import Reduction
from contracts.analysis.stories import AnalysisGroup
from memory.stories.arithmetic import roi, total
from supervisor.analyses.records import OVER, AnalysisRecord, SeatRecord

Body = dict[str, JsonValue]

#: The most that one task is believed to have spent: US dollars, and tokens or milliseconds.
_MOST_USD, _MOST_COUNTED = Decimal(10**9), 10**12


def meta_of(record: AnalysisRecord, updated: str) -> Body:
    """Return the head of the document: counts are of those whose end is known, and the late count as failed."""
    states = [seat.state for seat in record.seats]
    ok, skipped = states.count("ok"), states.count("skipped")
    ended = sum(state in OVER for state in states)
    return {
        "resp_num": record.number,
        "updated": updated,
        "status": "fresh" if record.is_fresh else "partial",
        "agents_run": ended,
        "agents_ok": ok,
        "agents_fail": ended - ok - skipped,
        "agents_skip": skipped,
    }


def stats_of(record: AnalysisRecord, sections: Mapping[str, Body]) -> Body:
    """Return what the analysis took and saved; what is not known of yet is left out, and `roi` None at no cost."""
    stats: Body = {}
    groups: tuple[tuple[AnalysisGroup, str], ...] = (("background", "bg"), ("immediate", "im"))
    took = {group: _took_ms([seat for seat in record.seats if seat.group == group]) for group, _ in groups}
    cost = {group: _cost(seat for seat in record.seats if seat.group == group) for group, _ in groups}
    tokens = {group: _tokens(seat for seat in record.seats if seat.group == group) for group, _ in groups}
    for group, prefix in groups:
        if took[group] is not None:
            stats[f"{prefix}_dur"] = took[group]
            stats |= {f"{prefix}_tokens": tokens[group], f"{prefix}_cost": float(cost[group])}
    total_cost = sum(cost.values(), Decimal(0))
    if stats:
        stats["total_dur"] = sum(one or 0 for one in took.values())
        stats |= {"total_tokens": sum(tokens.values()), "total_cost": float(total_cost)}
    saved = total(_reductions(sections.values()))
    if saved is not None:
        stats["total_reduction"] = saved.model_dump(mode="json")
        stats["roi"] = roi(saved.saved or 0, record.usd_per_million, total_cost)
    return stats


def exactly(amount_usd: float) -> Decimal:
    """Return *amount_usd* as it was written, so that sums of it are exact; what is no amount counts as nothing."""
    amount = Decimal(repr(amount_usd))
    return max(Decimal(0), min(_MOST_USD, amount)) if amount.is_finite() else Decimal(0)


def counted(number: int) -> int:
    """Return *number*, of tokens or milliseconds, so that sums of it can be written."""
    return max(0, min(_MOST_COUNTED, number))


def _took_ms(seats: Iterable[SeatRecord]) -> int | None:
    """Return the wall clock from the first dispatch to the last report, summed over the runs that asked anybody."""
    spans: dict[int, tuple[int, int]] = {}
    for seat in seats:
        if seat.asked_ms is not None and seat.reported_ms is not None:
            first, last = spans.get(seat.run, (seat.asked_ms, seat.reported_ms))
            spans[seat.run] = min(first, seat.asked_ms), max(last, seat.reported_ms)
    # A clock that was set back takes no time.
    return sum(max(0, last - first) for first, last in spans.values()) if spans else None


def _cost(seats: Iterable[SeatRecord]) -> Decimal:
    return sum((seat.cost_usd for seat in seats), Decimal(0))


def _tokens(seats: Iterable[SeatRecord]) -> int:
    return sum(seat.input_tokens + seat.output_tokens for seat in seats)


def _reductions(sections: Iterable[Body]) -> Iterable[Reduction]:
    for section in sections:
        try:
            yield Reduction.model_validate(section.get("reduction"))
        except ValidationError:
            # An agent of somebody else's may mean something else by the word.
            continue
