"""Words and meaning as one ranking, in deviations from the usual."""

import struct

import numpy as np

from tasklore.memory.episodes.episode import NearTurns
from tasklore.memory.episodes.fusion import WordScores, fuse


def _words(scores: dict[int, float], raised: tuple[int, ...] = ()) -> WordScores:
    records = b"".join(
        struct.pack(">If", number, score) for number, score in scores.items()
    )
    return WordScores(
        records, 0.1, 1.0, b"".join(struct.pack(">I", one) for one in raised)
    )


def _near(cosines: dict[int, float]) -> NearTurns:
    numbers = np.array(list(cosines), dtype="u4")
    values = np.array(list(cosines.values()), dtype="f4")
    return NearTurns(numbers, values, values)


USUAL = dict.fromkeys(range(1, 101), 0.1)


def test_what_has_both_is_before_what_has_one() -> None:
    near = _near(USUAL | {10: 0.6, 30: 0.6})

    found = list(fuse(_words({10: 4.0, 50: 4.0}), near, 3))

    assert found[0] == 10
    assert set(found[1:]) <= {30, 50, 9, 11}


def test_a_neighbour_lends_half_and_a_question_only_to_what_comes_next() -> None:
    found = fuse(_words({20: 6.0, 60: -6.0}), _near({}), 10)
    assert found.keys() == {20}

    near = _near({number: 0.1 for number in USUAL if number != 60})
    scores = fuse(_words({20: 6.0, 60: -6.0}), near, 100)
    assert 60 not in scores
    assert scores[19] == scores[21] > scores[40]
    assert scores[61] > scores[59] == scores[40]


def test_a_period_raises_what_fell_into_it() -> None:
    scores = fuse(_words({}, raised=(7,)), _near(USUAL), 100)

    assert next(iter(scores)) == 7
    assert scores[7] - scores[50] >= 1.99
    assert len(scores) == 100


def test_nothing_known_is_nothing_found() -> None:
    assert fuse(_words({}), _near({}), 10) == {}
