"""A model asked about a response: what it is shown never exceeds its budget, and without an answer the rules go on."""

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Generic, TypeVar

import structlog
from pydantic import BaseModel

from contracts.analysis_roster import roster_of
from contracts.errors import LlmError
from memory.rendering.quoting import plain
from memory.rendering.tokens import counter
from workers import Context
from workers.agent_files import load_agent_files
from workers.agents.story.text import clipped
from workers.answers import Answer

log = structlog.get_logger(__name__)

#: What a section says as `by` when no model had a part in it: names and counts are all that it has then.
RULES = "rules"
#: Tokens of a whole question: instructions, the schema of the answer, and what it is about.
MOST_TOKENS = 4_000
#: Tokens of it that a provider's own framing takes, rather too many.
_FRAME = 40
#: Tokens of the response that are shown in any case: its beginning and its end, enough to tell what happens.
_LEAST_TOLD = 1_500
#: Faults of an answer that go back to the model.
_MOST_FAULTS = 12
#: Characters of one line: two long sentences.
_LINE = 300
#: Characters of the name between marks.
_MARK = 60
#: The part of the time until its section is late that may be over before a model is given up, so that the rules still
#: come in time; and seconds that it has in any case, since a task that waited long is better late than without it.
_SHARE, _LEAST_S = 0.6, 1.0
_ANGLES = str.maketrans("<>", "\u2039\u203a")


T = TypeVar("T", bound=Answer)
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Block:
    """Something that a model is shown as data: `lines` between marks that carry its `name`.

    The higher its `rank`, the sooner its last lines are left out where not all fits. `numbered` puts a number before
    each line, from `first`, by which the model may point at it. `is_prose` marks the response itself: it is one text,
    it is shortened within, and last of all.
    """

    name: str
    lines: Sequence[str]
    rank: int = 1
    numbered: bool = False
    first: int = 1
    is_prose: bool = False

    @classmethod
    def response(cls, text: str) -> "Block":
        """Return the block of the response itself."""
        return cls("response", (text.translate(_ANGLES),), rank=0, is_prose=True)

    def shown(self) -> str:
        """Return it as it stands in a question, empty when no line is left."""
        if not self.lines:
            return ""
        lines = [self._line(number, line) for number, line in enumerate(self.lines, self.first)]
        return "\n".join((f"<{self.mark}>", *lines, f"</{self.mark}>"))

    @property
    def mark(self) -> str:
        """Its name as it stands in its marks; names of a story are data, too."""
        return plain(self.name, _MARK)

    def _line(self, number: int, line: str) -> str:
        if self.is_prose:
            return line
        shown = plain(line, _LINE)
        return f"{number}. {shown}" if self.numbered else shown


@dataclass(frozen=True, slots=True)
class Asked(Generic[T]):
    """What a model answered, and which it was; `shown` says how many lines of each block it has seen, by name."""

    value: T
    model: str
    shown: Mapping[str, int] = field(default_factory=dict)


def patience_s(allowed_s: float, created_at: datetime, deadline: datetime | None, now: datetime) -> float:
    """Return how many seconds a model has from *now* on, for a section that is late *allowed_s* after *created_at*.

    What a task waited before it ran is over; *deadline*, when nobody waits for it any more, is never passed.
    """
    # Other programs may leave the zone out; the wire is in UTC.
    created_at, now = _aware(created_at), _aware(now)
    patience = max(_SHARE * allowed_s - max(0.0, (now - created_at).total_seconds()), _LEAST_S)
    return patience if deadline is None else max(0.0, min(patience, (_aware(deadline) - now).total_seconds()))


async def asked(
    context: Context,
    section: str,
    answer: type[T],
    *,
    blocks: Sequence[Block],
    faults: Callable[[T], Iterable[str]] = lambda _answer: (),
    **values: object,
) -> Asked[T] | None:
    """Return what the model of the role *section* answers when it is shown *blocks*; *values* go into its prompt.

    An answer with *faults* goes back once; what is still wrong then is left out by whoever reads it. None when there is
    no model or it gave no usable answer in time: then names and counts are all there is. How long it has is told by the
    clock, so the task declares that, too.

    Raises:
        ConfigurationError: the role's files are wrong; the message names file and cure.
    """
    if not context.llm.configured:
        return None
    files = load_agent_files(Path(__file__).with_name(section), context.agent_files)
    system = files.render(**values)
    shown = await asyncio.to_thread(_fitted_beside, system, answer, blocks)
    user = "\n".join(filter(None, (block.shown() for block in shown)))
    try:
        async with asyncio.timeout(await _patience_s(context, section)):
            value = await context.llm.ask(section, answer, system=system, user=user)
            found = list(islice(faults(value), _MOST_FAULTS))
            if found:
                value = await _mended(context, section, answer, system, user, found) or value
    except (LlmError, TimeoutError) as error:
        log.warning("story_read_by_rules_alone", section=section, error=type(error).__name__)
        return None
    model = context.llm.role(section).model
    return Asked(value, model, {block.name: len(block.lines) for block in shown})


async def _mended(
    context: Context, section: str, answer: type[T], system: str, user: str, faults: Sequence[str]
) -> T | None:
    """Return the answer in which the model mended *faults*, None when it gave none."""
    told = "\n".join(("Refused before; answer all of it again, mended:", *(f"- {one}" for one in faults)))
    try:
        return await context.llm.ask(section, answer, system=system, user=f"{user}\n{told}")
    except LlmError as error:
        log.info("story_answer_not_mended", section=section, error=type(error).__name__)
        return None


def _fitted_beside(system: str, answer: type[BaseModel], blocks: Sequence[Block]) -> tuple[Block, ...]:
    """Return what of *blocks* has room in a question of that prompt and answer; the first time takes a second."""
    # A prompt of the operator's own may be longer than all of it: what it is about is shown nevertheless.
    left = max(MOST_TOKENS - _FRAME - tokens_of(system) - _schema_tokens(answer), _LEAST_TOLD)
    return fitted(blocks, left)


def fitted(blocks: Sequence[Block], tokens: int) -> tuple[Block, ...]:
    """Return *blocks* with as many of their lines as *tokens* allow, in their order.

    Last lines of the highest rank go first. The response is shown in part where it is long, and what others leave of
    the budget is its own.
    """
    prose = [clipped(line, tokens) for block in blocks if block.is_prose for line in block.lines]
    told = sum(map(tokens_of, prose))
    others = [block for block in blocks if not block.is_prose]
    others = _cut(others, tokens - min(told, _LEAST_TOLD) - _marks(blocks))
    left = tokens - _marks(blocks) - sum(map(_weight, others))
    rest = iter(others)
    return tuple(
        replace(block, lines=tuple(clipped(line, max(left, 0)) for line in block.lines))
        if block.is_prose
        else next(rest)
        for block in blocks
    )


def tokens_of(text: str) -> int:
    """Return how many tokens *text* is to a model."""
    return counter()(text)


def picked(numbers: Iterable[int], items: Sequence[Item], most: int) -> list[Item]:
    """Return the items that a model pointed at by *numbers*, counted from 1: each once, in its order, *most* of them.

    Numbers that nothing has are left out.
    """
    valid = [number for number in dict.fromkeys(numbers) if 1 <= number <= len(items)]
    return [items[number - 1] for number in valid[:most]]


def _cut(blocks: Sequence[Block], tokens: int) -> list[Block]:
    """Return *blocks* without the lines for which there is no room."""
    kept = list(blocks)
    spent = sum(map(_weight, kept))
    for place in sorted(range(len(kept)), key=lambda place: -kept[place].rank):
        block = kept[place]
        lines = list(block.lines)
        while lines and spent > tokens:
            spent -= _line_weight(block, lines.pop())
        kept[place] = replace(block, lines=tuple(lines))
    return kept


def _weight(block: Block) -> int:
    return sum(_line_weight(block, line) for line in block.lines)


def _line_weight(block: Block, line: str) -> int:
    # The end of the line, and up to four tokens for its number.
    return tokens_of(plain(line, _LINE)) + (5 if block.numbered else 1)


def _marks(blocks: Sequence[Block]) -> int:
    return sum(tokens_of(f"<{block.mark}>\n\n</{block.mark}>\n") for block in blocks)


async def _patience_s(context: Context, section: str) -> float:
    # The deadline of the assignment is later, for those who may come late.
    seats = roster_of((await context.story.settings()).agents)
    allowed_s = next(seat.deadline_s for seat in seats if seat.section == section)
    assignment = context.assignment
    return patience_s(allowed_s, assignment.created_at, assignment.deadline, context.now())


def _aware(time: datetime) -> datetime:
    return time.replace(tzinfo=time.tzinfo or UTC)


@cache
def _schema_tokens(answer: type[Answer]) -> int:
    return tokens_of(json.dumps(answer.model_json_schema()))
