"""Where a sentence speaks of time: no part that is left unsearched, for want of a word of time, would have held any."""

from hypothesis import example, given
from hypothesis import strategies as st

from quantities.times import stretches
from quantities.times.languages import OPENERS, TELLING

#: A word that makes every place before it worth a look, and changes nothing about them.
_NOW = " ; now"
_JOINTS = (
    "to until till through thru and between from since the of in on by for a few half per point "
    ", . - : % $ @ 5 12 31 1999 2020 2023 50000 3.5 1/2 5th 1990s '26 10 9 h s"
)
_WORDS = st.sampled_from(sorted(OPENERS | TELLING))
_SENTENCES = st.lists(
    st.tuples(st.one_of(st.sampled_from(_JOINTS.split()), _WORDS), st.sampled_from(("", " ", " "))), max_size=8
)


@given(_SENTENCES)
@example([("2020", " "), ("till", " "), ("2023", "")])
@example([("at", " "), ("five", " "), ("to", " "), ("seven", "")])
@example([("on", " "), ("the", " "), ("5", ""), ("th", "")])
@example([("ten", " "), ("past", " "), ("six", "")])
@example([("5", " "), ("p", ""), (".", ""), ("m", "")])
def test_a_word_of_time_far_behind_changes_nothing(words: list[tuple[str, str]]) -> None:
    """What is found is what a search of every place finds."""
    text = "".join(word + gap for word, gap in words)
    assert stretches(text) == tuple(one for one in stretches(text + _NOW) if one[1] <= len(text))
