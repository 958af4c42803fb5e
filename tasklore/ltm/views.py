"""`tasklore ltm list|show|stats`: looking at what is remembered."""

import json
import time
from typing import Any

from contracts.errors import InvalidInput
from memory.long_term.entries import Entry, LongTermStats, Quarantined
from tasklore.render.durations import parse_span, read_aloud
from tasklore.render.screen import patience, print_json, print_table, printable, styled
from tasklore.stores import long_term_memory, whole_key


async def print_entries(*, since: str | None, agent: str | None, task: str | None, as_json: bool) -> None:
    """Print a line for every answer that fits, the newest first."""
    now_ms = _now_ms()
    since_ms = now_ms - int(parse_span(since, "--since").total_seconds() * 1000) if since is not None else None
    async with long_term_memory() as memory, patience("reading the memory"):
        found = [entry async for entry in memory.entries(agent_id=agent, task=task, since_ms=since_ms)]
    found.sort(key=lambda entry: (-entry.answer.created_at_ms, entry.key))
    if as_json:
        print_json([_as_document(entry) for entry in found])
    elif not found:
        print("Nothing is remembered" + (" that fits." if since or agent or task else " yet."))
    else:
        rows = [
            (
                entry.parts.agent_id,
                printable(entry.parts.question),
                f"v{entry.parts.version}",
                read_aloud(now_ms - entry.answer.created_at_ms),
                f"{entry.hits:,}",
                read_aloud(entry.answer.computed_ms),
                read_aloud(entry.expires_in_ms),
            )
            for entry in found
        ]
        columns = ("AGENT", "QUESTION", "VERSION", "AGE", "HITS", "TOOK", "KEPT FOR")
        # Whole, as they are copied into `tasklore ltm show`.
        print_table(columns, rows, right=("AGE", "HITS", "TOOK", "KEPT FOR"), whole=("AGENT", "QUESTION"))


async def print_entry(key: str, *, as_json: bool) -> None:
    """Print one answer with everything that is known of it.

    Raises:
        InvalidInput: nothing is remembered there.
        Unreachable: Redis does not answer.
    """
    async with long_term_memory() as memory:
        entry = await memory.show(await whole_key(memory, key))
    if entry is None:
        raise InvalidInput(f"nothing is remembered at {key!r}; `tasklore ltm list` shows what is")
    if as_json:
        print_json(_as_document(entry))
        return
    facts = (
        ("key", printable(entry.key)),
        ("agent", entry.parts.agent_id),
        ("task", entry.parts.task_name),
        ("remembered", f"{read_aloud(_now_ms() - entry.answer.created_at_ms)} ago"),
        ("kept for", read_aloud(entry.expires_in_ms)),
        ("computed in", read_aloud(entry.answer.computed_ms)),
        ("served", f"{entry.hits:,} times"),
        ("parameters", json.dumps(json.loads(entry.parameters_json), ensure_ascii=False)),
    )
    for name, value in facts:
        print(f"{styled(name.ljust(12), 'dim')}{value}")
    print(json.dumps(json.loads(entry.answer.result_json), indent=2, ensure_ascii=True))


async def print_stats(*, agent: str | None, as_json: bool) -> None:
    """Print how much is remembered by task, how often it was served, and what that saved."""
    async with long_term_memory() as memory, patience("counting"):
        stats = await memory.stats(agent)
        aside = await memory.quarantined(agent)
    if as_json:
        print_json(_stats_document(stats, aside))
        return
    rows = [
        (name, f"{task.entries:,}", f"{task.hits:,}", read_aloud(task.saved_ms)) for name, task in stats.by_task.items()
    ]
    rows.append(("all", f"{stats.entries:,}", f"{stats.hits:,}", read_aloud(stats.saved_ms)))
    print_table(("TASK", "ANSWERS", "HITS", "SAVED"), rows, right=("ANSWERS", "HITS", "SAVED"))
    if aside:
        print(f"\nIn quarantine, never served: {len(aside)}")
        for one in aside:
            print(f"  {one.agent_id}  {printable(one.seed_key)}")


def _as_document(entry: Entry) -> dict[str, Any]:
    return {
        "key": entry.key,
        "agent_id": entry.parts.agent_id,
        "task": entry.parts.task_name,
        "question": entry.parts.question,
        "version": entry.parts.version,
        "user_token": entry.parts.user_token,
        "created_at_ms": entry.answer.created_at_ms,
        "computed_ms": entry.answer.computed_ms,
        "hits": entry.hits,
        "expires_in_ms": entry.expires_in_ms,
        "parameters": json.loads(entry.parameters_json),
        "result": json.loads(entry.answer.result_json),
    }


def _stats_document(stats: LongTermStats, aside: list[Quarantined]) -> dict[str, Any]:
    return {
        "entries": stats.entries,
        "hits": stats.hits,
        "saved_ms": stats.saved_ms,
        "by_task": {
            name: {"entries": task.entries, "hits": task.hits, "saved_ms": task.saved_ms}
            for name, task in stats.by_task.items()
        },
        "quarantined": [{"agent_id": one.agent_id, "key": one.seed_key} for one in aside],
    }


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
