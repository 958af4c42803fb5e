"""How many people a phrase of a public table means: an independent reading, to compare the interpreter with."""

import re

_WORDS = [
    *(
        "zero",
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
    ),
    *(
        "thirteen",
        "fourteen",
        "fifteen",
        "sixteen",
        "seventeen",
        "eighteen",
        "nineteen",
        "twenty",
    ),
]
NUMBERS = {word: place for place, word in enumerate(_WORDS)} | {"dozen": 12}
#: Read by a person, not by a program: phrases whose numbers do not simply add up. A telephone number means nobody.
_READ = {
    "a couple and our kid": 3, "a couple and two children": 4, "two of us and a couple": 4, "2 couples and 1 kid": 5,
    "two couples and three others": 7, "3 couples": 6, "with 5 others": 6, "with 2 guests": 3, "07700900326": None,
}  # fmt: skip
_SELF = frozenset({"me", "i", "myself"})
_ONE = frozenset({
    "wife", "husband", "boss", "daughter", "son", "child", "sister", "friend", "mom", "dad", "kid", "mother", "father",
    "brother", "partner", "girlfriend", "boyfriend", "aunt", "uncle", "baby", "mum", "cousin", "colleague", "fiance",
    "fiancee", "niece", "nephew", "grandmother", "grandfather", "grandma", "grandpa", "toddler", "infant", "neighbor",
    "neighbour", "roommate", "guest", "spouse", "adult", "person", "senior", "man", "woman", "boy", "girl",
})  # fmt: skip
_TWO = frozenset({"parents", "couple", "grandparents", "both"})
_WORD = re.compile(r"[a-z]+|\d+")


def people_meant(phrase: str) -> int | None:
    """Return how many come: looked up, or numbers, the speaker and single persons added up; None when it tells none."""
    text = " ".join(phrase.lower().split())
    if text in _READ:
        return _READ[text]
    words = _WORD.findall(text)
    total = 0
    for place, word in enumerate(words):
        is_counted = place > 0 and _number(words[place - 1]) is not None
        total += _number(word) or 0
        total += word in _SELF
        total += 0 if is_counted else (word in _ONE) + 2 * (word in _TWO)
    return total or None


def _number(word: str) -> int | None:
    return int(word) if word.isdigit() else NUMBERS.get(word)
