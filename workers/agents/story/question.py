"""Questions to a model about a response: for one section or several, with a budget, a timeout and one repair round.

Agents that share a question have it asked by the first of them; its answer lies beside a lease in Valkey
(`context.story.share`), so that another process takes over when that one dies. A failed question is noted there, too.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, cast

import structlog
from pydantic import JsonValue, create_model

from tasklore import Agent, Context
from tasklore.contracts.analysis.pieces import Section
from tasklore.contracts.analysis.section_agents import SECTION_AGENTS, roster_of
from tasklore.contracts.analysis.stories import StorySettings
from tasklore.contracts.errors import LlmError, LlmRefused
from tasklore.workers.agent_files import AgentFiles, load_agent_files
from tasklore.workers.agents.story.blocks import blocks_of, fit
from tasklore.workers.agents.story.parts import (
    A,
    Faulty,
    Judged,
    Part,
    S,
    Text,
    lists_of,
)
from tasklore.workers.agents.story.prose import one_line
from tasklore.workers.agents.story.tokens import count_tokens
from tasklore.workers.agents.story.view import StoryView, Turn, read
from tasklore.workers.answers import AnswerSchema

log = structlog.get_logger(__name__)

#: Tokens of a question for one section beside the response: instructions, answer schema, and other blocks.
MOST_TOKENS = 1_500
#: Tokens of the response: a chapter; of a longer one beginning and end are shown.
MOST_RESPONSE_TOKENS = 3_000
#: Tokens of a provider's own framing, rounded up, and tokens that the blocks have in any case.
_FRAME = 40
_LEAST_BLOCKS = 200
#: Tokens of one block in a shared question: the room that it has in a question for one section.
_MOST_BLOCK = 650
#: The role of a question for several sections.
SHARED = "shared"
#: The key beside the sections of a shared answer that says why there is none; characters of a provider's words.
_WHY = "why"
_WORDS = 200
#: Faulty findings that go back to the model, and characters of each.
_MOST_MENDED = 24
_LONGEST_MENDED = 600
#: The share of a section's deadline after which its model is given up, so that rules still answer in time; and the
#: seconds that a model has in any case, since a task that waited long had better be late than without.
_SHARE = 0.6
_LEAST_S = 1.0

AnyPart = Part[Any, Any]

#: The part of each section, by its key, as `serve` has filled it.
PARTS: dict[str, AnyPart] = {}
_OURS = {seat.section: seat for seat in SECTION_AGENTS}


def serve(part: Part[A, S], agent: Agent) -> Agent:
    """Give *agent* the task `analyse`, which makes the section of *part*, and return it."""
    PARTS[part.section] = part

    async def task(_turn: Turn, context: Context) -> Section:
        return await analyse(part, context)

    task.__doc__ = part.__doc__
    task.__annotations__["return"] = part.result
    agent.task(name="analyse", remember=False, uses=("llm", "clock"), in_words=False)(
        task
    )
    return agent


async def analyse(part: Part[A, S], context: Context) -> S:
    """Return the section of *part*: as a model judges it, or else by names and counts."""
    view = await read(context.story, part.needs)
    judged: Judged[A] | None = None
    why = ""
    if context.llm.configured and part.is_askable(view):
        together = sharers(part.section, view.settings, context.story.calls)
        # The deadline of the assignment is later, for sections that may come late.
        deadline_s = next(
            one.deadline_s
            for one in roster_of(view.settings.agents)
            if one.section == part.section
        )
        task = context.assignment
        timeout_s = timeout_for(
            deadline_s, task.created_at, task.deadline, context.now()
        )
        if len(together) == 1:
            found, why = await ask(context, (part,), view, timeout_s)
            judged = found.get(part.section)
        else:
            judged, why = await _ask_together(
                part, together=together, context=context, view=view, timeout_s=timeout_s
            )
    return await asyncio.to_thread(part.finish, view, judged, why)


async def _ask_together(
    part: Part[A, S],
    together: Sequence[str],
    context: Context,
    view: StoryView,
    timeout_s: float,
) -> tuple[Judged[A] | None, str]:
    async def compute() -> JsonValue:
        parts = [PARTS[section] for section in together]
        whole = await read(
            context.story, frozenset().union(*(one.needs for one in parts))
        )
        askable = [one for one in parts if one.is_askable(whole)]
        judged, why = await ask(context, askable, whole, timeout_s)
        return {_WHY: why} | {
            section: {
                "answer": one.answer.model_dump(mode="json"),
                "by": one.by,
                "left_out": one.left_out,
            }
            for section, one in judged.items()
        }

    name = "one" if context.story.calls == "one" else _OURS[part.section].group
    shared = await context.story.share(name, compute, wait_s=timeout_s)
    shared = shared if isinstance(shared, dict) else {}
    own = shared.get(part.section)
    if not isinstance(own, dict):
        return None, str(shared.get(_WHY) or "")
    # Checked once more: other processes may run another version.
    kept, faulty = part.check(part.answer.model_validate(own["answer"]), view)
    judged = Judged(kept, str(own["by"]), int(str(own["left_out"])) + len(faulty))
    return judged, ""


def sharers(section: str, settings: StorySettings, calls: str) -> list[str]:
    """Return the sections that share a question with *section*, itself included, in the order of the document.

    *calls* is `ten`, `grouped` or `one`. A section that a story switches off, or gives to an agent of its own, shares
    none.
    """
    ours = [
        seat
        for seat in roster_of(settings.agents)
        if seat.enabled
        and seat.section in PARTS
        and seat.agent_id == _OURS[seat.section].agent_id
    ]
    if calls == "ten" or section not in {seat.section for seat in ours}:
        return [section]
    group = _OURS[section].group
    return [seat.section for seat in ours if calls == "one" or seat.group == group]


def timeout_for(
    deadline_s: float, created_at: datetime, deadline: datetime | None, now: datetime
) -> float:
    """Return how many seconds a model has from *now* on, for a section that is late *deadline_s* after *created_at*.

    The time that the task waited before it ran counts; *deadline* is the end of the assignment and is never passed.
    """
    # Other programs may leave the zone out; the wire is in UTC.
    created_at = _aware(created_at)
    now = _aware(now)
    timeout = max(
        _SHARE * deadline_s - max(0.0, (now - created_at).total_seconds()), _LEAST_S
    )
    return (
        timeout
        if deadline is None
        else max(0.0, min(timeout, (_aware(deadline) - now).total_seconds()))
    )


async def ask(
    context: Context, parts: Sequence[AnyPart], view: StoryView, timeout_s: float
) -> tuple[dict[str, Judged[Any]], str]:
    """Return the checked answer to each of *parts*, by section; empty without a usable answer within *timeout_s*.

    With it why there is none, in the provider's words.

    Raises:
        ConfigurationError: the role's files are wrong; the message names file and cure.
    """
    question = await asyncio.to_thread(_Question, context, parts, view)
    try:
        async with asyncio.timeout(timeout_s):
            return await question.ask(), ""
    except (LlmError, TimeoutError) as error:
        log.warning(
            "story_read_without_model",
            sections=list(question.parts),
            error=type(error).__name__,
        )
        name = type(error).__name__
        # A refusal speaks of the story.
        words = "" if isinstance(error, LlmRefused) else one_line(str(error), _WORDS)
        why = f"{question.model} did not answer: {name}{words and f': {words}'}"
        return question.judged, why


class _Question:
    """One question for some sections, and the checked findings of its answer so far."""

    def __init__(
        self, context: Context, parts: Sequence[AnyPart], view: StoryView
    ) -> None:
        self.parts = {part.section: part for part in parts}
        self.judged: dict[str, Judged[Any]] = {}
        self._context = context
        self._view = view
        self._is_shared = len(parts) > 1
        self._role = SHARED if self._is_shared else parts[0].section
        self._schema: type[AnswerSchema] = (
            _joint_answer(tuple(parts)) if self._is_shared else parts[0].answer
        )
        prompts = [
            {
                "section": part.section,
                "prompt": self._files(part.section).render(**part.limits),
            }
            for part in parts
        ]
        self._system = (
            self._files(SHARED).render(parts=prompts)
            if self._is_shared
            else prompts[0]["prompt"]
        )
        schema_tokens = _schema_tokens(cast("Any", self._schema))
        room = (
            MOST_TOKENS * len(parts)
            - _FRAME
            - count_tokens(self._system)
            - schema_tokens
        )
        blocks = blocks_of((name for part in parts for name in part.blocks), view)
        if self._is_shared:
            # No block has more than alone, so that one question is much smaller than many.
            blocks = [
                fit((block,), MOST_RESPONSE_TOKENS, _MOST_BLOCK)[0] for block in blocks
            ]
        fitted = fit(blocks, MOST_RESPONSE_TOKENS, max(room, _LEAST_BLOCKS))
        self._user = "\n".join(filter(None, (block.text for block in fitted)))

    @property
    def model(self) -> str:
        """The model that is asked."""
        return self._context.llm.role(self._role).model

    async def ask(self) -> dict[str, Judged[Any]]:
        """Return the findings that pass their checks, after one repair round for those that fail."""
        answers = await self._answer(self._user)
        faulty = await asyncio.to_thread(self._keep, answers)
        if faulty:
            mended = await self._answer(
                f"{self._user}\n{_complaint(faulty, is_shared=self._is_shared)}"
            )
            await asyncio.to_thread(self._add_mended, mended)
        return self.judged

    async def _answer(self, user: str) -> Mapping[str, AnswerSchema]:
        value = await self._context.llm.ask(
            self._role, self._schema, system=self._system, user=user
        )
        return (
            {section: getattr(value, section) for section in self.parts}
            if self._is_shared
            else {self._role: value}
        )

    def _keep(self, answers: Mapping[str, AnswerSchema]) -> list[tuple[str, Faulty]]:
        """Keep the sound findings of *answers*, and return the others, each with its section."""
        every = list[tuple[str, Faulty]]()
        for section, part in self.parts.items():
            kept, faulty = part.check(answers[section], self._view)
            self.judged[section] = Judged(kept, self.model, len(faulty))
            every += [(section, one) for one in faulty]
        return every

    def _add_mended(self, answers: Mapping[str, AnswerSchema]) -> None:
        """Add mended findings; for each section never more than had failed."""
        for section, part in self.parts.items():
            before = self.judged[section]
            kept, _ = part.check(answers[section], self._view)
            left = before.left_out
            merged = dict[str, tuple[AnswerSchema, ...]]()
            for field in lists_of(kept):
                known = getattr(before.answer, field)
                anew = [one for one in getattr(kept, field) if one not in known][:left]
                left -= len(anew)
                merged[field] = (*known, *anew)
            self.judged[section] = Judged(
                before.answer.model_copy(update=merged), before.by, left
            )

    def _files(self, role: str) -> AgentFiles:
        return load_agent_files(
            Path(__file__).with_name(role), self._context.agent_files
        )


def _complaint(faulty: Sequence[tuple[str, Faulty]], *, is_shared: bool) -> str:
    lines = [
        "Refused. Answer these findings alone, mended, each in its list; leave out what cannot be mended:"
    ]
    for section, one in faulty[:_MOST_MENDED]:
        place = f"{section}.{one.field}" if is_shared else one.field
        lines.append(f"{place}: {one.finding.model_dump_json()[:_LONGEST_MENDED]}")
        lines += [f"- {fault}" for fault in one.faults]
    return "\n".join(lines)


@cache
def _joint_answer(parts: tuple[AnyPart, ...]) -> type[AnswerSchema]:
    """Return the schema of an answer for all of *parts*, each under the name of its section."""
    fields: dict[str, Any] = {part.section: (part.answer, ...) for part in parts}
    return create_model(
        "StoryAnswer", __base__=AnswerSchema, reasoning=(Text, ""), **fields
    )


@cache
def _schema_tokens(answer: type[AnswerSchema]) -> int:
    return count_tokens(json.dumps(answer.model_json_schema()))


def _aware(time: datetime) -> datetime:
    return time.replace(tzinfo=time.tzinfo or UTC)
