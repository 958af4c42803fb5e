"""Short answers to what asks for nothing: a greeting, thanks, a goodbye, the question what can be asked here."""

import re

from supervisor.understanding.utterance import word_set

_WORD = re.compile(r"[a-z]+(?:['\u2019][a-z]+)?")
#: More words than these say more than a courtesy.
_MOST_WORDS = 8
#: Words that stand beside any of the courtesies and change nothing.
_BESIDE = word_set(
    "a again all and assistant everyone folks for it just lot many much my ok okay oh really so that that's the there"
    " then this to today too very well you your"
)
#: What carries each courtesy; the first one that is said, and nothing else, is answered.
_THANKS = word_set("thanks thank thx ty cheers appreciated appreciate")
_FAREWELL = word_set("bye goodbye ciao later night see tomorrow")
_GREETING = word_set("hello hi hey hiya howdy good morning afternoon evening how are doing things")
_ASSENT = word_set("great perfect nice cool good fine wonderful excellent awesome lol haha right ok okay")
_ABILITIES = word_set("what can you do i ask here help who are me how does work")
_ASKED_FOR_ABILITIES = re.compile(r"\bhelp\b|\bwhat (?:can|do) (?:you|i)\b|\bwho are you\b|\bhow does this work\b")


def answer_small_talk(text: str, abilities: str) -> str | None:
    """Return the answer to *text* when it is a courtesy and nothing else, else None; *abilities* tells what to ask."""
    lowered = text.lower()
    words = _WORD.findall(lowered)
    if not words or len(words) > _MOST_WORDS or any(letter.isdigit() for letter in text):
        return None
    if _ASKED_FOR_ABILITIES.search(lowered) and _are(words, _ABILITIES):
        return abilities
    for carrying, answer in (
        (_THANKS, "You are welcome."),
        (_FAREWELL, "Goodbye."),
        (_GREETING, f"Hello. {abilities}"),
        (_ASSENT, "All right."),
    ):
        if _are(words, carrying | _ASSENT if carrying is not _GREETING else carrying) and carrying & set(words):
            return answer
    return None


def _are(words: list[str], known: frozenset[str]) -> bool:
    return all(word in known or word in _BESIDE for word in words)
