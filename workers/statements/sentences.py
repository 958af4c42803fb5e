"""A text cut into sentences, without what other people said in it and what is to be worked on."""

from collections.abc import Sequence
from dataclasses import dataclass

from workers.statements.grammar import Grammar
from workers.statements.tokens import MASK, Word, folded, masked, words_of
from workers.statements.words import Words

_ENDS = frozenset(".!?;…\n")
#: Words of the longest label: "one more thing:".
_LABEL = 5
#: Words of the longest way to ask for something: "I would like you to please".
_ASKING = 9


@dataclass(frozen=True, slots=True)
class Sentence:
    """The words of one sentence, its mark left out; `is_question` by its mark, `is_foreign` when it is another's."""

    words: tuple[Word, ...]
    is_question: bool = False
    is_foreign: bool = False

    @property
    def texts(self) -> tuple[str, ...]:
        """Its words as they are compared."""
        return tuple(word.text for word in self.words)


def sentences_of(text: str, grammar: Grammar, words: Words) -> tuple[Sentence, ...]:
    """Return the sentences that may be the writer's own words about themselves; none of a text that holds others'."""
    small = folded(text)
    if any(sign in small for sign in grammar.blocks.texts):
        return ()
    found: list[Sentence] = []
    for sentence in _cut(list(words_of(masked(text), words.contractions)), grammar):
        asked = _asked(sentence.texts, grammar)
        if grammar.blocks.tasks.opening(asked):
            return ()
        if grammar.blocks.tasks_after.opening(asked):
            break
        if sentence.texts[-1] == ":":
            if grammar.blocks.labels.opening(sentence.texts) == len(sentence.words) - 1:
                continue
            # After "She sent me this:" it is not the writer who speaks.
            break
        found.append(_without_label(sentence, grammar))
    return tuple(found)


def _cut(words: Sequence[Word], grammar: Grammar) -> list[Sentence]:
    found: list[Sentence] = []
    begin = 0
    for place, word in enumerate(words):
        if word.text in _ENDS and _ends(words, place, grammar):
            _add(found, words[begin:place], word.text, grammar)
            begin = place + 1
    _add(found, words[begin:], "", grammar)
    return found


def _add(found: list[Sentence], words: Sequence[Word], mark: str, grammar: Grammar) -> None:
    said = tuple(word.text for word in words if word.text[:1].isalnum())
    if said in grammar.blocks.takes_back and found:
        # "I'm vegan ... not!"
        found[-1] = Sentence(found[-1].words, found[-1].is_question, is_foreign=True)
    elif said or any(word.text == MASK for word in words):
        is_foreign = any(word.text == MASK for word in words) or words[0].text in grammar.blocks.signs
        found.append(Sentence(tuple(words), is_question=mark == "?", is_foreign=is_foreign))
    elif mark == "?" and found:
        # "?!" and "??" belong to the sentence before.
        found[-1] = Sentence(found[-1].words, is_question=True, is_foreign=found[-1].is_foreign)


def _ends(words: Sequence[Word], place: int, grammar: Grammar) -> bool:
    """True unless the sign belongs to its word ("6.30", "a.m.", "Dr."), or the line goes on in the next one."""
    word, before = words[place], words[place - 1] if place else None
    after = words[place + 1] if place + 1 < len(words) else None
    if word.text == "\n":
        return after is None or not _goes_on(after, grammar)
    if word.text != "." or after is None or before is None:
        return True
    if after.start == word.end and after.text != "\n":
        return after.text in _ENDS or not after.text[:1].isalnum()
    is_short = before.text in grammar.blocks.abbreviations or (
        len(before.text) == 1 and place > 1 and words[place - 2].text == "."
    )
    return not is_short


def _goes_on(after: Word, grammar: Grammar) -> bool:
    """True for a line that begins within a sentence."""
    return after.written[:1].islower() and (after.text in grammar.blocks.words or after.text in grammar.joins)


def _asked(texts: Sequence[str], grammar: Grammar) -> Sequence[str]:
    """Return *texts* without the polite words that a request begins with."""
    place = 0
    while place < min(len(texts), _ASKING) and texts[place] in grammar.blocks.asking:
        place += 1
    return texts[place : place + 8]


def _without_label(sentence: Sentence, grammar: Grammar) -> Sentence:
    """Return *sentence* without a label of one's own ("Note:"); behind somebody's name it is foreign."""
    texts = sentence.texts
    colon = next((place for place in range(1, min(_LABEL + 1, len(texts))) if _is_colon(sentence.words, place)), None)
    if colon is None or grammar.blocks.named.closing(texts[:colon]):
        return sentence
    if grammar.blocks.labels.opening(texts[:colon]) == colon:
        return Sentence(sentence.words[colon + 1 :], sentence.is_question, sentence.is_foreign)
    return Sentence(sentence.words, sentence.is_question, is_foreign=True)


def _is_colon(words: Sequence[Word], place: int) -> bool:
    """True for a colon with a word behind it; ":)" is none."""
    after = words[place + 1 : place + 2]
    return words[place].text == ":" and bool(after) and after[0].start > words[place].end
