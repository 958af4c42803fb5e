"""What a clause says: the first pattern that fits it and whose slots hold what belongs there, as statements."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from workers.statements.clauses import Clause
from workers.statements.grammar import Grammar, Meaning
from workers.statements.patterns import Found
from workers.statements.slots import Slots
from workers.statements.statement import Durability, Relation, Statement
from workers.statements.taxonomy import Taxonomy
from workers.statements.tokens import folded, written

Filled = dict[str, tuple[str, ...]]

#: Words of the shortest clause that another may share its subject with: "I like tea".
_SHORTEST = 3
#: Letters of the longest greeting.
_GREETING = 40
#: Clauses that share one subject: "I like tea, hate coffee and love juice".
_SHARING = 3


@dataclass(slots=True)
class Budget:
    """How often clauses of one text may still be matched, so that a hostile one costs no more than a long one."""

    left: int

    def spend(self) -> bool:
        """Count one more, and say whether it was left."""
        self.left -= 1
        return self.left >= 0


class Meanings:
    """Matches clauses with patterns; pure."""

    def __init__(self, grammar: Grammar, slots: Slots, taxonomy: Taxonomy) -> None:
        self._grammar = grammar
        self._slots = slots
        self._taxonomy = taxonomy

    def of(self, clause: Clause, text: str, budget: Budget, sharing: int = _SHARING) -> list[Statement]:
        """Return what *clause* of *text* says, nothing when no pattern fits it or the *budget* is spent."""
        if not clause.words or not budget.spend():
            return []
        if sharing and (told := self._shared(clause, 1, text, budget, sharing - 1)):
            return told
        first = clause.words[0].text
        said = clause.texts
        texts = (self._grammar.openings.get(first, first), *said[1:])
        for found in self._grammar.patterns.find(texts):
            meaning = self._grammar.meanings[found.number]
            if meaning.kind == "nothing":
                return []
            is_sure = self._is_sure(clause, said, found, meaning)
            if is_sure and (told := self._meant(clause, said, found, meaning, text)):
                return told
        # Only now, or "allergic to nuts and kiwi" would be somebody who is a kiwi.
        helped = sharing and said[1:2] and said[1] in self._grammar.turns.helping
        return self._shared(clause, 2, text, budget, sharing - 1) if helped else []

    def _shared(self, clause: Clause, shared: int, text: str, budget: Budget, sharing: int) -> list[Statement]:
        """Return what two clauses say that share the first words, "I like tea but hate coffee"; nothing when it is one.

        *shared* are the subject, or the subject and its "am".
        """
        words, grammar = clause.words, self._grammar
        for place in range(_SHORTEST, len(words) - 1):
            if words[place].text not in grammar.joins:
                continue
            begin = place + 1
            while begin < len(words) and words[begin].text in grammar.joins:
                begin += 1
            verb = begin
            while verb < len(words) and words[verb].text in grammar.adverbs:
                verb += 1
            if verb == len(words):
                continue
            is_gap = shared == 1 and not grammar.is_verb(words[verb].text)
            if is_gap and (words[begin].text not in grammar.denials or verb != begin + 1):
                continue
            first = self.of(replace(clause, words=words[:place]), text, budget, 0)
            if is_gap:
                second = self._unlike(clause, first, verb, text, budget)
            else:
                rest = replace(clause, words=words[:shared] + words[begin:])
                second = self.of(rest, text, budget, sharing) if first else []
            if second:
                return first + second
        return []

    def _unlike(
        self, clause: Clause, first: Sequence[Statement], begin: int, text: str, budget: Budget
    ) -> list[Statement]:
        """Return what "but not tea" says behind a liking: a dislike of something of the same sort, else nothing."""
        words, turns = clause.words, self._grammar.turns
        if not first or any(one.relation != "like" or not one.tags for one in first) or clause.is_weak:
            return []
        is_manner = all(word.text in turns.manners for word in words[begin:])
        if is_manner or words[begin].text in turns.circumstances:
            return []
        told = [replace(words[begin - 1], text=one, written=one) for one in turns.gap]
        second = self.of(replace(clause, words=(words[0], *told, *words[begin:])), text, budget, 0)
        return second if all(one.relation == "dislike" and one.tags == first[0].tags for one in second) else []

    def _is_sure(self, clause: Clause, said: Sequence[str], found: Found, meaning: Meaning) -> bool:
        """True unless what was passed over or taken off changes what is said."""
        if clause.is_weak and meaning.relation != "dislike":
            return False
        if meaning.kind == "clears" and meaning.relation != "about" and not self._grammar.exceptions.isdisjoint(said):
            return False
        if meaning.relation == "diet" and any(said[place] in self._grammar.hedges for place in found.skipped):
            return False
        return self._grammar.is_sure(said, found.skipped, takes_back=meaning.kind == "retracts")

    def _meant(self, clause: Clause, said: Sequence[str], found: Found, meaning: Meaning, text: str) -> list[Statement]:
        """Return what *found* says in *clause*, nothing when a slot does not hold what belongs there."""
        if meaning.needs_end and not (clause.ending and clause.ending.is_until):
            return []
        if meaning.needs_greeting and not self._greets(text):
            return []
        filled: Filled = {}
        is_habit = any(said[place] in self._grammar.habitual for place in found.skipped)
        one_day = said[0] in self._grammar.adverbs
        for name, (type_, begin, end) in found.slots.items():
            timed = self._slots.is_timed(type_)
            if any(self._grammar.is_blocked(one, timed) for one in said[begin:end]):
                return []
            values = self._slots.fill(type_, clause.words[begin:end], is_habit=is_habit, one_day=one_day)
            if values is None:
                return []
            filled[name] = values
        evidence = text[clause.place[0] : clause.place[1]]
        meant = [replace(meaning, relation=one) for one in meaning.relations] or [meaning]
        return [
            self._statement(one, object_, clause, filled, evidence)
            for one in meant
            for object_ in self._objects(clause, found, meaning, filled)
        ]

    def _greets(self, text: str) -> bool:
        begin = folded(text[:_GREETING]).replace(",", " ").replace("!", " ").split()
        return bool(self._grammar.greetings.opening(begin))

    def _objects(self, clause: Clause, found: Found, meaning: Meaning, filled: Filled) -> list[str]:
        """Return the object of each statement: one, or one for each thing of a list."""
        single = {name: values[0] for name, values in filled.items()}
        for name, places in found.named.items():
            single[name] = self._slots.told_of_another([clause.words[place] for place in places])
        if "{said}" in meaning.object:
            single["said"] = self._said(clause, found)
        several = (name for name, values in filled.items() if len(values) > 1 and f"{{{name}}}" in meaning.object)
        listed = next(several, None)
        if listed is None:
            return [meaning.object.format_map(single).strip()]
        return [meaning.object.format_map({**single, listed: value}).strip() for value in filled[listed]]

    def _said(self, clause: Clause, found: Found) -> str:
        """Return the clause as one tells it of its subject: "gets up at 6:30", "name is Ana"; an order as it is."""
        grammar = self._grammar
        kept = [word for place, word in enumerate(clause.words) if place not in found.skipped]
        if kept[0].text not in (grammar.first, grammar.owner):
            return self._slots.told_of_another([replace(kept[0], written=kept[0].written.lower()), *kept[1:]])
        rest = kept[1:]
        if clause.is_third:
            return written(rest)
        if kept[0].text == grammar.first:
            verb = next((place for place, word in enumerate(rest) if word.text not in grammar.adverbs), 0)
            rest[verb] = replace(rest[verb], written=grammar.inflected(rest[verb].text))
        return self._slots.told_of_another(rest)

    def _statement(self, meaning: Meaning, object_: str, clause: Clause, filled: Filled, evidence: str) -> Statement:
        relation, tags = self._relation(meaning, object_, filled)
        words = self._grammar.relations.get(relation or "")
        if meaning.kind != "tells" or words is None:
            return Statement(
                "retracts" if meaning.kind == "retracts" else "clears", relation, object_, evidence, tags=tags
            )
        durability: Durability = meaning.durability or words.durability
        if relation == "condition" and self._taxonomy.is_headed(object_, self._grammar.passing):
            durability = "short_term"
        ending = clause.ending
        return Statement(
            "tells",
            relation,
            object_,
            evidence,
            polarity=words.polarity,
            durability=ending.durability if ending else durability,
            expiry=ending.expiry if ending else None,
            tags=tags,
        )

    def _relation(self, meaning: Meaning, object_: str, filled: Filled) -> tuple[Relation | None, tuple[str, ...]]:
        """Return what relation is meant of *object_*, and which documents it concerns."""
        if "topic" in filled:
            return None, (self._slots.tag_of_topic(filled["topic"][0]) or "",)
        topic = self._topic(object_)
        relation = meaning.by_tag.get(topic, meaning.relation)
        if "list" in filled:
            relation = self._slots.relation_of_list(filled["list"][0])
        own = meaning.tags or (self._grammar.relations[relation].tags if relation else ())
        if relation == "allergy" and topic == self._grammar.edible:
            return relation, (*own, topic)
        return relation, own or ((topic,) if topic else ())

    def _topic(self, object_: str) -> str:
        """Return the tag of the documents that *object_* belongs to, "" when no data file or more than one tells."""
        roots = self._grammar.topic_roots
        found = {
            self._taxonomy.tag_of(root) or ""
            for root in roots
            if self._taxonomy.is_headed(object_, root) or self._taxonomy.is_wholly(object_, root)
        }
        if len(found) == 1:
            return found.pop()
        # "Cooking Italian food" is something to do, whatever it is done with.
        doing = object_.partition(" ")[0]
        does = next((root for root in roots[1:] if self._taxonomy.is_wholly(doing, root)), None)
        return (self._taxonomy.tag_of(does) or "") if does else ""
