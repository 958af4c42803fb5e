"""How much a plot thread presses after a response, and why, in words: critical, taken up, new, or near the scene."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from contracts.stories import Entity, StoryResponse, StoryThread
from memory.stories.arithmetic import countdowns, thread_status
from memory.stories.view import ThreadState
from workers.agents.story.reading.casting import Cast, Handles
from workers.agents.story.reading.phrases import one_line
from workers.agents.story.reading.relevance import content_of, shared_by
from workers.agents.story.rules.thread_rules import is_mentioned

#: Characters of a reason: a line of the next prompt.
LONGEST_WHY = 100
#: Words that a reason names, and words that a thread must share with a response to be near it.
_NAMED, _SHARED = 3, 2
#: How near somebody brings a thread who is there: as two words do.
_PERSON = 2
_PRIORITIES = ("high", "medium", "low")
#: Later than anything that is due.
_NEVER = 1_000_000


@dataclass(frozen=True, slots=True)
class Pressing:
    """An open thread as it stands after a response; `countdown` and `time_until` count responses."""

    thread: StoryThread
    status: str
    countdown: int | None
    time_until: int | None
    is_mentioned: bool
    is_new: bool
    nearness: int
    why: str = ""

    @property
    def is_critical(self) -> bool:
        """Whether it is loaded whatever anybody says."""
        return self.status == "critical"

    @property
    def is_relevant(self) -> bool:
        """Whether it has anything to do with the response."""
        return self.is_critical or self.is_mentioned or self.is_new or self.nearness > 0

    @property
    def line(self) -> str:
        """What a model is shown of it."""
        title = self.thread.title or self.thread.id
        due = "" if self.time_until is None else f", due in {self.time_until}"
        left = "" if self.countdown is None else f", {self.countdown} left"
        return f"{title} ({self.thread.priority}, {'new' if self.is_new else self.status}{left}{due})"

    def because(self, why: str) -> "Pressing":
        """Return it with another reason."""
        return replace(self, why=why)


def pressing(
    response: StoryResponse, states: Sequence[ThreadState], entities: Sequence[Entity], scene: Cast, critical: int
) -> list[Pressing]:
    """Return the open threads, the most pressing first: critical, taken up, new, then near the scene."""
    people = [entity.name for entity in entities if entity.kind == "character"]
    told, handles = content_of(response.text, without=people), Handles(entities)
    shared = shared_by(told, [content_of(_whole(state.thread), without=people) for state in states])
    found: list[Pressing] = []
    for state, stems in zip(states, shared, strict=True):
        thread, is_new = state.thread, state.thread.opened == response.number
        owners = {handles.owner(name) or name for name in thread.characters}
        there = [name for name in scene.in_scene if name in owners]
        common = [told[stem] for stem in stems] if len(stems) >= _SHARED else []
        left, until = countdowns(thread, response.number)
        one = Pressing(
            thread,
            status=thread_status(thread, response.number, critical=critical),
            countdown=left,
            time_until=until,
            is_mentioned=not is_new and _is_taken_up(state, response, people),
            is_new=is_new,
            nearness=_PERSON * len(there) + len(common),
        )
        found.append(replace(one, why=_why(one, there, common)))
    return sorted(found, key=_rank)


def _is_taken_up(state: ThreadState, response: StoryResponse, people: Sequence[str]) -> bool:
    return state.last_mention == response.number or is_mentioned(state.thread, response.text, people)


def _whole(thread: StoryThread) -> str:
    return " ".join((thread.title, thread.text, *thread.tags, *thread.keywords))


def _rank(one: Pressing) -> tuple[int, int, int, int, str]:
    """Return where it stands: in its group by what comes soonest, and among those near the scene by how near."""
    group = (one.is_critical, one.is_mentioned, one.is_new, one.nearness > 0, True).index(True)
    soonest = min(at if at is not None else _NEVER for at in (one.countdown, one.time_until))
    by_time = soonest if one.is_critical or one.is_mentioned or one.is_new else 0
    return group, by_time, -one.nearness, _PRIORITIES.index(one.thread.priority), one.thread.id


def _why(one: Pressing, there: Sequence[str], common: Sequence[str]) -> str:
    reasons = [
        f"critical, {one.countdown} left" if one.is_critical else "",
        "just opened" if one.is_new else "",
        "taken up now" if one.is_mentioned else "",
        f"about {', '.join(there)}" if there else "",
        f"shares {', '.join(common[:_NAMED])}" if common else "",
        "" if one.time_until is None else f"due in {one.time_until} response{'' if one.time_until == 1 else 's'}",
    ]
    why = one_line("; ".join(filter(None, reasons)) or "Nothing shared with the scene", LONGEST_WHY)
    return why[:1].upper() + why[1:]
