"""Answers of a strong model about chapters of ordinary prose, read, checked and reduced again, against a key."""

from pathlib import Path

from tests.story_reading import recorded

CHAPTERS = Path(recorded.__file__).with_name("chapters.json")

#: By section: how many findings are right of how many, and how many entries of the key are found of how many.
EXPECTED = {
    "scene type": (6, 6, 6, 6),
    "characters": (32, 32, 30, 30),
    "mentioned": (26, 26, 14, 15),
    "place": (6, 6, 6, 6),
    "time": (6, 6, 6, 6),
    "elapsed": (3, 3, 3, 3),
    "memories": (24, 24, 26, 33),
    "relationships": (25, 25, 12, 12),
    "threads": (65, 66, 41, 42),
    "knowledge": (47, 48, 31, 36),
    "contradictions": (12, 12, 12, 14),
    "known by": (87, 92, 87, 90),
}


async def test_what_agents_find_in_recorded_answers_matches_the_key() -> None:
    score, _, unanswered = await recorded.run(
        recorded.stories_in(CHAPTERS), None, None, "ten"
    )

    assert (score.chapters, unanswered) == (6, 0)
    figures = {
        name: (
            score.right[name],
            score.found[name],
            score.met[name],
            score.wanted[name],
        )
        for name in score.wanted | score.found
    }
    assert figures == EXPECTED, score.misses
    assert all(after <= before for _, before, after, _ in score.reductions)
    assert all(
        percent >= 70 for _, before, _, percent in score.reductions if before > 1_000
    )
