"""`tasklore memory facts`: what was found in what a person said, and what became of it."""

from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError

from contracts.messages import ExtractedFacts, Fact
from memory.queues.claims import KnownRow
from tasklore.memory.lines import one_line
from tasklore.memory.stores import user_memory
from tasklore.render.durations import read_aloud
from tasklore.render.screen import print_json, print_table, printable

#: Characters of a fact or a reason in the list; JSON has them whole.
_WIDE = 100


async def print_facts(user: str, limit: int, *, as_json: bool) -> None:
    """Print the facts of *user*: those that wait, those that wait for a model, then the last that were done."""
    async with user_memory() as memory:
        rows = await memory.facts.rows(user, limit)
        counts = await memory.facts.counts(user)
    if as_json:
        print_json([fact_document(row) for row in rows])
        return
    if not rows:
        print(f"No fact was found yet in what {printable(user)} said.")
        return
    now_ms = int(datetime.now(UTC).timestamp() * 1000)
    lines = [
        (
            one_line(_text(row), _WIDE),
            row.state.replace("_", " "),
            read_aloud(now_ms - row.at_ms),
            f"{row.attempts}",
            one_line(row.reason, _WIDE),
        )
        for row in rows
    ]
    print_table(("FACT", "STATE", "SINCE", "RUNS", "WHY"), lines, right=("RUNS",))
    done = ", ".join(f"{number} {outcome}" for outcome, number in counts.closed.items() if number)
    print(f"\n{counts.waiting} waiting, {counts.parked} for a model" + (f"; {done}" if done else ""))


def read_fact(row: KnownRow) -> tuple[str, Fact] | None:
    """Return the turn and the fact that *row* holds, None when it cannot be read."""
    try:
        extracted = ExtractedFacts.model_validate_json(row.body)
    except ValidationError:
        return None
    return (extracted.turn_id, extracted.facts[0]) if extracted.facts else None


def fact_document(row: KnownRow) -> dict[str, Any]:
    """Return *row* as JSON for programs."""
    found = read_fact(row)
    return {
        "fact_id": row.row_id,
        "turn_id": found[0] if found else None,
        "fact": found[1].model_dump(mode="json") if found else None,
        "state": row.state,
        "attempts": row.attempts,
        "reason": row.reason,
        "plan_id": row.plan_id,
        "at_ms": row.at_ms,
    }


def _text(row: KnownRow) -> str:
    found = read_fact(row)
    return found[1].text if found else "(unreadable)"
