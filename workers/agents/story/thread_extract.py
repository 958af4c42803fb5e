"""Choose the plot threads for the next response: critical ones always, then those that the scene touches."""

from collections.abc import Iterator, Sequence

from tasklore import Agent
from tasklore.contracts.analysis.immediate import LoadedThread, ThreadExtraction
from tasklore.memory.stories.arithmetic import countdowns, reduction, resolve_id
from tasklore.memory.stories.view import ThreadState
from tasklore.workers.agents.story.blocks import status_of
from tasklore.workers.agents.story.checks import FindingFault, check_length
from tasklore.workers.agents.story.parts import Finding, Part, Text, without_none
from tasklore.workers.agents.story.plot_threads import mentioned_threads
from tasklore.workers.agents.story.prose import one_line
from tasklore.workers.agents.story.question import serve
from tasklore.workers.agents.story.tokens import count_tokens, shrink
from tasklore.workers.agents.story.view import StoryView
from tasklore.workers.answers import AnswerSchema

#: Threads that are loaded, unless more are critical, and characters of a reason: a line of the next prompt.
MOST_LOADED = 5
LONGEST_WHY = 100
#: A countdown of a thread that is never due.
_NEVER = 1_000_000_000


class ChosenThread(Finding):
    """A thread, by its id, that the next response should know of, and why; the quotation stands in the response."""

    id: Text = ""
    why: Text = ""


class ChosenThreads(AnswerSchema):
    """All threads that a model chooses."""

    reasoning: Text
    threads: tuple[ChosenThread, ...] = ()


class LoadPart(Part[ChosenThreads, ThreadExtraction]):
    """Choose at most five threads, more only when more are critical."""

    section = "thread_extract"
    answer = ChosenThreads
    result = ThreadExtraction
    needs = ("threads", "threads_before")
    blocks = ("open_threads", "response")
    limits = {"most": MOST_LOADED, "longest": LONGEST_WHY}  # noqa: RUF012 - a class constant

    def is_askable(self, view: StoryView) -> bool:
        """Return whether a thread is open."""
        return bool(view.open_threads)

    def faults(self, finding: Finding, view: StoryView) -> Iterator[FindingFault]:
        """Yield faults of ids of no open thread."""
        if isinstance(finding, ChosenThread):
            yield from check_length("why", finding.why, LONGEST_WHY)
            if (
                resolve_id(finding.id, (state.thread.id for state in view.open_threads))
                is None
            ):
                yield FindingFault(
                    "id",
                    f"{finding.id[:40]!r} is no open thread; copy an id of open_threads",
                )

    def reduce(self, view: StoryView, answer: ChosenThreads | None) -> ThreadExtraction:
        """Load critical threads, then new ones, then chosen ones, or else those mentioned or due soonest."""
        states = {state.thread.id: state for state in view.open_threads}
        reasons = _choose(list(states.values()), view, answer)
        loaded = [
            _load(states[thread_id], why, view) for thread_id, why in reasons.items()
        ]
        loaded = loaded[
            : max(MOST_LOADED, sum(one.status == "critical" for one in loaded))
        ]
        before = sum(
            count_tokens(f"{one.thread.title}: {one.thread.text}")
            for one in states.values()
        )
        # Much smaller than before: the last go, of critical ones only their reasons.
        fitting = shrink([_text(one) for one in loaded], before)
        kept = loaded[:fitting]
        kept += [
            one.model_copy(update={"why": ""})
            for one in loaded[fitting:]
            if one.status == "critical"
        ]
        after = sum(count_tokens(_text(one)) for one in kept)
        return ThreadExtraction(
            loaded=tuple(kept),
            monitored=len(states) - len(kept),
            reduction=reduction(before, after),
        )


agent = serve(
    LoadPart(),
    Agent(
        "StoryThreadRecallAgent",
        description="Chooses the plot threads that the next response of a story needs.",
    ),
)


def _choose(
    states: Sequence[ThreadState], view: StoryView, answer: ChosenThreads | None
) -> dict[str, str]:
    """Return the reason for each thread by its id, in the order in which they are loaded."""
    number = view.response.number
    ids = [state.thread.id for state in states]
    pressing = sorted(
        states, key=lambda state: (_soonest(state, number), state.thread.id)
    )
    reasons: dict[str, str] = {}
    for choice in answer.threads if answer is not None else ():
        if (thread_id := resolve_id(choice.id, ids)) is not None:
            reasons.setdefault(thread_id, one_line(choice.why, LONGEST_WHY))
    first = [state for state in pressing if status_of(state, view) == "critical"]
    first += [
        state
        for state in pressing
        if state.thread.opened == number and state not in first
    ]
    ordered = {
        state.thread.id: reasons.get(state.thread.id) or _why(state, view)
        for state in first
    }
    if answer is None:
        mentioned = {thread.id for thread in mentioned_threads(view)}
        touched = {
            state.thread.id for state in states if state.last_mention == number
        } | mentioned
        others = sorted(pressing, key=lambda state: state.thread.id not in touched)
        is_due = {state.thread.id: _soonest(state, number) < _NEVER for state in others}
        reasons = {
            one.thread.id: _why(one, view)
            for one in others
            if one.thread.id in touched or is_due[one.thread.id]
        }
    return ordered | {
        thread_id: why for thread_id, why in reasons.items() if thread_id not in ordered
    }


def _soonest(state: ThreadState, number: int) -> int:
    return min(
        (at for at in countdowns(state.thread, number) if at is not None),
        default=_NEVER,
    )


def _why(state: ThreadState, view: StoryView) -> str:
    """Return a reason that is counted."""
    number = view.response.number
    left, until = countdowns(state.thread, number)
    reasons = [
        f"critical, {left} left" if status_of(state, view) == "critical" else "",
        "just opened"
        if state.thread.opened == number
        else "taken up now"
        if state.last_mention == number
        else "",
        "" if until is None else f"due in {until}",
    ]
    why = "; ".join(filter(None, reasons)) or "named in the response"
    return why[:1].upper() + why[1:]


def _load(state: ThreadState, why: str, view: StoryView) -> LoadedThread:
    thread = state.thread
    number = view.response.number
    left, until = countdowns(thread, number)
    fields = without_none(
        id=thread.id,
        title=thread.title,
        priority=thread.priority,
        status=status_of(state, view),
        countdown=left,
        time_until=until,
        new=thread.opened == number or None,
        why=why,
    )
    return LoadedThread.model_validate(fields)


def _text(one: LoadedThread) -> str:
    return f"{one.title}: {one.why}"
