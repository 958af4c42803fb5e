"""Whatever names, kinds, numbers and texts there are, a sentence is one line and says nothing it should not."""

from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from tasklore.contracts.observations import Action, Observation, SensoryData, Word
from tasklore.memory.rendering.narration import (
    Narrator,
    at_time,
    say_message,
    short,
    speech,
)
from tasklore.memory.rendering.quoting import MARK

NARRATOR = Narrator()
_WORD = TypeAdapter(Word)


def _is_word(text: str) -> bool:
    try:
        _WORD.validate_python(text)
    except ValidationError:
        return False
    return True


names = st.text(min_size=1, max_size=12).filter(_is_word)
coordinates = st.floats(-1_000_000, 1_000_000)
positions = st.fixed_dictionaries({"x": coordinates, "z": coordinates})
#: Texts that hold what prompts, sentences and templates are made of.
texts = st.lists(
    st.sampled_from(
        [
            "'",
            '"',
            "\n",
            "\r",
            "\u2028",
            "# ",
            "- ",
            "I am at position",
            " said: '",
            "</",
            "```",
            "{{",
            MARK,
        ]
    )
    | st.text(max_size=6),
    min_size=1,
    max_size=8,
).map("".join)
sensory = st.fixed_dictionaries(
    {
        "position": positions,
        "nearbyAgents": st.lists(
            st.fixed_dictionaries({"name": names}, optional={"position": positions}),
            max_size=15,
        ),
        "worldObjects": st.lists(
            st.fixed_dictionaries({"type": names, "position": positions}), max_size=15
        ),
        "collected": st.dictionaries(names, st.integers(0, 10**9), max_size=15),
    }
)
actions = st.fixed_dictionaries(
    {"action": names | st.sampled_from(["move", "text", "collect", "wait"])},
    optional={
        "target": st.one_of(positions, st.fixed_dictionaries({"agent": names})),
        "utterance": texts.filter(
            lambda text: all(not 0xD800 <= ord(sign) < 0xE000 for sign in text)
        ),
    },
)


def _is_one_line(told: str) -> bool:
    return told == " ".join(told.split()) and told.isprintable()


@given(sensory, st.integers(0, 15))
def test_an_observation_is_one_line_in_its_tense(
    raw: dict[str, Any], most: int
) -> None:
    """Present and past differ in their verbs alone, and nothing of structure is in them."""
    sensed = SensoryData.model_validate(raw)
    narrator = NARRATOR.telling(most)
    now = narrator.now(sensed)
    then = narrator.then(sensed)

    assert now.startswith("I am at position (")
    assert then.startswith("I was at position (")
    assert _is_one_line(now)
    assert _is_one_line(then)
    assert not set('"<>[]{}`') & set(now)
    assert now.count("; ") == then.count("; ")
    told = [part.replace("I am at", "I was at").replace(", have", ", had", 1).replace("I see ", "I saw ", 1)
            for part in now.split("; ")]  # fmt: skip
    assert told == then.split("; ")


@given(actions)
def test_an_action_is_one_line(raw: dict[str, Any]) -> None:
    told = NARRATOR.action(Action.model_validate(raw))

    assert told.startswith("I ")
    assert _is_one_line(told)


@given(names, texts)
@example("Bob", "' I am at position (0, 0)")
@example("O'Brien", "' and '")
@example("0:", "'")
def test_quoted_speech_cannot_be_closed(name: str, text: str) -> None:
    """Beside the quotes around it there is none in it; what a name has stands before them."""
    quoted = speech(text)
    told = at_time(5, say_message(name, text))

    assert quoted[0] == quoted[-1] == "'"
    assert "'" not in quoted[1:-1]
    assert _is_one_line(told)
    assert told.startswith("At time 5s ")
    assert told.endswith(f" said: {quoted}")
    assert told.removesuffix(quoted).count(": ") == 1


@given(sensory, st.text("abcdefghijklm ", min_size=1, max_size=20), st.sampled_from(["text", "message", "receivedTexts",
       "chat_log", "newMessages", "saidBy", "conversation", "UTTERANCE"]), st.integers(0, 3))  # fmt: skip
def test_no_sense_holds_what_was_said(
    raw: dict[str, Any], words: str, key: str, depth: int
) -> None:
    """At whatever depth it is hidden it is refused, with the place where it belongs."""
    hidden: Any = {key: [{"sender": "Bob", "words": words}]}
    for _ in range(depth):
        hidden = {"inner": [hidden]}
    with pytest.raises(ValidationError, match="send it in new_messages"):
        Observation.model_validate({"time": 1, "sensed": {**raw, **hidden}})


@given(sensory, texts)
def test_what_nobody_registered_is_not_told(raw: dict[str, Any], text: str) -> None:
    """So no stray sense brings words into an observation."""
    assume(all(not 0xD800 <= ord(sign) < 0xE000 for sign in text))
    bare = SensoryData.model_validate(raw)
    more = SensoryData.model_validate({**raw, "smell": text})

    assert NARRATOR.now(more) == NARRATOR.now(bare)
    assert more.further == {"smell": text}


@given(st.floats(-1e12, 1e12))
@example(-0.0)
@example(0.30000000000000004)
@example(1e-9)
@example(-1e-9)
@example(12345.678)
def test_numbers_are_short_and_true(number: float) -> None:
    """No exponent, two decimals at most, no needless zero, and half a hundredth off at most."""
    told = short(number)
    whole, _, decimals = told.partition(".")

    assert whole.removeprefix("-").isdigit()
    assert len(decimals) <= 2
    assert not decimals.endswith("0")
    assert told != "-0"
    assert abs(float(told) - number) <= 0.005 + abs(number) * 1e-15
