"""How rules read what a response does with plot threads; the words of vows are data, in `thread_cues.toml`."""

import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from contracts.analysis_background import PlotThreads, Thread
from contracts.stories import Entity, StoryThread
from workers.agents.story.asking import RULES
from workers.agents.story.reading.casting import Cast, Handles
from workers.agents.story.reading.deeds import Deed, deeds_in
from workers.agents.story.reading.phrases import affirmed, one_line, says_any
from workers.agents.story.reading.prose import sentences, stands_in
from workers.agents.story.reading.relevance import content_of, stems_of

#: Threads that one response may open, and characters of a title.
MOST_NEW, LONGEST_TITLE = 2, 80

_CUES = Path(__file__).with_name("thread_cues.toml")
#: Words of a title that must stand in a text, where a thread lists no keywords: one alone says too little.
_TITLE_WORDS = 2
#: Far enough that nobody waits for it.
_NEVER = 1_000_000
_EDGES = " \t\n\"'\u201c\u201d\u2018\u2019,;:.!\u2014-"


@dataclass(frozen=True)
class Reading:
    """A response, and the threads that were open before it."""

    text: str
    entities: Sequence[Entity]
    scene: Cast
    open_threads: Sequence[StoryThread]

    @cached_property
    def people(self) -> list[str]:
        """The names of all characters: they tell who, and not what."""
        return [entity.name for entity in self.entities if entity.kind == "character"]

    @cached_property
    def likely(self) -> list[StoryThread]:
        """The open threads, those that the response seems to take up first, then the most pressing."""
        return sorted(
            self.open_threads, key=lambda one: (not is_mentioned(one, self.text, self.people), _pressing(one))
        )


def by_rules(reading: Reading) -> PlotThreads:
    """Return the threads whose words the response says, and a new one where somebody gives their word and a time."""
    taken_up = [one for one in reading.open_threads if is_mentioned(one, reading.text, reading.people)]
    ended = [one for one in reading.open_threads if is_resolved(one, reading.text)]
    new: dict[str, Thread] = {}
    for deed in deeds_in(reading.text, reading.entities, reading.scene):
        if deed.who not in new and _is_new(deed, reading):
            new[deed.who] = _vow(deed, reading)
    return PlotThreads(
        by=RULES,
        new=tuple(new.values())[:MOST_NEW],
        mentioned=tuple(map(mere_name, taken_up)),
        resolved=tuple(map(mere_name, ended)),
    )


def is_mentioned(thread: StoryThread, text: str, people: Iterable[str]) -> bool:
    """Tell whether *text* takes up *thread*: by a keyword, or else by its title; *people* are all characters."""
    if thread.keywords:
        return says_any(thread.keywords, text)
    if stands_in(thread.title, text):
        return True
    title = content_of(thread.title, without=people).keys()
    return bool(title) and len(title & stems_of(text)) >= min(len(title), _TITLE_WORDS)


def is_resolved(thread: StoryThread, text: str) -> bool:
    """Tell whether *text* says, as a fact, what *thread* is resolved by."""
    return bool(thread.resolved_by) and any(affirmed(thread.resolved_by, one.text) for one in sentences(text))


def mere_name(thread: StoryThread) -> Thread:
    """Return what names *thread* in a section; how it stands is settled."""
    return Thread(id=thread.id, title=thread.title)


def _is_new(deed: Deed, reading: Reading) -> bool:
    """Tell whether somebody gives their word, says until when, and no open thread is about that already."""
    if deed.shows(_cues("vows")) is None or not says_any(_cues("deadlines"), deed.text):
        return False
    return not any(is_mentioned(one, deed.sentence, reading.people) for one in reading.open_threads)


def _vow(deed: Deed, reading: Reading) -> Thread:
    vow = deed.shows(_cues("vows"))
    rest = deed.text[vow.end() if vow is not None else 0 :].strip(_EDGES)
    # "The ledger by Friday, I swear" says it before.
    what = re.sub(r"^(?:to|that)\s+", "", rest or deed.text.strip(_EDGES), flags=re.IGNORECASE)
    others = {naming.name for naming in Handles(reading.entities).find(deed.sentence)}
    if deed.is_said and len(reading.scene.in_scene) == 2:
        others |= set(reading.scene.in_scene)
    return Thread(
        id="",
        title=one_line(f"{deed.who}'s promise: {what}", LONGEST_TITLE),
        priority="medium",
        time_sensitive=True,
        characters=(deed.who, *(name for name in reading.scene.in_scene if name in others and name != deed.who)),
        tags=("promise",),
    )


def _pressing(thread: StoryThread) -> int:
    return min(at if at is not None else _NEVER for at in (thread.consequence_at, thread.due_at))


@cache
def _cues(name: str) -> tuple[str, ...]:
    """Return the phrases under *name* in `thread_cues.toml`."""
    return tuple(str(phrase) for phrase in tomllib.loads(_CUES.read_text("utf-8"))[name])
