"""`tasklore dlq list|show`: looking at dead letters."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from tasklore.commands.dlq.selection import Filter, dead_letters
from tasklore.commands.render.columns import print_facts
from tasklore.commands.render.durations import read_aloud
from tasklore.commands.render.screen import (
    patience,
    print_json,
    print_table,
    printable,
    say,
)
from tasklore.contracts.errors import InvalidInput
from tasklore.supervisor.dead_letters.letters import Letter

#: Characters of an error in a table, and of a body that is no JSON; `show` and `--json` have all.
_ERROR_WIDTH = 80
_TEXT_WIDTH = 2000


async def print_letters(
    wanted: Filter, limit: int, *, before: int | None, oldest_first: bool, as_json: bool
) -> None:
    """Print a line for each of at most *limit* letters."""
    selection = wanted.selection()
    async with dead_letters() as letters, patience("reading dead letters"):
        page = await letters.page(
            selection, limit, before=before, oldest_first=oldest_first
        )
    if as_json:
        print_json([_as_row(letter) for letter in page.letters])
        return
    if not page.letters:
        is_filtered = wanted.has_condition or before is not None
        print("No dead letter fits." if is_filtered else "There are no dead letters.")
        return
    rows = []
    for letter in page.letters:
        content = letter.content
        error = " ".join(
            printable(f"{content.error.type}: {content.error.message}").split()
        )
        rows.append(
            (
                str(letter.sequence),
                _age(letter),
                printable(letter.agent_id or "-"),
                printable(letter.task_name or "-"),
                printable(content.reason),
                str(content.attempts),
                str(letter.generation),
                error
                if len(error) <= _ERROR_WIDTH
                else f"{error[: _ERROR_WIDTH - 3]}...",
            )
        )
    columns = (
        "SEQUENCE",
        "AGE",
        "AGENT",
        "TASK",
        "REASON",
        "RUNS",
        "GENERATION",
        "ERROR",
    )
    print_table(columns, rows, right=("SEQUENCE", "AGE", "RUNS", "GENERATION"))
    if page.has_more:
        shown = f"{len(page.letters):,}" + (
            f" of {page.total:,}" if page.total is not None else ""
        )
        more = (
            "raise --limit"
            if oldest_first
            else f"--before {page.letters[-1].sequence} shows the next"
        )
        say(f"these are {shown}; {more}")


async def print_letter(which: str, *, as_json: bool) -> None:
    """Print everything about the letter at sequence *which*, or about every letter of the task of that id.

    Raises:
        InvalidInput: there is none.
    """
    async with dead_letters() as letters, patience("reading dead letters"):
        found = (
            [await letters.read(int(which))]
            if which.isdecimal()
            else await letters.of_task(which)
        )
    if not found:
        raise InvalidInput(
            f"there is no dead letter of a task {which!r}; `tasklore dlq list` shows those there are"
        )
    if as_json:
        documents = [_as_document(letter) for letter in found]
        print_json(documents[0] if which.isdecimal() else documents)
        return
    for number, letter in enumerate(found):
        if number:
            print()
        _print_letter(letter)


def _print_letter(letter: Letter) -> None:
    content = letter.content
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
        "subject": content.subject,
        "generation": str(letter.generation),
        "reason": content.reason,
        "runs": str(content.attempts),
        "error": f"{content.error.type}: {content.error.message}",
        "place": content.place,
        "sent": _iso(content.created_at),
        "queued": None if content.queued_ms is None else read_aloud(content.queued_ms),
        "last run": None if content.run_ms is None else read_aloud(content.run_ms),
        "died": f"{_iso(content.died_at)}, {_age(letter)} ago",
        "cost": f"{cost} for {usage.input_tokens:,} tokens in and {usage.output_tokens:,} out",
        "trace id": letter.trace_id,
        "worker": content.worker_id,
        "supervisor": content.supervisor_id,
    }
    print_facts(facts)
    if content.traceback is not None:
        print(f"\n{printable(content.traceback).rstrip()}")
    payload = _payload(letter)
    if not isinstance(payload, str):
        print(f"\n{printable(json.dumps(payload, indent=2, ensure_ascii=False))}")
        return
    is_all = len(payload) <= _TEXT_WIDTH and letter.is_whole
    more = "" if is_all else f"\n... ({content.body_bytes:,} bytes in all)"
    print(f"\n{printable(payload[:_TEXT_WIDTH])}{more}")


def _payload(letter: Letter) -> Any:
    """Return the JSON that the letter carried, or text when it is none."""
    body = letter.body
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return body.decode(errors="replace")


def _as_row(letter: Letter) -> dict[str, Any]:
    """Return the letter without its body and headers."""
    content = letter.content
    return {
        "sequence": letter.sequence,
        "reason": content.reason,
        "error": content.error.model_dump(mode="json"),
        "agent_id": letter.agent_id,
        "task": letter.task_name,
        "task_id": content.task_id,
        "generation": letter.generation,
        "attempts": content.attempts,
        "supervisor_id": content.supervisor_id,
        "worker_id": content.worker_id,
        "trace_id": letter.trace_id,
        "created_at": _iso(content.created_at),
        "died_at": _iso(content.died_at),
        "queued_ms": content.queued_ms,
        "run_ms": content.run_ms,
        "usage": content.usage.model_dump(mode="json"),
        "subject": content.subject,
    }


def _as_document(letter: Letter) -> dict[str, Any]:
    return _as_row(letter) | {
        "traceback": letter.content.traceback,
        "place": letter.content.place,
        "headers": letter.content.headers,
        "body_bytes": letter.content.body_bytes,
        "is_whole": letter.is_whole,
        "payload": _payload(letter),
    }


def _age(letter: Letter) -> str:
    return read_aloud(
        max(0, (datetime.now(UTC) - letter.stored_at) // timedelta(milliseconds=1))
    )


def _iso(moment: datetime | None) -> str | None:
    if moment is None:
        return None
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return aware.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
