"""`tasklore memory search|waiting`: what was said and is remembered, by a question; and what is not learned yet."""

from datetime import UTC, date, datetime
from typing import Any

from memory.claims import KnownRow
from memory.episodes.store import Episodes
from memory.recall import Memory, Recalled, search_memory
from tasklore.document_lines import one_line
from tasklore.screen import print_json, print_table, printable, styled
from tasklore.user_memory import UserMemory, user_memory

#: Rows of a table that are looked through for those that wait.
_MOST_ROWS = 1_000


async def print_found(user: str, question: str, *, at: date | None, limit: int, as_json: bool) -> None:
    """Print what answers *question*, with its day and who said it; with *at*, as it stood on that day.

    Raises:
        InvalidInput: *user* names nobody, *question* has no word, or *limit* is out of bounds.
        Unreachable: Redis does not answer.
    """
    async with user_memory() as memory:
        found = await search(memory, user, question, at=at, limit=limit)
    if as_json:
        print_json({"is_nothing_said": found.is_nothing_said, "memories": [_document(one) for one in found.memories]})
        return
    for line in lines_of(found):
        print(line)


async def search(memory: UserMemory, user: str, question: str, *, at: date | None = None, limit: int = 10) -> Recalled:
    """Return what answers *question* among the items and the turns of *user*.

    Raises:
        InvalidInput: *question* has no word, or *limit* is out of bounds.
        MemoryUnavailable: the store did not answer in time.
    """
    bodies = {name: one.body for name, one in (await memory.documents.snapshot(user)).documents.items()}
    return await search_memory(
        question,
        user_id=user,
        bodies=bodies,
        kinds=memory.kinds,
        episodes=Episodes(memory.client, deadline_s=5.0),
        now=datetime.now(UTC),
        at=at,
        limit=limit,
    )


def lines_of(found: Recalled) -> list[str]:
    """Return a line for each thing that was found; one that says so when there is none."""
    if not found.memories:
        return ["Nothing was said about that."]
    lines = ["Nothing answers that; this comes nearest."] if found.is_nothing_said else []
    for one in found.memories:
        until = "" if one.until is None else f", until {one.until}"
        about = "" if one.subject is None else f", about {printable(one.subject)}"
        who = "remembered" if one.source == "item" else printable(one.speaker)
        day = "-" if one.at is None else one.at.isoformat()
        lines.append(f"{styled(day, 'dim')} {who}{until}{about}: {one_line(one.text)}")
    return lines


async def print_waiting(user: str, *, as_json: bool) -> None:
    """Print the turns and facts of *user* that wait, or were set aside, each with its reason.

    Raises:
        InvalidInput: *user* names nobody.
        Unreachable: Redis does not answer.
    """
    async with user_memory() as memory:
        rows = [
            (kind, row)
            for kind, queue in (("turn", memory.turns), ("fact", memory.facts))
            for row in await queue.rows(user, _MOST_ROWS)
            if row.state in {"waiting", "needs_model", "failed"}
        ]
    if as_json:
        print_json([{"kind": kind, **_row(row)} for kind, row in rows])
        return
    if not rows:
        print(f"Nothing of {printable(user)} waits.")
        return
    table = [(kind, row.row_id, row.state, one_line(row.reason or _CURES.get(row.state, ""))) for kind, row in rows]
    print_table(("KIND", "ID", "STATE", "REASON"), table)


_CURES = {
    "waiting": "its turn comes",
    "needs_model": "configure a model, or wait until it answers",
    "failed": "say it again in other words",
}


def _row(row: KnownRow) -> dict[str, Any]:
    return {"id": row.row_id, "state": row.state, "reason": row.reason, "attempts": row.attempts}


def _document(one: Memory) -> dict[str, Any]:
    days = {name: None if (day := getattr(one, name)) is None else day.isoformat() for name in ("at", "since", "until")}
    return {"source": one.source, "text": one.text, "reference": one.reference, "speaker": one.speaker, **days}
