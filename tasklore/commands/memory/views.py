"""`tasklore memory show|facts|search|waiting|settings`: looking at a person's memory."""

from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from typing import Any

from pydantic import JsonValue, ValidationError

from tasklore.commands.memory.lines import one_line, value_line
from tasklore.commands.memory.stores import UserMemory, find_resource, user_memory
from tasklore.commands.render.durations import read_aloud
from tasklore.commands.render.screen import print_json, print_table, printable, styled
from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.messages import ExtractedFacts, Fact
from tasklore.memory.documents.decay import confidence_now
from tasklore.memory.documents.items import Item, leaf_values
from tasklore.memory.documents.storage.writer import KEEP_REVISIONS
from tasklore.memory.episodes.recall import ANY, Within
from tasklore.memory.episodes.store import Episodes
from tasklore.memory.queues.claims import KnownRow
from tasklore.memory.queues.waiting_rows import count_waiting, rows_waiting
from tasklore.memory.recall import Recalled, search_memory
from tasklore.memory.rendering.documents import render

#: Characters of a fact or a reason in the list; JSON has them whole.
_WIDE = 100


async def print_documents(
    user: str,
    resource: str | None,
    *,
    at: int | date | None,
    as_prompt: bool,
    as_json: bool,
) -> None:
    """Print the documents of *user*, as they were on the day *at*, or one of them as it was at that revision.

    Raises:
        InvalidInput: *at* is a revision and no *resource* says of which document.
    """
    if isinstance(at, int) and resource is None:
        raise InvalidInput(
            "--at with a revision needs --resource: every document counts its own; or say a date"
        )
    async with user_memory() as memory:
        found = (await memory.documents.snapshot(user)).documents
        wanted = (
            list(found)
            if resource is None
            else [find_resource(resource, memory.kinds, found)]
        )
        if at is None:
            documents = [found[name] for name in wanted]
        else:
            revisions = (
                dict.fromkeys(wanted, at)
                if isinstance(at, int)
                else await _revisions(memory, user, wanted, at)
            )
            documents = [
                await memory.documents.at(user, name, number)
                for name, number in revisions.items()
            ]
    today = at if isinstance(at, date) else datetime.now(UTC).date()
    if as_json:
        print_json({document.resource_id: document.body for document in documents})
        return
    if as_prompt:
        rendered = render(
            {one.resource_id: one.body for one in documents}, memory.kinds, today=today
        )
        print(rendered.text or "Nothing is remembered.")
        return
    if resource is None and not any(document.revision for document in documents):
        print(
            f"Nothing is remembered of {printable(user)} yet; `tasklore memory tell` says something about a person."
        )
        return
    for document in documents:
        leaves = list(leaf_values(document.body))
        about = (
            f"revision {document.revision}"
            if leaves
            else f"revision {document.revision}, holds nothing"
        )
        print(f"{styled(document.resource_id, 'bold')}  {styled(about, 'dim')}")
        for path, value in leaves:
            notes = ", ".join(_notes(value, today))
            shown = f"  {styled(f'({notes})', 'yellow')}" if notes else ""
            print(
                f"  {styled(printable(str(path)), 'dim')}: {value_line(value)}{shown}"
            )


async def _revisions(
    memory: UserMemory, user: str, resources: list[str], day: date
) -> Mapping[str, int]:
    """Return the revision that each of *resources* had at the end of *day*; 0 for one that did not exist yet."""
    revisions = dict.fromkeys(resources, 0)
    for record in await memory.documents.history(user, None, KEEP_REVISIONS):
        for name, revision in record.revisions.items():
            if name in revisions and record.origin.at.date() <= day:
                revisions[name] = max(revisions[name], revision)
    return revisions


def _notes(value: JsonValue, today: date) -> Iterator[str]:
    """Yield the facts of an item beside its text: its subject, its days, how sure it is."""
    item = Item.read(value)
    if item is None:
        return
    if item.subject:
        yield f"about {item.subject}"
    if item.since is not None:
        yield f"since {item.since.isoformat()}"
    ends = {
        "past": f"no longer since {item.until}",
        "paused": f"hidden until {item.paused_until}",
        "expired": "past its last day",
    }
    end = ends.get(item.state(today)) or (
        item.expiry and f"until {item.expiry.isoformat()}"
    )
    if end:
        yield end
    confidence = confidence_now(item, today)
    if confidence < 1:
        yield f"{confidence:.0%} sure"
    if item.is_inferred:
        yield "inferred"
    if "conflict" in item.others:
        yield "in conflict"


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
    lines = []
    for row in rows:
        found = read_fact(row)
        text = one_line(found[1].text if found else "(unreadable)", _WIDE)
        since = read_aloud(now_ms - row.at_ms)
        state = row.state.replace("_", " ")
        lines.append(
            (text, state, since, f"{row.attempts}", one_line(row.reason, _WIDE))
        )
    print_table(("FACT", "STATE", "SINCE", "RUNS", "WHY"), lines, right=("RUNS",))
    done = ", ".join(
        f"{number} {outcome}" for outcome, number in counts.closed.items() if number
    )
    print(
        f"\n{counts.waiting} waiting, {counts.parked} for a model"
        + (f"; {done}" if done else "")
    )


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
        **{
            name: getattr(row, name)
            for name in ("state", "attempts", "reason", "plan_id", "at_ms")
        },
    }


async def print_matches(
    user: str,
    question: str,
    *,
    at: date | None,
    limit: int,
    as_json: bool,
    within: Within = ANY,
) -> None:
    """Print the matches for *question* *within* bounds, with day and speaker; with *at*, as of that day."""
    async with user_memory() as memory:
        found = await search(memory, user, question, at=at, limit=limit, within=within)
    if as_json:
        names = ("source", "text", "reference", "speaker", "at", "since", "until")
        rows = [{name: getattr(one, name) for name in names} for one in found.memories]
        print_json({"is_nothing_said": found.is_nothing_said, "memories": rows})
        return
    for line in match_lines(found):
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
    """Return the matches for *question* among the items and the turns of *user*."""
    bodies = {
        name: one.body
        for name, one in (await memory.documents.snapshot(user)).documents.items()
    }
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


def match_lines(found: Recalled) -> list[str]:
    """Return a line for each match; one that says so when there is none."""
    if not found.memories:
        return ["Nothing was said about that."]
    lines = (
        ["Nothing answers that; this comes nearest."] if found.is_nothing_said else []
    )
    for one in found.memories:
        until = "" if one.until is None else f", until {one.until}"
        about = "" if one.subject is None else f", about {printable(one.subject)}"
        place = one.reference.partition(":")[2].rpartition(".")[0]
        who = printable(
            f"remembered in {place}" if one.source == "item" else one.speaker
        )
        day = "-" if one.at is None else one.at.isoformat()
        lines.append(f"{styled(day, 'dim')} {who}{until}{about}: {one_line(one.text)}")
    return lines


async def print_waiting(user: str, *, as_json: bool) -> None:
    """Print the turns and facts of *user* that wait, or were set aside, each with its reason."""
    async with user_memory() as memory:
        rows = await rows_waiting(user, memory.turns, memory.facts)
        total = await count_waiting(user, memory.turns, memory.facts)
    if as_json:
        names = ("kind", "state", "reason", "cure", "attempts")
        print_json(
            [
                {"id": row.row_id, **{name: getattr(row, name) for name in names}}
                for row in rows
            ]
        )
    elif not rows:
        print(f"Nothing of {printable(user)} waits.")
    else:
        table = [
            (row.kind, row.row_id, row.state, one_line(row.reason or row.cure))
            for row in rows
        ]
        print_table(("KIND", "ID", "STATE", "REASON"), table)
        if total > len(rows):
            print(f"{total - len(rows)} more are not listed.")


async def print_settings(
    user: str, *, keep_days: int | None, is_on: bool | None, as_json: bool
) -> None:
    """Print whether turns of *user* are kept and for how long, after changing those that are given."""
    async with user_memory() as memory:
        episodes = Episodes(memory.client, deadline_s=5.0)
        was_on, days = await episodes.settings(user)
        if is_on is not None or keep_days is not None:
            was_on = was_on if is_on is None else is_on
            days = days if keep_days is None else keep_days
            await episodes.settle(user, is_on=was_on, days=days)
    if as_json:
        print_json({"user": user, "is_on": was_on, "days": days})
        return
    long = "as long as the deployment says" if days is None else f"for {days} days"
    print(
        f"Turns of {printable(user)} are kept {long}."
        if was_on
        else f"Turns of {printable(user)} are not kept."
    )
