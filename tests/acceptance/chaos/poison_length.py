"""What is poison only by its length: the longest texts that a person may send, as questions and as answers."""

import asyncio
import json
import time
from pathlib import Path

import nats.errors

from tests.acceptance.chaos.stage import pid_of, resident_mb, stage
from tests.acceptance.chaos.table import Row
from tests.acceptance.external_program import Outside, outside
from tests.acceptance.system import BUDGET

#: Letters that a text may have at most, by contract.
LONGEST = 20_000
#: Seconds that one of that length may take; others wait meanwhile.
READ_S = 2.0
#: Megabytes that the supervisor may keep of the measured ones: had it kept the words themselves, it would be 12 of 600
#: and 8 of 400 (20 kB each); a look at what is resident is off by up to 5 on a busy machine, since what the allocator
#: holds grows to a level and stays there.
KEPT_MB = 5.0

GULLIBLE = str(Path(__file__).parent / "agents" / "gullible.py")

_SUPERVISOR = "requests.SupervisorAgent"
#: Words that say little, of which a long text may be made; "a" is also the name of a parameter.
_WORDS = (
    "a ",
    "the ",
    "same ",
    "again ",
    "limit ",
    "pair ",
    "5 ",
    "1,",
    "a = ",
    "not ",
    "and 5 ",
    "ninety ",
    "(",
    "-",
    "\u00e4",
)
#: Texts with one new long word each: half as many to warm up as are measured.
_MEASURED = 600
#: Seconds to wait for an answer before it counts as none.
_PATIENCE_S = 90.0


async def long_texts(read_s: float = READ_S, measured: int = _MEASURED) -> list[Row]:
    """Send the longest texts, each to be read within *read_s* seconds, and then many that have nothing in common.

    Of these *measured* are measured, twice.
    """
    async with stage() as system, outside(system.servers.nats_url) as program:
        supervisor = system.supervisor()
        system.worker(GULLIBLE, BUDGET).ready()
        supervisor.ready()
        questions = {word: await _took(program, word, "") for word in _WORDS}
        answers = {word: await _took(program, word, "pair") for word in _WORDS}
        return [
            _read("a question", questions, read_s),
            _read("an answer", answers, read_s),
            await _kept(program, pid_of(supervisor), measured),
        ]


async def _took(program: Outside, word: str, before: str) -> float:
    """Return the seconds until a text full of *word* is answered, in a conversation in which *before* was said."""
    conversation = f"long-{word}-{before}"
    if before:
        assert (
            json.loads(await _say(program, before, conversation))["kind"] == "question"
        )
    began = time.monotonic()
    await _say(program, (word * LONGEST)[: LONGEST - 1] + "5", conversation)
    return time.monotonic() - began


async def _say(program: Outside, text: str, conversation: str) -> bytes:
    # None is waited for: what is measured is how long a text is read, not how long its task takes.
    request = {"text": text, "conversation_id": conversation, "wait_ms": 0}
    try:
        return (
            await program.client.request(
                _SUPERVISOR, json.dumps(request).encode(), timeout=_PATIENCE_S
            )
        ).data
    except (nats.errors.Error, TimeoutError):
        return b"{}"


def _read(what: str, took: dict[str, float], read_s: float) -> Row:
    slowest = max(took, key=lambda word: took[word])
    asked = f"{what} of {LONGEST:,} letters is read within {read_s:.0f} s"
    late = ", ".join(
        f"{word!r} {seconds:.1f} s"
        for word, seconds in took.items()
        if seconds > read_s
    )
    measured = f"of {len(took)} the slowest, of {slowest!r}, in {took[slowest]:.2f} s{'; late: ' * bool(late)}{late}"
    return Row(asked, measured, took[slowest] <= read_s)


async def _kept(program: Outside, pid: int, measured: int) -> Row:
    """Return whether the supervisor forgets long words; what it kept it would keep in each of two rounds."""
    looks = []
    warm = measured // 2
    for first, number in ((0, warm), (warm, measured), (warm + measured, measured)):
        for start in range(first, first + number, 20):
            texts = [
                f"limit {place}{'x' * (LONGEST - 100)}"
                for place in range(start, start + 20)
            ]
            await asyncio.gather(
                *(
                    _say(program, text, f"words-{place}")
                    for place, text in enumerate(texts)
                )
            )
        looks.append(resident_mb(pid))
    asked = f"of {measured} texts with a new long word the supervisor keeps at most {KEPT_MB:.0f} MB"
    grown = min(looks[1] - looks[0], looks[2] - looks[1])
    return Row(
        asked,
        f"{' -> '.join(f'{look:.1f}' for look in looks)} MB, {grown:+.1f}",
        grown <= KEPT_MB,
    )
