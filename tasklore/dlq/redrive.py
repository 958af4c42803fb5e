"""`tasklore dlq redrive|purge`: another try for what was given up, or its end."""

import sys

import typer

from contracts.errors import InvalidInput
from supervisor.dead_letters.letters import Selection
from supervisor.dead_letters.queue import Outcome
from supervisor.dead_letters.redrive import Renewal
from tasklore.dlq.stores import Wish, dead_letters
from tasklore.exits import FAILED, OK, Refused
from tasklore.render.durations import parse_span
from tasklore.render.screen import complain, patience, print_json, printable

#: Letters that stay and are named one by one; the others are only counted.
_NAMED = 10


async def redrive_letters(
    wish: Wish,
    *,
    new_deadline: str | None,
    no_deadline: bool,
    is_trial: bool,
    is_forced: bool,
    is_sure: bool,
    as_json: bool,
) -> int:
    """Send the letters of *wish* again, say how many, and return the exit code: 1 when any of them stays.

    *is_forced* sends those too whose tasks were done with after they were written.

    Raises:
        InvalidInput: it is not clear which are meant, or one that is named is not there.
        Refused: everything was meant, and whoever sits there did not confirm it.
        Unreachable: NATS does not answer.
    """
    choice = wish.choice()
    if new_deadline is not None and no_deadline:
        raise InvalidInput("--new-deadline and --no-deadline contradict each other; leave one out")
    span = None if new_deadline is None else parse_span(new_deadline, "--new-deadline")
    async with dead_letters() as letters:
        if wish.everything and not (is_sure or is_trial) and sys.stdin.isatty():
            _confirm(f"Send all {_counted(await letters.count(Selection()))} again?")
        async with patience("sending"):
            renewal = Renewal(span, no_deadline)
            outcome = await letters.redrive(choice, renewal, is_trial=is_trial, is_forced=is_forced)
    if as_json:
        print_json(_as_document(outcome, is_trial=is_trial))
    else:
        _tell(outcome, is_trial=is_trial)
    return FAILED if outcome.kept else OK


async def purge_letters(wish: Wish, *, is_sure: bool, as_json: bool) -> None:
    """Delete the letters of *wish* and say how many those were.

    Raises:
        InvalidInput: it is not clear which are meant, or one that is named is not there.
        Refused: everything was meant, and nobody confirmed it.
        Unreachable: NATS does not answer.
    """
    choice = wish.choice()
    if wish.everything and not is_sure and not sys.stdin.isatty():
        raise Refused("--all deletes every dead letter; say --yes to mean it")
    async with dead_letters() as letters:
        if wish.everything and not is_sure:
            _confirm(f"Delete all {_counted(await letters.count(Selection()))}?")
        async with patience("deleting"):
            count = await letters.purge(choice)
    if as_json:
        print_json({"purged": count})
    else:
        print("Nothing fits; nothing was deleted." if not count else f"Deleted {_counted(count)}.")


def _confirm(question: str) -> None:
    if not typer.confirm(question, err=True):
        raise Refused("nothing was done")


def _tell(outcome: Outcome, *, is_trial: bool) -> None:
    if outcome.redriven:
        print(f"{'Would send' if is_trial else 'Sent'} {_counted(outcome.redriven)} again.")
    elif not outcome.kept:
        print("Nothing fits; nothing was sent.")
    for kept in outcome.kept[:_NAMED]:
        complain(printable(kept.why))
    if len(outcome.kept) > 1:
        complain(f"{_counted(len(outcome.kept))} stayed where they are")
    if outcome.stopped is not None:
        complain("stopped there: the rest was not tried")


def _as_document(outcome: Outcome, *, is_trial: bool) -> dict[str, object]:
    return {
        "dry_run": is_trial,
        "redriven": outcome.redriven,
        "kept": [{"sequence": kept.sequence, "why": kept.why} for kept in outcome.kept],
        "stopped": outcome.stopped,
    }


def _counted(count: int) -> str:
    return f"{count:,} dead letter{'' if count == 1 else 's'}"
