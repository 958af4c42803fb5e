"""`tasklore memory search|waiting|settings`: what was said, by a question; what is not learned yet; what is kept."""

from datetime import UTC, date, datetime
from typing import Any

from memory.episodes.recall import ANY, Within
from memory.episodes.store import Episodes
from memory.queues.waiting_rows import rows_waiting
from memory.recall import Memory, Recalled, search_memory
from tasklore.memory.lines import one_line
from tasklore.memory.stores import UserMemory, user_memory
from tasklore.render.screen import print_json, print_table, printable, styled

#: Of a row that waits, beside its id.
_SHOWN = ("kind", "state", "reason", "cure", "attempts")


async def print_found(
    user: str, question: str, *, at: date | None, limit: int, as_json: bool, within: Within = ANY
) -> None:
    """Print the matches for *question* *within* bounds, with day and speaker; with *at*, as of that day."""
    async with user_memory() as memory:
        found = await search(memory, user, question, at=at, limit=limit, within=within)
    if as_json:
        print_json({"is_nothing_said": found.is_nothing_said, "memories": [_document(one) for one in found.memories]})
        return
    for line in lines_of(found):
        print(line)


async def search(
    memory: UserMemory,
    user: str,
    question: str,
    *,
    at: date | None = None,
    limit: int = 10,
    within: Within = ANY,
) -> Recalled:
    """Return what answers *question* among the items and the turns of *user*."""
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
        within=within,
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
    """Print the turns and facts of *user* that wait, or were set aside, each with its reason."""
    async with user_memory() as memory:
        rows = await rows_waiting(user, memory.turns, memory.facts)
    if as_json:
        print_json([{"id": row.row_id, **{name: getattr(row, name) for name in _SHOWN}} for row in rows])
        return
    if not rows:
        print(f"Nothing of {printable(user)} waits.")
        return
    table = [(row.kind, row.row_id, row.state, one_line(row.reason or row.cure)) for row in rows]
    print_table(("KIND", "ID", "STATE", "REASON"), table)


async def print_settings(user: str, *, keep_days: int | None, is_on: bool | None, as_json: bool) -> None:
    """Print whether turns of *user* are kept and for how long, after it was changed where something is given."""
    async with user_memory() as memory:
        episodes = Episodes(memory.client, deadline_s=5.0)
        was_on, days = await episodes.settings(user)
        if is_on is not None or keep_days is not None:
            was_on, days = was_on if is_on is None else is_on, days if keep_days is None else keep_days
            await episodes.settle(user, is_on=was_on, days=days)
    if as_json:
        print_json({"user": user, "is_on": was_on, "days": days})
        return
    long = "as long as the deployment says" if days is None else f"for {days} days"
    print(f"Turns of {printable(user)} are kept {long}." if was_on else f"Turns of {printable(user)} are not kept.")


def _document(one: Memory) -> dict[str, Any]:
    days = {name: None if (day := getattr(one, name)) is None else day.isoformat() for name in ("at", "since", "until")}
    return {"source": one.source, "text": one.text, "reference": one.reference, "speaker": one.speaker, **days}
