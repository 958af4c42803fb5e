"""Two sentences joined are their two readings; one sentence, however it is worded, is never two."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tasklore.supervisor.understanding import Several, Single, Understood
from tests.property.examples import examples
from tests.understanding_cases import understand

_AMOUNTS = st.one_of(
    st.integers(10, 900_000).map(str),
    st.integers(1_000, 900_000).map(lambda number: f"{number:,}"),
    st.integers(1, 900).map(lambda number: f"{number}k"),
    st.integers(10, 900_000).map(lambda number: f"${number}"),
    st.sampled_from(
        [
            "four hundred and twenty",
            "nine hundred",
            "two thousand and five",
            "half a million",
        ]
    ),
)
_LIMITS = st.sampled_from(
    [
        "limit {}",
        "my limit is {}",
        "a limit of {}",
        "{} limit",
        "I have a budget of {}",
        "my budget limit is {}",
    ]
)
_SPENT = st.sampled_from(
    [
        "spent {}",
        "I have spent {}",
        "I spent {} so far",
        "{} spent",
        "spending is {}",
        "we've spent {}",
    ]
)
_BETWEEN = st.sampled_from([", ", " and ", "; ", ". ", ", and ", "\n", " with "])
_OPENINGS = st.sampled_from(
    ["", "Check my budget: ", "What's my budget status? ", "Analyze my budget, "]
)
_CLOSINGS = st.sampled_from(["", ", please", ". What is left?", " and that is all"])


@st.composite
def _budgets(draw: st.DrawFn, *, closed: bool = True) -> str:
    values = [draw(_LIMITS).format(draw(_AMOUNTS)), draw(_SPENT).format(draw(_AMOUNTS))]
    if draw(st.booleans()):
        values.reverse()
    if draw(st.booleans()):
        items = [draw(_AMOUNTS) for _ in range(draw(st.integers(2, 4)))]
        values.append(f"history [{', '.join(items)}]")
    between = draw(_BETWEEN)
    return draw(_OPENINGS) + between.join(values) + (draw(_CLOSINGS) if closed else "")


_RIDES = st.builds(
    "{} {} km{}".format,
    st.sampled_from(
        ["Book a ride, drive", "Taxi ride, distance", "Please book me a taxi: distance"]
    ),
    st.integers(2, 500),
    st.sampled_from(
        [
            "",
            ", not quiet",
            ", first class",
            ' and saying "bring it and wait"',
            " on 2031-05-06",
        ]
    ),
)
_TRIPS = st.builds(
    "Share the trip: hotel {}, {} travellers{}".format,
    st.integers(100, 5_000),
    st.integers(2, 9),
    st.sampled_from(["", ", tickets 100 and 250", " and no tickets"]),
)
_GREETINGS = st.sampled_from(["Greet Ada", "greet Grace Hopper", "Say hello to Ada"])
_JOINTS = st.sampled_from([" and ", ". ", "; ", ", and then ", ". Also "])


def _moved(part: Single, start: int) -> Single:
    """Return *part* as it reads at *start* of a longer sentence."""
    assert isinstance(part, Understood)
    spans = tuple(
        replace(span, start=span.start + start, end=span.end + start)
        for span in part.spans
    )
    return replace(part, spans=spans)


@examples(60)
@given(
    st.permutations([_budgets(closed=False), _RIDES, _TRIPS, _GREETINGS]),
    _JOINTS,
    st.data(),
)
def test_two_complete_sentences_are_both_or_asked_about(
    kinds: list[st.SearchStrategy[str]], joint: str, data: st.DataObject
) -> None:
    first = data.draw(kinds[0])
    second = data.draw(kinds[1])
    alone = understand(first), understand(second)
    assume(all(isinstance(one, Understood) for one in alone))
    found = understand(first + joint + second)
    parts = found.parts if isinstance(found, Several) else (found,)
    expected = (alone[0], _moved(alone[1], len(first) + len(joint)))  # type: ignore[arg-type]  # assumed
    served = [part for part in parts if isinstance(part, Understood)]
    assert all(_same(part, expected) for part in served), found
    assert len(served) == 2 or len(served) < len(parts), found


def _same(part: Understood, expected: Sequence[Single]) -> bool:
    return any(
        isinstance(one, Understood)
        and (part.agent_id, part.task) == (one.agent_id, one.task)
        for one in expected
    )


@examples(100)
@given(st.one_of(_budgets(), _RIDES, _TRIPS, _GREETINGS))
def test_a_sentence_for_one_agent_is_never_several(text: str) -> None:
    """Whatever joins its values."""
    assert not isinstance(understand(text), Several)


@pytest.mark.parametrize(
    "piece",
    [
        "and check my budget ",
        "greet Ada. ",
        "greet Ada, ",
        "limit 5 and spent 4; ",
        "don't and then ",
    ],
)
def test_twenty_thousand_characters_of_wishes_are_answered(piece: str) -> None:
    """Nothing grows with the square of them."""
    assert understand((piece * 20_000)[:20_000]) is not None
