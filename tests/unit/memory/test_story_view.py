"""A story as it stood: before each response, and after it, whatever is known of later ones."""

from tasklore.contracts.analysis.background import KnownFact
from tasklore.contracts.analysis.stories import (
    Bond,
    Relations,
    StoryBase,
    StoryChange,
    StoryMemory,
    StorySettings,
    StoryThread,
)
from tasklore.memory.stories.view import PastScene, StandingStory, ThreadState, standing

OLD = StoryMemory(id="MEM-0-a", character="Ann")
LATER = StoryMemory(id="MEM-5-b", character="Ann", response=5)
KEY = StoryThread(id="THREAD-001", title="Key")
FOG = StoryThread(id="THREAD-002", title="Fog", opened=5)
BASE = StoryBase(
    settings=StorySettings(story_id="s"),
    memories=(OLD, LATER),
    threads=(KEY, FOG),
    relations=Relations(bonds=(Bond(characters=("Bo", "Ann"), score=18.5),)),
    knowledge=(KnownFact(subject="Lamp", fact="is lit", source="Ch0-R0"),),
)


def story(
    changes: dict[int, dict[str, StoryChange]], number: int, *, after: bool = False
) -> StandingStory:
    """Return the story before a response, or after it."""
    return standing(BASE, changes, number, after=after)


def test_a_beginning_may_tell_of_what_comes_later() -> None:
    """A memory and a thread of response 5 are not known before it, and their ids are taken all the same."""
    early = story({}, 5)
    late = story({}, 5, after=True)

    assert (early.memories, early.threads) == ((OLD,), (ThreadState(KEY),))
    assert (late.memories, late.threads) == (
        (OLD, LATER),
        (ThreadState(KEY), ThreadState(FOG, 5)),
    )
    assert early.memory_ids == {"MEM-0-a", "MEM-5-b"}
    assert early.thread_ids == {"THREAD-001", "THREAD-002"}


def test_a_fact_is_known_from_its_first_source() -> None:
    """Saying it again adds nothing, whichever analysis came first."""
    said = KnownFact(subject="Lamp", fact="is lit", source="Ch1-R2")
    more = KnownFact(subject="Winch", fact="rusts", source="Ch1-R3")
    again = more.model_copy(update={"source": "Ch1-R2"})
    changes = {
        3: {"knowledge": StoryChange(facts=(said, more))},
        2: {"knowledge": StoryChange(facts=(again,))},
    }

    assert story(changes, 4).knowledge == (*BASE.knowledge, again)
    assert story(changes, 2).knowledge == BASE.knowledge


def test_a_thread_is_open_until_it_is_resolved_and_again_when_it_comes_up() -> None:
    """Each response is an end or a new beginning; within one, the end counts."""
    changes = {
        1: {"plot_threads": StoryChange(mentioned=("THREAD-001",))},
        2: {
            "plot_threads": StoryChange(
                resolved=("THREAD-001",), mentioned=("THREAD-404",)
            )
        },
        3: {"plot_threads": StoryChange(mentioned=("THREAD-001",))},
        4: {
            "plot_threads": StoryChange(
                mentioned=("THREAD-001",), resolved=("THREAD-001",)
            )
        },
    }
    states = [story(changes, number, after=True).threads[0] for number in range(5)]

    assert [(one.is_open, one.last_mention, one.resolved_at) for one in states] == [
        (True, None, None),
        (True, 1, None),
        (False, 2, 2),
        (True, 3, None),
        (False, 4, 4),
    ]
    assert [one.thread.id for one in story(changes, 4).threads] == ["THREAD-001"]


def test_past_scenes_begin_with_the_latest() -> None:
    changes = {
        2: {"resp_analyzer": StoryChange(scene="action", tension=7)},
        1: {"resp_analyzer": StoryChange(scene="dialogue", timestamp="noon")},
        3: {"resp_analyzer": StoryChange(tension=3)},
    }

    assert story(changes, 9).scenes == (
        PastScene(2, "action", 7, None),
        PastScene(1, "dialogue", None, "noon"),
    )
    assert story(changes, 2).scenes == (PastScene(1, "dialogue", None, "noon"),)


def test_an_id_is_taken_as_long_as_some_response_names_it() -> None:
    changes = {
        5: {
            "plot_threads": StoryChange(
                mentioned=("THREAD-007",), resolved=("THREAD-008",)
            )
        },
        3: {"plot_threads": StoryChange(mentioned=("THREAD-009",))},
    }
    told = story(changes, 3)

    assert told.thread_ids == {"THREAD-001", "THREAD-002", "THREAD-007", "THREAD-008"}
    assert told.opened_ids == {"THREAD-001", "THREAD-002"}
