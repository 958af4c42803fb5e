"""Choose the plot threads that the next response should know of: critical ones always, then what a scene touches."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from contracts.analysis_immediate import LoadedThread, ThreadExtraction
from contracts.stories import Entity, StoryResponse, StoryThread
from memory.episodes.ranking import rank
from memory.stories.arithmetic import countdowns, reduction, thread_status
from memory.stories.view import ThreadState
from workers import Agent, Context
from workers.agents.story.asking import RULES, Block, asked, tokens_of
from workers.agents.story.grounding import MOST_CHECKED, line_of
from workers.agents.story.loading import Loading
from workers.agents.story.names import Names, counts_of
from workers.agents.story.plot_threads import is_mentioned
from workers.agents.story.turn import Turn
from workers.answers import Answer

SECTION = "thread_extract"
#: Threads that are loaded, unless more are critical, and characters of a reason.
MOST_LOADED, LONGEST_WHY = 5, 100
_PRIORITIES = ("high", "medium", "low")
#: Later than anything that is due.
_NEVER = 1_000_000

agent = Agent("StoryThreadRecallAgent", description="Chooses the plot threads that the next response of a story needs.")


class ProposedLoad(Answer):
    """A thread, by its number, that a model would load."""

    number: int
    why: str


class ProposedLoads(Answer):
    """What a model would load."""

    reasoning: str
    threads: tuple[ProposedLoad, ...]


@dataclass(frozen=True, slots=True)
class Pressing:
    """An open thread as it stands after a response; `countdown` and `time_until` count responses."""

    thread: StoryThread
    status: str
    countdown: int | None
    time_until: int | None
    is_mentioned: bool
    is_new: bool
    there: tuple[str, ...]
    nearness: float
    why: str = ""

    @property
    def is_critical(self) -> bool:
        """Whether it is loaded whatever anybody says."""
        return self.status == "critical"

    @property
    def is_near(self) -> bool:
        """Whether it is critical, taken up or new, or of somebody whom the response names."""
        return self.is_critical or self.is_mentioned or self.is_new or bool(self.there)

    @property
    def line(self) -> str:
        """What a model is shown of it."""
        title = self.thread.title or self.thread.id
        due = "" if self.time_until is None else f", due in {self.time_until}"
        left = "" if self.countdown is None else f", {self.countdown} left"
        return f"{title} ({self.thread.priority}, {'new' if self.is_new else self.status}{left}{due})"

    @property
    def reason(self) -> str:
        """Why it is loaded: what a model says, else what was counted."""
        counted = (
            f"critical, {self.countdown} left" if self.is_critical else "",
            "just opened" if self.is_new else "",
            "taken up now" if self.is_mentioned else "",
            f"about {', '.join(self.there)}" if self.there else "",
        )
        return self.why or "; ".join(filter(None, counted))


@agent.task(remember=False, uses=("llm", "clock"), in_words=False)
async def analyse(_turn: Turn, context: Context) -> ThreadExtraction:
    """Choose at most five threads, more only when more are critical."""
    story = context.story
    response, entities = await story.response(), await story.entities()
    settings, states = await story.settings(), await story.threads()
    open_ones = await asyncio.to_thread(
        _pressing, response, [state for state in states if state.is_open], entities, settings.critical_countdown
    )
    by, chosen = RULES, [one for one in open_ones if one.is_near]
    if open_ones:
        blocks = [Block("open_threads", [one.line for one in open_ones], numbered=True), Block.response(response.text)]
        reply = await asked(context, SECTION, ProposedLoads, blocks=blocks, most=MOST_LOADED, longest=LONGEST_WHY)
        if reply is not None:
            shown = open_ones[: reply.shown["open_threads"]]
            picks = _grounded(reply.value.threads, shown, response.text)
            by, chosen = reply.model, _with_critical(picks, open_ones)
    return await asyncio.to_thread(_section, by, chosen, open_ones)


def _pressing(
    response: StoryResponse, states: Sequence[ThreadState], entities: Sequence[Entity], critical: int
) -> list[Pressing]:
    """Return the open threads, the most pressing first: critical, taken up, new, then near the response."""
    counts, names, found = counts_of(response.text, entities), Names(entities), list[Pressing]()
    threads = [state.thread for state in states]
    scores = rank(response.text, [" ".join((one.title, one.text, *one.tags, *one.keywords)) for one in threads])
    for state, score in zip(states, scores, strict=True):
        thread, is_new = state.thread, state.thread.opened == response.number
        left, until = countdowns(thread, response.number)
        owners = {names.owner(name) or name for name in thread.characters}
        is_taken_up = state.last_mention == response.number or is_mentioned(thread, response.text)
        found.append(
            Pressing(
                thread,
                status=thread_status(thread, response.number, critical=critical),
                countdown=left,
                time_until=until,
                is_mentioned=not is_new and is_taken_up,
                is_new=is_new,
                there=tuple(name for name in counts if name in owners),
                nearness=score,
            )
        )
    return sorted(found, key=_order)


def _order(one: Pressing) -> tuple[int, int, float, int, str]:
    """Return where it stands: in its group by what comes soonest, and among the others by how near."""
    group = (one.is_critical, one.is_mentioned, one.is_new, bool(one.there), True).index(True)
    soonest = min(at if at is not None else _NEVER for at in (one.countdown, one.time_until))
    return group, soonest, -one.nearness, _PRIORITIES.index(one.thread.priority), one.thread.id


def _grounded(proposed: Sequence[ProposedLoad], shown: Sequence[Pressing], text: str) -> list[Pressing]:
    """Return the threads that a model chose out of those it saw, each once, with its reasons where they hold."""
    chosen: dict[int, Pressing] = {}
    for one in proposed[:MOST_CHECKED]:
        if 1 <= one.number <= len(shown):
            thread = shown[one.number - 1]
            why = line_of(one.why, (text, thread.line, thread.thread.text), LONGEST_WHY)
            chosen.setdefault(one.number, replace(thread, why=why or ""))
    return list(chosen.values())


def _with_critical(chosen: Sequence[Pressing], open_ones: Sequence[Pressing]) -> list[Pressing]:
    """Return what was chosen behind all that is critical; the rest stays in the order of the choice."""
    known = {one.thread.id: one for one in chosen}
    critical = [known.get(one.thread.id, one) for one in open_ones if one.is_critical]
    return [*critical, *(one for one in chosen if not one.is_critical)]


def _section(by: str, chosen: Sequence[Pressing], open_ones: Sequence[Pressing]) -> ThreadExtraction:
    """Return the section: what is loaded of what was *chosen*, and what is saved over the texts of all threads."""
    before = sum(tokens_of(f"{one.thread.title}: {one.thread.text}") for one in open_ones)
    loading = Loading(before)
    most = max(MOST_LOADED, sum(one.is_critical for one in chosen))
    loaded = [
        (one, cost)
        for one in chosen[:most]
        if loading.takes(cost := tokens_of(one.thread.title), always=one.is_critical)
    ]
    # A reason is worth its tokens where there is room for it.
    reasons = {one.thread.id: one.reason for one, _ in loaded if loading.takes(tokens_of(one.reason))}
    after = sum(cost for _, cost in loaded) + sum(map(tokens_of, reasons.values()))
    return ThreadExtraction(
        by=by,
        loaded=tuple(_loaded(one, reasons.get(one.thread.id, "")) for one, _ in loaded),
        monitored=len(open_ones) - len(loaded),
        reduction=reduction(before, after),
    )


def _loaded(one: Pressing, why: str) -> LoadedThread:
    told = {
        "id": one.thread.id,
        "title": one.thread.title,
        "priority": one.thread.priority,
        "status": one.status,
        "countdown": one.countdown,
        "time_until": one.time_until,
        "new": one.is_new or None,
        "why": why,
    }
    return LoadedThread.model_validate({name: value for name, value in told.items() if value is not None})
