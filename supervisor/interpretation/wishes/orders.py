"""Whether words behind a mere comma order a task of their own; a comma joins values far oftener than wishes."""

import re
from collections.abc import Collection, Sequence

from supervisor.interpretation.wishes.routing import Prepared
from supervisor.interpretation.words import STOP, Token, stems_of, word_set

#: Beginnings of a sentence that only tells something.
TELLING = word_set(
    "the my our your his her their its i i'm i've i'd i'll we we're we've he she it it's they this that there these"
    " those a an in on at for with without of to from by as but or because since so while which"
)
ASKING = word_set(
    "what what's whats how how's when where who which why is are am was were do does did can could will would should"
    " may might please tell show give let let's"
)
#: After "I": a wish, and no account of something.
WISHING = word_set("want need would like wish")
#: "Sorry, the limit is 60k" says the same part anew.
CORRECTING = word_set("sorry no wait correction actually rather oops i mean")
#: "When I book a ride, greet Ada": what comes first only says when, or whether.
_ON_CONDITION = word_set("if when whenever once after before unless until while because since although though as")
#: Of these, what says in which turn both are wanted.
_IN_TURN = frozenset({"before", "after"})
#: Before the verb of an order.
_POLITE = word_set("please pls plz kindly now next lastly first second third also then finally")
_POLITE_AFTER = word_set("pls plz thx thanks thank you too for me us as well")
_WHOM = word_set("me us")
#: What follows a verb that nobody declared ("check *my* budget"), and no noun ("travel budget").
_DETERMINERS = _WHOM | word_set("a an the my our your this that these those some another")
#: Words of a noun phrase up to its noun: "quick joke".
_MOST_BEFORE_NOUN = 2
_MOST_IN_NAME = 3
#: Words in which an order names its task.
_REACH = 12
#: Not "the same budget": a further one of what the task is about.
_ANOTHER = re.compile(
    r"\b(?:another|(?:a|the|my|our) (?:second|third|different|separate|new|other)|one more)\s+(\w+)",
    re.IGNORECASE,
)


def may_order(tokens: Sequence[Token], comma: int, names: Collection[str]) -> bool:
    """Return whether the words after the *comma* may be an order, given all *names* of tasks: a cheap first look.

    They are none where the words before it only lead up to them, or take back what was said.
    """
    words = _words_at(tokens, comma + 1)
    if (
        not words
        or (words[0].text[0].isdigit() and not _counts_named(words, names))
        or words[0].text in CORRECTING - {"i"}
        or _leads_on(tokens, comma)
    ):
        return False
    is_wish = words[0].text in {"i", "we", "i'd", "we'd"} and len(words) > 1 and words[1].text in WISHING
    if words[0].text in TELLING and not is_wish and not _is_noun_phrase(words, names):
        return False
    return any(word.stem in names for word in words)


def _counts_named(words: Sequence[Token], names: Collection[str]) -> bool:
    """Return whether *words* are "2 tickets for Hamlet": so many of what a task is about, and for what."""
    return len(words) > _MOST_IN_NAME and words[1].stem in names and words[2].text in {"for", "to", "from", "at"}


def _words_at(tokens: Sequence[Token], place: int) -> list[Token]:
    """Return the words from *place* on up to the next mark, without polite ones at their beginning."""
    words: list[Token] = []
    for token in tokens[place : place + _REACH]:
        if not token.is_word:
            break
        if words or token.text not in _POLITE:
            words.append(token)
    return words


def _leads_on(tokens: Sequence[Token], comma: int) -> bool:
    """True when what stands between the *comma* and the mark before it is a condition, or a word of correction."""
    first = comma
    while first > 0 and tokens[first - 1].is_word:
        first -= 1
    if first < comma and asks_before(tokens, first):
        return False
    return first < comma and tokens[first].text in _ON_CONDITION | CORRECTING - {"i"}


def asks_before(tokens: Sequence[Token], place: int) -> bool:
    """Return whether a wish begins at *place* with its turn: "before you tell me a joke", "after greeting Bob"."""
    if tokens[place].text not in _IN_TURN or place + 1 >= len(tokens):
        return False
    following = tokens[place + 1]
    return following.text == "you" or (following.is_word and following.text.endswith("ing"))


def _is_noun_phrase(words: Sequence[Token], names: Collection[str]) -> bool:
    """Return whether *words* begin with "the weather" or "a quick joke": what a task is about, and no verb."""
    first = 1 if words[0].text in _DETERMINERS - _WHOM else 0
    return any(word.stem in names for word in words[first : first + _MOST_BEFORE_NOUN])


def names_only(tokens: Sequence[Token], task: Prepared) -> bool:
    """Return whether *tokens* are a name of *task* and nothing more: "a joke please"."""
    words = [token for token in tokens if token.is_word and token.text not in _POLITE | _POLITE_AFTER]
    if words and words[0].text in _DETERMINERS - _WHOM:
        words = words[1:]
    return 0 < len(words) <= _MOST_IN_NAME and all(word.stem in task.names for word in words)


def names_at_first(tokens: Sequence[Token], task: Prepared) -> bool:
    """Return whether *tokens* begin with what *task* is about: "the weather in Lima", "2 tickets for Hamlet"."""
    words = _words_at(tokens, 0)
    if words and words[0].text[0].isdigit():
        return _counts_named(words, task.names)
    return len(words) > 1 and words[0].text in _DETERMINERS - _WHOM and _is_noun_phrase(words, task.names)


def names_in_front(tokens: Sequence[Token], task: Prepared) -> bool:
    """Return whether *tokens* begin with a keyword of *task*, bare or with "the" before it, and say more."""
    return names_first(tokens, task) or names_at_first(tokens, task)


def _is_announced(tokens: Sequence[Token], word: Token) -> bool:
    """True for the "trip" of "trip: hotel 900"."""
    return any(token.text == ":" and token.start == word.end for token in tokens)


def orders(tokens: Sequence[Token], task: Prepared) -> bool:
    """Return whether *tokens* begin with an order or a question that names *task*: its verb, and what it is about.

    "Check my budget" does; "travel budget" and "book lover" do not.
    """
    words = _words_at(tokens, 0)
    if len(words) < 2 or not any(word.stem in task.names for word in words[1:]):
        return False
    first, second = words[0], words[1]
    if first.text in {"i", "we", "i'd", "we'd"} or _is_verb(first, task):
        return True
    if first.text in ASKING:
        return first.text not in {"tell", "show", "give"} or second.text in _WHOM
    return first.text not in STOP and second.text in _DETERMINERS


def begins_with_verb(tokens: Sequence[Token], task: Prepared) -> bool:
    """Return whether *tokens* begin with what *task* does, and say more: "send Anna 50 euros"."""
    words = _words_at(tokens, 0)
    return len(words) > 1 and _is_verb(words[0], task)


def names_first(tokens: Sequence[Token], task: Prepared) -> bool:
    """Return whether *tokens* begin with a keyword of *task*, and say more: "taxi to the airport", "taxi: 12 km"."""
    words = _words_at(tokens, 0)
    return bool(words) and words[0].stem in task.names and (len(words) > 1 or _is_announced(tokens, words[-1]))


def _is_verb(word: Token, task: Prepared) -> bool:
    """Return whether *word* is what *task* does, as its name or one of its examples begins."""
    return any(stems_of(said)[:1] == (word.stem,) for said in (task.offer.task.name, *task.offer.task.examples))


def wants_another(text: str, task: Prepared) -> bool:
    """Return whether *text* speaks of another one of what *task* is about: "check another budget"."""
    about = {*stems_of(task.offer.task.name)[1:], *stems_of(task.offer.agent.agent_id.removesuffix("Agent"))}
    return any(about.intersection(stems_of(match[1])) for match in _ANOTHER.finditer(text))
