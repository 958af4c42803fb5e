"""The people that a sentence names: one by one, with a number, or as a body ("my wife, her mom and 2 kids")."""

from collections.abc import Iterator

from supervisor.interpretation.values.by_name import after_name, is_name_at, named_with_self
from supervisor.interpretation.values.coming_along import are_brought, came_along, comes, is_with_mine
from supervisor.interpretation.values.members import Member, Party, whole
from supervisor.interpretation.values.people import (
    ADJECTIVES,
    ANYONE,
    ARTICLES,
    BODIES,
    COMING,
    EVERYBODY,
    KNOWN_PLURALS,
    OTHERS,
    OWNERS,
    PAIRS,
    RELATED,
    SELVES,
    SELVES_BESIDE,
    UNCOUNTED,
)
from supervisor.interpretation.values.relatives import after_in_law, in_laws_at, is_kin, is_kin_in_list, two_words_at
from supervisor.interpretation.values.scene import Scene
from supervisor.interpretation.values.set_phrases import glued, one_of_two_words, whole_party
from supervisor.interpretation.values.totals import (
    after_age,
    after_ages,
    held,
    is_rate,
    is_shared_out,
    past_total,
    sums_up,
)
from supervisor.interpretation.words import word_set

#: Nobody waits for more in one sentence, and a telephone number is no party.
_MOST = 10_000
_JOINS = frozenset({",", "and", "&", "+", "plus"})
#: Words that make a lone person the whole party ("just me", "for my wife").
ONLY = frozenset({"just", "only", "for", "be", "it's", "its", "is", "simply", "solely"})
_OF_US = frozenset({"us", "you", "them"})
#: What is counted beside people, and is none of them.
_THINGS = word_set("tables seats chairs highchairs rooms booths cots beds tickets dogs cats hours minutes days nights")
_ENDS = word_set(". ! ? ,")
#: "Add 2 people": to how many, nobody says.
_CHANGING = word_set("add adding remove removing")


def parties(scene: Scene) -> Iterator[Party]:
    """Yield each list of people in *scene*, in order and without overlaps."""
    reader = Reader(scene)
    place = 0
    while place < len(scene.tokens):
        group = reader.group(place)
        if group is None:
            place += 1
            continue
        yield group
        reader.is_behind_list = True
        place = max(group.end, place + 1)


class Reader:
    """Reads the people of one sentence, token by token."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.words = [token.text for token in scene.tokens]
        self.is_behind_list = False
        self.told: int | None = None
        self.numbers: dict[int, tuple[int, int]] = {}
        for item in scene.items:
            value = item.found.value
            if value is None or item.found.unit or not 0 <= value <= _MOST or value != value.to_integral_value():
                continue
            first, end = scene.index_at(item.start), scene.index_at(item.end - 1) + 1
            first += self.word(first) == "+"
            # A couple is read below, as people or as a number of them.
            if not any(word in PAIRS for word in self.words[first:end]):
                self.numbers[first] = int(value), end

    def word(self, place: int) -> str:
        """Return the word at *place*, empty past either end."""
        return self.words[place] if 0 <= place < len(self.words) else ""

    def group(self, place: int) -> Party | None:
        """Return the list of people that begins at *place*, None without any."""
        if (body := self._body(place)) is not None:
            return body
        if self.word(place + 1) in _JOINS and (named := named_with_self(self.scene, self.words, place)) is not None:
            return Party(named.value, place, named.end, has_number=False, is_total=False)
        first = self._member(place, is_first=True)
        if first is None:
            return None
        members, end = [first], first.end
        while (following := self._next(after_ages(self.words, self.numbers, end), members)) is not None:
            if self.word(members[-1].end) == ",":
                members[-1] = members[-1]._replace(is_listed=True)
            members, end = [*members, following], following.end
        return self._sum(place, end, members)

    def _sum(self, place: int, end: int, members: list[Member]) -> Party | None:
        has_self = any(member.is_self for member in members)
        if len(members) == 1 and not members[0].has_number and not self._is_alone(place, members[0]):
            return None
        values = [member.value for member in members]
        has_number = any(member.has_number for member in members)
        after = past_total(self.words, end)
        is_total = after is not None or self.words[max(place - 2, 0) : place] == ["total", "of"]
        end = after or end
        is_unknown = self._follows_unknown(place) or (len(members) == 1 and self._is_lone(place, members[0]))
        is_open = None in values or is_unknown or is_shared_out(self.words, end) or self.word(place - 1) in _CHANGING
        total = None if is_open else whole(members)
        if len(members) == 1 and members[0].is_whole:
            is_total = is_total or self._sums_up(place, end)
        if total is not None and not has_self and not is_total:
            is_others, is_related = all(one.is_other for one in members), members[0].is_related
            along = came_along(self.words, place, is_others=is_others, is_related=is_related, told=self.told)
            total = None if along is None else total + along
            if total is not None and self.told is not None and are_brought(self.words, place):
                total, is_total = total + self.told, True
        self.told = total if has_self else None
        return Party(total, place, end, has_number, is_total)

    def _is_lone(self, place: int, member: Member) -> bool:
        """True for "just my partner", who comes with whoever speaks, or alone: nobody knows."""
        before = place - 1 - (self.word(place - 1) in {"for", "with"})
        return member.is_related and not member.has_number and self.word(before) in {"just", "only"}

    def _follows_unknown(self, place: int) -> bool:
        """True when the list goes on from somebody whom nothing here counts ("my in-laws and me")."""
        if self.word(place - 1) not in {"and", "&"} or place < 2:
            return False
        before = self.scene.tokens[place - 2]
        # "4 grown ups and 3 kids": the first were counted too, and are no people that are known here.
        is_counted = any(
            self.numbers.get(place - 2 - back, (0, 0))[1] in range(place - 3, place - 1) for back in (1, 2)
        )
        if is_counted and before.text.endswith("s") and before.text not in _THINGS:
            return True
        return before.text in UNCOUNTED or before.text == "laws" or (place > 2 and is_name_at(self.scene, place - 2))

    def _is_alone(self, place: int, member: Member) -> bool:
        """True when one person without a number is the whole party: "just me", "for my wife", "we are a couple"."""
        before = self.word(place - 1)
        if member.is_self:
            return before in {"just", "only"} or (self.word(place) == "myself" and before in ONLY | {""})
        if member.value == 1:
            is_said = before in ONLY or (is_with_mine(self.words, place) and comes(self.words, place))
            return is_said and member.is_related and self.word(place) not in ARTICLES
        return before not in {"in", "of"}

    def _body(self, place: int) -> Party | None:
        """Read "party of six", "the two of us", "us four", "12 in my party" and "8 total"."""
        number = self.numbers.get(place)
        if number is not None:
            return self._counted_body(place, *number)
        words = self.words[place : place + 3]
        if (phrase := whole_party(self.words, place)) is not None:
            return Party(phrase.value, place, phrase.end, phrase.has_number, is_total=False)
        if words[0] == "dozen" and self._is_bare(place):
            return Party(12, place, place + 1, has_number=True, is_total=False)
        if words[0] in BODIES and words[1:2] == ["of"] and (number := self.numbers.get(place + 2)):
            return self._body_of(place, *number)
        if words[0] in {"us", "we"} and (number := self.numbers.get(place + 1)):
            us = Member(*number, is_self=True, has_number=True)
            if words[0] == "us" and self._next(us.end, [us]) is not None:
                # "us two and our baby" is a list
                return None
            return Party(us.value, place, us.end, has_number=True, is_total=False) if self._ends(us.end) else None
        return None

    def _body_of(self, place: int, value: int, end: int) -> Party | None:
        """Read "party of six", and the speaker beside it in "my team of 6 and I"."""
        if self._member(place + 2) is not None:
            return None
        if self.word(end) in _JOINS and self._is_speaker(end + 1, is_owned=self.word(place - 1) == "my"):
            value, end = value + 1, end + 2
        return Party(value, place + 2, end, has_number=True, is_total=self.word(place) == "total")

    def _is_bare(self, place: int) -> bool:
        """True for a number that is none to whoever reads numbers: "an even dozen", "for dozen"."""
        return (
            not any(first <= place < end for first, (_, end) in self.numbers.items())
            and self._person(place + 1) is None
        )

    def _is_speaker(self, place: int, *, is_owned: bool) -> bool:
        """True for the "I" of "my team of 6 and I", not that of "a table for a party of 6 and I would sit outside"."""
        word = self.word(place)
        return word in {"me", "myself"} or (word == "i" and (is_owned or self._stops(place + 1)))

    def _counted_body(self, place: int, value: int, end: int) -> Party | None:
        words = self.words[end : end + 3]
        if words[:1] == ["in"] and words[1:2] and words[1] in OWNERS and words[2:3] and words[2] in BODIES:
            return Party(value, place, end, has_number=True, is_total=True)
        if (after := past_total(self.words, end)) or self._sums_up(place, end):
            return Party(value, place, after or end, has_number=True, is_total=True)
        if several := held(self.words, self.numbers, place):
            return Party(several[0], place, several[1], has_number=True, is_total=False)
        if words[:1] and words[0] in BODIES and words[1:2] == ["of"] and (inner := self.numbers.get(end + 2)):
            # How many "two families of 4" are, they do not say themselves.
            return Party(None, place, inner[1], has_number=True, is_total=False)
        return None

    def _sums_up(self, place: int, end: int) -> bool:
        start = self.scene.tokens[place].start
        return sums_up(self.scene.text, start, self.word(place - 1), self.word(end), is_behind_list=self.is_behind_list)

    def _ends(self, place: int) -> bool:
        """True when nothing that could be counted follows: "us two at nine", not "us two tables"."""
        token = self.scene.tokens[place] if place < len(self.words) else None
        return token is None or not token.is_word or token.stem not in {"table", "seat", "room", "booth", "chair"}

    # -- members --------------------------------------------------------------------------------------------------

    def _next(self, place: int, members: list[Member]) -> Member | None:
        """Return the member that goes on the list before *place*, None at its end."""
        after = place
        while self.word(after) in _JOINS and after - place < 3:
            after += 1
        along = 1 + (self.word(after) == "along")
        is_known = all(member.is_self or member.is_related for member in members)
        if self.word(after + along - 1) == "with" and (is_known or self.word(after + along) in SELVES):
            after += along
        elif after == place and after not in self.numbers:
            return None
        if self.word(after) in {"then", "also", "maybe", "just"}:
            after += 1
        member = self._member(after)
        if member is not None and member.is_self and self.word(after) == "i":
            return member if all(one.is_related or one.is_other for one in members) or self._stops(member.end) else None
        if member is not None or after == place:
            return member
        if self.word(after - 1) in {"plus", "+"} and after in self.numbers:
            return Member(self.numbers[after][0], self.numbers[after][1], has_number=True)
        is_last = self.word(after - 1) != "," and members[-1].value is not None
        if (
            (is_last or self._goes_on(after + 1))
            and is_name_at(self.scene, after)
            and (members[-1].is_related or members[-1].is_self)
        ):
            return Member(1, after + 1, is_related=True)
        return Member(None, after + 1) if is_last and self._is_uncounted(after) else None

    def _goes_on(self, place: int) -> bool:
        """True when a list of names goes on: ", Bob and" behind "me, Anna"."""
        after = place
        while self.word(after) in _JOINS and after - place < 2:
            after += 1
        return after > place and (is_name_at(self.scene, after) or self._member(after) is not None)

    def _is_uncounted(self, place: int) -> bool:
        word = self.word(place)
        is_owned = word in OWNERS and word not in {"the", "your"} and self.word(place + 1) != ""
        return word in UNCOUNTED or is_owned or (word == "the" and self.word(place + 1) in UNCOUNTED)

    def _stops(self, place: int) -> bool:
        return place >= len(self.words) or self.words[place] in _ENDS

    def _member(self, place: int, *, is_first: bool = False) -> Member | None:
        word = self.word(place)
        if word in (SELVES if is_first else SELVES_BESIDE):
            # "I need a table" and "give me a table" speak of nobody else, "her" may own what follows
            if word in OWNERS and (owned := self._owned(place + 1, word)):
                return owned
            is_spoken = word == "i" and is_first and self.word(place + 1) not in _JOINS
            return None if is_spoken else Member(1, place + 1, is_self=word in SELVES)
        if place in self.numbers:
            return self._numbered(place, *self.numbers[place])
        if word == "us" and (number := self.numbers.get(place + 1)):
            return Member(*number, is_self=True, has_number=True)
        if word in OWNERS or word in ARTICLES:
            return None if is_rate(self.words, place) and place - 1 in self.numbers else self._owned(place + 1, word)
        if (found := self._of_all(place)) or is_first:
            return found
        if (phrase := one_of_two_words(self.words, place)) is not None:
            return Member(1, phrase.end, is_related=True)
        noun = self._person(place)
        is_known = noun is not None and (self.word(noun - 1) in RELATED or self.word(place - 1) in {"plus", "+"})
        return self._one(noun) if noun and is_known and not self._is_plural(noun - 1) else None

    def _of_all(self, place: int) -> Member | None:
        """Read "all 4 kids", "both my parents", "2ppl" and a bare "couple" that the sentence begins with."""
        word = self.word(place)
        if word == "all" and place + 1 in self.numbers:
            return self._numbered(place + 1, *self.numbers[place + 1])
        if word == "both":
            owner = place + 1 + (self.word(place + 1) == "of")
            noun = self._person(owner + 1) if self.word(owner) in OWNERS else None
            return Member(2, noun, is_related=True) if noun else None
        if (phrase := glued(self.words, place)) is not None:
            return Member(phrase.value, phrase.end, has_number=True, is_whole=True)
        if is_kin_in_list(self.words, place) and (is_kin(self.word(place + 2)) or self._member(place + 2) is not None):
            return self._one(place + 1)
        is_bare = place == 0 or not self.word(place - 1)[0].isalnum()
        return self._one(place + 1) if word == "couple" and is_bare else None

    def _numbered(self, place: int, value: int, end: int) -> Member | None:
        """Read "4 adults", "two of my friends", "3 other kids", "5 others", "10 of us"."""
        if self.word(end) == "of":
            is_whole = self.word(end + 1) == "us" or self.word(place - 1) in {"the", "all"}
            if self.word(end + 1) in _OF_US and is_whole:
                return Member(value, end + 2, is_self=self.word(end + 1) == "us", has_number=True, is_whole=True)
            noun = self._person(end + 2) if self.word(end + 1) in OWNERS else None
            return Member(value, noun, is_related=True, has_number=True) if noun else None
        if self.word(end) in {"plus", "+"} and self.word(place - 1) not in {"at", "on", "by"}:
            return Member(value, end, has_number=True)
        noun = self._person(end + (self.word(end) == "-"))
        if noun:
            name = self.word(noun - 1)
            return Member(
                value * PAIRS.get(name, 1) if name not in KNOWN_PLURALS else value,
                after_in_law(self.words, noun),
                is_other=any(word in OTHERS for word in self.words[end : noun - 1]),
                is_related=name in RELATED,
                has_number=True,
                is_whole=name in EVERYBODY,
            )
        if self.word(end) in OTHERS:
            return Member(value, end + 1, is_other=True, has_number=True)
        return Member(value, end, has_number=True) if self.word(end) in COMING else None

    def _owned(self, place: int, owner: str) -> Member | None:
        """Read what follows an owner or an article: "my wife", "our 4 kids", "a couple", "the three of us"."""
        if place in self.numbers:
            found = self._numbered(place, *self.numbers[place])
            return found._replace(is_related=found.is_related or owner in OWNERS) if found else None
        if (phrase := one_of_two_words(self.words, place)) is not None:
            return Member(1, phrase.end, is_related=True)
        noun = self._person(place + (self.word(place) == "twin"))
        if noun is None:
            many = in_laws_at(self.words, place)
            return Member(None, many, is_related=True) if many else None
        name = self.word(noun - 1)
        if self.word(place) == "twin" and self._is_plural(noun - 1):
            return Member(2, noun, is_related=True)
        if name in {"couple", "pair"} and self.word(noun) == "of":
            inner = self._person(noun + 1 + (self.word(noun + 1) in OWNERS))
            return Member(2, inner, has_number=True, is_related=True) if inner else None
        if self._is_plural(noun - 1) and name not in KNOWN_PLURALS:
            return Member(None, after_in_law(self.words, noun))
        return self._one(noun)

    def _one(self, noun: int) -> Member:
        name, noun = self.word(noun - 1), after_in_law(self.words, noun)
        if name in RELATED:
            noun = after_name(self.scene, noun)
        return Member(PAIRS.get(name, 1), noun, is_related=name in RELATED or name in PAIRS)

    def _person(self, place: int) -> int | None:
        """Return the token after the word for people at *place*, adjectives before it allowed; None without one."""
        place = after_age(self.words, place)
        for step in range(3):
            word = self.word(place + step)
            if two_words_at(self.words, place + step):
                return place + step + 2
            if word in RELATED or word in ANYONE or word in PAIRS:
                return place + step + 1
            if self.word(place + step + 1) == "-":
                joined = word + self.word(place + step + 2)
                return place + step + 3 if joined in RELATED or joined in ANYONE else None
            if word not in ADJECTIVES:
                return None
        return None

    def _is_plural(self, place: int) -> bool:
        word = self.word(place)
        return RELATED.get(word, ANYONE.get(word, word in {"ones", "ups"}))
