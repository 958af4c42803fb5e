"""Redis keys: one tag each, and no part that can pass for another."""

import re
from collections.abc import Callable

import pytest

from tasklore.contracts.errors import InvalidInput
from tasklore.memory import keys
from tasklore.memory.stories.view import CHANGING

AGENT = "BudgetTrackerAgent"


QUESTION = "analyze_budget:50000:42000:5000,7000,8000,6000"


def test_an_entry_key_reads_as_the_design_says() -> None:
    """Programs in other languages spell it themselves."""
    assert (
        keys.ltm(AGENT, "1.1", QUESTION)
        == f"tl:ltm:{{BudgetTrackerAgent}}:v1.1:{QUESTION}"
    )
    assert (
        keys.ltm(AGENT, "1.1+3fa9", QUESTION, "YW5uYQ")
        == f"tl:ltm:{{{AGENT}}}:v1.1+3fa9:u:YW5uYQ:{QUESTION}"
    )


def test_a_version_may_bring_its_own_v() -> None:
    assert keys.ltm(AGENT, "v1.1", QUESTION) == keys.ltm(AGENT, "1.1", QUESTION)


def test_a_task_called_u_cannot_read_as_a_users_entry() -> None:
    """Else a shared task could plant an answer for a user."""
    planted = keys.ltm(AGENT, "1.1", "u:YW5uYQ:analyze_budget:1")
    assert planted != keys.ltm(AGENT, "1.1", "analyze_budget:1", "YW5uYQ")


@pytest.mark.parametrize(
    "key",
    [
        "",
        "tl:ltm:",
        "tl:ltm:{A}",
        "tl:ltm:{A}:v1.1:",
        "tl:task:{1}",
        "tl:ltm:{a b}:v1:x",
    ],
)
def test_what_is_no_entry_key_is_not_taken_apart(key: str) -> None:
    """A foreign key under the prefix is left alone."""
    assert keys.parse_ltm(key) is None


EVERY_KEY = [
    keys.ltm(AGENT, "1.1", "greet:{a}:}{"),
    keys.ltm(AGENT, "1.1", "greet:{", "YW5uYQ"),
    keys.hits_of(keys.ltm(AGENT, "1.1", QUESTION)),
    keys.flight_of(keys.ltm(AGENT, "1.1", QUESTION)),
    keys.ltm_users("YW5uYQ"),
    keys.quarantine(AGENT),
    keys.task("018f-{x}"),
    keys.children("018f-{x}"),
    keys.stream("TASKS"),
    *keys.conversation("}{ hello: {world}"),
]


@pytest.mark.parametrize("key", EVERY_KEY)
def test_every_key_has_exactly_one_pair_of_braces(key: str) -> None:
    """The pair is the cluster's hash tag; a second one would be a lie."""
    assert (key.count("{"), key.count("}")) == (1, 1)
    assert key.index("{") + 1 < key.index("}")


def test_keys_that_one_script_touches_share_a_tag() -> None:
    """A cluster refuses a script over two tags."""
    entry = keys.ltm(AGENT, "1.1", QUESTION, "YW5uYQ")
    assert {
        _tag(key) for key in (entry, keys.hits_of(entry), keys.flight_of(entry))
    } == {AGENT}
    assert len({_tag(key) for key in keys.conversation("a:b{c}")}) == 1


@pytest.mark.parametrize(
    ("spell", "words", "what"),
    [
        (
            lambda word: keys.ltm(word, "1.1", QUESTION),
            ["", "a b", "a{b", "a:b", "a*", "x" * 65, "agent\n"],
            "agent id",
        ),
        (
            lambda word: keys.ltm(AGENT, word, QUESTION),
            ["", "v", "1:1", "1.1{", "1 1"],
            "version",
        ),
        (
            lambda word: keys.ltm(AGENT, "1.1", QUESTION, word),
            ["", "a:b", "a=", "a}"],
            "user token",
        ),
        (keys.ltm_users, ["", "a:b", "a=", "a}"], "user token"),
        (keys.conversation, ["", "x" * 513, "\ud800"], "conversation id"),
        (keys.stream, ["", "a.b", "TASKS}", "*", "x" * 65], "stream"),
    ],
)
def test_a_part_that_could_be_a_delimiter_is_refused(
    spell: Callable[[str], object], words: list[str], what: str
) -> None:
    """Ids are checked, not escaped."""
    for word in words:
        with pytest.raises(InvalidInput, match=what):
            spell(word)


def test_free_ids_never_share_a_key() -> None:
    """Escaping keeps ids apart that differ only in a delimiter."""
    ids = ["a", "a%20", "a ", "a:", "a:ids", "a:state", "a}", "a}:ids", "ä", "%C3%A4"]
    spelled = {key for one in ids for key in keys.conversation(one)}
    assert len(spelled) == 7 * len(ids)


@pytest.mark.parametrize(
    "task_id", ["0199-aaaa", "with {braces}:and/more", "ümläut", "a%7Bb", "x" * 512]
)
def test_a_task_key_gives_its_id_back(task_id: str) -> None:
    """Whatever the id is; and the pattern of all tasks finds it."""
    key = keys.task(task_id)
    assert keys.parse_task(key.encode()) == task_id
    found = re.escape(keys.task_pattern()).replace(r"\*", ".*")
    assert re.fullmatch(found, key)
    assert not any(
        re.fullmatch(found, other) for other in keys.steps(keys.task(task_id))
    )


def test_a_pattern_matches_one_agent_or_all() -> None:
    """`*` right behind the brace would also match a longer agent name."""
    assert keys.ltm_pattern("Budget") == "tl:ltm:{Budget}:*"
    assert keys.ltm_pattern() == "tl:ltm:{*"


def _tag(key: str) -> str:
    return key[key.index("{") + 1 : key.index("}")]


def every_key(story_id: str) -> list[str]:
    """Return all keys of a story."""
    return [
        *keys.story(story_id),
        *(keys.story_changes(story_id, section) for section in CHANGING),
    ]


def test_all_of_a_story_is_of_one_tag() -> None:
    """One script may touch all of it, on a cluster, too."""
    found = every_key("lighthouse")

    assert len(set(found)) == len(found)
    assert all(
        key.count("{") == key.count("}") == 1 and "{lighthouse}" in key for key in found
    )
    assert not set(found) & set(every_key("lighthouse-changes"))


@pytest.mark.parametrize("word", ["", "a}b", "a:b", "a b", "ä", "x" * 65, "a\n"])
def test_what_could_pass_for_another_key_is_refused(word: str) -> None:
    """As the id of a story, as a section and as a supervisor."""
    for make in (
        lambda: keys.story(word),
        lambda: keys.story_changes(word, "knowledge"),
        lambda: keys.story_changes("lighthouse", word),
        lambda: keys.analysing(word),
    ):
        with pytest.raises(
            InvalidInput, match="must be 1 to 64 letters, digits, '_' or '-'"
        ):
            make()
