"""Choose the plot threads that the next response should know of: critical ones always, then what a scene touches."""

from collections.abc import Iterator, Sequence

from contracts.analysis.immediate import LoadedThread, ThreadExtraction
from memory.stories.arithmetic import countdowns, reduction, resolve_id, thread_status
from memory.stories.view import ThreadState
from workers import Agent, Context
from workers.agents.story.parts import Fault, Finding, Part, Text, enroll, length_faults
from workers.agents.story.plot_threads import spelled_out
from workers.agents.story.prose import one_line
from workers.agents.story.seen import Seen, Turn
from workers.agents.story.sharing import analyse as analyse_part
from workers.agents.story.sizes import count_tokens, shrink
from workers.answers import Answer

#: Threads that are loaded, unless more are critical, and characters of a reason: a line of the next prompt.
MOST_LOADED, LONGEST_WHY = 5, 100
#: Later than anything that is due.
_NEVER = 1_000_000_000

agent = Agent("StoryThreadRecallAgent", description="Chooses the plot threads that the next response of a story needs.")


class ChosenThread(Finding):
    """A thread, by its id, that the next response should know of, and why; the quotation stands in the response."""

    id: Text = ""
    why: Text = ""


class ChosenThreads(Answer):
    """What a model would load."""

    reasoning: Text
    threads: tuple[ChosenThread, ...] = ()


class LoadPart(Part[ChosenThreads, ThreadExtraction]):
    """Threads for the next prompt."""

    section = "thread_extract"
    answer = ChosenThreads
    needs = ("threads", "threads_before")
    blocks = ("open_threads", "response")
    limits = {"most": MOST_LOADED, "longest": LONGEST_WHY}  # noqa: RUF012 - a class constant

    def is_askable(self, seen: Seen) -> bool:
        """Return whether a thread is open."""
        return bool(seen.open_threads)

    def faults(self, finding: Finding, seen: Seen) -> Iterator[Fault]:
        """Yield ids of no open thread."""
        if isinstance(finding, ChosenThread):
            yield from length_faults("why", finding.why, LONGEST_WHY)
            if resolve_id(finding.id, (state.thread.id for state in seen.open_threads)) is None:
                yield Fault("id", f"{finding.id[:40]!r} is no open thread; copy an id of open_threads")

    def reduce(self, seen: Seen, answer: ChosenThreads | None) -> ThreadExtraction:
        """Load critical threads, then new ones, then what was chosen, or else what is taken up or comes soonest."""
        states = {state.thread.id: state for state in seen.open_threads}
        loaded = [
            _load(states[thread_id], why, seen) for thread_id, why in _choose(list(states.values()), seen, answer)
        ]
        most = max(MOST_LOADED, sum(one.status == "critical" for one in loaded))
        before = sum(count_tokens(f"{one.thread.title}: {one.thread.text}") for one in states.values())
        kept = _shorten(loaded[:most], before)
        after = sum(count_tokens(_text(one)) for one in kept)
        return ThreadExtraction(
            loaded=tuple(kept), monitored=len(states) - len(kept), reduction=reduction(before, after)
        )


PART = enroll(LoadPart())


@agent.task(remember=False, uses=("llm", "clock"), in_words=False)
async def analyse(_turn: Turn, context: Context) -> ThreadExtraction:
    """Choose at most five threads, more only when more are critical."""
    return await analyse_part(PART, context)


def _choose(states: Sequence[ThreadState], seen: Seen, answer: ChosenThreads | None) -> Iterator[tuple[str, str]]:
    """Yield ids with the reasons for them, each once, in the order in which they are loaded."""
    number, ids = seen.response.number, [state.thread.id for state in states]
    pressing = sorted(states, key=lambda state: (_soonest(state, number), state.thread.id))
    said: dict[str, str] = {}
    for choice in answer.threads if answer is not None else ():
        thread_id = resolve_id(choice.id, ids)
        if thread_id is not None:
            said.setdefault(thread_id, one_line(choice.why, LONGEST_WHY))
    first = [state for state in pressing if _status(state, seen) == "critical"]
    first += [state for state in pressing if state.thread.opened == number and state not in first]
    why = {state.thread.id: said.get(state.thread.id) or _why(state, seen) for state in first}
    if answer is None:
        spelled = {thread.id for thread in spelled_out(seen)}
        others = sorted(pressing, key=lambda state: not _is_taken_up(state, spelled, number))
        said = {
            state.thread.id: _why(state, seen)
            for state in others
            if _is_taken_up(state, spelled, number) or _soonest(state, number) < _NEVER
        }
    yield from {**why, **{thread_id: told for thread_id, told in said.items() if thread_id not in why}}.items()


def _is_taken_up(state: ThreadState, spelled: set[str], number: int) -> bool:
    return state.last_mention == number or state.thread.id in spelled


def _soonest(state: ThreadState, number: int) -> int:
    return min((at for at in countdowns(state.thread, number) if at is not None), default=_NEVER)


def _status(state: ThreadState, seen: Seen) -> str:
    return thread_status(state.thread, seen.response.number, critical=seen.settings.critical_countdown)


def _why(state: ThreadState, seen: Seen) -> str:
    """Return a reason that is counted."""
    number = seen.response.number
    left, until = countdowns(state.thread, number)
    reasons = [
        f"critical, {left} left" if _status(state, seen) == "critical" else "",
        "just opened" if state.thread.opened == number else "taken up now" if state.last_mention == number else "",
        "" if until is None else f"due in {until}",
    ]
    why = "; ".join(filter(None, reasons)) or "named in the response"
    return why[:1].upper() + why[1:]


def _shorten(loaded: Sequence[LoadedThread], before: int) -> list[LoadedThread]:
    """Return *loaded* much smaller than *before* tokens: the last go, of critical ones only their reasons."""
    fitting = shrink([_text(one) for one in loaded], before)
    return [
        one if place < fitting else one.model_copy(update={"why": ""})
        for place, one in enumerate(loaded)
        if place < fitting or one.status == "critical"
    ]


def _load(state: ThreadState, why: str, seen: Seen) -> LoadedThread:
    thread, number = state.thread, seen.response.number
    left, until = countdowns(thread, number)
    told = {
        "id": thread.id,
        "title": thread.title,
        "priority": thread.priority,
        "status": _status(state, seen),
        "countdown": left,
        "time_until": until,
        "new": thread.opened == number or None,
        "why": why,
    }
    return LoadedThread.model_validate({name: value for name, value in told.items() if value is not None})


def _text(one: LoadedThread) -> str:
    return f"{one.title}: {one.why}"
