"""Which agents share a question: the first that runs asks it for all of them, the others wait and take their part.

Over processes the answer lies beside a lease in Valkey (`context.story.share`), so that the place of one that died is
taken. A question that got no answer is noted, too: it is not asked ten times over.
"""

import asyncio
from typing import Any

from pydantic import JsonValue

from contracts.analysis.roster import ROSTER, roster_of
from contracts.analysis.stories import StorySettings
from workers import Context
from workers.agents.story.asking import ask, patience_s
from workers.agents.story.parts import PARTS, A, Judged, Part, S
from workers.agents.story.seen import Seen, read

_OURS = {seat.section: seat for seat in ROSTER}


async def analyse(part: Part[A, S], context: Context) -> S:
    """Return the section of *part*: as a model judges it, or else by names and counts."""
    seen = await read(context.story, part.needs)
    judged = await _judge(part, context, seen) if context.llm.configured and part.is_askable(seen) else None
    return await asyncio.to_thread(part.finish, seen, judged)


async def _judge(part: Part[A, S], context: Context, seen: Seen) -> Judged[A] | None:
    together = sharers(part.section, seen.settings, context.story.calls)
    within_s = await patience_s(context, part.section)
    if len(together) == 1:
        return (await ask(context, (part,), seen, within_s)).get(part.section)

    async def compute() -> JsonValue:
        parts = [PARTS[section] for section in together]
        whole = await read(context.story, frozenset().union(*(one.needs for one in parts)))
        # What cannot be judged is not asked for; it is found again without.
        asked = [one for one in parts if one.is_askable(whole)]
        return {section: _write(one) for section, one in (await ask(context, asked, whole, within_s)).items()}

    name = "one" if context.story.calls == "one" else _OURS[part.section].group
    found = await context.story.share(name, compute, wait_s=within_s)
    told = found.get(part.section) if isinstance(found, dict) else None
    return None if told is None else _read(part, told, seen)


def sharers(section: str, settings: StorySettings, calls: str) -> list[str]:
    """Return the sections that share a question with *section*, itself included, in the order of the document.

    *calls* is `ten`, `grouped` or `one`. A section that a story switches off, or gives to an agent of its own, shares
    none.
    """
    ours = [
        seat
        for seat in roster_of(settings.agents)
        if seat.enabled and seat.section in PARTS and seat.agent_id == _OURS[seat.section].agent_id
    ]
    if calls == "ten" or section not in {seat.section for seat in ours}:
        return [section]
    group = _OURS[section].group
    return [seat.section for seat in ours if calls == "one" or seat.group == group]


def _write(judged: Judged[Any]) -> JsonValue:
    return {"answer": judged.answer.model_dump(mode="json"), "by": judged.by, "left_out": judged.left_out}


def _read(part: Part[A, S], told: JsonValue, seen: Seen) -> Judged[A] | None:
    """Return the part of a shared answer, checked once more: other processes may run another version."""
    if not isinstance(told, dict):
        return None
    answer = part.answer.model_validate(told["answer"])
    kept, faulty = part.check(answer, seen)
    return Judged(kept, str(told["by"]), int(str(told["left_out"])) + len(faulty))
