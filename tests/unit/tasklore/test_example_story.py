"""The example story that is shipped: as large as it says, and at one with itself."""

import re
from collections.abc import Iterable
from datetime import date
from itertools import pairwise

import pytest

from contracts.analysis.stories import StoryBase, StoryResponse
from memory.rendering.tokens import counter
from tasklore.story.example import FOLDER
from tasklore.story.files import look_at_story, read_response, read_story, responses_in

_TABLES = ("memories.toml", "threads.toml", "knowledge.toml", "relationships.toml")
#: Names of people and places in stories that are not ours.
_STRANGERS = ("Marcus", "Lily", "Thompson", "Mitchell", "Rodriguez", "Coffee Corner", "Morrison")

_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_UNITS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")
_TEENS = ("tenth", "eleventh", "twelfth", "thirteenth", "fourteenth", "fifteenth")
_TEENS += ("sixteenth", "seventeenth", "eighteenth", "nineteenth")
_DAYS = (*_UNITS, *_TEENS, "twentieth", *(f"twenty-{unit}" for unit in _UNITS), "thirtieth", "thirty-first")
_DATED = re.compile(rf"({'|'.join(_WEEKDAYS)}),\s+the\s+([a-z-]+)(?:\s+of\s+(January|February))?")
_CLOCK = re.compile(rf"({'|'.join(_WEEKDAYS)}), (\d{{1,2}}):(\d\d) (AM|PM)")
#: A year in which the third of January is a Monday, as it is in the story.
_YEAR = 1994
_DAY, _WEEK = 24 * 60, 7 * 24 * 60


@pytest.fixture(scope="module")
def base() -> StoryBase:
    """Where it begins."""
    return read_story(FOLDER)


@pytest.fixture(scope="module")
def responses() -> list[StoryResponse]:
    """All of its responses, in order."""
    return [read_response(path) for path in responses_in(FOLDER)]


def test_nothing_in_it_is_odd() -> None:
    """Whoever takes a copy of it is not greeted with warnings."""
    assert look_at_story(FOLDER, with_responses=True).warnings == ()


def test_it_is_as_large_as_a_story_whose_context_is_worth_condensing(base: StoryBase) -> None:
    """The files that the context stands for are more than 20,000 tokens."""
    count = counter()
    tables = sum(count((FOLDER / name).read_text("utf-8")) for name in _TABLES)
    entities = sum(entity.tokens for entity in base.entities)
    assert len(base.entities) >= 20
    assert entities >= 14_000
    assert entities + tables >= 20_000


def test_thirty_responses_make_five_chapters(responses: list[StoryResponse]) -> None:
    """Each chapter has six responses, and their numbers go on."""
    assert [(one.chapter, one.number) for one in responses] == [(1 + n // 6, n + 1) for n in range(30)]


def test_every_response_is_a_scene_of_some_length(responses: list[StoryResponse]) -> None:
    """None is a sketch, none a chapter."""
    lengths = {one.source: len(one.text.split()) for one in responses}
    assert {source: length for source, length in lengths.items() if not 220 <= length <= 380} == {}
    assert sum(lengths.values()) >= 9_000


def test_memories_are_short_and_older_than_the_story(base: StoryBase) -> None:
    """A summary fits on a line, a text on a page, and nothing has happened yet."""
    assert len(base.memories) >= 25
    for memory in base.memories:
        assert 80 <= len(memory.text.split()) <= 150, memory.id
        assert 0 < len(memory.summary.split()) <= 20, memory.id
        assert memory.id.startswith("MEM-000-"), memory.id
        assert not memory.response, memory.id


def test_threads_are_told_in_a_paragraph_each(base: StoryBase) -> None:
    """There are enough of them that not all can be loaded, and some press."""
    assert len(base.threads) >= 12
    assert {one.id for one in base.threads if not 60 <= len(one.text.split()) <= 120} == set()
    pressing = [at for one in base.threads for at in (one.consequence_at, one.due_at) if at is not None]
    assert len(pressing) >= 8
    assert all(8 <= at <= 45 for at in pressing)


def test_everybody_who_is_named_has_a_file(base: StoryBase) -> None:
    """Memories, bonds, tastes and threads speak of characters that the entity files introduce."""
    characters = {entity.name for entity in base.entities if entity.kind == "character"}
    named = {memory.character for memory in base.memories} | set(base.relations.tastes)
    named |= {name for bond in base.relations.bonds for name in bond.characters}
    named |= {name for thread in base.threads for name in thread.characters}
    assert named - characters == set()


def test_what_is_known_is_known_of_something(base: StoryBase) -> None:
    """Every fact but those of the past is about somebody or something with a file."""
    known = {name for entity in base.entities for name in (entity.name, *entity.aliases)}
    facts = [fact for fact in base.knowledge if fact.category != "history"]
    assert len(base.knowledge) >= 15
    assert {fact.subject for fact in facts} - known == set()
    assert {fact.source for fact in base.knowledge} == {"Ch0-R0"}


def test_whoever_likes_something_likes_a_trait(base: StoryBase) -> None:
    """Tastes are told in the traits that the story declares, and each trait is somebody's taste."""
    tastes = base.relations.tastes.values()
    assert {trait for one in tastes for trait in (*one.likes, *one.dislikes)} == set(base.settings.traits)


def test_every_trait_shows_somewhere(base: StoryBase, responses: list[StoryResponse]) -> None:
    """A phrase that no response says would teach nobody how traits work."""
    assert len(base.settings.traits) >= 6
    cues = [cue for cues in base.settings.traits.values() for cue in cues]
    assert [cue for cue in cues if not _saying(cue, responses)] == []


def test_a_thread_ends_once(base: StoryBase, responses: list[StoryResponse]) -> None:
    """What resolves a thread is said in one response and in no other; some threads stay open."""
    ends = {end: _saying(end, responses) for thread in base.threads for end in thread.resolved_by}
    assert {end: where for end, where in ends.items() if len(where) != 1} == {}
    assert 0 < sum(bool(thread.resolved_by) for thread in base.threads) < len(base.threads)


def test_every_thread_comes_up(base: StoryBase, responses: list[StoryResponse]) -> None:
    """Each keyword is said somewhere."""
    keywords = [word for thread in base.threads for word in thread.keywords]
    assert [word for word in keywords if not _saying(word, responses)] == []


def test_every_date_falls_on_its_weekday() -> None:
    """The third of January is a Monday, and all other dates agree with it."""
    wrong, dated = [], 0
    for text in _texts():
        for weekday, day, month in _DATED.findall(text):
            dated += 1
            told = date(_YEAR, 2 if month == "February" else 1, _DAYS.index(day) + 1)
            wrong += [(weekday, day, month)] if _WEEKDAYS[told.weekday()] != weekday else []
    assert wrong == []
    assert dated >= 15


def test_time_goes_forward(responses: list[StoryResponse]) -> None:
    """From one response to the next there are never more than three days, and the last is on the nineteenth day."""
    clocks = [_CLOCK.search(one.text) for one in responses]
    minutes = [_minutes(*clock.groups()) for clock in clocks if clock is not None]
    steps = [(after - before) % _WEEK for before, after in pairwise(minutes)]
    assert len(minutes) >= 25
    assert max(steps) <= 3 * _DAY
    assert sum(steps) == 18 * _DAY + 4 * 60


def test_nobody_comes_from_another_story() -> None:
    """It is our own, with names of its own."""
    assert [name for name in _STRANGERS for text in _texts() if name in text] == []


def _saying(phrase: str, responses: Iterable[StoryResponse]) -> list[str]:
    """Return which responses say *phrase*."""
    return [one.source for one in responses if phrase.casefold() in one.text.casefold()]


def _texts() -> list[str]:
    """Return the texts of all files."""
    return [path.read_text("utf-8") for path in sorted(FOLDER.rglob("*")) if path.suffix in {".md", ".toml"}]


def _minutes(weekday: str, hour: str, minute: str, half: str) -> int:
    """Return how many minutes after the beginning of Monday it is."""
    return _WEEKDAYS.index(weekday) * _DAY + (int(hour) % 12 + 12 * (half == "PM")) * 60 + int(minute)
