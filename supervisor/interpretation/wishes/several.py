"""Which stretches of a sentence ask for a task each: "check my budget ... and book a ride ...".

Reading a sentence as one wish is the rule. It is cut only where each part by itself chooses another task, or the same
one anew, and is complete or plainly a request; what says more of the part before it stays with that.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from supervisor.interpretation.earlier_tasks.references import reference_in
from supervisor.interpretation.outcome import Ambiguous, Single, Span, Understood, Unfitting
from supervisor.interpretation.values.fields import FieldShape
from supervisor.interpretation.values.scene import Scene, scene_of
from supervisor.interpretation.wishes.clauses import Clause, clauses_of
from supervisor.interpretation.wishes.declining import begins_declined, is_declined
from supervisor.interpretation.wishes.orders import (
    ASKING,
    CORRECTING,
    TELLING,
    WISHING,
    begins_with_verb,
    may_order,
    names_at_first,
    names_first,
    names_only,
    orders,
    wants_another,
)
from supervisor.interpretation.wishes.repeating import sets_of
from supervisor.interpretation.wishes.routing import Choice, Prepared, Router
from supervisor.interpretation.words import STOP, stems_of, word_set

#: Parts of one sentence, with what nobody can do; whoever wants more says more sentences.
MOST_TASKS = 8
#: Clauses of which a second wish for the same task may consist.
_MOST_JOINED = 4
#: What is only said to be polite.
_GREETING = STOP | word_set("morning afternoon evening day dear greetings everybody everyone night welcome")
#: "What about Rome?" asks the same of something else.
_WHAT_ABOUT = re.compile(r"(?:what|how) about\s+(?:in\s+)?(\S.*)", re.IGNORECASE | re.DOTALL)
_WORDS = re.compile(r"[\w']+")


@dataclass(frozen=True, slots=True, eq=False)
class Stretch:
    """A part of a sentence from *start* on: *scene* is made of it alone, *choice* is the router's for it.

    With *order*, it wants the task before it once more, and has the values of these fields in their order: "limit 50k,
    spent 42k; then for food 5k and 4.5k".
    """

    start: int
    end: int
    scene: Scene
    choice: Choice | None
    order: tuple[FieldShape, ...] = ()

    @property
    def is_declined(self) -> bool:
        """Whether it says that its task shall not be done."""
        return is_declined(self.scene, self.choice)


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
    is_cut = len(groups) > 1 and (alone.choice is not None or all(map(_names_its_task, groups)))
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
        if parts[place][0].is_listed and not (before is not None and self._orders(stretch)):
            return False
        if before is None or before.choice is None:
            # What nobody can do was said before, unless the sentence only begins with a few words more.
            return stretch.choice is not None and (group[0] > 0 or self._is_answer(parts, group, stretch.choice.task))
        if stretch.choice is None:
            return _is_other(stretch, before.choice.task) or self._goes_on_alike(parts, group, place)
        if stretch.choice.task is before.choice.task or before.choice.task in stretch.choice.rivals:
            return self._asks_again(parts, group, place, before.choice.task)
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
        if not (begins_with_verb(tokens, task) or names_first(tokens, task)) or not _is_request(stretch, task):
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
        said = self.read(self._at(Clause(parts[group[0]][0].start, parts[group[-1]][0].end, is_apart=False)))
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
        if not is_again and not clause.is_apart and not _is_request(stretch, task):
            return False
        said = self._at(Clause(parts[group[0]][0].start, parts[group[-1]][0].end, is_apart=False))
        if not isinstance(self.read(said), Understood) and not (said.is_declined and _is_request(stretch, task)):
            return False
        if is_again or (_is_request(stretch, task) and wants_another(stretch.scene.text, task)):
            return True
        return any(self._is_whole(clause.start, end) for end in _ends_of(parts[place : place + _MOST_JOINED], task))

    def _goes_on_alike(self, parts: list[tuple[Clause, Stretch]], group: list[int], place: int) -> bool:
        """Return whether the clause at *place* has other values for the wish before it, as many in the same order."""
        words = [token.text for token in parts[place][1].scene.tokens if token.is_word]
        other = _WHAT_ABOUT.match(parts[place][1].scene.text)
        if len(words) < 2 or (other is None and words[0] != "for"):
            return False
        before = self._at(Clause(parts[group[0]][0].start, parts[group[-1]][0].end, is_apart=False))
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
        return [self._at(clause) for clause in clauses]

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
        if not is_first and _refers_back(stretch, task):
            return True
        return not isinstance(found, Unfitting) and _is_request(stretch, task) and _says_enough(stretch)


def _up_to(parts: list[tuple[Clause, Stretch]], place: int) -> Clause:
    """Return the clause at *place* with those behind it that are mere words: "what about Oslo and Rome"."""
    last = place
    while last + 1 < len(parts) and not parts[last + 1][0].is_apart and _is_mere_name(parts[last + 1][1]):
        last += 1
    return parts[place][0]._replace(end=parts[last][0].end)


def _ends_of(parts: Sequence[tuple[Clause, Stretch]], task: Prepared) -> Iterator[int]:
    """Yield where a wish for *task* that begins with *parts* may end: before what is a wish for another one."""
    for place, (clause, stretch) in enumerate(parts):
        if place and stretch.choice is not None and stretch.choice.task is not task:
            return
        yield clause.end


def _is_mere_name(stretch: Stretch) -> bool:
    words = [token for token in stretch.scene.tokens if token.is_word]
    return stretch.choice is None and 0 < len(words) <= _MOST_JOINED and words[0].text not in ASKING | TELLING


def _refers_back(stretch: Stretch, task: Prepared) -> bool:
    reference = reference_in(stretch.scene, task.cues.find(stretch.scene.tokens))
    return reference.again is not None or reference.everything is not None or bool(reference.fields)


def _is_other(stretch: Stretch, task: Prepared) -> bool:
    """True for a question about something that no agent does, where it says nothing of the *task* before it."""
    words = [token for token in stretch.scene.tokens if token.is_word]
    if len(words) < 2 or words[0].text not in ASKING or words[0].text == "please":
        return False
    if stretch.scene.quoted or all(word.text in STOP for word in words) or task.cues.find(stretch.scene.tokens):
        return False
    return not stretch.scene.items and not reference_in(stretch.scene, ())


def _is_polite(scene: Scene, clause: Clause) -> bool:
    """True for "hello" and "thanks a lot": nothing of a wish, and no part of the one before or after it."""
    return all(word.lower() in _GREETING for word in _WORDS.findall(scene.text, clause.start, clause.end))


def _names_its_task(stretch: Stretch) -> bool:
    return stretch.choice is None or any(token.stem in stretch.choice.task.names for token in stretch.scene.tokens)


def _says_enough(stretch: Stretch) -> bool:
    """Return whether *stretch*, which has no value, names its task, or begins as its examples or a question do."""
    if _names_its_task(stretch) or stretch.choice is None:
        return True
    words = [token for token in stretch.scene.tokens if token.is_word]
    if sum(token.text not in STOP for token in words) < 2:
        return False
    first = words[0].text
    examples = (example.lower().split() for example in stretch.choice.task.offer.task.examples)
    return first in ASKING or first in {"i", "we"} or any(said[:1] == [first] for said in examples)


def _in_order(found: Understood, task: Prepared) -> tuple[FieldShape, ...]:
    """Return the fields whose amounts *found* read, when they were said in the order in which they are declared."""
    names = [span.field for span in sorted(found.spans, key=lambda span: span.start)]
    fields = tuple(shape for shape in task.shape.fields if shape.name in names)
    is_plain = all(shape.is_numeric and not shape.is_list for shape in fields)
    return fields if is_plain and [shape.name for shape in fields] == names else ()


def _is_request(stretch: Stretch, task: Prepared) -> bool:
    """Return whether *stretch* begins like a request: a question or an order, and no value or account of something."""
    tokens = [token for token in stretch.scene.tokens if token.is_word]
    if not tokens:
        return False
    first = tokens[0].text
    if first in {"i", "we", "i'd", "we'd"}:
        return len(tokens) > 1 and tokens[1].text in WISHING
    if first in ASKING:
        return True
    # "Send 20 euros to Bob" is an order, although "send" also announces its amount.
    is_order = tokens[0].stem in stems_of(task.offer.task.name)[:1]
    starts_with_field = not is_order and any(cue.first == 0 for cue in task.cues.find(stretch.scene.tokens))
    return not (first in TELLING or first[0].isdigit() or starts_with_field)


def shifted(found: Single, stretch: Stretch) -> Single:
    """Return *found*, read from *stretch*, with its places in the whole sentence."""
    if isinstance(found, Unfitting):
        return found
    return replace(found, spans=tuple(_shifted(span, stretch) for span in found.spans))


def _shifted(span: Span, stretch: Stretch) -> Span:
    # What points into an earlier turn, or into what is remembered, stays where it is.
    if span.memory is not None or stretch.scene.text[span.start : span.end] != span.text:
        return span
    return replace(span, start=span.start + stretch.start, end=span.end + stretch.start)


def is_about_task(found: Single) -> bool:
    """Return whether *found* is a wish that somebody can do something about, if only by asking back."""
    return not isinstance(found, Unfitting)
