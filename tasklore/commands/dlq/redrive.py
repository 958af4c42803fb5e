"""`tasklore dlq redrive|purge`: another try for dead letters, or their end."""

import asyncio
import sys
from dataclasses import replace
from typing import Any

from tasklore.commands.dlq.selection import Filter, dead_letters
from tasklore.commands.dlq.views import as_groups, print_groups
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
from tasklore.supervisor.dead_letters.queue import (
    Choice,
    DeadLetters,
    LetterOutcome,
    LetterPosition,
)
from tasklore.supervisor.dead_letters.redrive import Renewal
from tasklore.supervisor.dead_letters.summaries import LetterCounts, summary_of

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

    At a terminal it is shown first how many of which agent and error that would be. *is_forced* sends those too whose
    tasks were completed or cancelled after they were written, and those that carry no readable task.

    Raises:
        InvalidInput: the options contradict each other.
        Aborted: several were meant, and the person at the terminal declined.
    """
    choice = wanted.choice()
    if new_deadline is not None and no_deadline:
        raise InvalidInput(
            "--new-deadline and --no-deadline contradict each other; leave one out"
        )
    span = None if new_deadline is None else parse_span(new_deadline, "--new-deadline")
    renewal = Renewal(span, no_deadline)
    outcome = LetterOutcome()
    async with dead_letters() as letters:
        choice = await _as_of_now(letters, choice)
        if isinstance(choice, Selection) and _asks(is_sure=is_sure or is_trial):
            trial = LetterOutcome()
            async with patience("looking at dead letters"):
                await _redrive_all(
                    letters, choice, renewal, trial, is_trial=True, is_forced=is_forced
                )
            if not trial.redriven:
                return _print_end(trial, is_trial=True, as_json=as_json)
            if not as_json:
                _print_outcome(trial, is_trial=True)
            question = f"Send {_count(trial.redriven)} again?"
            confirm(question, unasked=_DECLINED, declined=_DECLINED)
        try:
            async with patience("sending"):
                await _redrive_all(
                    letters,
                    choice,
                    renewal,
                    outcome,
                    is_trial=is_trial,
                    is_forced=is_forced,
                )
        except asyncio.CancelledError:
            sent = 0 if is_trial else outcome.redriven
            complain(
                f"interrupted when {_count(sent)} were sent again; the same command sends the rest, and none twice"
            )
            raise
    return _print_end(outcome, is_trial=is_trial, as_json=as_json)


async def purge_letters(
    wanted: Filter, *, is_trial: bool, is_sure: bool, as_json: bool
) -> None:
    """Delete the letters of *wanted* and print how many those were; what that would be where *is_trial*.

    Raises:
        Aborted: all were meant without a confirmation, or the person at the terminal declined.
    """
    choice = wanted.choice()
    if wanted.everything and not (is_sure or is_trial) and not sys.stdin.isatty():
        raise Aborted("--all deletes every dead letter; say --yes to mean it")
    async with dead_letters() as letters:
        choice = await _as_of_now(letters, choice)
        is_asked = isinstance(choice, Selection) and _asks(is_sure=is_sure)
        if is_trial or is_asked:
            async with patience("looking at dead letters"):
                counts = await _counts(letters, choice)
            if is_trial and as_json:
                print_json({"dry_run": True, "groups": as_groups(counts)})
                return
            if not as_json:
                print_groups(counts)
            if is_trial:
                print(f"Would delete {_count(counts.total)}.")
                return
        if is_asked and counts.total:
            question = f"Delete {_count(counts.total)}?"
            confirm(question, unasked=_DECLINED, declined=_DECLINED)
        purged = 0
        position: LetterPosition | None = None
        async with patience("deleting"):
            while True:
                outcome = await letters.purge(choice, position=position)
                purged += outcome.purged
                position = outcome.position
                if position is None:
                    break
    if as_json:
        print_json({"purged": purged})
    else:
        print(
            "Nothing fits; nothing was deleted."
            if not purged
            else f"Deleted {_count(purged)}."
        )


def _asks(*, is_sure: bool) -> bool:
    """Return whether a person at a terminal has to confirm this choice."""
    return not is_sure and sys.stdin.isatty()


async def _as_of_now(letters: DeadLetters, choice: Choice) -> Choice:
    """Return *choice* without later letters, so that the letters that were counted are those that are sent."""
    if not isinstance(choice, Selection):
        return choice
    return replace(choice, up_to=await letters.last_of(choice))


async def _redrive_all(
    letters: DeadLetters,
    choice: Choice,
    renewal: Renewal,
    outcome: LetterOutcome,
    *,
    is_trial: bool,
    is_forced: bool,
) -> None:
    """Redrive all of *choice*, call by call, into *outcome*."""
    while True:
        await letters.redrive(
            choice, renewal, is_trial=is_trial, is_forced=is_forced, into=outcome
        )
        if outcome.position is None:
            return


async def _counts(letters: DeadLetters, choice: Choice) -> LetterCounts:
    """Return how many letters of which agent and error *choice* means."""
    if isinstance(choice, Selection):
        return await letters.count_all(choice)
    counts = LetterCounts()
    for sequence in choice:
        counts.add([summary_of(await letters.read(sequence))])
    return counts


def _print_end(outcome: LetterOutcome, *, is_trial: bool, as_json: bool) -> int:
    """Print *outcome* and return the exit code."""
    if as_json:
        print_json(_as_document(outcome, is_trial=is_trial))
    else:
        _print_outcome(outcome, is_trial=is_trial)
    return FAILED if outcome.kept else OK


def _print_outcome(outcome: LetterOutcome, *, is_trial: bool) -> None:
    """Write how many were sent, or would be, of which agent and error, and why others stay."""
    if outcome.redriven:
        if is_trial:
            print_groups(outcome.sent)
        print(
            f"{'Would send' if is_trial else 'Sent'} {_count(outcome.redriven)} again."
        )
    elif not outcome.kept:
        print("Nothing fits; nothing was sent.")
    for one in outcome.kept[:_NAMED]:
        complain(printable(one.why))
    if outcome.kept_in_all > 1:
        complain(f"{_count(outcome.kept_in_all)} stayed where they are")
    if outcome.stopped is not None:
        complain("stopped there: the rest was not tried")


def _as_document(outcome: LetterOutcome, *, is_trial: bool) -> dict[str, Any]:
    return {
        "dry_run": is_trial,
        "redriven": outcome.redriven,
        "groups": as_groups(outcome.sent),
        "kept": [{"sequence": one.sequence, "why": one.why} for one in outcome.kept],
        "kept_in_all": outcome.kept_in_all,
        "stopped": outcome.stopped,
    }


def _count(number: int) -> str:
    return count_of(number, "dead letter")
