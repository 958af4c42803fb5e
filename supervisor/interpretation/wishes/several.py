"""Which stretches of a sentence ask for a task each: "check my budget ... and book a ride ...".

Reading a sentence as one wish is the rule. It is cut only where each part by itself chooses another task, or the same
one anew, and is complete or plainly a request; what says more of the part before it stays with that.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from supervisor.interpretation.earlier_tasks.references import reference_in
from supervisor.understanding.outcome import Ambiguous, Missing, Single, Understood, Unfitting
from supervisor.interpretation.values.fields import FieldShape
from supervisor.interpretation.values.scene import Scene, scene_of
from supervisor.interpretation.wishes.clauses import Clause, clauses_of
from supervisor.interpretation.wishes.declining import begins_declined
from supervisor.interpretation.wishes.orders import (
    CORRECTING,
    begins_with_verb,
    may_order,
    names_at_first,
    names_first,
    names_in_front,
    names_only,
    orders,
    wants_another,
)
from supervisor.interpretation.wishes.repeating import sets_of
from supervisor.interpretation.wishes.routing import Choice, Prepared, Router
from supervisor.interpretation.wishes.stretch import (
    Stretch,
    is_mere_name,
    is_other,
    is_request,
    names_its_task,
    refers_back,
    says_enough,
    varies,
)
from supervisor.interpretation.words import STOP, word_set

#: Parts of one sentence, with what nobody can do; whoever wants more says more sentences.
MOST_TASKS = 8
#: Clauses of which a second wish for the same task may consist.
_MOST_JOINED = 4
#: Values that have to come again for a second wish that nothing but its keyword announces.
_FEWEST = 2
#: What is only said to be polite.
_GREETING = STOP | word_set("morning afternoon evening day dear greetings everybody everyone night welcome")
#: "What about Rome?" asks the same of something else.
_WHAT_ABOUT = re.compile(r"(?:what|how) about\s+(?:in\s+)?(\S.*)", re.IGNORECASE | re.DOTALL)
_WORDS = re.compile(r"[\w']+")


#: Reads a stretch as if nothing had been said before.
Read = Callable[[Stretch], Single]


def stretches_of(scene: Scene, router: Router, read: Read) -> list[Stretch]:
    """Return the parts of *scene* that ask for a task each, in order; a single one for most sentences."""
    # "Don't check my budget, book a ride": what shall be done instead may follow a mere comma.
    clauses = clauses_of(
        scene,
        at_commas=begins_declined(scene.text),
        is_order=lambda comma: may_order(scene.tokens, comma, router.names),
    )
    clauses = [clause for clause in clauses if not _is_polite(scene, clause)]
    whole = [Clause(0, len(scene.text), is_apart=False)]
    if len(clauses) < 2:
        return _sets(_stretch(scene, whole[0], router), read)
    groups = _Grouping(scene, router, read).grouped(clauses)
    alone = _stretch(scene, whole[0], router)
    # Words that only resemble examples are no ground for cutting what as a whole resembles none.
    is_cut = len(groups) > 1 and (alone.choice is not None or all(map(names_its_task, groups)))
    return [one for part in (groups if is_cut else [alone]) for one in _sets(part, read)]


def _sets(stretch: Stretch, read: Read) -> list[Stretch]:
    """Return *stretch* once for each set of values that its order is said for, mostly as it is."""
    choice = stretch.choice
    if choice is None or choice.rivals or stretch.order or stretch.is_declined:
        return [stretch]
    whole = stretch.scene

    def read_part(part: Scene) -> Single:
        return read(replace(stretch, scene=part))

    found = sets_of(whole, choice.task, read_part, partial(_scene_like, whole))
    return [replace(stretch, scene=one) for one in found] or [stretch]


def _scene_like(whole: Scene, text: str) -> Scene:
    return scene_of(text, decimal_mark=whole.decimal_mark, now=whole.now)


def _stretch(scene: Scene, clause: Clause, router: Router) -> Stretch:
    if clause.start == 0 and clause.end == len(scene.text):
        return Stretch(0, clause.end, scene, router.choose(scene))
    part = scene.part(clause.start, clause.end)
    return Stretch(clause.start, clause.end, part, router.choose(_without_quotations(part)))


def _without_quotations(part: Scene) -> Scene:
    """Return *part* with nothing between its quotation marks: what somebody else said there asks for no task."""
    if not part.quoted:
        return part
    text = part.text
    for one in part.quoted:
        text = text[: one.start] + " " * (one.end - one.start) + text[one.end :]
    return _scene_like(part, text)


class _Grouping:
    """Puts the clauses of one sentence together to the wishes that they are."""

    def __init__(self, scene: Scene, router: Router, read: Read) -> None:
        self.scene = scene
        self.router = router
        self.read = read
        self._known: dict[tuple[int, int], Stretch] = {}

    def grouped(self, clauses: Sequence[Clause]) -> list[Stretch]:
        """Return the stretches that stand by themselves; one alone when the sentence is not to be cut."""
        parts = [(clause, self._at(clause)) for clause in clauses]
        groups: list[list[int]] = [[0]]
        for place in range(1, len(parts)):
            if self._begins(parts, groups[-1], place):
                groups.append([place])
            else:
                groups[-1].append(place)
        if len(groups) < 2:
            return []
        return self._standing([Clause(clauses[g[0]].start, clauses[g[-1]].end, clauses[g[0]].is_apart) for g in groups])

    def _begins(self, parts: list[tuple[Clause, Stretch]], group: list[int], place: int) -> bool:
        """Return whether the clause at *place* may begin another wish than the one that *group* is of."""
        stretch = parts[place][1]
        before = next((parts[one][1] for one in reversed(group) if parts[one][1].choice is not None), None)
        if parts[place][0].is_listed and not (
            before is not None and (self._orders(stretch) or self._is_another_set(parts, group, place))
        ):
            return False
        if before is None or before.choice is None:
            # What nobody can do was said before, unless the sentence only begins with a few words more.
            return stretch.choice is not None and (group[0] > 0 or self._is_answer(parts, group, stretch.choice.task))
        if stretch.choice is None:
            return (
                is_other(stretch, before.choice.task)
                or self._goes_on_alike(parts, group, place)
                or (parts[place][0].is_apart and varies(stretch) and self._is_told(_joined(parts, group)))
            )
        if stretch.choice.task is before.choice.task or before.choice.task in stretch.choice.rivals:
            return self._asks_again(parts, group, place, before.choice.task) or self._is_another_set(
                parts, group, place
            )
        return True

    def _orders(self, stretch: Stretch) -> bool:
        """Return whether *stretch*, behind a mere comma, is an order: it names its task, or has its values."""
        if stretch.choice is None:
            return False
        task, tokens = stretch.choice.task, stretch.scene.tokens
        if orders(tokens, task) or (names_only(tokens, task) and not stretch.choice.rivals):
            return True
        if names_at_first(tokens, task):
            # "The weather in Lima" is a wish where nothing lacks, "the taxi 30" is one of the values.
            found = self.read(stretch)
            return isinstance(found, Understood) and not found.guessed.issuperset(found.task.parameters)
        if not (begins_with_verb(tokens, task) or names_first(tokens, task)) or not is_request(stretch, task):
            return False
        found = self.read(stretch)
        call = None if isinstance(found, Unfitting) else found.task if isinstance(found, Understood) else found.call
        if call is None:
            return False
        # "Greet Bob" announces its text by its verb; "book 30" may be an amount of the task before it.
        guessed = found.guessed if isinstance(found, Understood) else frozenset()
        is_text = begins_with_verb(tokens, task)
        return any(
            name not in guessed or (is_text and isinstance(value, str)) for name, value in call.parameters.items()
        )

    def _is_answer(self, parts: list[tuple[Clause, Stretch]], group: list[int], task: Prepared) -> bool:
        """Return whether the sentence begins with what only the conversation explains, and that is not of *task*."""
        said = self.read(self._at(_joined(parts, group)))
        call = said.task if isinstance(said, Understood) else None if isinstance(said, Unfitting) else said.call
        offer = task.offer
        if isinstance(said, Unfitting) or call is None:
            return False
        return (said.agent_id, call.name) != (offer.agent.agent_id, offer.task.name)

    def _asks_again(self, parts: list[tuple[Clause, Stretch]], group: list[int], place: int, task: Prepared) -> bool:
        """Return whether the clause at *place* wants *task* a second time, and does not only say more of it."""
        clause, stretch = parts[place]
        words = [token.text for token in stretch.scene.tokens if token.is_word]
        if not words or words[0] in CORRECTING:
            return False
        again = reference_in(stretch.scene, task.cues.find(stretch.scene.tokens)).again
        is_again = again is not None and again[0] == 0
        if not is_again and not clause.is_apart and not is_request(stretch, task):
            return False
        said = self._at(_joined(parts, group))
        if not isinstance(self.read(said), Understood) and not (said.is_declined and is_request(stretch, task)):
            return False
        if is_again or (is_request(stretch, task) and wants_another(stretch.scene.text, task)):
            return True
        return any(self._is_whole(clause.start, end) for end in _ends_of(parts[place : place + _MOST_JOINED], task))

    def _is_another_set(self, parts: list[tuple[Clause, Stretch]], group: list[int], place: int) -> bool:
        """Return whether the clause at *place* begins with what its task is about, and is as whole as those before it.

        "Budget of 10k with 2k spent, *budget of 20k with 5k spent*" asks twice; a lone "limit 20k" corrects or doubts.
        """
        clause, stretch = parts[place]
        if stretch.choice is None or not names_in_front(stretch.scene.tokens, stretch.choice.task):
            return False
        ends = list(_ends_of(parts[place : place + _MOST_JOINED], stretch.choice.task))
        needed = sum(shape.is_numeric and not shape.is_list for shape in stretch.choice.task.shape.required)
        reaches = (parts[group[0]][0].start, clause.start), (clause.start, ends[-1])
        if any(sum(start <= item.start < end for item in self.scene.items) < needed for start, end in reaches):
            # A look at the amounts spares the readings.
            return False
        return self._is_told(_joined(parts, group)) and any(
            self._is_told(Clause(clause.start, end, is_apart=False)) for end in ends
        )

    def _is_told(self, clause: Clause) -> bool:
        """Return whether *clause* is a wish that nothing lacks, and of which nothing is guessed or left over."""
        found = self.read(self._at(clause))
        # One value alone may be a list, or a correction.
        return isinstance(found, Understood) and found.is_certain and len(found.task.parameters) >= _FEWEST

    def _goes_on_alike(self, parts: list[tuple[Clause, Stretch]], group: list[int], place: int) -> bool:
        """Return whether the clause at *place* has other values for the wish before it, as many in the same order."""
        words = [token.text for token in parts[place][1].scene.tokens if token.is_word]
        other = _WHAT_ABOUT.match(parts[place][1].scene.text)
        if len(words) < 2 or (other is None and words[0] != "for"):
            return False
        before = self._at(_joined(parts, group))
        if before.choice is None:
            return False
        found, task = self.read(before), before.choice.task
        if other is not None and isinstance(found, Understood):
            return self._asks_about(other, _up_to(parts, place), found, before.choice)
        if words[0] != "for":
            return False
        ends = [one.end for one, other in parts[place : place + _MOST_JOINED] if other.choice is None]
        rest = _stretch(self.scene, Clause(parts[place][0].start, ends[-1], is_apart=True), self.router)
        said = _in_order(found, task) if isinstance(found, Understood) else ()
        if len(said) < 2 or len(said) != len(rest.scene.items) or task.cues.find(rest.scene.tokens):
            return False
        place_of_rest = rest.start, rest.end
        self._known[place_of_rest] = replace(rest, choice=before.choice, order=said)
        return True

    def _asks_about(self, other: re.Match[str], clause: Clause, found: Understood, choice: Choice) -> bool:
        """Return whether *other*, "what about Rome", has another text for the one that *found* holds."""
        fields = [shape for shape in choice.task.shape.fields if shape.name in found.task.parameters]
        if len(fields) != 1 or fields[0].kind != "text" or fields[0].is_list or not fields[0].is_required:
            return False
        start = clause.start + other.start(1)
        said = _scene_like(self.scene, self.scene.text[start : clause.end])
        self._known[clause.start, clause.end] = Stretch(start, clause.end, said, choice, (fields[0],))
        return True

    def _is_whole(self, start: int, end: int) -> bool:
        """Return whether these characters are a wish that nothing lacks."""
        return isinstance(self.read(self._at(Clause(start, end, is_apart=False))), Understood)

    def _standing(self, clauses: list[Clause]) -> list[Stretch]:
        """Return what stands by itself; what does not goes to its neighbour before it, or after it."""
        place = 0
        while len(clauses) > 1 and place < len(clauses):
            if self._stands(self._at(clauses[place]), is_first=place == 0):
                place += 1
                continue
            at = max(place - 1, 0)
            joined = Clause(clauses[at].start, clauses[at + 1].end, clauses[at].is_apart)
            clauses = [*clauses[:at], joined, *clauses[at + 2 :]]
            place = at
        found = [self._at(clause) for clause in clauses]
        # "My budget limit is 50k and books dropped 8k": what merely begins with its keyword has its like beside it.
        is_bare = any(self._lacks(one) and not _is_request_of_its_own(one) for one in found)
        return [] if is_bare and not all(self._says_value(one) for one in found) else found

    def _lacks(self, stretch: Stretch) -> bool:
        """Return whether *stretch* begins with what its task is about, says a value of it, and lacks another."""
        if stretch.choice is None or not names_in_front(stretch.scene.tokens, stretch.choice.task):
            return False
        found = self.read(stretch)
        return isinstance(found, Missing) and bool(found.known)

    def _says_value(self, stretch: Stretch) -> bool:
        found = self.read(stretch)
        return isinstance(found, Understood) or (isinstance(found, Missing) and bool(found.known))

    def _at(self, clause: Clause) -> Stretch:
        place = clause.start, clause.end
        if place not in self._known:
            self._known[place] = _stretch(self.scene, clause, self.router)
        return self._known[place]

    def _stands(self, stretch: Stretch, *, is_first: bool) -> bool:
        if stretch.is_declined:
            return True
        if stretch.choice is None or stretch.order:
            return not is_first or not isinstance(self.read(stretch), Unfitting)
        task = stretch.choice.task
        found = self.read(stretch)
        if isinstance(found, Ambiguous) and found.task_name is None:
            # Which of several tasks is asked later; whether it is a wish at all shows with any of them.
            found = self.read(replace(stretch, choice=replace(stretch.choice, rivals=())))
        if isinstance(found, Understood) and not found.guessed.issuperset(found.task.parameters):
            return True
        if isinstance(found, Understood) and names_only(stretch.scene.tokens, task):
            return True
        if not is_first and refers_back(stretch, task):
            return True
        if self._lacks(stretch):
            # "My budget with limit 50k and a trip with a hotel of 400": each lacks something.
            return True
        return not isinstance(found, Unfitting) and is_request(stretch, task) and says_enough(stretch)


def _is_request_of_its_own(stretch: Stretch) -> bool:
    return stretch.choice is not None and is_request(stretch, stretch.choice.task)


def _joined(parts: list[tuple[Clause, Stretch]], group: Sequence[int]) -> Clause:
    """Return the clauses of *group* as one."""
    return Clause(parts[group[0]][0].start, parts[group[-1]][0].end, is_apart=False)


def _up_to(parts: list[tuple[Clause, Stretch]], place: int) -> Clause:
    """Return the clause at *place* with those behind it that are mere words: "what about Oslo and Rome"."""
    last = place
    while last + 1 < len(parts) and not parts[last + 1][0].is_apart and is_mere_name(parts[last + 1][1]):
        last += 1
    return parts[place][0]._replace(end=parts[last][0].end)


def _ends_of(parts: Sequence[tuple[Clause, Stretch]], task: Prepared) -> Iterator[int]:
    """Yield where a wish for *task* that begins with *parts* may end: before what is a wish for another one."""
    for place, (clause, stretch) in enumerate(parts):
        if place and stretch.choice is not None and stretch.choice.task is not task:
            return
        yield clause.end


def _is_polite(scene: Scene, clause: Clause) -> bool:
    """True for "hello" and "thanks a lot": nothing of a wish, and no part of the one before or after it."""
    return all(word.lower() in _GREETING for word in _WORDS.findall(scene.text, clause.start, clause.end))


def _in_order(found: Understood, task: Prepared) -> tuple[FieldShape, ...]:
    """Return the fields whose amounts *found* read, when they were said in the order in which they are declared."""
    names = [span.field for span in sorted(found.spans, key=lambda span: span.start)]
    fields = tuple(shape for shape in task.shape.fields if shape.name in names)
    is_plain = all(shape.is_numeric and not shape.is_list for shape in fields)
    return fields if is_plain and [shape.name for shape in fields] == names else ()
