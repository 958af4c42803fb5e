"""The cases of the second look: each can be asked, a score tells good answers from bad, recorded ones are good."""

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.memory_reading import second_looks


def answered(verdict_of: Callable[[str], str]) -> Mapping[str, Any]:
    """Return an answer to each case, with the verdict that *verdict_of* makes of its key."""
    return {
        case.digest: {
            "reasoning": "",
            "verdicts": [
                {"fact": number, "verdict": verdict_of(key)}
                for number, key in enumerate(case.keys, start=1)
            ],
        }
        for case in second_looks.cases()
    }


def test_each_case_is_a_prompt_of_its_own_without_its_key(tmp_path: Path) -> None:
    """With all that a model is shown, the schema of its answer too."""
    cases = second_looks.cases()
    keys = Counter(key for case in cases for key in case.keys)
    assert len({case.digest for case in cases}) == 24
    assert keys == {"own": 9, "unreal": 7, "other": 6, "denied": 4}
    written = second_looks.write_prompts(tmp_path)
    assert written == len(list(tmp_path.iterdir()))
    for case in cases:
        assert '"verdicts"' in case.prompt
        assert '"quotation"' in case.prompt
        assert '"key"' not in case.prompt


def test_the_score_tells_right_answers_from_wrong_ones() -> None:
    """Right by the keys, all let pass, all held back, and none at all."""
    right = second_looks.score(answered(lambda key: key))
    assert (right.cases, right.exact, right.let_pass, right.held_back) == (
        24,
        26,
        [],
        [],
    )
    easy = second_looks.score(answered(lambda _key: "own"))
    assert (len(easy.let_pass), easy.held_back) == (17, [])
    strict = second_looks.score(answered(lambda _key: "unsure"))
    assert (strict.exact, strict.let_pass, len(strict.held_back)) == (0, [], 9)
    assert second_looks.score({}).cases == 0


def test_recorded_answers_let_nothing_pass_that_is_not_the_persons_own_word() -> None:
    """Of a strong model; at most one in five of the person's own words is held back."""
    score = second_looks.score(second_looks.answers())
    assert score.cases == len(second_looks.cases())
    assert score.let_pass == []
    assert len(score.held_back) <= 1
