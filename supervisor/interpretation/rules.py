"""The interpreter that is always there: deterministic, in-process, and the same for every agent."""

from collections.abc import Sequence

from contracts.messages import ChatTurn
from supervisor.catalogue import Catalogue
from supervisor.interpretation.amounts import Doubt
from supervisor.interpretation.conclusions import conclude, lacking
from supervisor.interpretation.fields import FieldShape
from supervisor.interpretation.filling import Filled, fill
from supervisor.interpretation.outcome import Ambiguous, Interpretation, Missing, Span, Understood, Unfitting
from supervisor.interpretation.questions import (
    agreed_in,
    ask_unknown_reference,
    ask_which_task,
    ask_whose,
    asks_to_confirm,
    fields_asked,
)
from supervisor.interpretation.recollection import read_agreed
from supervisor.interpretation.references import Past, Reference, past_tasks, reference_in, unanswered_choice
from supervisor.interpretation.routing import Choice, Prepared, Router
from supervisor.interpretation.scene import Scene, scene_of
from supervisor.interpretation.words import STOP, word_set

#: Said instead of an answer, these end the question.
_NEVER_MIND = frozenset(
    {"never mind", "nevermind", "forget it", "cancel", "cancel that", "stop", "drop it", "leave it"}
)
_YES = frozenset({"yes", "yes please", "yeah", "yep", "ok", "okay", "sure", "correct", "right", "exactly", "yes i do"})
#: Words of asking for the same once more.
_REPEATING = word_set(
    "again once more time repeat redo rerun re run recheck check calculate compute question same previous last before"
    " instead try answer do"
)


class RuleInterpreter:
    """Reads sentences by keywords, cues and amounts; keeps nothing but the index of the latest catalogue."""

    def __init__(self) -> None:
        self._indexed: tuple[Catalogue, Router] | None = None

    async def interpret(
        self,
        text: str,
        *,
        catalogue: Catalogue,
        previous: Sequence[ChatTurn],
        user_id: str | None = None,  # noqa: ARG002 - rules do not guess who means what they remember
    ) -> Interpretation:
        """Return what *text* asks for; see `understand`."""
        return self.understand(text, catalogue=catalogue, previous=previous)

    def understand(self, text: str, *, catalogue: Catalogue, previous: Sequence[ChatTurn] = ()) -> Interpretation:
        """Return what *text* asks for, given the earlier turns of its conversation, oldest first."""
        return _Reading(self.router(catalogue), previous).read(text)

    def router(self, catalogue: Catalogue) -> Router:
        """Return the index of *catalogue*, built once and kept until another catalogue comes."""
        if self._indexed is None or catalogue not in (self._indexed[0], self._indexed[1].catalogue):
            self._indexed = catalogue, Router(catalogue)
        return self._indexed[1]


class _Reading:
    """One sentence in one conversation."""

    def __init__(self, router: Router, previous: Sequence[ChatTurn]) -> None:
        self.router = router
        self.catalogue = router.catalogue
        self.previous = previous
        self.past = past_tasks(previous, router.catalogue)

    def read(self, text: str) -> Interpretation:
        scene = scene_of(text)
        choice = self.router.choose(scene)
        if choice is not None and (earlier := unanswered_choice(self.previous)):
            return self._fill(scene_of(earlier.text), choice.task)
        if confirmed := self._confirmed(text):
            return confirmed
        pending = self._pending()
        if pending is not None and _words(text) in _NEVER_MIND:
            return Unfitting(f"All right, I leave it. {self.catalogue.abilities()}")
        if pending is not None and _words(text) in _YES and (agreed := agreed_in(pending[0].turn.text)):
            return _agree(text, agreed, *pending)
        if pending is not None:
            answered = self._answer(scene, choice, *pending)
            if answered is not None:
                return answered
        return self._ask_anew(scene, choice)

    # -- a question was open --------------------------------------------------------------------------------------

    def _confirmed(self, text: str) -> Understood | None:
        """Return the task that the last turn asked to confirm, when *text* does."""
        last = self.previous[-1] if self.previous else None
        if last is None or not self.past or self.past[0].turn is not last or not asks_to_confirm(last):
            return None
        past = self.past[0]
        return Understood(past.offer.agent.agent_id, past.call) if _words(text) in _YES else None

    def _pending(self) -> tuple[Past, Prepared, tuple[FieldShape, ...]] | None:
        """Return the task that the last turn asked about and the fields it asked for, or None."""
        last = next((turn for turn in reversed(self.previous) if turn.speaker == "assistant"), None)
        if last is None or not self.past or self.past[0].turn is not last:
            return None
        task = self._prepared(self.past[0])
        asked = fields_asked(last, task.shape)
        return (self.past[0], task, asked) if asked else None

    def _answer(
        self, scene: Scene, choice: Choice | None, past: Past, task: Prepared, asked: tuple[FieldShape, ...]
    ) -> Interpretation | None:
        """Return the open task completed by *scene*, or None when the person speaks of something else."""
        if choice is not None and choice.task is not task and task not in choice.rivals:
            return None
        filled = fill(scene, task, asked)
        reference = reference_in(scene, task.cues.find(scene.tokens))
        says_nothing = not filled.values and not filled.doubts and not reference
        if says_nothing and (choice is not None or not any(shape.is_required for shape in asked)):
            return None
        says_all = not lacking(task, filled)
        problems = self._resolve(scene, task, filled, reference, skip=past)
        if not filled.values and not filled.doubts:
            filled.unplaced = _whose(filled, asked)
        if not says_all:
            _inherit(filled, past, task, None)
        return conclude(task, filled, problems)

    # -- a sentence of its own ------------------------------------------------------------------------------------

    def _ask_anew(self, scene: Scene, choice: Choice | None) -> Interpretation:
        recent = self._prepared(self.past[0]) if self.past else None
        if recent is not None and (choice is None or recent in choice.rivals):
            cues = recent.cues.find(scene.tokens)
            if reference_in(scene, cues) and (choice is not None or cues or scene.items or _says_nothing_else(scene)):
                return self._fill(scene, recent)
        if choice is None:
            return Unfitting(f"I cannot tell what to do with that. {self.catalogue.abilities()}")
        if not choice.rivals:
            return self._fill(scene, choice.task)
        return self._prefer(scene, (choice.task, *choice.rivals))

    def _prefer(self, scene: Scene, tasks: tuple[Prepared, ...]) -> Interpretation:
        """Return the one task of several likely ones that the values fit best, or ask which is meant."""
        tried = [(task, fill(scene, task)) for task in tasks]
        fits = [(len(filled.values) - len(lacking(task, filled)), task) for task, filled in tried]
        best = max(fit for fit, _ in fits)
        likeliest = [task for fit, task in fits if fit == best]
        if len(likeliest) == 1 and best > 0:
            return self._fill(scene, likeliest[0])
        return Ambiguous(ask_which_task([task.offer for task in likeliest]))

    def _fill(self, scene: Scene, task: Prepared) -> Interpretation:
        filled = fill(scene, task)
        reference = reference_in(scene, task.cues.find(scene.tokens))
        problems = self._resolve(scene, task, filled, reference)
        return conclude(task, filled, problems)

    def _resolve(
        self, scene: Scene, task: Prepared, filled: Filled, reference: Reference, skip: Past | None = None
    ) -> list[Doubt]:
        """Take from the conversation what *reference* asks for; return the doubts about what it does not hold."""
        pasts = [past for past in self.past if past is not skip and self._prepared(past) is task]
        problems = []
        for name, span in reference.fields.items():
            shape = task.shape.field(name)
            if shape is None or filled.has(shape):
                continue
            if not pasts:
                problems.append(Doubt(shape, ask_unknown_reference(shape)))
            elif name in pasts[0].call.parameters:
                _take(filled, pasts[0], name, span, scene.text)
        wants_rest = reference.everything or (reference.again if lacking(task, filled) else None)
        if wants_rest and pasts and not problems:
            _inherit(filled, pasts[0], task, (wants_rest, scene.text), but=[problem.field for problem in problems])
            # "again with 45k": leaving the 45k out would answer another question.
            filled.unplaced = _whose(filled, [shape for shape in task.shape.fields if shape.is_numeric])
        return problems

    def _prepared(self, past: Past) -> Prepared:
        found = self.router.find(past.offer.agent.agent_id, past.offer.task.name)
        if found is None:
            raise AssertionError("past tasks are looked up in the catalogue that the router indexes")
        return found


def _whose(filled: Filled, fields: Sequence[FieldShape]) -> str | None:
    return ask_whose(filled.loose[0].found.text, fields) if filled.loose and fields else None


def _agree(
    text: str, agreed: str, past: Past, task: Prepared, asked: tuple[FieldShape, ...]
) -> Understood | Missing | Ambiguous:
    """Return the open task completed by what *text*, a yes, agrees to."""
    filled = read_agreed(task, asked, agreed)
    for name in filled.values:
        filled.point(name, 0, len(text), text)
    _inherit(filled, past, task, None)
    return conclude(task, filled)


def _words(text: str) -> str:
    return " ".join(text.lower().strip(" .!").split())


def _says_nothing_else(scene: Scene) -> bool:
    """True for "again, please": no word in it is about anything else."""
    return all(token.text in STOP or token.text in _REPEATING for token in scene.tokens if token.is_word)


def _take(filled: Filled, past: Past, name: str, span: tuple[int, int], text: str) -> None:
    filled.values[name] = past.call.parameters[name]
    filled.spans.append(Span(name, *span, text[slice(*span)], past.turn.turn_id))


def _inherit(
    filled: Filled,
    past: Past,
    task: Prepared,
    said: tuple[tuple[int, int], str] | None,
    but: Sequence[FieldShape] = (),
) -> None:
    """Fill what the sentence left out from *past*; *said* is the words that ask for it, None for an answer."""
    for shape in task.shape.fields:
        if shape.name in past.call.parameters and not filled.has(shape) and shape not in but:
            span, text = said or ((0, len(past.turn.text)), past.turn.text)
            _take(filled, past, shape.name, span, text)
