"""Words and meaning as one ranking: both scores in deviations from the usual of the owner's turns, then neighbours."""

from typing import NamedTuple

from tasklore.memory.episodes.episode import NearTurns

__all__ = ["WordScores", "fuse"]

#: How much more meaning counts than words.
MEANING = 1.5
#: Deviations that a period adds to what was said in it.
RAISE = 3.0
#: What the better neighbour adds of its own sum.
NEIGHBOUR = 0.5


class WordScores(NamedTuple):
    """The scores of passages by their words: records of a number and a float, and how they are spread over all.

    A score below 0 is that of what only asks: it lends to the next one and is no hit. `raised` are the numbers of
    passages in the period that the question speaks of.
    """

    records: bytes
    mean: float
    deviation: float
    raised: bytes


def fuse(words: WordScores, near: NearTurns, most: int) -> dict[int, float]:
    """Return the scores of the *most* best passages by number, best first: 0 is the usual one of all."""
    import numpy as np

    read = np.frombuffer(words.records, dtype=[("number", ">u4"), ("score", ">f4")])
    raised = np.frombuffer(words.raised, dtype=">u4").astype("i8")
    numbers = read["number"].astype("i8")
    known = np.concatenate([numbers, near.numbers.astype("i8"), raised])
    if not len(known):
        return {}
    least = int(known.min()) - 1
    size = int(known.max()) - least + 2
    is_hit = np.zeros(size, dtype=bool)
    is_hit[near.numbers.astype("i8") - least] = True
    is_hit[raised - least] = True
    is_hit[numbers - least] = read["score"] >= 0
    of_words = np.zeros(size, dtype="f4")
    of_words[numbers - least] = np.abs(read["score"])
    total = (of_words - words.mean) / max(words.deviation, 1e-6)
    if len(near.cosines):
        spread = max(float(near.cosines.std()), 1e-6)
        of_meaning = (near.cosines - near.cosines.mean()) / spread
        total[near.numbers.astype("i8") - least] += MEANING * of_meaning
    total[raised - least] += RAISE
    lends = np.maximum(total, 0.0)
    before = np.concatenate([[0.0], lends[:-1]])
    after = np.concatenate([np.where(is_hit, lends, 0.0)[1:], [0.0]])
    total = np.where(is_hit, total + NEIGHBOUR * np.maximum(before, after), -np.inf)
    best = np.argsort(-total, kind="stable")[:most]
    return {int(place) + least: float(total[place]) for place in best if is_hit[place]}
