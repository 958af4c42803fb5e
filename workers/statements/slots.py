"""What may stand in a slot of a pattern: a thing or a list of things, a kind of thing, a time, a name."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from contracts.errors import ConfigurationError
from workers.statements.datafiles import Table, strings_at, table_at, words_at
from workers.statements.habits import Habits, is_number
from workers.statements.statement import Relation
from workers.statements.taxonomy import UNKNOWN_BEFORE_HEAD, Taxonomy
from workers.statements.things import Things
from workers.statements.tokens import Word, written
from workers.statements.words import Words

#: Things of one list; more is no list that somebody says.
_MOST_ITEMS = 20

_SIGN = re.compile(r"[^\w\s]")
#: Signs that may end what is said: "(especially carbonara)", "100 %", "C#".
_CLOSING = frozenset(")%+#")


@dataclass(frozen=True)
class SlotType:
    """One entry of `[slots]`; each check is left out when it is empty.

    At most `words` words, those of one thing when it may be `split` into several. `is_` are categories of which the
    head is to be, `wholly` one of which all words are, with something of `has` and of `also` in it. `habit` asks for a
    time (clock, rhythm, any), `check` for something of its own.
    """

    words: int
    split: bool = False
    is_: tuple[str, ...] = ()
    wholly: str = ""
    has: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    is_exact: bool = False
    is_optional: bool = False
    tail: tuple[str, ...] = ()
    habit: str = ""
    check: str = ""
    gerund: bool = False


class Slots:
    """Checks and reads what stands in slots; pure."""

    def __init__(self, grammar: Table, dates: Table, taxonomy: Taxonomy, words: Words) -> None:
        self._taxonomy = taxonomy
        self._things = Things(grammar, taxonomy, words)
        self._habits = Habits(dates)
        self._types = {name: _slot_type(name, table_at(grammar, "slots", name)) for name in table_at(grammar, "slots")}
        self._joins = frozenset(strings_at(grammar, "around", "lists"))
        self._qualifiers = frozenset(strings_at(grammar, "around", "qualifiers"))
        self._gerunds = words_at(grammar, "gerunds")
        self._places = _by_name(table_at(grammar, "places"))
        self._topics = _by_name(table_at(grammar, "topics"))
        self._checks: dict[str, Callable[[Sequence[Word], SlotType], str | None]] = {
            "list": lambda words, _: _listed_in(words, self._places),
            "topic": lambda words, _: _listed_in(words, self._topics),
            "verbatim": lambda words, _: self.told_of_another(words),
            "definite": lambda words, _: self.told_of_another(words) if self._things.is_definite(words) else None,
            "number": lambda words, _: written(words) if is_number(written(words)) else None,
            "capital": lambda words, _: self._things.name_in(words, is_strange=False),
            "strange": lambda words, _: self._things.name_in(words, is_strange=True),
            "place": self._place,
        }

    def fill(self, type_: str, words: Sequence[Word], *, is_habit: bool, one_day: bool) -> tuple[str, ...] | None:
        """Return what *words* name in a slot of *type_*, several for a list; None when they do not belong there.

        *is_habit* tells that the clause says so elsewhere ("usually"); *one_day* that a single weekday means each.
        """
        kind = self._types.get(type_)
        if kind is None:
            raise ConfigurationError(f"the slot {type_!r} is not among those of [slots]; add it there")
        words = _stripped(words)
        if not words and kind.is_optional:
            return ("",)
        if not words or (not kind.split and len(words) > kind.words):
            return None
        if kind.check != "verbatim" and self._habits.is_relative(_texts(words), one_day=one_day):
            return None
        if kind.split:
            return self._listed(words, kind)
        text = self._single(words, kind, is_habit=is_habit, one_day=one_day)
        return None if text is None else (text,)

    def told_of_another(self, words: Sequence[Word]) -> str:
        """Return *words* as somebody else would say them: "my dog" as "their dog"."""
        return self._things.told_of_another(words)

    def relation_of_list(self, name: str) -> Relation | None:
        """Return the relation whose list people call *name* ("likes"), None for none."""
        return cast("Relation | None", self._places.get(name.lower()))

    def tag_of_topic(self, name: str) -> str | None:
        """Return the tag of the documents that *name* ("food") is about, None for none."""
        return self._topics.get(name.lower())

    def is_timed(self, type_: str) -> bool:
        """True for a slot that holds a time."""
        return type_ in self._types and bool(self._types[type_].habit)

    def is_time(self, words: Sequence[Word]) -> bool:
        """True for words that only say when: "on Fridays", "every morning", "at 6:30"."""
        return self._habits.opens(_texts(words)) and not self._things.points_elsewhere(words)

    # -- lists -----------------------------------------------------------------------------------------------------

    def _listed(self, words: Sequence[Word], kind: SlotType) -> tuple[str, ...] | None:
        """Return the things that *words* list, None when one of them is none."""
        parts = self._parts(words)
        if len(parts) > _MOST_ITEMS:
            return None
        found = []
        for part in parts:
            text = self._item(part, kind, is_alone=len(parts) == 1) if part else None
            if text is None:
                return None
            found.append(text)
        return tuple(found)

    def _parts(self, words: Sequence[Word]) -> list[Sequence[Word]]:
        if self._is_one(words):
            return [words]
        parts: list[list[Word]] = [[]]
        for place, word in enumerate(words):
            if word.text not in self._joins:
                parts[-1].append(word)
            elif word.text == "," and words[place + 1 : place + 2] and words[place + 1].text in self._qualifiers:
                return [words]
            elif self._joins_a_term(words, place, len(parts[-1])):
                parts[-1].append(word)
            elif parts[-1]:
                parts.append([])
        return [part for part in parts if part] or [[]]

    def _is_one(self, words: Sequence[Word]) -> bool:
        return all(word.text not in self._joins for word in words) or self._taxonomy.knows(written(words))

    def _joins_a_term(self, words: Sequence[Word], place: int, before: int) -> bool:
        """True for the "and" of "mac and cheese", a term of its own."""
        ahead = next((at for at in range(place + 1, len(words)) if words[at].text in self._joins), len(words))
        return words[place].text != "," and self._taxonomy.knows(written(words[place - before : ahead]))

    def _item(self, words: Sequence[Word], kind: SlotType, *, is_alone: bool) -> str | None:
        words = self._things.without_articles(words, is_typed=bool(kind.is_))
        if not words or len(words) > kind.words:
            return None
        text = self.told_of_another(words)
        if kind.is_:
            head = self.told_of_another(_before(words, kind.tail))
            return text if self._is_any(words, head, kind) or self._is_any(words, text, kind) else None
        # In a list, two unknown words may be a clause: "eggs and Ben cooks".
        is_told = is_alone or len(words) == 1 or bool(self._taxonomy.read(text).matches)
        return text if is_told and self._things.is_thing(words) else None

    # -- one thing -------------------------------------------------------------------------------------------------

    def _single(self, words: Sequence[Word], kind: SlotType, *, is_habit: bool, one_day: bool) -> str | None:
        if kind.check:
            return self._checks[kind.check](words, kind)
        if kind.habit:
            is_told = self._is_habit(words, kind, is_habit=is_habit, one_day=one_day)
            return self.told_of_another(words) if is_told else None
        if kind.wholly:
            text = self.told_of_another(words)
            is_told = self._taxonomy.is_wholly(text, kind.wholly) and self._names(text, kind.has)
            return text if is_told and self._names(text, kind.also) and not self._things.is_specific(words) else None
        if not kind.is_:
            return self.told_of_another(words) if self._things.is_thing(words) else None
        words = self._things.without_articles(words, is_typed=True)
        text = self.told_of_another(words)
        if kind.gerund:
            # Every word is part of it: "swim", and not "swim away".
            is_whole = self._is_any(words, text, kind) and any(self._taxonomy.is_wholly(text, one) for one in kind.is_)
            return self._gerund(text) if is_whole else None
        return text if self._is_any(words, text, kind) else None

    def _is_habit(self, words: Sequence[Word], kind: SlotType, *, is_habit: bool, one_day: bool) -> bool:
        """True for words with a time of the sort that *kind* asks for, and nothing in them that points elsewhere."""
        texts = _texts(words)
        if self._things.points_elsewhere(words) or self._things.is_denied(words[:1]):
            return False
        if kind.habit == "clock":
            return self._habits.has_clock(texts)
        if is_habit or self._habits.has_rhythm(texts, one_day=one_day):
            return True
        return kind.habit == "any" and self._habits.has_clock(texts)

    def _place(self, words: Sequence[Word], kind: SlotType) -> str | None:
        text = self.told_of_another(words)
        return text if self._things.is_place(words) or self._is_any(words, text, kind) else None

    def _is_any(self, words: Sequence[Word], text: str, kind: SlotType) -> bool:
        """True when *text*, made of *words*, is of one of the categories of *kind*."""
        if self._things.is_denied(words) and not self._taxonomy.knows(text):
            return False
        if kind.is_exact and any(sign.isdigit() for sign in text) and not self._taxonomy.knows(text):
            return False
        unknown = 0 if kind.is_exact else UNKNOWN_BEFORE_HEAD
        return any(
            self._taxonomy.is_headed(text, one, unknown) or self._taxonomy.is_wholly(text, one) for one in kind.is_
        )

    def _names(self, text: str, categories: tuple[str, ...]) -> bool:
        """True when something in *text* is of one of *categories*, or there are none."""
        return not categories or any(self._taxonomy.is_a(text, one) is True for one in categories)

    def _gerund(self, verb: str) -> str:
        """Return "swimming" for "swim"."""
        first, _, rest = verb.partition(" ")
        ending = self._gerunds.get(first)
        if ending is None:
            ending = f"{first[:-1]}ing" if first.endswith("e") and not first.endswith(("ee", "ye")) else f"{first}ing"
        return f"{ending} {rest}".strip()


def _slot_type(name: str, table: Mapping[str, object]) -> SlotType:
    known = {"words", "split", "is", "wholly", "has", "also", "exact", "optional", "tail", "habit", "check", "gerund"}
    if not set(table) <= known or not isinstance(table.get("words"), int):
        raise ConfigurationError(f"the slot {name!r} needs `words`, and takes {', '.join(sorted(known))} only")
    return SlotType(
        words=int(str(table["words"])),
        split=table.get("split") is True,
        is_=strings_at(table, "is"),
        wholly=str(table.get("wholly", "")),
        has=strings_at(table, "has"),
        also=strings_at(table, "also"),
        is_exact=table.get("exact") is True,
        is_optional=table.get("optional") is True,
        tail=strings_at(table, "tail"),
        habit=str(table.get("habit", "")),
        check=str(table.get("check", "")),
        gerund=table.get("gerund") is True,
    )


def _by_name(table: Table) -> dict[str, str]:
    return {name: told for told in table for name in strings_at(table, told)}


def _texts(words: Sequence[Word]) -> list[str]:
    return [word.text for word in words]


def _listed_in(words: Sequence[Word], names: Mapping[str, str]) -> str | None:
    said = " ".join(_texts(words))
    return said if said in names else None


def _stripped(words: Sequence[Word]) -> Sequence[Word]:
    """Return *words* without signs around them."""
    first, last = 0, len(words)
    while first < last and _SIGN.fullmatch(words[first].text):
        first += 1
    while last > first and _SIGN.fullmatch(words[last - 1].text) and words[last - 1].text not in _CLOSING:
        last -= 1
    return words[first:last]


def _before(words: Sequence[Word], tail: tuple[str, ...]) -> Sequence[Word]:
    """Return *words* up to the first one of *tail*: the arthritis of "arthritis in my hands"."""
    place = next((place for place, word in enumerate(words) if place and word.text in tail), len(words))
    return words[:place]
