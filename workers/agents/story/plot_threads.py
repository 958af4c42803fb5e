"""Find which plot threads a response opens, takes up and ends; countdowns and ids are worked out, never asked for."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Literal, cast

from contracts.analysis_background import PlotThreads, Thread
from contracts.stories import Entity, StoryThread
from memory.stories.settling import StandingStory, settled
from workers import Agent, Context
from workers.agents.story.asking import Asked, Block, asked, picked
from workers.agents.story.reading.casting import cast_of, named
from workers.agents.story.reading.grounding import MOST_CHECKED, line_from, quote_from, tags_from
from workers.agents.story.rules.thread_rules import LONGEST_TITLE, MOST_NEW, Reading, by_rules, mere_name
from workers.agents.story.turn import Turn
from workers.answers import Answer

#: Keywords of a thread that a model is shown.
_KEYWORDS = 4

agent = Agent("StoryThreadAgent", description="Finds which plot threads a response of a story opens, touches or ends.")


class ProposedEnd(Answer):
    """A thread, by its number, that a model says has ended."""

    number: int
    quote: str


class ProposedThread(Answer):
    """A thread that a model says was opened."""

    title: str
    priority: Literal["low", "medium", "high"]
    time_sensitive: bool
    characters: tuple[str, ...]
    tags: tuple[str, ...]
    quote: str


class ProposedThreads(Answer):
    """What a model says of threads."""

    reasoning: str
    mentioned: tuple[int, ...]
    resolved: tuple[ProposedEnd, ...]
    new: tuple[ProposedThread, ...]


@agent.task(remember=False, uses=("llm", "clock"), in_words=False)
async def analyse(turn: Turn, context: Context) -> PlotThreads:  # noqa: ARG001 - the story is all there is
    """Find the threads that were opened, taken up and ended."""
    response, entities = await context.story.response(), await context.story.entities()
    states = await context.story.threads(before=True)
    open_threads = [one.thread for one in states if one.is_open]
    reading, blocks = await asyncio.to_thread(_read, response.text, entities, open_threads)
    reply = await asked(context, "plot_threads", ProposedThreads, blocks=blocks, most=MOST_NEW)
    found = None if reply is None else await asyncio.to_thread(_grounded, reply, reading)
    if found is None:
        found = await asyncio.to_thread(by_rules, reading)
    story = StandingStory(
        await context.story.settings(), threads=states, thread_ids=frozenset(one.thread.id for one in states)
    )
    return cast("PlotThreads", settled("plot_threads", response.number, response.chapter, found, story)[0])


def _read(
    text: str, entities: Sequence[Entity], open_threads: Sequence[StoryThread]
) -> tuple[Reading, tuple[Block, ...]]:
    """Return what rules know of the response, and what a model is shown of it."""
    scene = cast_of(text, entities)
    reading = Reading(text, entities, scene, open_threads)
    return reading, (
        Block("characters", (*scene.in_scene, *scene.mentioned), rank=1),
        Block("open_threads", [_line(thread) for thread in reading.likely], rank=2, numbered=True),
        Block.response(text),
    )


def _line(thread: StoryThread) -> str:
    keywords = ", ".join(thread.keywords[:_KEYWORDS])
    return f"{thread.title or thread.id} ({keywords})" if keywords else thread.title or thread.id


def _grounded(reply: Asked[ProposedThreads], reading: Reading) -> PlotThreads | None:
    """Return what of an answer holds: threads that were shown, and quotes that stand in the response.

    None when it says something and nothing of it does.
    """
    said, shown = reply.value, reading.likely[: reply.shown["open_threads"]]
    ends = [end.number for end in said.resolved[:MOST_CHECKED] if quote_from(end.quote, reading.text) is not None]
    found = PlotThreads(
        by=reply.model,
        new=tuple(_opened(said.new[:MOST_CHECKED], reading))[:MOST_NEW],
        mentioned=tuple(map(mere_name, picked(said.mentioned, shown, len(shown)))),
        resolved=tuple(map(mere_name, picked(ends, shown, len(shown)))),
    )
    says_nothing = not (said.mentioned or said.resolved or said.new)
    return found if says_nothing or found.new or found.mentioned or found.resolved else None


def _opened(proposed: Sequence[ProposedThread], reading: Reading) -> Iterator[Thread]:
    names = [entity.name for entity in reading.entities]
    there = {*reading.scene.in_scene, *reading.scene.mentioned}
    for one in proposed:
        title = line_from(one.title, (reading.text,), names, LONGEST_TITLE)
        if title is None or quote_from(one.quote, reading.text) is None:
            continue
        characters = dict.fromkeys(named(name, reading.entities) for name in one.characters)
        yield Thread(
            id="",
            title=title,
            priority=one.priority,
            time_sensitive=one.time_sensitive,
            characters=tuple(name for name in characters if name is not None and name in there),
            tags=tags_from(one.tags),
        )
