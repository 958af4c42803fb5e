"""`tasklore dlq list|groups|show`: looking at dead letters."""

import contextlib
import json
from datetime import UTC, datetime, timedelta
from typing import Any

from tasklore.commands.dlq.selection import Filter, dead_letters
from tasklore.commands.render.columns import Column, print_facts, print_records
from tasklore.commands.render.durations import read_aloud
from tasklore.commands.render.screen import (
    patience,
    print_json,
    print_paragraph,
    printable,
    say,
    styled,
)
from tasklore.commands.render.words import count_of
from tasklore.contracts.errors import InvalidInput
from tasklore.supervisor.dead_letters.letters import Letter
from tasklore.supervisor.dead_letters.queue import (
    MOST_OF_TASK,
    DeadLetters,
    LetterPage,
)
from tasklore.supervisor.dead_letters.summaries import (
    LetterCounts,
    LetterGroup,
    LetterSummary,
    summary_of,
)

#: Characters of an error and of another name in a table, and of a task or its traceback; `--json` has more.
_ERROR_WIDTH = 80
_NAME_WIDTH = 64
_TEXT_WIDTH = 2000
_TRACEBACK_WIDTH = 20_000
#: Levels of a task that are indented; one of more is shown as it stands.
_DEEPEST = 32
#: The longest span that is told, in milliseconds: a thousand years.
_LONGEST_MS = 31_557_600_000_000


async def print_letters(
    wanted: Filter,
    limit: int,
    *,
    before: int | None,
    after: int | None,
    oldest_first: bool,
    as_json: bool,
) -> None:
    """Print a line for each of at most *limit* letters.

    Raises:
        InvalidInput: *after* is given without *oldest_first*, or *before* with it.
    """
    if (before if oldest_first else after) is not None:
        raise InvalidInput(
            "--before goes on with the newest first, --after with --oldest; give the other one"
        )
    selection = wanted.selection()
    async with dead_letters() as letters, patience("reading dead letters"):
        page = await letters.page(
            selection, limit, before=before, after=after, oldest_first=oldest_first
        )
        found = list(page.letters)
        # A page of letters of which few fit comes back short.
        while page.goes_on_at is not None and len(found) < limit:
            page = await letters.page(
                selection,
                limit - len(found),
                before=None if oldest_first else page.goes_on_at,
                after=page.goes_on_at if oldest_first else None,
                oldest_first=oldest_first,
            )
            found += page.letters
    if as_json:
        print_json([_as_row(letter) for letter in found])
        return
    if not found:
        is_filtered = wanted.has_condition or (before or after) is not None
        print("No dead letter fits." if is_filtered else "There are no dead letters.")
        return
    print_records(_COLUMNS, found)
    if page.goes_on_at is not None:
        say(_how_to_go_on(page, len(found), oldest_first=oldest_first))


def _how_to_go_on(page: LetterPage, shown: int, *, oldest_first: bool) -> str:
    total = f" of {page.total:,}" if page.total is not None else ""
    option = "--after" if oldest_first else "--before"
    return f"these are {shown:,}{total}; {option} {page.goes_on_at} shows the next"


async def print_letter_groups(wanted: Filter, *, as_json: bool) -> None:
    """Print how many letters of each agent and error there are, from when to when, with one of each."""
    selection = wanted.selection()
    async with dead_letters() as letters, patience("counting dead letters"):
        counts = await letters.count_all(selection)
    if as_json:
        print_json({"groups": as_groups(counts), "others": counts.others})
    elif not counts.total:
        print(
            "No dead letter fits."
            if wanted.has_condition
            else "There are no dead letters."
        )
    else:
        print_groups(counts)


def print_groups(counts: LetterCounts) -> None:
    """Print a line for each group of *counts*."""
    if counts.groups:
        print_records(_GROUP_COLUMNS, counts.groups)
    if counts.others:
        say(f"{count_of(counts.others, 'letter')} of further errors are not listed")


def as_groups(counts: LetterCounts) -> list[dict[str, Any]]:
    """Return the groups of *counts* as JSON has them."""
    return [
        {
            "agent_id": group.agent_id,
            "error_type": group.error_type,
            "count": group.count,
            "oldest": _iso(group.oldest),
            "newest": _iso(group.newest),
            "example": _as_row(group.example),
        }
        for group in counts.groups
    ]


async def _read_letters(letters: DeadLetters, task_id: str) -> list[Letter]:
    """Return the newest letters of *task_id*, as many calls as that takes."""
    page = await letters.of_task(task_id)
    found = page.letters
    while page.goes_on_at is not None and len(found) < MOST_OF_TASK:
        page = await letters.of_task(task_id, before=page.goes_on_at)
        found += page.letters
    return found[:MOST_OF_TASK]


async def print_letter(which: str, *, as_json: bool) -> None:
    """Print everything about the letter at sequence *which*, or about every letter of the task of that id.

    Raises:
        InvalidInput: there is none.
    """
    async with dead_letters() as letters, patience("reading dead letters"):
        found = (
            [await letters.read(int(which))]
            if which.isdecimal()
            else await _read_letters(letters, which)
        )
        reasons = [await letters.why_kept(letter) for letter in found]
    if not found:
        raise InvalidInput(
            f"there is no dead letter of a task {which!r}; `tasklore dlq list` shows those there are"
        )
    told = list(zip(found, reasons, strict=True))
    if as_json:
        documents = [_as_document(letter, why) for letter, why in told]
        print_json(documents[0] if which.isdecimal() else documents)
        return
    for number, (letter, why) in enumerate(told):
        if number:
            print()
        _print_letter(letter, why)


def _print_letter(letter: Letter, why_kept: str | None) -> None:
    content = letter.content
    summary = summary_of(letter)
    print(styled(_line(f"{content.error.type}: {content.error.message}"), "bold"))
    for frame in letter.frames:
        print(f"  at {_line(frame)}")
    print()
    usage = content.usage
    cost = (
        "a price that is not known"
        if usage.cost_usd is None
        else f"${usage.cost_usd:.4f}"
    )
    facts = {
        "sequence": str(letter.sequence),
        "task id": content.task_id,
        "agent": letter.agent_id,
        "task": letter.task_name,
        "tenant": summary.tenant,
        "user": summary.user_id,
        "subject": content.subject,
        "generation": str(letter.generation),
        "reason": content.reason,
        "runs": str(content.attempts),
        "sent": _iso(content.created_at),
        "queued": _span(content.queued_ms),
        "last run": _span(content.run_ms),
        "died": f"{_iso(content.died_at)}, {_age(letter.stored_at)} ago",
        "cost": f"{cost} for {usage.input_tokens:,} tokens in and {usage.output_tokens:,} out",
        "trace id": letter.trace_id,
        "worker": content.worker_id,
        "supervisor": content.supervisor_id,
    }
    print_facts(
        {name: value and _cell(value, _TEXT_WIDTH) for name, value in facts.items()}
    )
    print()
    for step in _next_steps(letter, why_kept):
        print_paragraph(_line(step))
    if content.traceback is not None:
        print(f"\n{printable(content.traceback[-_TRACEBACK_WIDTH:]).rstrip()}")
    payload = _payload(letter)
    text = (
        payload
        if isinstance(payload, str)
        else json.dumps(payload, indent=2, ensure_ascii=False)
    )
    print()
    print_paragraph(printable(text[:_TEXT_WIDTH]))
    if len(text) > _TEXT_WIDTH or not letter.is_whole:
        print(f"... ({content.body_bytes:,} bytes in all; --json shows what is kept)")


def _next_steps(letter: Letter, why_kept: str | None) -> list[str]:
    """Return the commands that can be run on *letter*; *why_kept* says why it would not be sent again."""
    number = letter.sequence
    task_id = letter.content.task_id
    return [
        f"Sent again by: tasklore dlq redrive {number}"
        if why_kept is None
        else f"It would not be sent again: {why_kept}",
        f"Deleted by: tasklore dlq purge {number}",
        *([] if task_id is None else [f"What happened by: tasklore trace {task_id}"]),
    ]


def _payload(letter: Letter) -> Any:
    """Return the JSON that the letter carried, or text when it is none."""
    try:
        body = letter.body
    except InvalidInput as error:
        return str(error)
    text = body.decode(errors="replace")
    try:
        payload = json.loads(body)
    except (ValueError, RecursionError):
        return text
    return payload if _is_shallow(payload, _DEEPEST) else text


def _is_shallow(value: Any, levels: int) -> bool:
    """Return whether *value* has at most so many *levels*: each indents the next one."""
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, list):
        return True
    return levels > 0 and all(_is_shallow(one, levels - 1) for one in value)


def _as_row(letter: LetterSummary) -> dict[str, Any]:
    """Return the letter without its body and headers."""
    return {
        "sequence": letter.sequence,
        "reason": letter.reason,
        "error": letter.error.model_dump(mode="json"),
        "agent_id": letter.agent_id,
        "task": letter.task_name,
        "task_id": letter.task_id,
        "tenant": letter.tenant,
        "user_id": letter.user_id,
        "generation": letter.generation,
        "attempts": letter.attempts,
        "supervisor_id": letter.supervisor_id,
        "worker_id": letter.worker_id,
        "trace_id": letter.trace_id,
        "created_at": _iso(letter.created_at),
        "died_at": _iso(letter.died_at),
        "queued_ms": letter.queued_ms,
        "run_ms": letter.run_ms,
        "usage": letter.usage.model_dump(mode="json"),
        "subject": letter.subject,
    }


def _as_document(letter: Letter, why_kept: str | None) -> dict[str, Any]:
    return _as_row(summary_of(letter)) | {
        "frames": letter.frames,
        "traceback": letter.content.traceback,
        "place": letter.content.place,
        "headers": letter.content.headers,
        "body_bytes": letter.content.body_bytes,
        "is_whole": letter.is_whole,
        "why_kept": why_kept,
        "payload": _payload(letter),
    }


def _line(text: str) -> str:
    """Return *text* in one line, without what would steer a terminal."""
    return " ".join(printable(text).split())


def _cell(text: str | None, width: int = _NAME_WIDTH) -> str:
    """Return *text* as one cell of a table has it."""
    line = _line(text or "-")
    return line if len(line) <= width else f"{line[: width - 3]}..."


def _age(moment: datetime) -> str:
    return read_aloud(max(0, (datetime.now(UTC) - moment) // timedelta(milliseconds=1)))


def _iso(moment: datetime | None) -> str | None:
    if moment is None:
        return None
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    # The first and the last day of all have times in other zones that UTC has none for.
    with contextlib.suppress(OverflowError):
        aware = aware.astimezone(UTC)
    return aware.isoformat(timespec="seconds").replace("+00:00", "Z")


def _span(milliseconds: int | None) -> str | None:
    """Return a span that a worker wrote, which may be any number."""
    if milliseconds is None:
        return None
    return read_aloud(min(max(0, milliseconds), _LONGEST_MS))


def _error_cell(letter: LetterSummary) -> str:
    return _cell(f"{letter.error.type}: {letter.error.message}", _ERROR_WIDTH)


def _example_cell(group: LetterGroup) -> str:
    return _cell(group.example.error.message, _ERROR_WIDTH)


_COLUMNS: tuple[Column[LetterSummary], ...] = (
    Column("SEQUENCE", lambda letter: str(letter.sequence), right=True),
    Column("AGE", lambda letter: _age(letter.stored_at), right=True),
    Column("AGENT", lambda letter: _cell(letter.agent_id)),
    Column("TASK", lambda letter: _cell(letter.task_name)),
    Column("REASON", lambda letter: _cell(letter.reason)),
    Column("RUNS", lambda letter: _cell(str(letter.attempts)), right=True),
    Column("GENERATION", lambda letter: str(letter.generation), right=True),
    Column("ERROR", _error_cell),
)
_GROUP_COLUMNS: tuple[Column[LetterGroup], ...] = (
    Column("AGENT", lambda group: _cell(group.agent_id)),
    Column("ERROR", lambda group: _cell(group.error_type)),
    Column("LETTERS", lambda group: f"{group.count:,}", right=True),
    Column("OLDEST", lambda group: _age(group.oldest), right=True),
    Column("NEWEST", lambda group: _age(group.newest), right=True),
    Column("SEQUENCE", lambda group: str(group.example.sequence), right=True),
    Column("EXAMPLE", _example_cell),
)
