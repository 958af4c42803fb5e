"""Whatever else a remembered line says, its value is not taken without asking."""

from hypothesis import assume, example, given
from hypothesis import strategies as st

from supervisor.understanding.outcome import Span
from supervisor.interpretation.proof.evidence import Source
from supervisor.interpretation.proof.plain_statements import _NEUTRAL, is_plain
from supervisor.interpretation.values.cues import CueIndex
from supervisor.interpretation.values.fields import shape_of
from supervisor.interpretation.values.scene import scene_of
from supervisor.interpretation.words import tokens_of
from tests.interpretation_cases import BUDGET

SHAPE = shape_of(BUDGET.tasks[0])
CUES = CueIndex(SHAPE)
LIMIT = SHAPE.fields[0]
NEUTRAL = sorted(_NEUTRAL - {"user", "user's"})

plain_words = st.lists(st.sampled_from(NEUTRAL), max_size=3)
#: Words of any script, and some that turn a sentence round.
more_words = st.text(st.characters(categories=["L", "M", "N"]), min_size=1, max_size=8) | st.sampled_from(
    ["not", "Bob's", "was", "if", "her", "last", "never", "were", "nicht", "war", "7", "ist", "user"]
)


def is_taken(text: str) -> bool:
    """Return whether the first 50,000 of *text* is taken as the limit."""
    start = text.index("50,000")
    span = Span(LIMIT.name, start, start + 6, "50,000")
    return is_plain(CUES, LIMIT, Source(scene_of(text), memory="m"), [span])


def said(before: list[str], between: list[str], after: list[str]) -> str:
    """Return a sentence about the limit with these words in it."""
    return " ".join([*before, "budget limit", *between, "50,000", *after])


@given(before=plain_words, between=plain_words, after=plain_words)
def test_words_that_say_nothing_turn_nothing_round(before: list[str], between: list[str], after: list[str]) -> None:
    """All but those that ask when they come first."""
    assume(not before or before[0] not in {"is", "has", "have"})
    assert is_taken(said(before, between, after))


@given(words=st.tuples(plain_words, plain_words, plain_words), more=more_words, where=st.integers(0, 2))
@example(words=([], [], []), more="not", where=1)
def test_one_word_more_anywhere_is_never_taken(
    words: tuple[list[str], list[str], list[str]], more: str, where: int
) -> None:
    """No list of such words has to be complete."""
    known = {token.text for token in tokens_of(more)}
    assume(known - _NEUTRAL or known & {"user", "user's"})
    assume(not CUES.find(tokens_of(more)))
    parts = [list(part) for part in words]
    parts[where].append(more)
    # "the user" is the person; before it stands another word or none.
    assume(not (more == "user" and ((len(parts[where]) == 1 and where == 0) or parts[where][-2:-1] == ["the"])))
    assert not is_taken(said(*parts))
