"""Find which plot threads a response opens, takes up and ends; countdowns and ids are computed, never asked for."""

from collections.abc import Iterable, Iterator

from tasklore import Agent
from tasklore.contracts.analysis.background import PlotThreads, Thread
from tasklore.contracts.analysis.stories import StoryThread
from tasklore.memory.stories.arithmetic import resolve_id
from tasklore.workers.agents.story.checks import (
    FindingFault,
    check_length,
    check_numbers,
    check_person,
    stands_in,
)
from tasklore.workers.agents.story.names import fold
from tasklore.workers.agents.story.parts import (
    Finding,
    Part,
    Text,
    Texts,
    one_of,
    tags_from,
)
from tasklore.workers.agents.story.prose import one_line
from tasklore.workers.agents.story.question import serve
from tasklore.workers.agents.story.view import StoryView
from tasklore.workers.answers import AnswerSchema

#: Threads that one response may open, and characters of a title.
MOST_NEW = 4
LONGEST_TITLE = 80


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


class FoundThreads(AnswerSchema):
    """All changes of threads that a model finds."""

    reasoning: Text
    touched: tuple[TouchedThread, ...] = ()
    resolved: tuple[TouchedThread, ...] = ()
    new: tuple[OpenedThread, ...] = ()


class ThreadPart(Part[FoundThreads, PlotThreads]):
    """Find the threads that were opened, taken up and ended."""

    section = "plot_threads"
    answer = FoundThreads
    result = PlotThreads
    needs = ("threads_before",)
    blocks = ("names", "open_before", "response")
    limits = {"most": MOST_NEW}  # noqa: RUF012 - a class constant

    def faults(self, finding: Finding, view: StoryView) -> Iterator[FindingFault]:
        """Yield faults of ids, and of the title and persons of a new thread."""
        if (
            isinstance(finding, TouchedThread)
            and _find_thread(finding.id, view) is None
        ):
            yield FindingFault(
                "id",
                f"{finding.id[:40]!r} is no open thread; copy an id of open_before",
            )
        elif isinstance(finding, OpenedThread):
            yield from check_length("title", finding.title, LONGEST_TITLE)
            yield from check_numbers("title", finding.title, view.response.text)
            for name in finding.characters:
                yield from check_person("characters", name, view)

    def reduce(self, view: StoryView, answer: FoundThreads | None) -> PlotThreads:
        """Compute ids and countdowns; without an answer, take the threads whose keyword or title is mentioned."""
        if answer is None:
            mentioned = tuple(
                Thread(id=one.id, title=one.title) for one in mentioned_threads(view)
            )
            return self.settle(PlotThreads(mentioned=mentioned), view)
        new = [
            Thread(
                id="",
                title=one_line(one.title, LONGEST_TITLE),
                priority=one.priority,
                time_sensitive=one.time_sensitive,
                characters=tuple(
                    dict.fromkeys(
                        view.owner_of(name) for name in one.characters if fold(name)
                    )
                ),
                tags=tags_from(one.tags),
            )
            for one in answer.new[:MOST_NEW]
        ]
        touched, resolved = (
            tuple(_name_threads(found, view))
            for found in (answer.touched, answer.resolved)
        )
        return self.settle(
            PlotThreads(new=tuple(new), mentioned=touched, resolved=resolved), view
        )


agent = serve(
    ThreadPart(),
    Agent(
        "StoryThreadAgent",
        description="Finds which plot threads a response of a story opens, touches or ends.",
    ),
)


def mentioned_threads(view: StoryView) -> Iterator[StoryThread]:
    """Yield the open threads of which the response has a keyword, or the whole title where there is none."""
    for state in view.open_before:
        phrases = state.thread.keywords or (state.thread.title,)
        if any(stands_in(phrase, view.response.text) for phrase in phrases):
            yield state.thread


def _find_thread(short_id: str, view: StoryView) -> StoryThread | None:
    threads = {state.thread.id: state.thread for state in view.open_before}
    thread_id = resolve_id(short_id, threads)
    return None if thread_id is None else threads[thread_id]


def _name_threads(found: Iterable[TouchedThread], view: StoryView) -> Iterator[Thread]:
    """Yield each thread by id and title; its status is settled later."""
    for short_id in dict.fromkeys(one.id for one in found):
        if (thread := _find_thread(short_id, view)) is not None:
            yield Thread(id=thread.id, title=thread.title)
