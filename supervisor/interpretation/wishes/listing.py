"""Several names where a task has room for one: "greet Ada, Bob and Carol".

Names and not just any words: "and" stands inside of many a name ("Trinidad and Tobago") and of most texts, so a list is
only sure where three are told apart, or where the second one is announced like the first ("in Lima and in Oslo").
"""

from dataclasses import dataclass
from enum import Enum, auto

from quantities.times import stretches
from supervisor.interpretation.values.cues import Cue
from supervisor.interpretation.values.fields import FieldShape
from supervisor.interpretation.values.joined_names import is_one_name
from supervisor.interpretation.values.plain_values import is_free
from supervisor.interpretation.values.scene import Scene
from supervisor.interpretation.values.short_days import SHORT_DAYS
from supervisor.interpretation.wishes.orders import CORRECTING
from supervisor.interpretation.wishes.regions import is_region
from supervisor.interpretation.words import STOP, Token, stems_of, word_set

#: Names that are told apart; what has more is no sentence.
_MOST = 32
#: Words of one name.
_LONGEST = 6
#: Of one that begins with a small letter, where nothing else shows how far it goes.
_LONGEST_SMALL = 2
#: Small words inside of a name.
_INNER = word_set("of de la le les the da do das dos del della di du van von der den el al bin ibn upon y")
#: In capitals where a sentence begins, they are no names: "The weather in Porto? Thanks so much".
_NO_NAMES = word_set("thanks thank please cheers regards best kind hi hello hey dear sincerely sorry many yours")
#: Words of a name that a full stop shortens, and does not end.
_SHORTENED = word_set("mr mrs ms mx dr st prof sr jr mt ft fr rev gen capt lt sgt hon")
_AND, _OR, _COMMA = frozenset({"and", "&", "plus", "vs", "versus"}), "or", ","
#: What may announce a name, and is said again before the next one.
_ANNOUNCING = word_set("in to for at of from with about on by")
_AND_ALSO = (("as", "well", "as"), ("but", "also"), ("along", "with"), ("together", "with"))
_ALSO = frozenset({"also", "then", "again", "likewise"})
_EACH = frozenset({"each", "separately", "individually", "respectively"})
_TOO = frozenset({"too", "also"})
#: What may follow a list of names: anything else makes the last one the subject of something ("Ada and Bob are here").
_AFTER = (
    _ANNOUNCING
    | _EACH
    | _TOO
    | _AND
    | word_set(
        "as please thanks thank now today tonight tomorrow this next instead then but with without if when because so"
        " while before after until since respectively or"
    )
)
_SEVERAL_FOLLOW = (("both",), ("not", "only"))
#: Between names that are told one by one: "Lima? Rome?" and "Ada. And Bob.".
_STOPS = frozenset(".?!")
_ENDS = frozenset(".!?;\n")
#: Places and firms that have an "and" in their names, by the words on either side of it.
_PAIRS = {
    "trinidad": "tobago", "antigua": "barbuda", "bosnia": "herzegovina", "kitts": "nevis", "turks": "caicos",
    "wallis": "futuna", "newfoundland": "labrador", "tyne": "wear", "brighton": "hove", "andaman": "nicobar",
    "jammu": "kashmir", "tom\u00e9": "pr\u00edncipe", "vincent": "grenadines", "tome": "principe", "marks": "spencer",
    "johnson": "johnson", "procter": "gamble", "barnes": "noble", "ernst": "young",
}  # fmt: skip
_FIRMS = word_set("co company sons son daughters brothers bros partners associates associate cie")
#: Characters in which a day or month is told.
_TIME_REACH = 24
#: Fields that hold words rather than the name of one thing: their "and" is part of them.
_WORDY = word_set(
    "text note message comment description body subject title headline query question topic reason content words word"
    " sentence phrase prompt instruction instructions summary detail details remark memo story caption saying what"
)
_WORDY_STEMS = frozenset(stem for word in _WORDY for stem in stems_of(word))


#: After a message and a comma they begin what is no part of it.
_BESIDE_MESSAGE = CORRECTING - {"i"} | word_set(
    "please pls plz thanks thank thx ty cheers asap and but then also ok okay"
)


#: Behind these all is message; "remind me to call Bob, and soon" may go on with something else.
_SAYING = frozenset({"saying", "says", "reading", "reads"})


class Kind(Enum):
    """What a list of names is: a task for each, a question whether it is, a question which one, or one text."""

    EACH = auto()
    UNSURE = auto()
    EITHER = auto()
    TEXT = auto()


@dataclass(frozen=True, slots=True)
class Listing:
    """*members* are the places of the names, *start* and *end* those of all of it."""

    field: FieldShape
    kind: Kind
    members: tuple[tuple[int, int], ...]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Joint:
    """What stands between two names up to token *end*; *repeats* what announces a name, or says "the same"."""

    end: int
    mark: str
    repeats: bool
    has_comma: bool


def is_wordy(field: FieldShape) -> bool:
    """Return whether *field* holds words of any kind, as its name or its examples say."""
    if any(isinstance(one, str) and (" and " in one or ", " in one) and not _is_name(one) for one in field.examples):
        return True
    return bool(_WORDY_STEMS.intersection(stems_of(field.name)))


def _is_name(example: str) -> bool:
    """True for "Marks and Spencer": capitals but for small words, which shows names and no sentence."""
    return all(word[:1].isupper() or word.lower() in _INNER | _AND | {"the"} for word in example.split())


def listing_at(scene: Scene, field: FieldShape, start: int, end: int, cues: tuple[Cue, ...]) -> Listing | None:
    """Return the list that the text of *field* at `start:end` is the beginning or the whole of, None for no list."""
    if any(one.start <= start < one.end for one in scene.quoted):
        return None
    first = scene.index_at(start)
    if is_wordy(field):
        return _text(scene, field, start, end, cues)
    names = _Names(scene, field, cues)
    lead = names.lead(first, scene.index_at(end))
    return names.listing(first + lead, is_both=lead > 0) or names.cut_off(start, end)


def _text(scene: Scene, field: FieldShape, start: int, end: int, cues: tuple[Cue, ...]) -> Listing | None:
    """Return the text that a comma cut off, where it goes on as a list or name does: "buy salt, pepper and oil"."""
    place = scene.index_at(end)
    if place >= len(scene.tokens) or scene.tokens[place].text != _COMMA:
        return None
    last = place
    others = {cue.first for cue in cues if cue.field is not field}
    while last < len(scene.tokens) and scene.tokens[last].text not in _ENDS and last not in others:
        last += 1
    said = [token.text for token in scene.tokens[place:last]]
    goes_on = "and" in said[2:-1] or (len(said) > 1 and scene.text[scene.tokens[place + 1].start].isupper())
    first = scene.index_at(start)
    is_said = first > 0 and scene.tokens[first - 1].text in _SAYING
    is_message = is_said and is_free(field) and len(said) > 1 and last == len(scene.tokens)
    if (
        is_message
        and said[1] not in _BESIDE_MESSAGE
        and not any(item.start >= scene.tokens[place].start for item in scene.items)
    ):
        goes_on = True
    elif not goes_on or said[1] in _AFTER | STOP:
        return None
    until = scene.tokens[last - 1].end
    return Listing(field, Kind.TEXT, ((start, until),), start, until)


class _Names:
    """Reads names and what joins them off the tokens of one sentence."""

    def __init__(self, scene: Scene, field: FieldShape, cues: tuple[Cue, ...]) -> None:
        self.scene = scene
        self.tokens = scene.tokens
        self.field = field
        known = (one.lower() for one in field.examples if isinstance(one, str))
        self.known = [one for one in known if " and " in one or " & " in one or ", " in one]
        self.items = {scene.index_at(item.start) for item in scene.items}
        self.other_cues = {cue.first for cue in cues if cue.field is not field}
        self.own = {scene.tokens[cue.first].text for cue in cues if cue.field is field and len(cue) == 1}

    def listing(self, first: int, *, is_both: bool) -> Listing | None:
        """Return the list of names from token *first* on; None when there is one name, or what follows is no name."""
        is_small = first < len(self.tokens) and not self._is_capital(first)
        names: list[tuple[int, int]] = []
        joints: list[_Joint] = []
        place = first
        while len(names) < _MOST and (until := self._name(place, is_small=is_small)) is not None:
            if joints and self._is_one_name(names[-1], joints[-1], (place, until)):
                names[-1] = names[-1][0], until
                joints.pop()
            else:
                names.append((place, until))
            joint = self._joint(until, before=first - is_both - 1)
            if joint is None or self._name(joint.end, is_small=is_small) is None or self._is_time(joint.end):
                break
            joints.append(joint)
            place = joint.end
        if not names or not self._is_end(names[-1][1]):
            return None
        kind = (
            self._kind(names, joints, is_both=is_both, is_small=is_small) if len(names) > 1 else self._of_one(names[0])
        )
        if kind is None:
            return None
        members = tuple((self.tokens[one].start, self.tokens[until - 1].end) for one, until in names)
        end = members[-1][1]
        if "(" in self.scene.text[members[0][0] : end] and self._said(names[-1][1]) == ")":
            end = self.tokens[names[-1][1]].end
        return Listing(self.field, kind, members, members[0][0], end)

    def _of_one(self, name: tuple[int, int]) -> Kind | None:
        """Return that *name* is one text where a comma stands in it, behind which it was cut off."""
        return Kind.TEXT if any(token.text == _COMMA for token in self.tokens[slice(*name)]) else None

    def cut_off(self, start: int, end: int) -> Listing | None:
        """Return the question about what a comma cut off that begins like a name: "Ada from sales, *Bob from law*"."""
        place = self.scene.index_at(end)
        is_cut = self._said(place) == _COMMA and self.tokens[place].start == end and self._is_capital(place + 1)
        if not is_cut or self._said(place + 1) in STOP | _AFTER or place + 1 in self.other_cues | self.items:
            return None
        if self._is_time(place + 1):
            return None
        members, first = [(start, end)], place + 1
        for at in range(first, len(self.tokens) + 1):
            is_end = at == len(self.tokens) or self._said(at) in _ENDS or at in self.other_cues | self.items
            if (is_end or self._said(at) in _AND | {_COMMA}) and at > first:
                members.append((self.tokens[first].start, self.tokens[at - 1].end))
                first = at + 1
            if is_end or len(members) == _MOST:
                break
        return Listing(self.field, Kind.UNSURE, tuple(members), start, members[-1][1])

    def lead(self, first: int, end: int) -> int:
        """Return how many tokens from *first* on only say that several names follow: "both", "everybody:"."""
        for words in _SEVERAL_FOLLOW:
            if tuple(token.text for token in self.tokens[first : first + len(words)]) == words:
                return len(words)
        colon = next((place for place in range(first, min(end, first + _LONGEST)) if self._said(place) == ":"), None)
        return colon + 1 - first if colon is not None else 0

    def _kind(
        self, names: list[tuple[int, int]], joints: list[_Joint], *, is_both: bool, is_small: bool
    ) -> Kind | None:
        marks = {joint.mark for joint in joints}
        if _OR in marks:
            return None if is_small else Kind.EITHER
        has_and = not marks.isdisjoint(_AND)
        if is_small and not has_and:
            return None
        repeats = all(joint.repeats for joint in joints)
        is_told = self._said(names[0][0] - 1) in _ANNOUNCING and self._said(names[0][0] - 2) in _EACH
        is_each = is_told or self._said(names[-1][1]) in _EACH or (is_both and has_and and len(names) == 2)
        if repeats or is_each:
            return Kind.EACH
        # "Earth, Wind & Fire" and "Springfield, Illinois" are names as well.
        is_plain = joints[-1].mark == "and" and all(joint.has_comma for joint in joints[:-1])
        return Kind.EACH if len(names) > 2 and is_plain and not is_small else Kind.UNSURE

    # -- names ----------------------------------------------------------------------------------------------------

    def _name(self, place: int, *, is_small: bool) -> int | None:
        """Return the token after the name at *place*, None when there is none."""
        if not self._is_word(place) or place in self.items or place in self.other_cues:
            return None
        if (until := self._known_name(place)) is not None:
            return until
        return self._small_name(place) if is_small else self._capital_name(place)

    def _known_name(self, place: int) -> int | None:
        """Return the token after the name at *place* that the card has as an example: "Earth, Wind and Fire"."""
        start = self.tokens[place].start
        for name in self.known:
            if self.scene.text[start : start + len(name)].lower() == name:
                end = self.scene.index_at(start + len(name) - 1) + 1
                return end if self.tokens[end - 1].end == start + len(name) else None
        return None

    def _capital_name(self, place: int) -> int | None:
        if not self._is_capital(place) or self._said(place) in _NO_NAMES:
            return None
        until = place + 1
        while until - place < _LONGEST:
            after = self._past_mark(until)
            if self._is_capital(after) and after not in self.items:
                until = after + 1
            elif self._said(after) in _INNER and self._is_capital(after + 1):
                until = after + 2
            else:
                break
        return until

    def _small_name(self, place: int) -> int | None:
        until = place
        while until - place < _LONGEST_SMALL and self._is_word(until) and self._said(until) not in STOP | _AFTER:
            until += 1
        return until if until > place else None

    def _is_one_name(self, before: tuple[int, int], joint: _Joint, last: tuple[int, int]) -> bool:
        """Return whether what joins two names is known to be a part of one: "Trinidad and Tobago", "Lima, Peru"."""
        if joint.mark == _COMMA and not joint.repeats:
            is_last = self._joint(last[1], before=before[0] - 1) is None
            return self._is_region(*last, is_last=is_last) and not self._is_region(*before)
        if joint.mark not in _AND or joint.repeats:
            return False
        if is_one_name(self.scene.text[self.tokens[before[0]].start : self.tokens[last[1] - 1].end], self.field):
            return True
        first, second = self._said(before[1] - 1), self._said(last[1] - 1)
        return second in _FIRMS or _PAIRS.get(first) == second

    def _is_region(self, first: int, end: int, *, is_last: bool = False) -> bool:
        return is_region(self.scene.text[self.tokens[first].start : self.tokens[end - 1].end], is_last=is_last)

    def _is_time(self, place: int) -> bool:
        """Return whether a day or month begins at *place*: "in Lima and on Friday" has one name."""
        if self._said(place) in SHORT_DAYS and not self._is_capital(place) and not self._is_word(place + 1):
            return True
        text = self.scene.text[self.tokens[place].start : self.tokens[place].start + _TIME_REACH]
        return any(start == 0 for start, _ in stretches(text))

    def _past_mark(self, place: int) -> int:
        """Return the token after the "." of "St. Gallen" and the "-" of "Saint-Denis", *place* for anything else."""
        is_joined = self._said(place) == "-" or (
            self._said(place) == "." and (self._said(place - 1) in _SHORTENED or len(self._said(place - 1)) == 1)
        )
        return place + 1 if is_joined and self._is_capital(place + 1) else place

    def _is_capital(self, place: int) -> bool:
        return self._is_word(place) and self.scene.text[self.tokens[place].start].isupper()

    def _is_word(self, place: int) -> bool:
        return 0 <= place < len(self.tokens) and self.tokens[place].is_word and not self.tokens[place].text[0].isdigit()

    def _said(self, place: int) -> str:
        return self.tokens[place].text if 0 <= place < len(self.tokens) else ""

    # -- what is between them -------------------------------------------------------------------------------------

    def _joint(self, place: int, *, before: int) -> _Joint | None:
        """Return what joins the name that ends at *place* to the next one, None when nothing does.

        *before* is the token before the first name, which may announce the next one too.
        """
        after = place
        marks: list[str] = []
        is_stopped = self._said(after) in _STOPS and self._is_capital(after + 1)
        after += is_stopped
        if self._said(after) == "(" and self._said(after + 1) in _AND | {_OR}:
            after += 1
        while self._said(after) in _AND | {_OR, _COMMA} and len(marks) < 2:
            marks.append(self._said(after))
            after += 1
        for words in _AND_ALSO:
            if tuple(self._said(after + count) for count in range(len(words))) == words:
                marks.append("and")
                after += len(words)
        if not marks and not is_stopped:
            return None
        is_further = is_stopped and (bool(marks) or self._said(place) == "?")
        if is_stopped and not is_further:
            return None
        while self._said(after) in _ALSO:
            after += 1
        is_same = self._said(after) == "the" and self._said(after + 1) == "same"
        after += 2 if is_same else 0
        word = self._said(after)
        is_alike = word in self.own or (word in _ANNOUNCING and word == self._said(before))
        if word in _ANNOUNCING or is_alike:
            after += 1
        if self._said(after) == "the" and self._is_capital(after + 1):
            after += 1
        repeats = is_same or is_alike or is_further or self._is_added(after)
        return _Joint(after, marks[-1] if marks else "", repeats, _COMMA in marks)

    def _is_added(self, place: int) -> bool:
        """Return whether the name at *place* has a word of its own before it and "too" behind it: "for Bob too"."""
        if self._said(place - 1) not in _ANNOUNCING or (until := self._name(place, is_small=False)) is None:
            return False
        return self._said(until) in _TOO or (self._said(until), self._said(until + 1)) == ("as", "well")

    def _is_end(self, place: int) -> bool:
        """Return whether a list of names may end before *place*."""
        if place >= len(self.tokens) or place in self.items or place in self.other_cues:
            return True
        token: Token = self.tokens[place]
        return not token.is_word or token.text in _AFTER or token.text in self.own
