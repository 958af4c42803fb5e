"""Profile `poison`: spoiled messages on every subject that is read; nothing falls, swells or is passed over."""

import argparse
import json
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tasklore.contracts.messages import PersonReply
from tests.acceptance.chaos.poison_length import long_texts
from tests.acceptance.chaos.poison_letters import Letter, Poisoner
from tests.acceptance.chaos.poison_verdict import Outcome, account, afterwards
from tests.acceptance.chaos.poison_wire import Wire, wire
from tests.acceptance.chaos.stage import pid_of, resident_mb, stage
from tests.acceptance.chaos.table import Row
from tests.acceptance.external_program import outside
from tests.acceptance.system import BUDGET, Served

#: Letters in all.
LETTERS = 10_000
SEED = 1
#: Megabytes by which a process may grow once it is warm.
SWELLS_MB = 10.0
#: The part by which what it keeps alive may grow: counters have their first series only when they are first counted.
LIVES_BY = 0.05
#: Seconds in which a request is answered: far more than it was told to wait, and less than a person would.
REPLIES_S = 10.0

GULLIBLE = str(Path(__file__).parent / "agents" / "gullible.py")

#: Seconds for the server's word that a task is stored, once all requests are answered.
_STORED_S = 0.3
#: Requests without an answer after which the others are waited for less.
_ENOUGH = 5
#: Letters sent before the answers are waited for.
_AT_ONCE = 50
#: The part of the letters after which everything is warm.
_WARM = 0.2
#: Looks at the size of the processes from then on.
_LOOKS = 20


async def run(options: argparse.Namespace) -> list[Row]:
    """Send the whole lot, and what is poison only by its length."""
    return [*await poisoned(LETTERS, SEED), *await long_texts()]


@dataclass
class Sent:
    """What became of the letters on the way: tasks by their sequence in the stream, requests, the slowest answer.

    Requests with headers that are no text may be passed over: they are counted and not missed.
    """

    tasks: dict[int, Letter] = field(default_factory=dict)
    refused: int = 0
    requests: int = 0
    passed_over: int = 0
    unanswered: list[Letter] = field(default_factory=list)
    unreadable: int = 0
    slowest_s: float = 0.0


async def poisoned(letters: int, seed: int, slack: float = 1.0) -> list[Row]:
    """Send *letters* letters to a worker and a supervisor, and look at both afterwards.

    A *slack* of n allows n times as long for a reply, and n times as many megabytes.
    """
    async with stage() as system, outside(system.servers.nats_url) as program:
        worker = system.worker(GULLIBLE, BUDGET)
        supervisor = system.supervisor()
        processes = {"worker": worker.ready(), "supervisor": supervisor.ready()}
        poisoner = Poisoner(seed)
        sent = Sent()
        sizes: dict[str, list[float]] = {name: [] for name in processes}
        blocks: list[int] = []
        async with wire(system.servers.nats.port) as line:
            await _send(
                [poisoner.letter() for _ in range(int(letters * _WARM))],
                line,
                sent,
                slack,
            )
            # What a megabyte takes in every hand is no growth: it comes before the first look.
            await _send([poisoner.heavy() for _ in range(_AT_ONCE)], line, sent, slack)
            for _ in range(_LOOKS):
                portion = int(letters * (1 - _WARM) / _LOOKS)
                await _send(
                    [poisoner.letter() for _ in range(portion)], line, sent, slack
                )
                # It collects its garbage first: a spoiled megabyte in a traceback is no leak.
                blocks.append(
                    (await program.ask("GullibleAgent", "weigh", {}))["result"][
                        "blocks"
                    ]
                )
                for name, process in processes.items():
                    sizes[name].append(resident_mb(pid_of(process)))
            outcome = await account(program, sent.tasks)
        rows = [
            _alive(processes),
            _ended(outcome, sent),
            _answered(sent),
            *(_size(name, looks, slack * SWELLS_MB) for name, looks in sizes.items()),
            _living(blocks),
            *await afterwards(system, program, processes, GULLIBLE),
        ]
        return [
            Row(f"{letters} spoiled messages: {row.asked}", row.measured, row.passed)
            for row in rows
        ]


async def _send(letters: list[Letter], line: Wire, sent: Sent, slack: float) -> None:
    for start in range(0, len(letters), _AT_ONCE):
        asked: dict[int, Letter] = {}
        began = time.monotonic()
        for letter in letters[start : start + _AT_ONCE]:
            if letter.kind == "word":
                line.send(letter.subject, letter.body, letter.headers)
            else:
                asked[line.ask(letter.subject, letter.body, letter.headers)] = letter
        await line.flush()
        requests = [
            ticket
            for ticket, letter in asked.items()
            if letter.kind == "request" and letter.has_headers_of_text
        ]
        # Once it is clear that some are not answered, the rest need not take hours.
        await line.answered(
            requests, slack * REPLIES_S if len(sent.unanswered) < _ENOUGH else _STORED_S
        )
        sent.slowest_s = max(sent.slowest_s, time.monotonic() - began)
        # What the server refused to store is answered by nobody.
        await line.answered([*asked], _STORED_S)
        for ticket, letter in asked.items():
            _note(sent, letter, line.answers.pop(ticket, None))


def _note(sent: Sent, letter: Letter, answer: bytes | None) -> None:
    """Take note of what was answered to *letter*."""
    if letter.kind == "task":
        stored = json.loads(answer or b"{}")
        if stored.get("seq"):
            sent.tasks[stored["seq"]] = letter
        else:
            sent.refused += 1
        return
    sent.requests += 1
    if not answer and letter.has_headers_of_text:
        sent.unanswered.append(letter)
    if not answer:
        sent.passed_over += not letter.has_headers_of_text
        return
    try:
        PersonReply.model_validate_json(answer)
    except ValueError:
        sent.unreadable += 1


def _alive(processes: dict[str, Served]) -> Row:
    gone = [name for name, process in processes.items() if not process.is_running]
    return Row(
        "both processes live", f"gone: {', '.join(gone)}" if gone else "both", not gone
    )


def _ended(outcome: Outcome, sent: Sent) -> Row:
    measured = (
        f"{len(sent.tasks)} tasks ({sent.refused} more refused by the server): {outcome.reports} reports, "
        f"{outcome.buried} dead letters, {len(outcome.lost)} without an end, {outcome.untyped} untyped, "
        f"{outcome.left} left, {outcome.waiting} reports unread"
    )
    if outcome.lost:
        measured += f"; lost for instance {_shown(sent.tasks[outcome.lost[0]])}"
    fine = not (outcome.lost or outcome.untyped or outcome.left or outcome.waiting)
    return Row(
        "each task ends in one typed report or dead letter",
        measured,
        fine and bool(sent.tasks),
    )


def _answered(sent: Sent) -> Row:
    measured = (
        f"{sent.requests} requests, {len(sent.unanswered)} unanswered, {sent.unreadable} with no readable reply, "
        f"{sent.passed_over} passed over for headers that are no text, "
        f"the slowest {_AT_ONCE} letters took {sent.slowest_s:.2f} s"
    )
    if sent.unanswered:
        measured += f"; for instance {_shown(sent.unanswered[0])}"
    return Row(
        "each request whose headers are text is answered",
        measured,
        not sent.unanswered and not sent.unreadable,
    )


def _shown(letter: Letter) -> str:
    return f"{letter.subject[:60]!r} {letter.headers[:120]!r} {letter.body[:120]!r}"


def _size(name: str, looks: list[float], most_mb: float) -> Row:
    before_mb, after_mb = _ends(looks)
    asked = f"the {name} swells by at most {most_mb:.0f} MB once it is warm"
    measured = f"{before_mb:.1f} -> {after_mb:.1f} MB, {after_mb - before_mb:+.1f}; at most {max(looks):.1f}"
    return Row(asked, measured, after_mb - before_mb <= most_mb)


def _living(looks: list[int]) -> Row:
    """Return whether the worker keeps no more alive: freed megabytes could hide a leak, blocks in use cannot."""
    before, after = _ends(looks)
    asked = f"the worker keeps at most {LIVES_BY:.0%} more blocks alive once it is warm"
    return Row(
        asked,
        f"{before:,.0f} -> {after:,.0f}, {after / before - 1:+.1%}",
        after <= before * (1 + LIVES_BY),
    )


def _ends(looks: Sequence[float]) -> tuple[float, float]:
    """Return the medians of the first and the last quarter of *looks*: a megabyte in the hand weighs much."""
    quarter = len(looks) // 4
    return statistics.median(looks[:quarter]), statistics.median(looks[-quarter:])
