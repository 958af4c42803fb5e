"""Keys and files of the memory, for any text: nothing is confused, nothing is lost on the way out and in."""

from hypothesis import given
from hypothesis import strategies as st

from tasklore.memory import keys
from tasklore.memory.long_term.entries import CachedResult, decode, encode
from tasklore.memory.long_term.result_files import TaskForm, entry_of, read_document

NAMES = st.from_regex(r"[A-Za-z0-9_-]{1,12}", fullmatch=True)
TOKENS = st.none() | NAMES
QUESTIONS = st.tuples(
    st.sampled_from(["u", "ask", "U"]), st.lists(NAMES, max_size=3)
).map(lambda parts: ":".join((parts[0], *parts[1])))
TEXTS = st.text(max_size=20)
FORMS = {"ask": TaskForm(("topic", "words"), frozenset({"words"}))}


@given(NAMES, TOKENS, QUESTIONS)
def test_an_entry_key_says_what_it_was_made_of(
    agent_id: str, token: str | None, question: str
) -> None:
    """So two different entries never share one."""
    parts = keys.parse_ltm(keys.ltm(agent_id, "1.1", question, token))
    assert parts == (agent_id, "1.1", token, question)


@given(st.text(min_size=1, max_size=40), st.text(min_size=1, max_size=40))
def test_two_conversations_share_no_key(one: str, other: str) -> None:
    """Not even the turns of one with the ids of another."""
    spelled = [
        *keys.conversation(one),
        *keys.conversation(other),
    ]
    assert len(set(spelled)) == len(keys.conversation(one)) * (1 if one == other else 2)
    assert all((key.count("{"), key.count("}")) == (1, 1) for key in spelled)


@given(TEXTS | st.none(), st.lists(TEXTS | st.none(), max_size=8), st.integers())
def test_an_exported_entry_is_imported_as_it_was(
    topic: str | None, words: list[str | None], result: int
) -> None:
    """Five words included."""
    values = {"topic": topic, "words": words}
    out = entry_of("ask", FORMS["ask"], values, result)
    document = {"tasks": {out.key: result}, "complete": {out.key: out.complete}}
    (entry,) = read_document(document, FORMS).entries
    assert (entry.parameters, entry.result) == (values, result)


@given(st.binary(max_size=60), st.integers(0, 2**53), st.integers(0, 2**31))
def test_a_stored_result_comes_back_byte_for_byte(
    result: bytes, created_at_ms: int, computed_ms: int
) -> None:
    """Whatever the bytes look like."""
    value = encode(
        result,
        created_at_ms=created_at_ms,
        computed_ms=computed_ms,
        agent_version="1.1",
        parameters_json=b"{}",
    )
    assert decode(value) == CachedResult(created_at_ms, computed_ms, result)


@given(st.binary(max_size=200))
def test_reading_an_entry_never_raises(value: bytes) -> None:
    assert decode(value) is None or value.lstrip().startswith(b"{")
