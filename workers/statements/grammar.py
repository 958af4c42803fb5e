"""The grammar of statements as `grammar.toml` tells it: patterns and what they mean, and what may stand around them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, cast, get_args

from contracts.errors import ConfigurationError
from workers.statements.datafiles import Table, read_tables, strings_at, table_at, words_at
from workers.statements.patterns import Patterns
from workers.statements.statement import Durability, Kind, Polarity, Relation

Phrase = tuple[str, ...]

#: Words of a clause within which a "not" denies it: "I really do not".
_DENIED_WITHIN = 6


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a pattern says when it fits; `object` is a template of its slots, of named words and of `{said}`.

    `relations` are several that are meant at once, instead of `relation`.
    `by_tag` tells another relation by the tag of the object's topic, and `durability` None is the relation's own.
    """

    kind: Kind | Literal["nothing"]
    relation: Relation | None
    relations: tuple[Relation, ...]
    by_tag: Mapping[str, Relation]
    object: str
    tags: tuple[str, ...]
    durability: Durability | None
    needs_end: bool
    needs_greeting: bool


@dataclass(frozen=True, slots=True)
class RelationWords:
    """How a relation is told, and what is true of all that is said in it.

    `adjective` is the category whose terms one *is*, "" for none; `place` what people call the list.
    """

    text: str
    polarity: Polarity
    durability: Durability
    tags: tuple[str, ...]
    place: str
    adjective: str


class Phrases:
    """A set of word sequences to be looked for at the beginning or end of others."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._phrases = frozenset(tuple(text.split()) for text in texts)
        self._opening = _lengths(self._phrases, 0)
        self._closing = _lengths(self._phrases, -1)

    def opening(self, words: Sequence[str]) -> int:
        """Return how many words the longest one has that *words* begin with, 0 for none."""
        lengths = self._opening.get(words[0], ()) if words else ()
        return next((length for length in lengths if tuple(words[:length]) in self._phrases), 0)

    def closing(self, words: Sequence[str]) -> int:
        """Return how many words the longest one has that *words* end with, 0 for none."""
        lengths = self._closing.get(words[-1], ()) if words else ()
        return next((length for length in lengths if tuple(words[-length:]) in self._phrases), 0)

    def place_in(self, words: Sequence[str], first: int = 0) -> int | None:
        """Return where the first one begins at or after *first*, None when none does."""
        return next((place for place in range(first, len(words)) if self.opening(words[place : place + 8])), None)


class Blocks:
    """What makes a sentence unsure, somebody else's, or nothing to be asked about."""

    def __init__(self, table: Table) -> None:
        self.words = frozenset(strings_at(table, "words"))
        self.timed = frozenset(strings_at(table, "timed"))
        self.texts = strings_at(table, "texts")
        self.signs = frozenset(strings_at(table, "signs"))
        self.tasks = Phrases(strings_at(table, "tasks"))
        self.tasks_after = Phrases(strings_at(table, "tasks_after"))
        self.asking = frozenset(strings_at(table, "asking"))
        self.askers = frozenset(strings_at(table, "askers"))
        self.takes_back = frozenset(tuple(text.split()) for text in strings_at(table, "takes_back"))
        self.labels = Phrases(strings_at(table, "labels"))
        self.named = Phrases(strings_at(table, "named"))
        self.abbreviations = frozenset(strings_at(table, "abbreviations"))
        self.nothing = Phrases(strings_at(table, "nothing"))
        self.other_persons = frozenset(strings_at(table, "other_persons"))
        self.about_me = frozenset(strings_at(table, "about_me"))


class Grammar:
    """One reading of `grammar.toml`; make it with `load_grammar`."""

    def __init__(self, table: Table) -> None:
        raw = table.get("patterns", [])
        entries = cast("list[Table]", raw) if isinstance(raw, list) else []
        around = table_at(table, "around")
        self.blocks = Blocks(table_at(table, "blocks"))
        fillers = frozenset(tuple(text.split()) for text in strings_at(around, "fillers"))
        self.patterns = Patterns([strings_at(entry, "say") for entry in entries], fillers)
        self.meanings = tuple(_meaning(number, entry) for number, entry in enumerate(entries))
        self.relations = {name: _relation(table_at(table, "relations", name)) for name in table_at(table, "relations")}
        self.texts = words_at(table, "texts")
        self._read_person(table)
        self._read_around(around)
        self.openings = words_at(table, "openings")
        self.orders = frozenset(strings_at(table, "orders", "begin"))
        self.exceptions = frozenset(strings_at(table, "orders", "exceptions"))
        self.turns = Turns(table_at(table, "turns"))
        self.denials = frozenset(strings_at(table, "objects", "denials"))
        self.topic_roots = strings_at(table, "topic_roots")
        self.edible, self.passing = _word(table, "edible"), _word(table, "passing")

    def _read_person(self, table: Table) -> None:
        """Read the words for the person, and the verbs of clauses about them."""
        self.first = strings_at(table, "person", "first")[0]
        self.owner = strings_at(table, "person", "owner")[0]
        self.third = Phrases(strings_at(table, "person", "third"))
        self.elided = tuple(
            (Phrases(strings_at(table, "person", name)), (self.first, *verb))
            for name, verb in (("elided_i", ()), ("elided_am", ("am",)))
        )
        self.adverbs = frozenset(strings_at(table, "person", "adverbs"))
        self.person_words = words_at(table, "person_words")
        self._said_verbs = self.patterns.verbs_after(self.first, self.adverbs)
        self.verbs = {verb: told for verb, told in table_at(table, "verbs").items() if isinstance(told, str)}
        self.told_verbs = frozenset(strings_at(table, "verbs", "told"))
        self.participles = frozenset(strings_at(table, "verbs", "participles"))
        self.began = frozenset(strings_at(table, "verbs", "began"))

    def _read_around(self, around: Table) -> None:
        """Read what may stand around a statement."""
        self.lead_ins = Phrases(strings_at(around, "lead_ins"))
        self.greetings = Phrases(strings_at(around, "greetings"))
        self.wishes = Phrases(strings_at(around, "wishes"))
        self.tails = Phrases(strings_at(around, "tails"))
        self.degrees = Phrases(strings_at(around, "degrees"))
        self.limits = Phrases(strings_at(around, "limits"))
        self.past = Phrases(strings_at(around, "past"))
        self.reasons = Phrases(strings_at(around, "reasons"))
        self.joins = frozenset(strings_at(around, "joins"))
        self.habitual = frozenset(strings_at(around, "habitual"))
        self.behind_not = frozenset(strings_at(around, "behind_not"))
        self.hedges = frozenset(strings_at(around, "hedges"))
        self.behind_taking_back = frozenset(strings_at(around, "behind_taking_back"))
        self.been = frozenset(strings_at(around, "been"))

    def is_denied(self, texts: Sequence[str]) -> bool:
        """True for a clause with a "not" at its beginning."""
        return any(text in self.denials for text in texts[:_DENIED_WITHIN])

    def is_sure(self, texts: Sequence[str], skipped: Iterable[int], *, takes_back: bool) -> bool:
        """True unless a filler at one of the places *skipped* changes what a "not" of *texts* says: "not always".

        A habit that is denied is no rule, on whichever side of the "not" it is told.
        """
        denial = next((place for place, text in enumerate(texts[:_DENIED_WITHIN]) if text in self.denials), None)
        if denial is None:
            return True
        harmless = self.behind_taking_back if takes_back else self.behind_not
        return all(
            texts[place] in harmless if place > denial else texts[place] not in self.habitual for place in skipped
        )

    def is_verb(self, word: str) -> bool:
        """True for a word that may follow the subject of some pattern."""
        return word in self._said_verbs

    def is_told(self, object_: str) -> bool:
        """True for what a person does or is ("gets up at six"), and not something they have ("name is Ana")."""
        first = next((word for word in object_.split() if word not in self.adverbs), "")
        return first in self.told_verbs or self.base(first) != first

    def is_blocked(self, word: str, is_timed: bool) -> bool:
        """True for a word that makes a clause unsure; in a time, some of them are at home ("once a week")."""
        return word in self.blocks.words and not (is_timed and word in self.blocks.timed)

    def is_behind(self, texts: Sequence[str], words: int) -> bool:
        """True when the time that *texts* end with, in so many *words*, is one that lies behind.

        "I have been vegan for two years", "I gave up sugar this year".
        """
        is_length = texts[-words] in self.been
        if is_length:
            return len(texts) > words + 2 and texts[1] == "have" and texts[2] in self.participles
        return len(texts) > 1 and texts[1] in self.began

    def is_past(self, texts: Sequence[str]) -> bool:
        """True for a clause that tells how something began: "I went vegan", "I have lived"."""
        begins = len(texts) > 2 and texts[1] in self.began
        return begins or (len(texts) > 2 and texts[1] == "have" and texts[2] in self.participles)

    def inflected(self, verb: str) -> str:
        """Return *verb* as it is said of a third person: "go" as "goes"."""
        told = self.verbs.get(verb)
        if told is not None:
            return told
        if verb.endswith(("s", "sh", "ch", "x", "z", "o")):
            return f"{verb}es"
        if verb.endswith("y") and verb[-2:-1] not in "aeiou":
            return f"{verb[:-1]}ies"
        return f"{verb}s"

    def base(self, verb: str) -> str:
        """Return the verb that *verb* is the third person of, as patterns use it; *verb* itself when none is."""
        known = self._said_verbs
        for form in (verb[:-1], verb[:-2], f"{verb[:-3]}y", *self._irregular(verb)):
            if form in known and self.inflected(form) == verb:
                return form
        return verb

    def _irregular(self, verb: str) -> list[str]:
        return [form for form, told in self.verbs.items() if told == verb]


class Turns:
    """Words that turn a statement round: "no longer", "any more", "forget that"."""

    def __init__(self, table: Table) -> None:
        self.no_longer = Phrases(strings_at(table, "no_longer"))
        self.any_more = Phrases(strings_at(table, "any_more"))
        #: What "no longer" stands for: by itself, and after a helping verb; then whatever else denies.
        self.denials = tuple(tuple(text.split()) for text in strings_at(table, "not"))
        self.forget = Phrases(strings_at(table, "forget"))
        self.limiting = frozenset(strings_at(table, "limiting"))
        #: What "but not tea" is told with, what is no second thing by itself, and what begins none.
        self.gap, self.manners = tuple(_word(table, "gap").split()), frozenset(strings_at(table, "manners"))
        self.circumstances = frozenset(strings_at(table, "circumstances"))
        self.helping = frozenset(strings_at(table, "helping"))


@cache
def load_grammar(*folders: Path) -> Grammar:
    """Return the grammar of the shipped file, or of the one in *folders* that takes its place.

    Raises:
        ConfigurationError: a pattern or entry cannot be read; the message names it.
    """
    return Grammar(read_tables(*folders)["grammar"])


def _lengths(phrases: Iterable[Phrase], place: int) -> dict[str, tuple[int, ...]]:
    """Return how long the phrases are that have each word at *place*, the longest first."""
    found: dict[str, set[int]] = {}
    for phrase in phrases:
        found.setdefault(phrase[place], set()).add(len(phrase))
    return {word: tuple(sorted(lengths, reverse=True)) for word, lengths in found.items()}


def _meaning(number: int, entry: Table) -> Meaning:
    relation, kind, durability = (_word(entry, name) for name in ("relation", "kind", "durability"))
    several = strings_at(entry, "relations")
    is_known = {relation or "other", *several} <= set(get_args(Relation))
    if not is_known or (kind and kind not in (*get_args(Kind), "nothing")):
        told = relation or several
        raise ConfigurationError(f"pattern {number} has the relation {told!r} of kind {kind!r}; none may be new")
    return Meaning(
        kind=cast("Kind", kind or "tells"),
        relation=cast("Relation", relation) if relation else None,
        relations=cast("tuple[Relation, ...]", several),
        by_tag=cast("Mapping[str, Relation]", words_at(entry, "by_tag")),
        object=_word(entry, "object"),
        tags=strings_at(entry, "tags"),
        durability=cast("Durability", durability) if durability else None,
        needs_end=entry.get("needs_end") is True,
        needs_greeting=entry.get("needs_greeting") is True,
    )


def _relation(table: Table) -> RelationWords:
    return RelationWords(
        text=_word(table, "text"),
        polarity=cast("Polarity", _word(table, "polarity") or "neutral"),
        durability=cast("Durability", _word(table, "durability") or "long_term"),
        tags=strings_at(table, "tags"),
        place=_word(table, "place"),
        adjective=_word(table, "adjective"),
    )


def _word(table: Table, name: str) -> str:
    return next(iter(strings_at(table, name)), "")
