"""Find which plot threads a response opens, takes up and ends; countdowns and ids are worked out, never asked for."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Literal, cast

from contracts.analysis_background import PlotThreads, Thread
from contracts.stories import Entity, StoryThread
from memory.episodes.ranking import rank
from memory.grounding import locate
from memory.stories.settling import StandingStory, settled
from workers import Agent, Context
from workers.agents.story.asking import RULES, Asked, Block, asked, picked
from workers.agents.story.grounding import MOST_CHECKED, faults_of, line_of, name_in, quotation_in, tags_from
from workers.agents.story.names import counts_of
from workers.agents.story.turn import Turn
from workers.answers import Answer

SECTION = "plot_threads"
#: Threads that one response may open, and characters of a title.
MOST_NEW, LONGEST_TITLE = 5, 80
#: Keywords of a thread, and words that end it, that a model is shown.
_KEYWORDS = 4

agent = Agent("StoryThreadAgent", description="Finds which plot threads a response of a story opens, touches or ends.")


class ProposedTouch(Answer):
    """A thread, by its number, that a model says was taken up or has ended."""

    number: int
    quotation: str


class ProposedThread(Answer):
    """A thread that a model says was opened."""

    title: str
    priority: Literal["low", "medium", "high"]
    time_sensitive: bool
    characters: tuple[str, ...]
    tags: tuple[str, ...]
    quotation: str


class ProposedThreads(Answer):
    """What a model says of threads."""

    reasoning: str
    mentioned: tuple[ProposedTouch, ...]
    resolved: tuple[ProposedTouch, ...]
    new: tuple[ProposedThread, ...]


@agent.task(remember=False, uses=("llm", "clock"), in_words=False)
async def analyse(_turn: Turn, context: Context) -> PlotThreads:
    """Find the threads that were opened, taken up and ended."""
    story = context.story
    response, entities = await story.response(), await story.entities()
    states = await story.threads(before=True)
    text = response.text
    likely = await asyncio.to_thread(_likely, text, [one.thread for one in states if one.is_open])
    blocks = (
        Block("characters", tuple(counts_of(text, entities)), rank=1),
        Block("open_threads", [_line(thread) for thread in likely], rank=2, numbered=True),
        Block.response(text),
    )
    reply = await asked(
        context, SECTION, ProposedThreads, blocks=blocks, faults=lambda said: _faults(said, text), most=MOST_NEW
    )
    if reply is None:
        taken_up = tuple(_named(one) for one in likely if is_mentioned(one, text))
        found = PlotThreads(by=RULES, mentioned=taken_up)
    else:
        found = await asyncio.to_thread(_grounded, reply, text, entities, likely)
    standing = StandingStory(
        await story.settings(), threads=states, thread_ids=frozenset(one.thread.id for one in states)
    )
    return cast("PlotThreads", settled(SECTION, response.number, response.chapter, found, standing)[0])


def is_mentioned(thread: StoryThread, text: str) -> bool:
    """Tell whether *text* has a keyword of *thread*, or its title, word for word."""
    return any(next(locate(phrase, text), None) is not None for phrase in thread.keywords or (thread.title,) if phrase)


def _likely(text: str, threads: Sequence[StoryThread]) -> list[StoryThread]:
    """Return the open threads, those first that share most words with the response."""
    scores = rank(text, [" ".join((one.title, one.text, *one.keywords)) for one in threads])
    return [threads[at] for at in sorted(range(len(threads)), key=lambda at: -scores[at])]


def _line(thread: StoryThread) -> str:
    told = [thread.title or thread.id]
    if thread.keywords:
        told.append(f"about {', '.join(thread.keywords[:_KEYWORDS])}")
    if thread.resolved_by:
        told.append(f"ends with {', '.join(thread.resolved_by[:_KEYWORDS])}")
    return "; ".join(told)


def _named(thread: StoryThread) -> Thread:
    return Thread(id=thread.id, title=thread.title)


def _faults(said: ProposedThreads, text: str) -> Iterator[str]:
    for field in ("mentioned", "resolved", "new"):
        for number, one in enumerate(getattr(said, field), start=1):
            yield from faults_of(f"{field} {number}", one.quotation, text)


def _grounded(
    reply: Asked[ProposedThreads], text: str, entities: Sequence[Entity], likely: Sequence[StoryThread]
) -> PlotThreads:
    """Return what of an answer holds: threads that were shown, with words of the response."""
    said, shown = reply.value, likely[: reply.shown["open_threads"]]

    def touched(proposed: Sequence[ProposedTouch]) -> tuple[Thread, ...]:
        numbers = [one.number for one in proposed[:MOST_CHECKED] if quotation_in(one.quotation, text) is not None]
        return tuple(map(_named, picked(numbers, shown, len(shown))))

    return PlotThreads(
        by=reply.model,
        new=tuple(_opened(said.new[:MOST_CHECKED], text, entities))[:MOST_NEW],
        mentioned=touched(said.mentioned),
        resolved=touched(said.resolved),
    )


def _opened(proposed: Sequence[ProposedThread], text: str, entities: Sequence[Entity]) -> Iterator[Thread]:
    for one in proposed:
        title = line_of(one.title, (text,), LONGEST_TITLE)
        if title is None or quotation_in(one.quotation, text) is None:
            continue
        characters = dict.fromkeys(name_in(name, text, entities) for name in one.characters)
        yield Thread(
            id="",
            title=title,
            priority=one.priority,
            time_sensitive=one.time_sensitive,
            characters=tuple(name for name in characters if name is not None),
            tags=tags_from(one.tags),
        )
