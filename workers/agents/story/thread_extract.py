"""Choose the plot threads that the next response should know of: critical ones always, then what a scene touches."""

import asyncio
from collections.abc import Sequence

from contracts.analysis_immediate import LoadedThread, ThreadExtraction
from memory.stories.arithmetic import reduction
from workers import Agent, Context
from workers.agents.story.asking import RULES, Block, asked, tokens_of
from workers.agents.story.reading.casting import cast_of
from workers.agents.story.reading.grounding import MOST_CHECKED, line_from
from workers.agents.story.rules.loading_threads import LONGEST_WHY, Pressing, pressing
from workers.agents.story.turn import Turn
from workers.answers import Answer

#: Threads that are loaded, unless more are critical.
MOST_LOADED = 5

agent = Agent("StoryThreadRecallAgent", description="Chooses the plot threads that the next response of a story needs.")


class ProposedLoad(Answer):
    """A thread, by its number, that a model would load."""

    number: int
    why: str


class ProposedLoads(Answer):
    """What a model would load."""

    reasoning: str
    threads: tuple[ProposedLoad, ...]


@agent.task(remember=False, uses=("llm", "clock"), in_words=False)
async def analyse(turn: Turn, context: Context) -> ThreadExtraction:  # noqa: ARG001 - the story is all there is
    """Choose at most five threads, more only when more are critical."""
    response, entities = await context.story.response(), await context.story.entities()
    settings, states = await context.story.settings(), await context.story.threads()
    scene = await asyncio.to_thread(cast_of, response.text, entities)
    open_ones = await asyncio.to_thread(
        pressing, response, [state for state in states if state.is_open], entities, scene, settings.critical_countdown
    )
    by, chosen = RULES, [one for one in open_ones if one.is_relevant]
    if open_ones:
        lines = [one.line for one in open_ones]
        blocks = [Block("open_threads", lines, numbered=True), Block.response(response.text)]
        values = {"most": MOST_LOADED, "longest": LONGEST_WHY}
        reply = await asked(context, "thread_extract", ProposedLoads, blocks=blocks, **values)
        if reply is not None:
            shown, names = open_ones[: reply.shown["open_threads"]], [entity.name for entity in entities]
            picks = await asyncio.to_thread(_grounded, reply.value.threads, shown, response.text, names)
            if picks or not reply.value.threads:
                by, chosen = reply.model, _with_critical(picks, open_ones)
    return await asyncio.to_thread(_section, by, chosen, open_ones)


def _section(by: str, chosen: Sequence[Pressing], open_ones: Sequence[Pressing]) -> ThreadExtraction:
    """Return the section: what is loaded of what was *chosen*, and what is saved over the texts of all threads."""
    loaded = chosen[: max(MOST_LOADED, sum(one.is_critical for one in chosen))]
    before = sum(tokens_of(f"{one.thread.title}: {one.thread.text}") for one in open_ones)
    after = sum(tokens_of(f"{one.thread.title}: {one.why}") for one in loaded)
    return ThreadExtraction(
        by=by,
        loaded=tuple(map(_loaded, loaded)),
        monitored=len(open_ones) - len(loaded),
        reduction=reduction(before, after),
    )


def _grounded(
    proposed: Sequence[ProposedLoad], shown: Sequence[Pressing], text: str, names: Sequence[str]
) -> list[Pressing]:
    """Return the threads that a model chose out of those it saw, each once, with its reasons where they hold."""
    chosen: dict[int, Pressing] = {}
    for one in proposed[:MOST_CHECKED]:
        if 1 <= one.number <= len(shown):
            thread = shown[one.number - 1]
            why = line_from(one.why, (text, thread.line, thread.thread.text), names, LONGEST_WHY)
            chosen[one.number] = thread.because(why or thread.why)
    return list(chosen.values())


def _with_critical(chosen: Sequence[Pressing], open_ones: Sequence[Pressing]) -> list[Pressing]:
    """Return what was chosen behind all that is critical; the rest stays in the order of the choice."""
    known = {one.thread.id: one for one in chosen}
    critical = [known.get(one.thread.id, one) for one in open_ones if one.is_critical]
    return [*critical, *(one for one in chosen if not one.is_critical)]


def _loaded(one: Pressing) -> LoadedThread:
    told = {
        "id": one.thread.id,
        "title": one.thread.title,
        "priority": one.thread.priority,
        "status": one.status,
        "countdown": one.countdown,
        "time_until": one.time_until,
        "new": one.is_new or None,
        "why": one.why,
    }
    return LoadedThread.model_validate({name: value for name, value in told.items() if value is not None})
