"""Questions that have the words of their answer in other forms, in six languages: how many are answered by words.

`python -m tests.episodes.inflected [seen|unseen]`: whether the answer is among the three best of all that was said in
all six languages.
"""

import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from tasklore.memory.episodes.ranking import rank

__all__ = ["found_by_language"]

_FILE = Path(__file__).with_name("inflected.toml")
_BEST = 3


def found_by_language(part: str) -> dict[str, tuple[int, int]]:
    """Return for each language how many questions of *part* are answered, and how many there are."""
    languages = tomllib.loads(_FILE.read_text("utf-8"))
    said = [
        text
        for of in languages.values()
        for text in (*(one for one, _ in (*of["seen"], *of["unseen"])), *of["others"])
    ]
    return {
        language: (sum(_is_found(said, *pair) for pair in of[part]), len(of[part]))
        for language, of in languages.items()
    }


def _is_found(said: list[str], answer: str, question: str) -> bool:
    scores = rank(question, said)
    order = sorted(range(len(said)), key=lambda number: -scores[number])
    return answer in [said[number] for number in order[:_BEST] if scores[number] > 0]


def _lines(part: str) -> Iterator[str]:
    found = found_by_language(part)
    for language, (count, asked) in found.items():
        yield f"{language:10} {count} of {asked}"
    counts = [sum(column) for column in zip(*found.values(), strict=True)]
    yield f"together   {counts[0]} of {counts[1]}"


if __name__ == "__main__":
    print("\n".join(_lines(next(iter(sys.argv[1:]), "seen"))))
