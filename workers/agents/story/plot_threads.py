"""Find which plot threads a response opens, takes up and ends; countdowns and ids are worked out, never asked for."""

from collections.abc import Iterable, Iterator

from contracts.analysis.background import PlotThreads, Thread
from contracts.analysis.stories import StoryThread
from memory.stories.arithmetic import resolve_id
from workers import Agent, Context
from workers.agents.story.names import fold
from workers.agents.story.parts import (
    Fault,
    Finding,
    Part,
    Text,
    Texts,
    enroll,
    length_faults,
    number_faults,
    one_of,
    person_faults,
    stands_in,
    tags_from,
)
from workers.agents.story.prose import one_line
from workers.agents.story.seen import Seen, Turn
from workers.agents.story.sharing import analyse as analyse_part
from workers.answers import Answer

#: Threads that one response may open, and characters of a title.
MOST_NEW, LONGEST_TITLE = 4, 80

agent = Agent("StoryThreadAgent", description="Finds which plot threads a response of a story opens, touches or ends.")


class TouchedThread(Finding):
    """A thread, by its id, that the response takes up or ends."""

    id: Text = ""


class OpenedThread(Finding):
    """A thread that the response opens."""

    title: Text = ""
    priority: Text = one_of("low", "medium", "high")
    time_sensitive: bool = False
    characters: Texts = ()
    tags: Texts = ()


class FoundThreads(Answer):
    """What a model says of threads."""

    reasoning: Text
    touched: tuple[TouchedThread, ...] = ()
    resolved: tuple[TouchedThread, ...] = ()
    new: tuple[OpenedThread, ...] = ()


class ThreadPart(Part[FoundThreads, PlotThreads]):
    """What becomes of threads."""

    section = "plot_threads"
    answer = FoundThreads
    needs = ("threads_before",)
    blocks = ("names", "open_before", "response")
    limits = {"most": MOST_NEW}  # noqa: RUF012 - a class constant

    def faults(self, finding: Finding, seen: Seen) -> Iterator[Fault]:
        """Yield ids of no open thread, and persons and numbers of a title that were not told."""
        if isinstance(finding, TouchedThread) and _thread(finding.id, seen) is None:
            yield Fault("id", f"{finding.id[:40]!r} is no open thread; copy an id of open_before")
        elif isinstance(finding, OpenedThread):
            yield from length_faults("title", finding.title, LONGEST_TITLE)
            yield from number_faults("title", finding.title, seen.response.text)
            for name in finding.characters:
                yield from person_faults("characters", name, seen)

    def reduce(self, seen: Seen, answer: FoundThreads | None) -> PlotThreads:
        """Work out ids and countdowns; without an answer threads are taken up whose keyword or title stands there."""
        if answer is None:
            found = PlotThreads(mentioned=tuple(_name(one) for one in spelled_out(seen)))
        else:
            found = PlotThreads(
                new=tuple(_open(one, seen) for one in answer.new[:MOST_NEW]),
                mentioned=tuple(_names((one.id for one in answer.touched), seen)),
                resolved=tuple(_names((one.id for one in answer.resolved), seen)),
            )
        return self.settle(found, seen)


PART = enroll(ThreadPart())


@agent.task(remember=False, uses=("llm", "clock"), in_words=False)
async def analyse(_turn: Turn, context: Context) -> PlotThreads:
    """Find the threads that were opened, taken up and ended."""
    return await analyse_part(PART, context)


def spelled_out(seen: Seen) -> Iterator[StoryThread]:
    """Yield the open threads of which the response says a keyword, or the whole title where there is none."""
    for state in seen.open_before:
        phrases = state.thread.keywords or (state.thread.title,)
        if any(stands_in(phrase, seen.response.text) for phrase in phrases):
            yield state.thread


def _thread(said: str, seen: Seen) -> StoryThread | None:
    threads = {state.thread.id: state.thread for state in seen.open_before}
    thread_id = resolve_id(said, threads)
    return None if thread_id is None else threads[thread_id]


def _names(ids: Iterable[str], seen: Seen) -> Iterator[Thread]:
    found = (_thread(one, seen) for one in dict.fromkeys(ids))
    yield from (_name(thread) for thread in found if thread is not None)


def _name(thread: StoryThread) -> Thread:
    """Return what names *thread* in a section; how it stands is settled."""
    return Thread(id=thread.id, title=thread.title)


def _open(found: OpenedThread, seen: Seen) -> Thread:
    people = dict.fromkeys(seen.owner_of(name) for name in found.characters if fold(name))
    return Thread(
        id="",
        title=one_line(found.title, LONGEST_TITLE),
        priority=found.priority,
        time_sensitive=found.time_sensitive,
        characters=tuple(people),
        tags=tags_from(found.tags),
    )
