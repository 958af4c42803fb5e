"""Words that name something, and what tells them from half a sentence: no verb, no "you", no "this" in them."""

from collections.abc import Sequence

from workers.statements.datafiles import Table, strings_at, table_at, words_at
from workers.statements.habits import phrases_of
from workers.statements.taxonomy import Taxonomy
from workers.statements.tokens import Word, written
from workers.statements.words import Words

#: Letters of the shortest thing: "A" is an option, and "F1" a sport.
_SHORTEST = 2
#: Words of the longest article: "the taste of", "a lot of".
_LONGEST_ARTICLE = 4


class Things:
    """The entries of `[objects]`; pure."""

    def __init__(self, grammar: Table, taxonomy: Taxonomy, words: Words) -> None:
        self._taxonomy = taxonomy
        self._words = words
        self._person = words_at(grammar, "person_words")
        self._edible, *self._doable = strings_at(grammar, "topic_roots")
        objects = table_at(grammar, "objects")
        self._forbidden = frozenset(strings_at(objects, "forbidden"))
        self._never_open = frozenset(strings_at(objects, "never_open"))
        self._openers = frozenset(strings_at(objects, "openers"))
        self._signs = frozenset(strings_at(objects, "signs"))
        self._denials = frozenset((*strings_at(objects, "denials"), *strings_at(objects, "exceptions")))
        self._elsewhere = frozenset(strings_at(objects, "others")) | frozenset(strings_at(objects, "pointing"))
        self._specific = frozenset(strings_at(objects, "specific"))
        self._definite = frozenset(strings_at(objects, "definite_articles"))
        self._articles = phrases_of(strings_at(objects, "articles"))
        self._before_food = phrases_of(strings_at(objects, "before_food"))
        self._joins = frozenset(strings_at(grammar, "around", "lists"))

    def told_of_another(self, words: Sequence[Word]) -> str:
        """Return *words* as somebody else would say them: "my dog" as "their dog"."""
        return written([self._turned(word) for word in words])

    def is_thing(self, words: Sequence[Word]) -> bool:
        """True for words that name something that others know of too."""
        text = written(words)
        if any(self._is_forbidden(word) for word in words) or self._has_odd_sign(words):
            return False
        if len(text) < _SHORTEST or not any(word.text[:1].isalpha() for word in words):
            return False
        if words[0].text not in self._openers:
            return True
        is_named = bool(self._taxonomy.read(text).matches)
        return is_named and words[0].text not in self._never_open and self._taxonomy.is_known(text)

    def is_definite(self, words: Sequence[Word]) -> bool:
        """True for what gives a value and no opinion: it has a number, a name or an address in it."""
        has_value = any(word.text[:1].isdigit() or word.written[:1].isupper() or word.text == "@" for word in words)
        return has_value and not any(self._is_forbidden(word) for word in words)

    def is_denied(self, words: Sequence[Word]) -> bool:
        """True when a "not" turns what is named into its opposite, or an "only" into a part of it."""
        return any(word.text in self._denials for word in words)

    def is_specific(self, words: Sequence[Word]) -> bool:
        """True for "this answer": the one just given, and no rule for all."""
        return any(word.text in self._specific for word in words)

    def points_elsewhere(self, words: Sequence[Word]) -> bool:
        """True when somebody else acts in *words*, or they point at something that only the talk shows."""
        return any(word.text in self._elsewhere for word in words)

    def name_in(self, words: Sequence[Word], *, is_strange: bool) -> str | None:
        """Return the name of a person that *words* are, by their capitals; *is_strange* when nothing else tells."""
        for word in words:
            rest = word.written[1:]
            if not word.written[:1].isupper() or not word.written.isalpha() or rest != rest.lower():
                return None
            if is_strange and (self._words.is_common(word.text) or word.text in self._forbidden):
                return None
        return written(words)

    def is_place(self, words: Sequence[Word]) -> bool:
        """True for the name of a place: with a capital, or one word that is no common one."""
        if any(word.text in self._forbidden or word.text in self._joins - {","} for word in words):
            return False
        first = words[0]
        if first.written[:1].isupper() or words[-1].written[:1].isupper():
            return True
        return len(words) == 1 and not self._words.is_common(first.text) and first.text not in self._openers

    def without_articles(self, words: Sequence[Word], *, is_typed: bool) -> Sequence[Word]:
        """Return *words* without "a", "some", "a lot of" in front, and without "my" before what can be eaten.

        "The" stays, unless it is *is_typed* what may follow, or one speaks of it without having spoken of it before.
        """
        for length in range(min(_LONGEST_ARTICLE, len(words) - 1), 0, -1):
            opening, rest = tuple(word.text for word in words[:length]), words[length:]
            if opening in self._before_food and self._taxonomy.is_wholly(written(rest), self._edible):
                return self.without_articles(rest, is_typed=is_typed)
            if opening in self._articles:
                is_pointing = opening[0] in self._definite and not is_typed and not self._is_famous(rest)
                return words if is_pointing else self.without_articles(rest, is_typed=is_typed)
        return words

    def _is_famous(self, words: Sequence[Word]) -> bool:
        """True for the sea, and for the Beatles."""
        text = written(words)
        return words[0].written[:1].isupper() or any(self._taxonomy.is_wholly(text, root) for root in self._doable)

    def _is_forbidden(self, word: Word) -> bool:
        is_name = word.written[:1].isupper() and word.text in self._words.capitalised
        return word.text in self._forbidden and not is_name

    def _has_odd_sign(self, words: Sequence[Word]) -> bool:
        """True when a sign stands in *words* that no name of a thing has; a hyphen within a word is at home."""
        for place, word in enumerate(words):
            if word.text[:1].isalnum() or word.text[:1] in self._signs:
                continue
            is_glued = 0 < place < len(words) - 1 and words[place - 1].end == word.start
            if not (word.written == "-" and is_glued and words[place + 1].start == word.end):
                return True
        return False

    def _turned(self, word: Word) -> Word:
        other = self._person.get(word.text)
        return word if other is None else Word(word.text, other, word.start, word.end)
