"""What the words of a fact entitle an item to say; over the normal forms of `workers.statements`."""

import re
from functools import cache

from pydantic import JsonValue

from memory.documents.items import Item, leaf_text
from workers.agents.memory_worker.cues import cue_words
from workers.statements.normal import may_merge, normal, same
from workers.statements.words import load_words

#: Parts of a sentence that may each say yes or no for themselves.
_CLAUSES = re.compile(r"[,;.!?]\s|\b(?:but|except|although|though|however|while|whereas)\b", re.IGNORECASE)
_ASIDE = re.compile(r"\s*\([^()]*\)\s*$")
#: Joins what two texts say, and says nothing itself.
_JOINING = frozenset(("and",))
#: Groups of contrasting words that say nothing by themselves: before and after, more and less, left and right.
_PLACING = frozenset(("order", "degree", "place", "and"))


def text_of(value: JsonValue) -> str:
    """Return what an item says, without its other fields; any other value as its reader sees it."""
    # Nearly every value is an item of ours, and every fact looks at many of them.
    shown = value.get("display") if isinstance(value, dict) else value
    if isinstance(shown, str) and shown[:1].strip():
        return shown
    item = Item.read(value)
    return leaf_text(value) if item is None else item.display


def is_same(kept: str, said: str) -> bool:
    """Tell whether *kept* says *said* already: in other wording, or with an aside behind that changes nothing of it."""
    if same(kept, said):
        return True
    if not kept.endswith(")"):
        return False
    return same(_ASIDE.sub("", kept), said) and may_merge(kept, said)


def words_of(text: str) -> frozenset[str]:
    """Return the words and numbers of *text* in their normal form."""
    return frozenset(normal(text).key_words)


def content_of(text: str) -> frozenset[str]:
    """Return the words of *text* that say something by themselves."""
    return words_of(text) - _fillers()


def topics_of(text: str) -> frozenset[str]:
    """Return the words of *text* that tell what it is about: no time, quality, amount, negation or verb of all days."""
    words = load_words()
    return words_of(text) - words.function - frozenset(words.contrasts) - words.negations - cue_words("everyday")


def says_something(text: str) -> bool:
    """Tell whether *text* has more than words that place, count or join others."""
    contrasts = load_words().contrasts
    said = (word for word in content_of(text) if contrasts.get(word) not in _PLACING)
    return any(word not in cue_words("everyday") for word in said)


def unsupported(display: str, *sources: str) -> frozenset[str]:
    """Return the words of *display* that are in none of *sources*; what only joins words needs no support."""
    known = frozenset[str]().union(*map(words_of, sources))
    return content_of(display) - known


def is_in_order(display: str, text: str) -> bool:
    """Tell whether the words of *display* follow each other as they do in *text*, whatever stands between them."""
    following = iter(normal(text).key_words)
    return all(word in following for word in normal(display).key_words if word not in _fillers())


def keeps_negation(display: str, text: str) -> bool:
    """Tell whether *display* says no where *text* does: in the clause that it comes from, or else in all of it."""
    wanted = negations_in(display)
    clauses = [clause for clause in _CLAUSES.split(text) if content_of(display) <= words_of(clause)]
    return any(negations_in(clause) == wanted for clause in clauses or [text])


def negations_in(text: str) -> frozenset[str]:
    """Return the words of *text* that say no."""
    return words_of(text) & load_words().negations


@cache
def _fillers() -> frozenset[str]:
    words = load_words()
    return (words.function - words.negations - frozenset(words.contrasts)) | _JOINING
