"""Names in an utterance: the capitalised words that neither a sentence nor a card explains."""

import re

from tasklore.supervisor.understanding.utterance import STOP, ReadUtterance

_GLUED = re.compile(r"(?:\w+[-/.&'])+$")
#: Characters before a name in which the beginning of its word is looked for.
_LONGEST_GLUED = 64


def names_in(utterance: ReadUtterance, known: frozenset[str]) -> list[tuple[int, int]]:
    """Return where names stand: capitalised words inside a sentence that the card, with its *known* stems, has not."""
    tokens = utterance.tokens
    text = utterance.text
    words = [token for token in tokens if token.is_word]
    if sum(text[token.start].islower() for token in words) < min(2, len(words) - 1):
        return []
    found: list[tuple[int, int]] = []
    for place, token in enumerate(tokens):
        if (
            not token.is_word
            or not text[token.start].isupper()
            or token.text.split("'")[0] == "i"
        ):
            continue
        before = text[: token.start].rstrip()
        is_first = (
            place == 0
            or before[-1:] in '.!?\n"\u201c('
            or (place == 2 and not tokens[1].is_word)
        )
        if (
            found
            and token.stem not in known
            and not text[found[-1][1] : token.start].strip(" -'.&")
        ):
            found[-1] = (found[-1][0], token.end)
        elif not is_first and token.stem not in known and token.text not in STOP:
            found.append((token.start, token.end))
    dates = utterance.moment_marks
    amounts = utterance.amount_marks
    return [
        (_glued_start(text, start), end)
        for start, end in found
        if not dates[start] and not amounts[start]
    ]


def _glued_start(text: str, start: int) -> int:
    """Return where the word begins that the name at *start* is glued to: the "B" of "B-XY 12"."""
    match = _GLUED.search(text[max(start - _LONGEST_GLUED, 0) : start])
    return start - len(match.group()) if match else start
