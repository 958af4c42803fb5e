"""Redis keys: one tag each, and no part that can pass for another."""

import re

import pytest

from contracts.errors import InvalidInput
from memory import keys

AGENT = "BudgetTrackerAgent"
QUESTION = "analyze_budget:50000:42000:5000,7000,8000,6000"


def test_an_entry_key_reads_as_the_design_says() -> None:
    """Programs in other languages spell it themselves."""
    assert keys.ltm(AGENT, "1.1", QUESTION) == f"tl:ltm:{{BudgetTrackerAgent}}:v1.1:{QUESTION}"
    assert keys.ltm(AGENT, "1.1+3fa9", QUESTION, "YW5uYQ") == f"tl:ltm:{{{AGENT}}}:v1.1+3fa9:u:YW5uYQ:{QUESTION}"


def test_a_version_may_bring_its_own_v() -> None:
    """`v1.1` and `1.1` are one version, not `vv1.1`."""
    assert keys.ltm(AGENT, "v1.1", QUESTION) == keys.ltm(AGENT, "1.1", QUESTION)


@pytest.mark.parametrize("token", [None, "YW5uYQ"])
@pytest.mark.parametrize("question", [QUESTION, "u", "u:YW5uYQ:analyze_budget:1", "u:u:u", "use:1", "greet"])
def test_an_entry_key_can_be_taken_apart(question: str, token: str | None) -> None:
    """Listing and forgetting read the agent, user and task out of the key."""
    parts = keys.parse_ltm(keys.ltm(AGENT, "1.1", question, token))
    assert parts == (AGENT, "1.1", token, question)


def test_a_task_called_u_cannot_read_as_a_users_entry() -> None:
    """Else a shared task could plant an answer for a user."""
    planted = keys.ltm(AGENT, "1.1", "u:YW5uYQ:analyze_budget:1")
    assert planted != keys.ltm(AGENT, "1.1", "analyze_budget:1", "YW5uYQ")


@pytest.mark.parametrize("key", ["", "tl:ltm:", "tl:ltm:{A}", "tl:ltm:{A}:v1.1:", "tl:task:{1}", "tl:ltm:{a b}:v1:x"])
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
    assert {_tag(key) for key in (entry, keys.hits_of(entry), keys.flight_of(entry))} == {AGENT}
    assert len({_tag(key) for key in keys.conversation("a:b{c}")}) == 1


@pytest.mark.parametrize("agent_id", ["", "a b", "a{b", "a:b", "a*", "x" * 65, "agent\n"])
def test_an_agent_id_that_could_be_a_delimiter_is_refused(agent_id: str) -> None:
    """Agent ids are checked, not escaped."""
    with pytest.raises(InvalidInput, match="agent id"):
        keys.ltm(agent_id, "1.1", QUESTION)


@pytest.mark.parametrize("version", ["", "v", "1:1", "1.1{", "1 1"])
def test_a_version_that_could_be_a_delimiter_is_refused(version: str) -> None:
    """So are versions."""
    with pytest.raises(InvalidInput, match="version"):
        keys.ltm(AGENT, version, QUESTION)


@pytest.mark.parametrize("token", ["", "a:b", "a=", "a}"])
def test_a_user_token_that_is_no_base64url_is_refused(token: str) -> None:
    """An id that was not made a token first is a mistake of the caller."""
    with pytest.raises(InvalidInput, match="user token"):
        keys.ltm(AGENT, "1.1", QUESTION, token)
    with pytest.raises(InvalidInput, match="user token"):
        keys.ltm_users(token)


@pytest.mark.parametrize("conversation_id", ["", "x" * 513, "\ud800"])
def test_a_conversation_id_without_a_key_is_refused(conversation_id: str) -> None:
    """Nothing, far too much, and what is no text."""
    with pytest.raises(InvalidInput, match="conversation id"):
        keys.conversation(conversation_id)


def test_free_ids_never_share_a_key() -> None:
    """Escaping keeps ids apart that differ only in a delimiter."""
    ids = ["a", "a%20", "a ", "a:", "a:ids", "a:state", "a}", "a}:ids", "ä", "%C3%A4"]
    spelled = {key for one in ids for key in keys.conversation(one)}
    assert len(spelled) == 7 * len(ids)


@pytest.mark.parametrize("task_id", ["0199-aaaa", "with {braces}:and/more", "ümläut", "a%7Bb", "x" * 512])
def test_a_task_key_gives_its_id_back(task_id: str) -> None:
    """Whatever the id is; and the pattern of all tasks finds it."""
    key = keys.task(task_id)
    assert keys.parse_task(key.encode()) == task_id
    found = re.escape(keys.task_pattern()).replace(r"\*", ".*")
    assert re.fullmatch(found, key)
    assert not any(re.fullmatch(found, other) for other in keys.steps(task_id))


@pytest.mark.parametrize("name", ["", "a.b", "TASKS}", "*", "x" * 65])
def test_a_stream_name_that_could_be_a_delimiter_is_refused(name: str) -> None:
    """Names come from `contracts.subjects`, and are checked all the same."""
    with pytest.raises(InvalidInput, match="stream"):
        keys.stream(name)


def test_a_pattern_matches_one_agent_or_all() -> None:
    """`*` right behind the brace would also match a longer agent name."""
    assert keys.ltm_pattern("Budget") == "tl:ltm:{Budget}:*"
    assert keys.ltm_pattern() == "tl:ltm:{*"


def _tag(key: str) -> str:
    return key[key.index("{") + 1 : key.index("}")]
