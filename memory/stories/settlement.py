"""What an agent found, made fit for its document and for the story: ids, scores and countdowns are worked out here.

Agents say what they understood; nothing that can be computed is left to them. Settling what is settled changes nothing,
and neither does settling it again beside what the same response changed before.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from pydantic import ValidationError

from tasklore.contracts.analysis.background import (
    Interaction,
    Knowledge,
    KnownFact,
    MemoryCreation,
    NewMemory,
    PlotThreads,
    Relationships,
    ResponseAnalysis,
    Thread,
)
from tasklore.contracts.analysis.pieces import Piece, Section
from tasklore.contracts.analysis.stories import (
    MOST_NUMBER,
    StoryChange,
    StoryMemory,
    StoryThread,
    pair_of,
    source_of,
)
from tasklore.memory.stories.arithmetic import (
    countdowns,
    plain,
    resolve_id,
    thread_status,
    tier_of,
)
from tasklore.memory.stories.view import StandingStory, ThreadState

__all__ = ["StandingStory", "settle_section"]

#: Characters of the speaking part of an id: some words, on one line with what it names.
_SLUG = 40
#: Words of a summary that make a slug when an agent gave no other.
_SLUG_WORDS = 3
#: Points that one response may change a score by, either way; see `tasklore.contracts.analysis.stories`.
_MOST_POINTS = 1000.0

_MEMORY_ID = re.compile(r"\s*mem(?:-\d+)?(?:-|\s*$)", re.IGNORECASE)
_COUNT = re.compile(r"-[2-9]\Z")
_THREAD_ID = re.compile(r"THREAD-(\d{1,9})")
_WORDS = re.compile(r"[^\W_]+")

_Made = TypeVar("_Made", bound=Piece)


def settle_section(
    section: str, number: int, chapter: int, found: Section, story: StandingStory
) -> tuple[Section, StoryChange | None]:
    """Return *found* as it goes into the document of response *number*, and the change of the story, None for none.

    Pieces that cannot be kept are left out: a memory of no character, an interaction of one, an unknown thread.
    """
    settle = _SETTLERS.get(section)
    if settle is None or not isinstance(found, settle.model):
        return found, None
    result, change = settle.call(
        found, _Place(number, chapter, source_of(chapter, number), story)
    )
    return result, change if change != StoryChange() else None


@dataclass(frozen=True, slots=True)
class _Place:
    """Where something was found: the response, and the story before it."""

    number: int
    chapter: int
    source: str
    story: StandingStory


@dataclass(frozen=True, slots=True)
class _Settler:
    model: type[Section]
    call: Callable[[Any, _Place], tuple[Section, StoryChange]]


def _response(found: ResponseAnalysis, _place: _Place) -> tuple[Section, StoryChange]:
    scene = found.scene
    time = found.time
    return found, StoryChange(
        scene=scene.type if scene else None,
        tension=scene.tension if scene else None,
        timestamp=time.timestamp if time else None,
    )


def _memories(found: MemoryCreation, place: _Place) -> tuple[Section, StoryChange]:
    taken = set(place.story.memory_ids)
    counts: dict[str, int] = {}
    told = set[tuple[str, str]]()
    new = list[NewMemory]()
    kept = list[StoryMemory]()
    for memory in found.memories:
        what = (_folded(memory.character or ""), _folded(memory.summary))
        if what in told or not all(what):
            continue
        memory_id = _unused(f"MEM-{place.number}-{_slug_of(memory)}", taken, counts)
        named = memory.model_copy(
            update={"id": memory_id, "significance": max(1, memory.significance)}
        )
        stored = _stored_memory(named, place)
        if stored is not None:
            told.add(what)
            taken.add(named.id)
            new.append(named)
            kept.append(stored)
    return found.model_copy(update={"memories": tuple(new)}), StoryChange(
        memories=tuple(kept)
    )


def _stored_memory(memory: NewMemory, place: _Place) -> StoryMemory | None:
    try:
        return StoryMemory(
            id=memory.id,
            character=memory.character or "",
            title=_title_of(memory.id),
            summary=memory.summary,
            significance=memory.significance,
            chapter=place.chapter,
            response=place.number,
            type=memory.type,
            tone=memory.tone,
            location=memory.location,
            quote=memory.quote,
            tags=memory.tags,
        )
    except ValidationError:
        # A name of a thousand letters is none.
        return None


def _title_of(memory_id: str) -> str:
    """Return the words of a settled id, without the number that only keeps it unique."""
    told = _COUNT.sub("", _MEMORY_ID.sub("", memory_id, count=1))
    return " ".join(word.capitalize() for word in told.split("-"))


def _slug_of(memory: NewMemory) -> str:
    told = _MEMORY_ID.sub("", memory.id, count=1)
    candidates = (
        told,
        *memory.tags[:1],
        " ".join(memory.summary.split()[:_SLUG_WORDS]),
    )
    return next(filter(None, map(_slug, candidates)), "memory")


def _slug(text: str) -> str:
    return "-".join(_WORDS.findall(text.lower()))[:_SLUG].strip("-")


def _unused(name: str, taken: set[str], counts: dict[str, int]) -> str:
    """Return *name*, with a number where it is taken; *counts* are the last numbers that were given."""
    if name not in taken:
        return name
    number = counts.get(name, 1) + 1
    while f"{name}-{number}" in taken:
        number += 1
    counts[name] = number
    return f"{name}-{number}"


def _relationships(found: Relationships, place: _Place) -> tuple[Section, StoryChange]:
    by_pair: dict[str, list[Interaction]] = {}
    told = set[tuple[str, float, str | None]]()
    for one in found.interactions:
        names = tuple(name.strip() for name in one.characters)
        if len(names) == 2 and all(names) and names[0] != names[1]:
            pair = pair_of(*names)
            what = pair, one.change, one.trigger
            if what not in told:
                told.add(what)
                by_pair.setdefault(pair, []).append(one)
    settled_ones = {
        pair: _interaction(alike, place.story, pair) for pair, alike in by_pair.items()
    }
    points = {pair: one.change for pair, one in settled_ones.items() if one.change}
    return found.model_copy(
        update={"interactions": tuple(settled_ones.values())}
    ), StoryChange(points=points)


def _interaction(
    alike: list[Interaction], story: StandingStory, pair: str
) -> Interaction:
    """Return all that happened between two characters as one interaction, its sums worked out."""
    previous = plain(story.scores.get(pair, 0))
    change = plain(
        max(-_MOST_POINTS, min(_MOST_POINTS, sum(one.change for one in alike)))
    )
    score = plain(previous + change)
    where = tier_of(score, story.relations.tiers)
    triggers = "; ".join(dict.fromkeys(one.trigger for one in alike if one.trigger))
    return _made(
        Interaction,
        alike[0],
        chars=tuple(name.strip() for name in alike[0].characters),
        tier=where.tier,
        score=score,
        prev=previous,
        change=change,
        trigger=triggers or None,
        next_tier=where.next_tier,
        points_needed=where.points_needed,
    )


def _threads(found: PlotThreads, place: _Place) -> tuple[Section, StoryChange]:
    states = {state.thread.id: state for state in place.story.threads}
    known = _known_in(states)
    resolved = {
        thread_id: one
        for one in found.resolved
        if (thread_id := known(one)) is not None and states[thread_id].is_open
    }
    mentioned = {
        thread_id: one
        for one in found.mentioned
        if (thread_id := known(one)) is not None
    }
    opened = {
        _folded(state.thread.title): state.thread.id
        for state in states.values()
        if state.is_open
    }
    fresh: dict[str, Thread] = {}
    for one in found.new:
        title = _folded(one.title)
        if title in opened:
            mentioned.setdefault(opened[title], one)
        elif title:
            fresh.setdefault(title, one)
    new = _numbered(fresh, place)
    taken_up = [thread_id for thread_id in mentioned if thread_id not in resolved]
    section = found.model_copy(
        update={
            "new": tuple(
                _new_thread(fresh[title], thread, place)
                for title, thread in new.items()
            ),
            "mentioned": tuple(
                _taken_up(mentioned[one], states[one].thread, place) for one in taken_up
            ),
            "resolved": tuple(
                _resolved(one, states[thread_id].thread, place)
                for thread_id, one in resolved.items()
            ),
        }
    )
    return section, StoryChange(
        threads=tuple(new.values()), mentioned=tuple(taken_up), resolved=tuple(resolved)
    )


def _known_in(states: Mapping[str, ThreadState]) -> Callable[[Thread], str | None]:
    """Return a function that finds the id of a named thread, by its id or else by its title."""
    # A story may have thousands: each is looked at once, not once for each that is named.
    titles: dict[str, list[str]] = {}
    begun: dict[str, list[str]] = {}
    for thread_id, state in states.items():
        titles.setdefault(_folded(state.thread.title), []).append(thread_id)
        low = thread_id.casefold()
        for end in (len(low), *(at for at, sign in enumerate(low) if sign == "-")):
            begun.setdefault(low[:end], []).append(thread_id)

    def known(said: Thread) -> str | None:
        found = resolve_id(said.id, begun.get(said.id.strip().casefold(), ()))
        if found is not None or not said.title:
            return found
        alike = titles.get(_folded(said.title), [])
        return alike[0] if len(alike) == 1 else None

    return known


def _numbered(fresh: Mapping[str, Thread], place: _Place) -> dict[str, StoryThread]:
    """Return the threads that the response opens, by folded title; one that it opened before keeps its id."""
    before = place.story.own.get("plot_threads", StoryChange()).threads
    known = {
        _folded(thread.title): thread.id
        for thread in before
        if thread.id not in place.story.opened_ids
    }
    used = (*place.story.thread_ids, *known.values())
    last = max(
        (int(number[1]) for one in used if (number := _THREAD_ID.fullmatch(one))),
        default=0,
    )
    new: dict[str, StoryThread] = {}
    for title, said in fresh.items():
        thread_id = known.get(title)
        if thread_id is None:
            last += 1
            thread_id = f"THREAD-{last:03}"
        new[title] = _stored_thread(said, thread_id, place)
    return new


def _stored_thread(said: Thread, thread_id: str, place: _Place) -> StoryThread:
    number = place.number
    left = said.consequence_countdown
    until = said.time_until
    is_urgent = left is not None or until is not None
    return StoryThread(
        id=thread_id,
        title=said.title.strip(),
        priority=cast(
            "Any",
            said.priority if said.priority in {"low", "medium", "high"} else "medium",
        ),
        time_sensitive=is_urgent
        if said.time_sensitive is None
        else said.time_sensitive,
        characters=said.characters,
        tags=said.tags,
        opened=number,
        consequence_at=None
        if left is None
        else number + max(0, min(MOST_NUMBER, left)),
        due_at=None if until is None else number + max(0, min(MOST_NUMBER, until)),
    )


def _new_thread(said: Thread, thread: StoryThread, place: _Place) -> Thread:
    left, until = countdowns(thread, place.number)
    return _made(
        Thread,
        said,
        id=thread.id,
        title=thread.title,
        status=thread_status(
            thread, place.number, critical=place.story.settings.critical_countdown
        ),
        priority=thread.priority,
        time_sensitive=thread.time_sensitive,
        chars=thread.characters,
        tags=thread.tags,
        conseq_countdown=left,
        time_until=until,
    )


def _taken_up(said: Thread, thread: StoryThread, place: _Place) -> Thread:
    left, until = countdowns(thread, place.number)
    return _made(
        Thread,
        said,
        id=thread.id,
        title=thread.title,
        last_mention=place.number,
        conseq_countdown=left,
        time_until=until,
        status=thread_status(
            thread, place.number, critical=place.story.settings.critical_countdown
        ),
    )


def _resolved(said: Thread, thread: StoryThread, place: _Place) -> Thread:
    return _made(
        Thread,
        said,
        id=thread.id,
        title=thread.title,
        last_mention=place.number,
        status="resolved",
    )


def _knowledge(found: Knowledge, place: _Place) -> tuple[Section, StoryChange]:
    told = {
        (_folded(fact.subject), _folded(fact.fact)) for fact in place.story.knowledge
    }
    new = list[KnownFact]()
    for fact in found.facts:
        what = (_folded(fact.subject), _folded(fact.fact))
        if all(what) and what not in told:
            told.add(what)
            new.append(
                _made(
                    KnownFact,
                    fact,
                    cat=fact.category,
                    subj=fact.subject,
                    fact=fact.fact,
                    conf=fact.confidence,
                    src=place.source,
                    known=fact.known_by or None,
                )
            )
    return found.model_copy(update={"facts": tuple(new)}), StoryChange(facts=tuple(new))


def _made(model: type[_Made], said: Piece, **values: object) -> _Made:
    """Return a piece of *values*, None left out, in their order; what *said* has beside its known fields stays."""
    return model.model_validate(
        {name: value for name, value in values.items() if value is not None}
        | (said.model_extra or {})
    )


def _folded(text: str) -> str:
    """Return *text* without what makes no difference: case, blanks, the full stop."""
    return " ".join(text.casefold().split()).rstrip(".")


_SETTLERS = {
    "resp_analyzer": _Settler(ResponseAnalysis, _response),
    "memory_create": _Settler(MemoryCreation, _memories),
    "relationship": _Settler(Relationships, _relationships),
    "plot_threads": _Settler(PlotThreads, _threads),
    "knowledge": _Settler(Knowledge, _knowledge),
}
