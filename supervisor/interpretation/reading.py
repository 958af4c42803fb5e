"""One sentence that asks for one thing, in its conversation: an answer to what was asked, or a wish of its own."""

from collections.abc import Sequence
from dataclasses import replace

from contracts.messages import ChatTurn
from quantities.amounts import canonical
from supervisor.interpretation.carrying import ask_left, changes_of, put_changed, put_referred
from supervisor.interpretation.conclusions import conclude, lacking
from supervisor.interpretation.doubting import doubt_guesses
from supervisor.interpretation.earlier_tasks.anew import ask_for_unread, says_anew
from supervisor.interpretation.earlier_tasks.changes import Change, changes_in, without_amounts_of
from supervisor.interpretation.earlier_tasks.references import Past, reference_in
from supervisor.interpretation.inheriting import inherit
from supervisor.interpretation.open_questions import Pending, answer_to_one, answers_to, asked_again, ends_questions
from supervisor.interpretation.options import chosen_in
from supervisor.understanding.outcome import Ambiguous, Missing, Single, Understood, Unfitting
from supervisor.interpretation.picks import pick, says_yes
from supervisor.interpretation.proof.recollection import read_agreed
from supervisor.interpretation.questions import (
    agreed_in,
    ask_which_task,
    asks_to_confirm,
    fields_asked,
    leave,
)
from supervisor.interpretation.values.fields import FieldShape
from supervisor.interpretation.values.filling import fill
from supervisor.interpretation.values.scene import Scene
from supervisor.interpretation.wishes.choosing import chosen_of, offered_by
from supervisor.interpretation.wishes.declining import asks_for_abilities, is_declined
from supervisor.interpretation.wishes.routing import Choice, Prepared, Router
from supervisor.interpretation.words import STOP, word_set

#: Words of asking for the same once more.
_REPEATING = word_set(
    "again once more time repeat redo rerun re run recheck check calculate compute question same previous last before"
    " instead try answer do"
)


class SentenceReader:
    """Reads sentences that each ask for one thing; *past* are the tasks of the conversation, the latest first."""

    def __init__(self, router: Router, previous: Sequence[ChatTurn], past: Sequence[Past]) -> None:
        self.router = router
        self.catalogue = router.catalogue
        self.previous = previous
        self.past = list(past)
        self.answered: Past | None = None
        """The one of several open questions that `read` found an answer to."""

    def read(self, scene: Scene, choice: Choice | None) -> Single:
        """Return what *scene* comes to, as an answer to an open question first; *choice* is the router's."""
        return self.answer(scene, choice) or self.ask_anew(scene, choice)

    def answer(self, scene: Scene, choice: Choice | None) -> Single | None:
        """Return what *scene* makes of an open question, None when it is no answer to one."""
        if confirmed := self._confirmed(scene.text):
            return confirmed
        pending = self.pending(choice, scene)
        if pending is not None and (settled := self._settled(scene, pending)) is not None:
            self.answered = pending[0]
            return settled
        if pending is not None and ends_questions(scene.text):
            return self.left()
        if pending is not None and says_yes(scene.text) and (agreed := agreed_in(pending[0].turn.text)):
            return _agree(scene.text, agreed, *pending)
        if pending is not None and not (choice is not None and is_declined(scene, choice)):
            answered = self._answer(scene, choice, *pending)
            if answered is not None:
                self.answered = pending[0]
                return answered
        return None

    # -- a question was open --------------------------------------------------------------------------------------

    def _settled(self, scene: Scene, pending: Pending) -> Single | None:
        """Return what *scene* chooses of what the only open question offered; of several it may be for any."""
        if len(self.opened()) > 1:
            return None
        return chosen_in(scene, pending, lambda said, one: self._answer(said, None, *one))

    def chosen(self, scene: Scene, choice: Choice | None) -> tuple[Prepared, ...] | None:
        """Return the tasks that *scene* chooses of those that the last turn asked about.

        Empty for none of them, None when it chooses nothing.
        """
        offered = offered_by(self.previous[-1] if self.previous else None, self.router)
        if not offered:
            return None
        found = chosen_of(scene, offered)
        if found is None and choice is not None and choice.task in offered and not choice.rivals:
            return (choice.task,)
        return found

    def _confirmed(self, text: str) -> Understood | Unfitting | None:
        """Return the task that the last turn asked to confirm, when *text* does; a no leaves it."""
        last = self.previous[-1] if self.previous else None
        if last is None or not self.past or self.past[0].turn is not last or not asks_to_confirm(last):
            return None
        past = self.past[0]
        places = pick(text, 1)
        if places is None:
            return None
        return Understood(past.offer.agent.agent_id, past.call) if places else self.left()

    def pending(self, choice: Choice | None, scene: Scene) -> Pending | None:
        """Return the task that the last turns asked about and the fields they asked for, or None.

        One sentence that asked for several tasks may have left several questions: the one whose task *choice* is comes
        first, then the one that *scene* has words for, then the last.
        """
        opened = self.opened()
        chosen = [one for one in opened if choice is not None and one[1] is choice.task]
        cued = [one for one in opened if any(cue.field in one[2] for cue in one[1].cues.find(scene.tokens))]
        return next(iter([*chosen, *cued, *opened]), None)

    def opened(self) -> list[Pending]:
        """Return every question that is open, the last first: those that were asked about parts of one sentence."""
        opened = []
        for past in asking_in(self.previous, self.past):
            task = self.prepared(past)
            if asked := fields_asked(past.turn, task.shape):
                opened.append((past, task, asked))
        return opened

    def answer_all(self, scene: Scene, choice: Choice | None) -> list[Single] | None:
        """Return what *scene* makes of each of several open questions; None when there is one, or it answers none."""
        opened = self.opened()[::-1]
        if len(opened) < 2 or says_yes(scene.text) or ends_questions(scene.text):
            return None

        def answer(said: Scene, pending: Pending) -> Single | None:
            return self._answer(said, None, *pending)

        return answers_to(scene, opened, self.router, answer) or (
            answer_to_one(scene, opened, answer) if choice is None else None
        )

    def still_open(self) -> list[Single]:
        """Return the questions again that were open beside the one that `read` found an answer to."""
        opened = self.opened()[::-1] if self.answered is not None else []
        return [asked_again(one) for one in opened if one[0] is not self.answered]

    def _answer(
        self, scene: Scene, choice: Choice | None, past: Past, task: Prepared, asked: tuple[FieldShape, ...]
    ) -> Single | None:
        """Return the open task completed by *scene*, or None when the person speaks of something else."""
        if choice is not None and choice.task is not task and task not in choice.rivals:
            return None
        changes = changes_of(scene, task)
        filled = fill(without_amounts_of(scene, changes), task, asked)
        reference = reference_in(scene, task.cues.find(scene.tokens))
        says_nothing = not filled.values and not filled.doubts and not reference and not changes
        if says_nothing and (choice is not None or not any(shape.is_required for shape in asked)):
            return None
        # "Leeds", after "the weather tomorrow", says all that lacks and nothing anew.
        says_all = not lacking(task, filled) and any(one.name in past.call.parameters for one in task.shape.required)
        pasts = self._pasts_of(task)
        problems = put_changed(scene, task, filled, changes, pasts, asked)
        problems += put_referred(scene, task, filled, reference, [one for one in pasts if one is not past])
        if not filled.values and not filled.doubts:
            filled.unplaced = filled.unplaced or ask_left(filled, asked)
        if not says_all:
            inherit(filled, past, task, None)
        return conclude(task, filled, problems)

    # -- a sentence of its own ------------------------------------------------------------------------------------

    def ask_anew(self, scene: Scene, choice: Choice | None) -> Single:
        """Return what *scene* comes to by itself, and by what it refers back to."""
        if is_declined(scene, choice):
            return self.left()
        if asks_for_abilities(scene, choice):
            return Unfitting(self.catalogue.abilities())
        recent = self.prepared(self.past[0]) if self.past else None
        if recent is not None and (choice is None or recent in choice.rivals) and self._goes_on(scene, choice, recent):
            return ask_for_unread(self.fill(scene, recent), scene, recent)
        if recent is not None and choice is None and says_anew(scene, recent.cues.find(scene.tokens)):
            return self.fill(scene, recent, is_anew=True)
        if choice is None:
            return Unfitting(f"I cannot tell what to do with that. {self.catalogue.abilities()}")
        if not choice.rivals:
            return self.fill(scene, choice.task)
        return self._prefer(scene, (choice.task, *choice.rivals))

    def _goes_on(self, scene: Scene, choice: Choice | None, recent: Prepared) -> bool:
        """Return whether *scene* asks for *recent*, the last task, once more."""
        had = {str(value) for value in self.past[0].call.parameters.values()}
        if any(
            one.instead_of and one.instead_of.value is not None and canonical(one.instead_of.value) in had
            for one in scene.items
        ):
            return True
        cues = recent.cues.find(scene.tokens)
        changes = changes_in(scene, cues)
        if reference_in(scene, cues):
            return choice is not None or bool(cues or scene.items or changes) or _says_nothing_else(scene, changes)
        return any(change.field is not None for change in changes) or (
            bool(changes) and _says_nothing_else(scene, changes)
        )

    def _prefer(self, scene: Scene, tasks: tuple[Prepared, ...]) -> Single:
        """Return the one task of several likely ones that the values fit best, or ask which is meant."""
        tried = [(task, fill(scene, task)) for task in tasks]
        # A value in doubt speaks for its task, and is asked about rather than the task.
        fits = [(len(filled.values) + len(filled.doubts) - len(lacking(task, filled)), task) for task, filled in tried]
        best = max(fit for fit, _ in fits)
        likeliest = [task for fit, task in fits if fit == best]
        if len(likeliest) == 1 and best > 0:
            return self.fill(scene, likeliest[0])
        return Ambiguous(ask_which_task([task.offer for task in likeliest]))

    def fill(self, scene: Scene, task: Prepared, order: Sequence[FieldShape] = (), *, is_anew: bool = False) -> Single:
        """Return what *scene* comes to as a wish for *task*; with *order*, its bare amounts are of these fields.

        *is_anew* when it says a value of the last task in a few words: all the others stay as they were.
        """
        if order:
            return conclude(task, fill(scene, task, order))
        changes = changes_of(scene, task)
        filled = fill(without_amounts_of(scene, changes), task)
        doubt_guesses(scene, task, filled)
        reference = reference_in(scene, task.cues.find(scene.tokens))
        says_amount = bool(filled.loose) and any(shape.is_numeric for shape in task.shape.fields)
        if is_anew and not (filled.values or filled.doubts or changes or says_amount):
            return Unfitting(f"I cannot tell what to do with that. {self.catalogue.abilities()}")
        if is_anew and not reference.everything:
            reference = replace(reference, everything=(0, len(scene.text)))
        pasts = self._pasts_of(task)
        problems = put_changed(scene, task, filled, changes, pasts)
        problems += put_referred(scene, task, filled, reference, pasts, changes)
        return conclude(task, filled, problems)

    # -- what the conversation holds ------------------------------------------------------------------------------

    def left(self) -> Unfitting:
        """Return the reply to a person who wants none of what was asked."""
        return Unfitting(leave("it", self.catalogue.abilities()))

    def _pasts_of(self, task: Prepared) -> list[Past]:
        return [past for past in self.past if self.prepared(past) is task]

    def prepared(self, past: Past) -> Prepared:
        """Return the task of *past* as the router has it."""
        found = self.router.find(past.offer.agent.agent_id, past.offer.task.name)
        if found is None:
            raise AssertionError("past tasks are looked up in the catalogue that the router indexes")
        return found


def asking_in(previous: Sequence[ChatTurn], past: Sequence[Past]) -> list[Past]:
    """Return those of *past* that the last turn of the assistant, or one beside it, holds: what may be asked about."""
    last = next((turn for turn in reversed(previous) if turn.speaker == "assistant"), None)
    return [one for one in past if last is not None and _is_beside(one.turn, last)]


def _is_beside(turn: ChatTurn, last: ChatTurn) -> bool:
    """True for the last turn, and for those that answer other parts of the same sentence."""
    return turn is last or (turn.request_id is not None and turn.request_id == last.request_id)


def _agree(
    text: str, agreed: str, past: Past, task: Prepared, asked: tuple[FieldShape, ...]
) -> Understood | Missing | Ambiguous:
    """Return the open task completed by what *text*, a yes, agrees to."""
    filled = read_agreed(task, asked, agreed)
    for name in filled.values:
        filled.point(name, 0, len(text), text)
    inherit(filled, past, task, None)
    return conclude(task, filled)


def _says_nothing_else(scene: Scene, changes: Sequence[Change] = ()) -> bool:
    """True for "again, please": no word in it is about anything else."""
    return all(
        token.text in STOP
        or token.text in _REPEATING
        or any(change.start <= token.start and token.end <= change.end for change in changes)
        for token in scene.tokens
        if token.is_word
    )
