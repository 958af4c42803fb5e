"""`tasklore ltm list|show|stats`: looking at the long-term memory."""

import json
import time
from typing import Any

from tasklore.commands.render.columns import print_facts
from tasklore.commands.render.durations import parse_span, read_aloud
from tasklore.commands.render.screen import patience, print_json, print_table, printable
from tasklore.commands.stores import long_term_memory, whole_key
from tasklore.contracts.errors import InvalidInput
from tasklore.memory.long_term.entries import Entry


async def print_entries(
    *, since: str | None, agent: str | None, task: str | None, as_json: bool
) -> None:
    """Print a line for every answer that fits, the newest first."""
    now_ms = time.time_ns() // 1_000_000
    since_ms = (
        now_ms - int(parse_span(since, "--since").total_seconds() * 1000)
        if since is not None
        else None
    )
    async with long_term_memory() as memory, patience("reading the memory"):
        found = [
            entry
            async for entry in memory.entries(
                agent_id=agent, task=task, since_ms=since_ms
            )
        ]
    found.sort(key=lambda entry: (-entry.answer.created_at_ms, entry.key))
    if as_json:
        print_json([_as_document(entry) for entry in found])
        return
    if not found:
        print(
            "Nothing is remembered"
            + (" that fits." if since or agent or task else " yet.")
        )
        return
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
    print_table(
        columns,
        rows,
        right=("AGE", "HITS", "TOOK", "KEPT FOR"),
        whole=("AGENT", "QUESTION"),
    )


async def print_entry(key: str, *, as_json: bool) -> None:
    """Print one answer with its key, age, hits and parameters.

    Raises:
        InvalidInput: nothing is remembered there.
    """
    async with long_term_memory() as memory:
        entry = await memory.show(await whole_key(memory, key))
    if entry is None:
        raise InvalidInput(
            f"nothing is remembered at {key!r}; `tasklore ltm list` shows what is"
        )
    if as_json:
        print_json(_as_document(entry))
        return
    print_facts(
        {
            "key": printable(entry.key),
            "agent": entry.parts.agent_id,
            "task": entry.parts.task_name,
            "remembered": f"{read_aloud(time.time_ns() // 1_000_000 - entry.answer.created_at_ms)} ago",
            "kept for": read_aloud(entry.expires_in_ms),
            "computed in": read_aloud(entry.answer.computed_ms),
            "served": f"{entry.hits:,} times",
            "parameters": json.dumps(
                json.loads(entry.parameters_json), ensure_ascii=False
            ),
        }
    )
    print(json.dumps(json.loads(entry.answer.result_json), indent=2, ensure_ascii=True))


async def print_stats(*, agent: str | None, as_json: bool) -> None:
    """Print how much is remembered by task, how often it was served, and the time that saved."""
    async with long_term_memory() as memory, patience("counting"):
        stats = await memory.stats(agent)
        aside = await memory.quarantined(agent)
    counts = {
        name: (one.entries, one.hits, one.saved_ms)
        for name, one in stats.by_task.items()
    }
    counts["all"] = (stats.entries, stats.hits, stats.saved_ms)
    if as_json:
        names = ("entries", "hits", "saved_ms")
        document = {
            name: dict(zip(names, numbers, strict=True))
            for name, numbers in counts.items()
        }
        quarantined = [{"agent_id": one.agent_id, "key": one.seed_key} for one in aside]
        print_json(
            {**document.pop("all"), "by_task": document, "quarantined": quarantined}
        )
        return
    rows = [
        (name, f"{entries:,}", f"{hits:,}", read_aloud(saved_ms))
        for name, (entries, hits, saved_ms) in counts.items()
    ]
    print_table(
        ("TASK", "ANSWERS", "HITS", "SAVED"), rows, right=("ANSWERS", "HITS", "SAVED")
    )
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
