"""A question to a model about a response, for one section or several: its budget, its time, and one round of repair.

A finding that fails its checks goes back once with field and cure, and is left out when it fails again. Without an
answer there is nothing to keep, and sections go by names and counts.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, cast

import structlog
from pydantic import create_model

from contracts.analysis.roster import roster_of
from contracts.errors import LlmError
from workers import Context
from workers.agent_files import AgentFiles, load_agent_files
from workers.agents.story.blocks import fit
from workers.agents.story.parts import Faulty, Judged, Part, Text, lists_of
from workers.agents.story.seen import Seen
from workers.agents.story.shown import blocks_of
from workers.agents.story.sizes import count_tokens
from workers.answers import Answer

log = structlog.get_logger(__name__)

#: Tokens of a question for one section beside the response: instructions, the schema of the answer, what is known.
MOST_TOKENS = 1_500
#: Tokens of the response: a chapter; of a longer one beginning and end are shown.
MOST_TOLD = 3_000
#: Tokens that a provider's own framing takes, rather too many, and those of what is known that are shown in any case.
_FRAME, _LEAST_SHOWN = 40, 200
#: Tokens of one block in a question for several sections: what is left for it in one for its own.
_MOST_BLOCK = 650
#: The role of a question for several sections.
SHARED = "shared"
#: Faulty findings that go back to the model, and characters of each.
_MOST_MENDED, _LONGEST_MENDED = 24, 600
#: The part of the time until its section is late that may be over before a model is given up, so that names and counts
#: still come in time; and seconds that it has in any case, since a task that waited long is better late than without.
_SHARE, _LEAST_S = 0.6, 1.0

AnyPart = Part[Any, Any]


async def patience_s(context: Context, section: str) -> float:
    """Return how many seconds the model of *section* has from now on."""
    # The deadline of the assignment is later, for those who may come late.
    seats = roster_of((await context.story.settings()).agents)
    allowed_s = next(seat.deadline_s for seat in seats if seat.section == section)
    assignment = context.assignment
    return patience_for(allowed_s, assignment.created_at, assignment.deadline, context.now())


def patience_for(allowed_s: float, created_at: datetime, deadline: datetime | None, now: datetime) -> float:
    """Return how many seconds a model has from *now* on, for a section that is late *allowed_s* after *created_at*.

    What a task waited before it ran is over; *deadline*, when it is awaited no longer, is never passed.
    """
    # Other programs may leave the zone out; the wire is in UTC.
    created_at, now = _aware(created_at), _aware(now)
    patience = max(_SHARE * allowed_s - max(0.0, (now - created_at).total_seconds()), _LEAST_S)
    return patience if deadline is None else max(0.0, min(patience, (_aware(deadline) - now).total_seconds()))


async def ask(context: Context, parts: Sequence[AnyPart], seen: Seen, within_s: float) -> dict[str, Judged[Any]]:
    """Return what a model found for each of *parts*, by section; empty when it gave no usable answer *within_s*.

    Raises:
        ConfigurationError: the role's files are wrong; the message names file and cure.
    """
    question = await asyncio.to_thread(_Question, context, parts, seen)
    try:
        async with asyncio.timeout(within_s):
            return await question.ask()
    except (LlmError, TimeoutError) as error:
        log.warning("story_read_without_model", sections=list(question.parts), error=type(error).__name__)
        return question.judged


class _Question:
    """One question for some sections, and what of its answer holds so far."""

    def __init__(self, context: Context, parts: Sequence[AnyPart], seen: Seen) -> None:
        self.parts = {part.section: part for part in parts}
        self.judged: dict[str, Judged[Any]] = {}
        self._context = context
        self._seen = seen
        self._is_shared = len(parts) > 1
        self._role = SHARED if self._is_shared else parts[0].section
        self._schema: type[Answer] = _joint_answer(tuple(parts)) if self._is_shared else parts[0].answer
        self._system = self._render()
        room = (
            MOST_TOKENS * len(parts) - _FRAME - count_tokens(self._system) - _schema_tokens(cast("Any", self._schema))
        )
        shown = blocks_of((name for part in parts for name in part.blocks), seen)
        if self._is_shared:
            # None of them has more than alone, so that one question is much less than many.
            shown = [fit((block,), MOST_TOLD, _MOST_BLOCK)[0] for block in shown]
        fitted = fit(shown, MOST_TOLD, max(room, _LEAST_SHOWN))
        self._user = "\n".join(filter(None, (block.text for block in fitted)))

    async def ask(self) -> dict[str, Judged[Any]]:
        """Return what holds, after one round of repair where something does not."""
        answers = await self._answer(self._user)
        faulty = await asyncio.to_thread(self._keep, answers)
        if faulty:
            mended = await self._answer(f"{self._user}\n{_complaint(faulty, is_shared=self._is_shared)}")
            await asyncio.to_thread(self._mend, mended)
        return self.judged

    async def _answer(self, user: str) -> Mapping[str, Answer]:
        value = await self._context.llm.ask(self._role, self._schema, system=self._system, user=user)
        return {section: getattr(value, section) for section in self.parts} if self._is_shared else {self._role: value}

    def _keep(self, answers: Mapping[str, Answer]) -> list[tuple[str, Faulty]]:
        """Keep what holds of *answers*, and return what does not, each with its section."""
        model, every = self._context.llm.role(self._role).model, list[tuple[str, Faulty]]()
        for section, part in self.parts.items():
            kept, faulty = part.check(answers[section], self._seen)
            self.judged[section] = Judged(kept, model, len(faulty))
            every += [(section, one) for one in faulty]
        return every

    def _mend(self, answers: Mapping[str, Answer]) -> None:
        """Add what was mended; of each section never more than had failed."""
        for section, part in self.parts.items():
            before = self.judged[section]
            kept, _ = part.check(answers[section], self._seen)
            left, told = before.left_out, dict[str, tuple[Answer, ...]]()
            for field in lists_of(kept):
                known = getattr(before.answer, field)
                anew = [one for one in getattr(kept, field) if one not in known][:left]
                left -= len(anew)
                told[field] = (*known, *anew)
            self.judged[section] = Judged(before.answer.model_copy(update=told), before.by, left)

    def _render(self) -> str:
        if not self._is_shared:
            (part,) = self.parts.values()
            return self._files(part.section).render(**part.limits)
        told = [
            {"section": section, "prompt": self._files(section).render(**part.limits)}
            for section, part in self.parts.items()
        ]
        return self._files(SHARED).render(parts=told)

    def _files(self, role: str) -> AgentFiles:
        return load_agent_files(Path(__file__).with_name(role), self._context.agent_files)


def _complaint(faulty: Sequence[tuple[str, Faulty]], *, is_shared: bool) -> str:
    lines = ["Refused. Answer these findings alone, mended, each in its list; leave out what cannot be mended:"]
    for section, one in faulty[:_MOST_MENDED]:
        place = f"{section}.{one.field}" if is_shared else one.field
        lines.append(f"{place}: {one.finding.model_dump_json()[:_LONGEST_MENDED]}")
        lines += [f"- {fault}" for fault in one.faults]
    return "\n".join(lines)


@cache
def _joint_answer(parts: tuple[AnyPart, ...]) -> type[Answer]:
    """Return the schema of an answer for all of *parts*, each under the name of its section."""
    fields: dict[str, Any] = {part.section: (part.answer, ...) for part in parts}
    return create_model("StoryAnswer", __base__=Answer, reasoning=(Text, ""), **fields)


@cache
def _schema_tokens(answer: type[Answer]) -> int:
    return count_tokens(json.dumps(answer.model_json_schema()))


def _aware(time: datetime) -> datetime:
    return time.replace(tzinfo=time.tzinfo or UTC)
