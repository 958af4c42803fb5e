"""What a fact changes, by rules alone: patterns read it, the taxonomy says what is what; in doubt a model is needed.

Sure is what the words say: a new item, one that is taken back by its name, a list that is to be cleared. A diet sweeps
the documents for what it leaves out; one item of which the taxonomy cannot tell whether it does leaves the whole fact
to a model, or pending where there is none.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from memory.documents.items import Item, leaf_values
from memory.documents.kinds import Place
from memory.documents.paths import Path, exists, lookup
from workers.agents.memory_worker.arbiter import arbitrate, is_newer
from workers.agents.memory_worker.case import Case, Verdict, Wish, sentence
from workers.agents.memory_worker.clearing import is_cleared, reach_of
from workers.agents.memory_worker.cues import cue_words
from workers.agents.memory_worker.singles import replaces
from workers.agents.memory_worker.wording import content_of, is_same, text_of
from workers.statements.reading import Reading, read_statements
from workers.statements.statement import Statement
from workers.statements.taxonomy import Taxonomy
from workers.statements.wording import statement_text
from workers.statements.words import load_words

#: Relations that are about anything at all: without a document for their topic they belong to the general one.
_OF_ANYTHING = frozenset(("like", "dislike", "avoid", "interest", "other"))
#: Relations whose items say what somebody does, of which a diet leaves out what it names.
_DOINGS = frozenset(("daily", "timing_rule"))
#: What a diet's excluded things are taken out of, and nothing else: to have an interest in fish is no meal.
_WANTED = frozenset(("like",))

#: What contradicts each other when it is said of one thing.
_CONTRARY = {
    **dict.fromkeys(("like", "interest"), ("dislike", "avoid")),
    **dict.fromkeys(("dislike", "avoid"), ("like", "interest")),
}

Spot = tuple[str, Path, JsonValue]


class Unsure(Exception):
    """The rules cannot decide, and say why; never leaves this module."""


@dataclass(frozen=True, slots=True)
class NeedsModel:
    """The rules leave a fact to a model, or pending: why, and the documents that it may be about.

    *owed* are new items that the fact brings whatever the model makes of the rest.
    """

    reason: str
    resources: tuple[str, ...]
    owed: tuple[Wish, ...] = ()


def decide(case: Case, reading: Reading, taxonomy: Taxonomy) -> Verdict | NeedsModel:
    """Return what is to be done about the fact of *case*, in which patterns read *reading*; or why nobody can tell."""
    told = reading.statements
    if not told:
        return NeedsModel("no rule reads it", _reach(case, told))
    if not reading.is_whole:
        return NeedsModel("no rule reads all of it", _reach(case, told))
    desk = _Desk(case, taxonomy, tuple(_told_later(case)))
    try:
        wishes = [wish for one in told for wish in desk.wishes(one)]
    except Unsure as unsure:
        return NeedsModel(str(unsure), _reach(case, told), desk.owed(told))
    return arbitrate(case, wishes, sentence(_described(one) for one in told))


@dataclass(frozen=True, slots=True)
class _Desk:
    """One fact, the documents it may reach, what is known of words, and what was told of after it."""

    case: Case
    taxonomy: Taxonomy
    later: tuple[str, ...] = ()

    def wishes(self, told: Statement) -> Iterator[Wish]:
        """Yield what one statement wishes for.

        Raises:
            Unsure: it cannot be said for sure.
        """
        if told.kind == "tells":
            yield from self._told(told)
        elif told.kind == "retracts":
            yield from self._retracted(told)
        else:
            yield from self._cleared(told)

    def owed(self, told: Sequence[Statement]) -> tuple[Wish, ...]:
        """Return the new items of what *told* tells, none when it is not sure where one of them goes."""
        try:
            return tuple(self._new(one, self._place(one)) for one in told if one.kind == "tells")
        except Unsure:
            return ()

    # -- tells -------------------------------------------------------------------------------------------------------

    def _told(self, told: Statement) -> Iterator[Wish]:
        place = self._place(told)
        if told.relation == "diet":
            yield from self._swept(told.object, place)
        yield from self._superseded(told, place)
        yield from self._denied(told, place)
        yield self._new(told, place)

    def _new(self, told: Statement, place: Place) -> Wish:
        """Return the wish for the item that *told* is, beside what it contradicts and may not overrule."""
        contested: list[Spot] = []
        if told.relation == "diet":
            contested += self._needed_though(told.object)
        elif told.relation in _WANTED:
            contested += self._leaving_out(told.object, place)
            contested += self._harmful(told.object)
        return Wish(
            "insert",
            place.resource_id,
            place.path,
            self._display(told, place),
            # The one who heard it knew which Friday was meant.
            expiry=self.case.pending.fact.expiry or told.expiry,
            durability=told.durability if told.durability != "long_term" else None,
            contests=tuple((name, path) for name, path, _ in contested),
        )

    def _place(self, told: Statement) -> Place:
        """Return where *told* is kept: in a document of its topic, else in the first one for such statements."""
        if told.relation is None:
            raise Unsure("it does not say what for")
        routed = self._routed(told)
        kinds = [kind for name in routed if (kind := self.case.kind(name)) is not None]
        own = [place for kind in kinds if (place := kind.place_for(told.relation)) is not None]
        own.sort(key=lambda place: place.relation != told.relation)
        general = self.case.kinds.general if told.relation in _OF_ANYTHING else None
        place = own[0] if own else self.case.kinds.place_for(told.relation, general)
        if place is None or place.resource_id not in self.case.resources:
            raise Unsure(f"no document keeps what is told as {told.relation}")
        return place

    def _routed(self, told: Statement) -> tuple[str, ...]:
        return self.case.routed(told.tags, self.case.pending.fact.tags)

    def _display(self, told: Statement, place: Place) -> str:
        """Return the text of the item: what is told of, or the whole statement where the place is for any."""
        is_own = place.relation == told.relation or (told.relation == "like" and place.relation == "interest")
        text = told.object if is_own else statement_text(told)
        return text[:1].upper() + text[1:] if text[:2].islower() else text

    def _superseded(self, told: Statement, place: Place) -> Iterator[Wish]:
        """Yield the former item of what can be said in one way only at a time: "lives in", "gets up at"."""
        for path, value in self._items(place):
            if replaces(told.object, text_of(value)):
                yield Wish("delete", place.resource_id, path)

    def _denied(self, told: Statement, place: Place) -> Iterator[Wish]:
        """Yield what says the contrary where a kind has no list for one of the two; else the arbiter sees to it."""
        kind = self.case.kind(place.resource_id)
        for relation in _CONTRARY.get(told.relation or "other", ()) if kind is not None else ():
            other = kind.place_for(relation) if kind is not None else None
            if other is None or (other.relation == relation and place.relation == told.relation):
                continue
            for path, value in self._items(other):
                if self._says(text_of(value), relation, told.object, other):
                    yield Wish("delete", place.resource_id, path)

    # -- diets -------------------------------------------------------------------------------------------------------

    def _swept(self, diet: str, place: Place) -> Iterator[Wish]:
        """Yield what *diet* leaves out: all that is liked, and what is done with nothing else."""
        excluded = self.taxonomy.excluded_by(diet)
        if excluded is None:
            if self.taxonomy.is_wholly(diet, "diet"):
                return
            raise Unsure(f"no data file knows what {diet!r} leaves out")
        for name, path, value in self._leaves():
            kept = self.case.place(name, path)
            if kept is None or self.case.is_guarded(name) or self._is_newer(value):
                continue
            text = text_of(value)
            is_out = self.taxonomy.excludes(diet, text)
            if kept.relation in _WANTED and name == place.resource_id:
                if is_out is None:
                    raise Unsure(f"it cannot be told whether {diet!r} leaves out {text!r}")
                if is_out:
                    yield Wish("delete", name, path)
            elif kept.relation in _DOINGS and is_out:
                if not self._is_meal(text):
                    raise Unsure(f"it cannot be told whether {diet!r} ends {text!r}")
                yield Wish("delete", name, path)

    def _is_meal(self, text: str) -> bool:
        """Tell whether *text* says nothing but what is eaten or drunk, and when."""
        known = cue_words("meal") | frozenset(load_words().contrasts)
        read = self.taxonomy.read(text)
        phrases = [" ".join(match.phrase) for match in read.matches]
        is_food = all(phrase in known or self.taxonomy.tag_of(phrase) == "food" for phrase in phrases)
        return is_food and all(word in known or word[:1].isdigit() for word in read.loose)

    def _needed_though(self, diet: str) -> Iterator[Spot]:
        """Yield what a guarded document says is needed, though *diet* leaves it out: only the person can decide."""
        for name, path, value in self._leaves():
            is_need = self.case.is_guarded(name) and self._relation(name, path) == "need"
            if is_need and self.taxonomy.excludes(diet, text_of(value)):
                yield name, path, value

    def _harmful(self, liked: str) -> Iterator[Spot]:
        """Yield the allergies to what is now said to be liked: only the person can say what became of them."""
        for name, path, value in self._leaves():
            if self.case.is_guarded(name) and self._relation(name, path) == "allergy":
                text = text_of(value)
                if is_same(text, liked) or self.taxonomy.is_a(liked, text):
                    yield name, path, value

    def _leaving_out(self, liked: str, place: Place) -> Iterator[Spot]:
        """Yield the diets of the same document that leave out what is now said to be liked."""
        kind = self.case.kind(place.resource_id)
        diets = kind.place_for("diet") if kind is not None else None
        for path, value in self._items(diets) if diets is not None and diets.relation == "diet" else ():
            if self.taxonomy.excludes(text_of(value), liked):
                yield place.resource_id, path, value

    # -- retracts and clears -----------------------------------------------------------------------------------------

    def _retracted(self, told: Statement) -> Iterator[Wish]:
        """Yield the items of that name; when only wider ones are there, who knows whether they are meant."""
        routed = self._routed(told)
        spots = [spot for spot in self._leaves() if self._may_keep(spot, told, routed)]
        named = [spot for spot in spots if self._is_named(spot, told)]
        if not named and (wider := [text_of(value) for _, _, value in spots if self._is_about(value, told.object)]):
            raise Unsure(f"it may take back {', '.join(map(repr, wider[:3]))}")
        yield from (Wish("delete", name, path) for name, path, _ in named)

    def _cleared(self, told: Statement) -> Iterator[Wish]:
        """Yield whatever is about the object, all of the place or document when there is none."""
        routed = self.case.routed(told.tags) if told.tags else self.case.resources
        reach = reach_of(told, self.case.pending.fact)
        for name, path, value in self._leaves(routed):
            relation = self._relation(name, path)
            if not reach.covers(relation, is_guarded=self.case.is_guarded(name)) or self._is_newer(value):
                continue
            is_meant = is_cleared(text_of(value), relation, told.object, self.taxonomy)
            if is_meant is None:
                raise Unsure(f"it cannot be told whether {told.object!r} means {text_of(value)!r} too")
            if is_meant:
                yield Wish("delete", name, path)

    def _may_keep(self, spot: Spot, told: Statement, routed: Sequence[str]) -> bool:
        """Tell whether *spot* is where something of the relation of *told* is kept."""
        place = self.case.place(spot[0], spot[1])
        if told.relation is None:
            return spot[0] in routed
        return place is not None and (place.relation == told.relation or told.relation in place.also)

    def _is_named(self, spot: Spot, told: Statement) -> bool:
        place = self.case.place(spot[0], spot[1])
        return self._says(text_of(spot[2]), told.relation, told.object, place)

    def _says(self, text: str, relation: str | None, about: str, place: Place | None) -> bool:
        """Tell whether an item at *place* says *relation* of that very thing."""
        if place is None or place.relation != "other":
            return is_same(text, about)
        # Where statements of any relation are kept, they are kept whole.
        kept = read_statements(text, today=self.case.today)
        return any(relation in (None, one.relation) and is_same(one.object, about) for one in kept)

    def _is_about(self, value: JsonValue, about: str) -> bool:
        text = text_of(value)
        return bool(self.taxonomy.is_about(text, about)) or content_of(about) <= content_of(text)

    # -- documents ---------------------------------------------------------------------------------------------------

    def _relation(self, name: str, path: Path) -> str | None:
        place = self.case.place(name, path)
        return None if place is None else place.relation

    def _is_newer(self, value: JsonValue) -> bool:
        """Tell whether *value* was said after the fact, which then says nothing of it."""
        item = Item.read(value)
        if item is not None and not item.is_inferred and is_newer(self.case, item):
            return True
        return any(is_same(text_of(value), said) for said in self.later)

    def _leaves(self, resources: Sequence[str] | None = None) -> Iterator[Spot]:
        for name in self.case.resources if resources is None else resources:
            for path, value in leaf_values(self.case.body(name)):
                yield name, path, value

    def _items(self, place: Place) -> Iterator[tuple[Path, JsonValue]]:
        body = self.case.body(place.resource_id)
        held = lookup(body, place.path) if exists(body, place.path) else None
        for index, value in enumerate(held if isinstance(held, list) else ()):
            yield place.path / index, value


def _told_later(case: Case) -> Iterator[str]:
    """Yield what was said, and not concluded, after the fact of *case* and before its turn came."""
    for later in case.pending.later:
        statements = () if later.fact.inferred else read_statements(later.fact.text, today=case.today)
        yield from (one.object for one in statements if one.kind == "tells")


def _reach(case: Case, told: Sequence[Statement]) -> tuple[str, ...]:
    """Return the documents that *told* may be about: for a diet all of them, else those of their topics."""
    if any(one.relation == "diet" or (one.kind == "clears" and not one.tags) for one in told):
        return case.resources
    tags = [tag for one in told for tag in one.tags]
    if any(one.kind == "clears" for one in told):
        return case.routed(tags)
    return case.routed([*tags, *case.pending.fact.tags])


def _described(told: Statement) -> str:
    return f"{told.kind} {told.relation or 'anything'}: {told.object or 'everything'}"
