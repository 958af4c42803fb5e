"""`tasklore dlq redrive|purge`: another try for dead letters, or their end."""

import sys

from tasklore.commands.dlq.selection import Filter, dead_letters
from tasklore.commands.exits import FAILED, OK, Aborted
from tasklore.commands.render.durations import parse_span
from tasklore.commands.render.screen import (
    complain,
    confirm,
    patience,
    print_json,
    printable,
)
from tasklore.commands.render.words import count_of
from tasklore.contracts.errors import InvalidInput
from tasklore.supervisor.dead_letters.letters import Selection
from tasklore.supervisor.dead_letters.redrive import Renewal

#: Letters that stay and are named one by one; the others are only counted.
_NAMED = 10
_DECLINED = "nothing was done"


async def redrive_letters(
    wanted: Filter,
    *,
    new_deadline: str | None,
    no_deadline: bool,
    is_trial: bool,
    is_forced: bool,
    is_sure: bool,
    as_json: bool,
) -> int:
    """Send the letters of *wanted* again, print how many, and return the exit code: 1 when any of them stays.

    *is_forced* sends those too whose tasks were completed or cancelled after they were written.

    Raises:
        InvalidInput: the options contradict each other.
        Aborted: all were meant, and the person at the terminal declined.
    """
    choice = wanted.choice()
    if new_deadline is not None and no_deadline:
        raise InvalidInput(
            "--new-deadline and --no-deadline contradict each other; leave one out"
        )
    span = None if new_deadline is None else parse_span(new_deadline, "--new-deadline")
    async with dead_letters() as letters:
        if wanted.everything and not (is_sure or is_trial) and sys.stdin.isatty():
            number = _count(await letters.count(Selection()))
            confirm(f"Send all {number} again?", unasked=_DECLINED, declined=_DECLINED)
        async with patience("sending"):
            renewal = Renewal(span, no_deadline)
            outcome = await letters.redrive(
                choice, renewal, is_trial=is_trial, is_forced=is_forced
            )
    kept = outcome.kept
    if as_json:
        rows = [{"sequence": one.sequence, "why": one.why} for one in kept]
        print_json(
            {
                "dry_run": is_trial,
                "redriven": outcome.redriven,
                "kept": rows,
                "stopped": outcome.stopped,
            },
        )
        return FAILED if kept else OK
    if outcome.redriven:
        print(
            f"{'Would send' if is_trial else 'Sent'} {_count(outcome.redriven)} again."
        )
    elif not kept:
        print("Nothing fits; nothing was sent.")
    for one in kept[:_NAMED]:
        complain(printable(one.why))
    if len(kept) > 1:
        complain(f"{_count(len(kept))} stayed where they are")
    if outcome.stopped is not None:
        complain("stopped there: the rest was not tried")
    return FAILED if kept else OK


async def purge_letters(wanted: Filter, *, is_sure: bool, as_json: bool) -> None:
    """Delete the letters of *wanted* and print how many those were.

    Raises:
        Aborted: all were meant without a confirmation.
    """
    choice = wanted.choice()
    if wanted.everything and not is_sure and not sys.stdin.isatty():
        raise Aborted("--all deletes every dead letter; say --yes to mean it")
    async with dead_letters() as letters:
        if wanted.everything and not is_sure:
            number = _count(await letters.count(Selection()))
            confirm(f"Delete all {number}?", unasked=_DECLINED, declined=_DECLINED)
        async with patience("deleting"):
            purged = await letters.purge(choice)
    if as_json:
        print_json({"purged": purged})
    else:
        print(
            "Nothing fits; nothing was deleted."
            if not purged
            else f"Deleted {_count(purged)}."
        )


def _count(number: int) -> str:
    return count_of(number, "dead letter")
