"""The interpreter that is always there: deterministic, in-process, and the same for every agent."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from contracts.messages import ChatTurn
from quantities.numerals import DecimalMark
from supervisor.catalogue import Catalogue
from supervisor.interpretation.carrying import refers_back
from supervisor.interpretation.earlier_tasks.further import further_of
from supervisor.interpretation.earlier_tasks.references import Past, past_tasks, unanswered_choice
from supervisor.interpretation.left_behind import answer_left_behind
from supervisor.interpretation.open_questions import asked_again
from supervisor.understanding.outcome import (
    Ambiguous,
    Interpretation,
    Missing,
    Several,
    Single,
    Span,
    Understood,
    Unfitting,
)
from supervisor.interpretation.picks import says_yes
from supervisor.interpretation.reading import SentenceReader, asking_in
from supervisor.interpretation.values.scene import Scene, scene_of
from supervisor.interpretation.wishes.answering import answer_and_wishes
from supervisor.interpretation.wishes.left_over import left_over
from supervisor.interpretation.wishes.routing import Prepared, Router
from supervisor.interpretation.wishes.several import MOST_TASKS, stretches_of
from supervisor.interpretation.wishes.spreading import spread
from supervisor.interpretation.wishes.stretch import Stretch
from supervisor.interpretation.wishes.telling_apart import settled_by, told_apart
from supervisor.interpretation.words import evened
from supervisor.interpretation.written_json import held_to_json

#: The turn of what the same sentence said before; it is no turn of the conversation yet.
_THIS_SENTENCE = "this-sentence"
#: Every turn has a time; nobody looks at that of this one.
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)
#: Characters of a part that nobody can do, in the words that say so.
_MOST_QUOTED = 200


#: Characters past which a text is read in a thread: a sentence takes a millisecond, 20,000 characters 200 of them.
_LONG = 300
#: Threads that read long texts: they share one interpreter, so more would read nothing sooner, and each keeps memory of
#: its own after a long text and takes its turn before the loop does.
_READERS = 2


class RuleInterpreter:
    """Reads sentences by keywords, cues and amounts; keeps nothing but the index of the latest catalogue."""

    def __init__(self, *, decimal_mark: DecimalMark | None = None) -> None:
        """Make one for people who write *decimal_mark* before decimals; None asks what "1.500" means."""
        self._decimal_mark = decimal_mark
        self._indexed: tuple[Catalogue, Router] | None = None
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="read")

    @property
    def decimal_mark(self) -> DecimalMark | None:
        """What people here write before decimals, None when nobody knows."""
        return self._decimal_mark

    async def interpret(
        self,
        text: str,
        *,
        catalogue: Catalogue,
        previous: Sequence[ChatTurn],
        user_id: str | None = None,  # noqa: ARG002 - rules do not guess who means what they remember
        now: datetime | None = None,
        tells_left: bool = True,
    ) -> Interpretation:
        """Return what *text* asks for; see `understand`."""
        understand = partial(
            self.understand, text, catalogue=catalogue, previous=previous, now=now, tells_left=tells_left
        )
        if len(text) > _LONG:
            return await asyncio.get_running_loop().run_in_executor(self._readers, understand)
        return understand()

    def understand(
        self,
        text: str,
        *,
        catalogue: Catalogue,
        previous: Sequence[ChatTurn] = (),
        now: datetime | None = None,
        tells_left: bool = True,
    ) -> Interpretation:
        """Return what *text* asks for, given the earlier turns of its conversation, oldest first.

        *now* is the time of the turn, which "tomorrow" is a day after; None is the moment of the call. Places are those
        in `evened(text)`. With *tells_left*, amounts that nothing has a use for are told of beside it.
        """
        text = evened(text)
        router = self.router(catalogue)
        scene = scene_of(text, decimal_mark=self._decimal_mark, now=now)
        found = held_to_json(text, _Sentence(router, previous, self._decimal_mark).read(scene), router)
        return _with_left(found, scene, router) if tells_left else found

    def telling_left(self, found: Interpretation, text: str, catalogue: Catalogue) -> Interpretation:
        """Return *found*, made of all of *text*, with what tells of the amounts that it leaves out."""
        return _with_left(found, scene_of(evened(text), decimal_mark=self._decimal_mark), self.router(catalogue))

    def told_apart(self, found: Interpretation, scene: Scene, catalogue: Catalogue) -> Interpretation:
        """Return *found*, which a model completed, for each of the names that *scene* says of it."""
        if not isinstance(found, Understood):
            return found
        task = self.router(catalogue).find(found.agent_id, found.task.name)
        return _together(spread(found, scene, task))

    def router(self, catalogue: Catalogue) -> Router:
        """Return the index of *catalogue*, built once and kept until another catalogue comes."""
        if self._indexed is None or catalogue not in (self._indexed[0], self._indexed[1].catalogue):
            self._indexed = catalogue, Router(catalogue)
        return self._indexed[1]


class _Sentence:
    """One sentence in one conversation, which may ask for several tasks."""

    def __init__(self, router: Router, previous: Sequence[ChatTurn], decimal_mark: DecimalMark | None) -> None:
        self._router = router
        self._decimal_mark = decimal_mark
        self._previous = previous
        self._past = past_tasks(previous, router.catalogue)
        self._alone = SentenceReader(router, (), ())
        self._known: dict[tuple[object, ...], Single] = {}
        self._answered_by: SentenceReader | None = None
        self._is_asked = bool(previous) and previous[-1].speaker == "assistant" and "?" in previous[-1].text

    def read(self, scene: Scene) -> Interpretation:
        """Return what *scene* asks for; of several open questions what it leaves open is asked again."""
        if chosen := self._told_apart(scene.text):
            return _together(chosen)
        if self._is_asked and (answers := self._answering().answer_all(scene, self._router.choose(scene))):
            return _together(answers)
        if self._is_asked and (both := self._answer_and_wishes(scene)):
            return _together(both)
        found, read = self._read(scene), self._answered_by
        if older := answer_left_behind(scene, found, self._router, self._previous, self._past, self._asking):
            return older
        still_open = read.still_open() if read is not None and read.answered is not None else []
        return _together([*(found.parts if isinstance(found, Several) else (found,)), *still_open])

    def _answer_and_wishes(self, scene: Scene) -> list[Single] | None:
        """Return what *scene* answers and what it wants beside that, None when it does not do both."""
        tasks = [self._alone.prepared(past) for past in self._asking]
        alone = _Sentence(self._router, (), self._decimal_mark)
        return answer_and_wishes(scene, self._router, tasks, self._answer, self._read, alone._read, self._open_again)

    def _open_again(self) -> list[Single]:
        opened = SentenceReader(self._router, self._previous, self._past).opened()[::-1]
        return [asked_again(one) for one in opened]

    def _answer(self, scene: Scene) -> list[Single] | None:
        """Return what *scene* makes of the open questions, those among it that stay open; None when it answers none."""
        if chosen := self._told_apart(scene.text):
            return chosen
        reading, choice = self._answering(), self._router.choose(scene)
        if answers := reading.answer_all(scene, choice):
            return answers
        answered = reading.answer(scene, choice)
        return None if answered is None else [*self._spread(answered, scene), *reading.still_open()]

    def _answering(self) -> SentenceReader:
        """Return what reads an answer, and tells then to which of several open questions it was one."""
        self._answered_by = SentenceReader(self._router, self._previous, self._past)
        return self._answered_by

    def _read(self, scene: Scene) -> Interpretation:
        if (further := self._further(scene)) is not None:
            return _together(self._spread(further, scene))
        stretches = stretches_of(scene, self._router, self._read_alone)
        if len(stretches) == 1:
            return _together(self._read_one(scene, stretches[0]))
        wanted = [stretch for stretch in stretches if not stretch.is_declined]
        if len(wanted) > MOST_TASKS:
            return _too_many(len(wanted))
        if len(wanted) < 2:
            return _together(self._read_first((wanted or stretches)[0]))
        parts = _without_repeats(self._read_each(wanted))
        if sum(map(_is_about_task, parts)) < 2:
            whole = Stretch(0, len(scene.text), scene, self._router.choose(scene))
            return _together(self._read_one(scene, whole))
        return _together(parts)

    def _told_apart(self, text: str) -> list[Single]:
        """Return what *text* makes of the names that the last turns asked about, "each" or "as one"; mostly empty."""
        found = [(past, told_apart(text, past, self._alone.prepared(past))) for past in reversed(self._asking)]
        answered = [past for past, parts in found if parts]
        if not answered:
            return []
        opened = SentenceReader(self._router, self._previous, self._past).opened()[::-1]
        others = [asked_again(one) for one in opened if one[0] not in answered]
        return [*(one for _, parts in found for one in parts), *others]

    def _further(self, scene: Scene) -> Understood | None:
        """Return the last task for another name, where *scene* says no more than that: "and for Bob too"."""
        if self._is_asked or not self._past:
            return None
        task = self._alone.prepared(self._past[0])
        found = further_of(scene, self._past[0], task)
        choice = self._router.choose(scene) if found is not None else None
        return found if choice is None or choice.task is task else None

    @property
    def _asking(self) -> list[Past]:
        """The tasks that the last turn, and those beside it, asked back about."""
        return asking_in(self._previous, self._past) if self._is_asked else []

    def _spread(self, found: Single, scene: Scene) -> list[Single]:
        """Return *found*, read from *scene*, for each of the names of which its task has room for one."""
        if isinstance(found, Unfitting) or found.agent_id is None:
            return [found]
        name = found.task.name if isinstance(found, Understood) else found.task_name
        task = self._router.find(found.agent_id, name) if name is not None else None
        asking = self._asking
        return spread(found, scene, task, settled_by(asking), {past.turn.turn_id for past in asking})

    def _read_alone(self, stretch: Stretch) -> Single:
        """Return what *stretch* comes to as if nothing had been said before; what comes first may be an answer.

        The same words are read once, however often they are looked at until it is known where the sentence is to be
        cut. Tasks are told apart by identity: the router holds each of them once.
        """
        choice = stretch.choice
        tasks = () if choice is None else tuple(map(id, (choice.task, *choice.rivals)))
        words = stretch.scene.text, stretch.start == 0, tasks
        if words not in self._known:
            self._known[words] = self._read_anew(stretch)
        return self._known[words]

    def _read_anew(self, stretch: Stretch) -> Single:
        if stretch.start == 0 and (self._is_asked or (self._past and stretch.choice is None)):
            return SentenceReader(self._router, self._previous, self._past).read(stretch.scene, stretch.choice)
        return self._alone.ask_anew(stretch.scene, stretch.choice)

    def _read_one(self, scene: Scene, stretch: Stretch) -> list[Single]:
        reading = self._answering()
        earlier = unanswered_choice(self._previous)
        if earlier is not None and (chosen := reading.chosen(scene, stretch.choice)) is not None:
            return [one for task in chosen for one in self._read_as(task, earlier, scene)] or [reading.left()]
        if earlier is not None and says_yes(scene.text):
            return [Ambiguous(self._previous[-1].text)]
        return self._spread(reading.read(scene, stretch.choice), scene)

    def _read_as(self, task: Prepared, earlier: ChatTurn, answer: Scene) -> list[Single]:
        """Return what *earlier* comes to now that *answer* says that *task* was meant by it, or by a part of it."""
        now = earlier.at.astimezone(answer.now.tzinfo) if answer.now and answer.now.tzinfo else earlier.at
        scene = scene_of(evened(earlier.text), decimal_mark=self._decimal_mark, now=now)
        stretches = stretches_of(scene, self._router, self._read_alone)
        open_parts = [one for one in stretches if _asks_which(self._read_alone(one))] if len(stretches) > 1 else []
        stretch = open_parts[0] if open_parts else Stretch(0, len(scene.text), scene, None)
        found = SentenceReader(self._router, self._previous, self._past).fill(stretch.scene, task)
        return [_shifted(one, stretch) for one in self._spread(found, stretch.scene)]

    def _read_first(self, stretch: Stretch) -> list[Single]:
        reading = self._answering()
        if self._is_asked and (answers := reading.answer_all(stretch.scene, stretch.choice)):
            return [_shifted(one, stretch) for one in answers]
        found = reading.read(stretch.scene, stretch.choice) if self._previous else self._read_alone(stretch)
        return [_shifted(one, stretch) for one in self._spread(found, stretch.scene)]

    def _read_each(self, stretches: Sequence[Stretch]) -> list[Single]:
        """Return what each of *stretches* comes to; what the ones before it said can be referred to."""
        parts: list[Single] = []
        past = list(self._past)
        for stretch in stretches:
            for found in self._read_next(stretch, past) if parts else self._read_first(stretch):
                if isinstance(found, Unfitting):
                    parts.append(self._unfitting(stretch))
                    continue
                if (known := self._past_of(found, stretch)) is not None:
                    past.insert(0, known)
                parts.append(found)
        return parts

    def _unfitting(self, stretch: Stretch) -> Unfitting:
        said = stretch.scene.text[:_MOST_QUOTED]
        return Unfitting(f'I cannot tell what to do with "{said}". {self._router.catalogue.abilities()}')

    def _read_next(self, stretch: Stretch, past: Sequence[Past]) -> list[Single]:
        reading = SentenceReader(self._router, self._previous, past)
        if stretch.order and stretch.choice is not None:
            found = reading.fill(stretch.scene, stretch.choice.task, stretch.order)
        elif not _may_refer(stretch, past):
            found = self._read_alone(stretch)
        else:
            found = _of_this_sentence(reading.ask_anew(stretch.scene, stretch.choice))
        return [_shifted(one, stretch) for one in self._spread(found, stretch.scene)]

    def _past_of(self, found: Understood | Missing | Ambiguous, stretch: Stretch) -> Past | None:
        """Return *found* as a task that the next part may refer to, None when it is none yet."""
        call = found.task if isinstance(found, Understood) else found.call
        offer = self._router.catalogue.find(found.agent_id, call.name) if found.agent_id and call else None
        if offer is None or call is None:
            return None
        turn = ChatTurn(
            turn_id=_THIS_SENTENCE,
            conversation_id=_THIS_SENTENCE,
            speaker="assistant",
            text=stretch.scene.text,
            at=_NEVER,
            agent_id=found.agent_id,
            task=call,
        )
        return Past(offer, call, turn)


def _together(parts: Sequence[Single]) -> Interpretation:
    """Return *parts* as what one sentence comes to; more than are taken at once start nothing."""
    if len(parts) > MOST_TASKS:
        return _too_many(len(parts))
    return parts[0] if len(parts) == 1 else Several(tuple(parts))


def _with_left(found: Interpretation, scene: Scene, router: Router) -> Interpretation:
    parts = found.parts if isinstance(found, Several) else (found,)
    if len(parts) >= MOST_TASKS:
        return found
    told = left_over(scene, parts, router)
    # What asks comes last, where its answer is looked for.
    return found if told is None else _together(sorted([*parts, told], key=_is_question))


def _is_question(part: Single) -> bool:
    return isinstance(part, Missing | Ambiguous)


def _too_many(count: int) -> Unfitting:
    return Unfitting(
        f"That asks for {count} tasks at once, and I take {MOST_TASKS} in one sentence: nothing was started. Say some"
        " of them now, and the others after that."
    )


def _without_repeats(parts: Sequence[Single]) -> list[Single]:
    """Return *parts* without what wants a task of no values again: "flip a coin and tell me if it is heads"."""
    kept: list[Single] = []
    for part in parts:
        is_known = (
            isinstance(part, Understood)
            and not part.task.parameters
            and any(
                isinstance(one, Understood) and (one.agent_id, one.task) == (part.agent_id, part.task) for one in kept
            )
        )
        if not is_known:
            kept.append(part)
    return kept


def _may_refer(stretch: Stretch, past: Sequence[Past]) -> bool:
    """Return whether one of *past* can add to *stretch*: a task is completed by the same one, and by words that ask."""
    if stretch.choice is None:
        return True
    meant = [one.offer for one in (stretch.choice.task, *stretch.choice.rivals)]
    names = {(offer.agent.agent_id, offer.task.name) for offer in meant}
    if not any((one.offer.agent.agent_id, one.offer.task.name) in names for one in past):
        return False
    return bool(stretch.choice.rivals) or refers_back(stretch.scene, stretch.choice.task)


def _asks_which(found: Single) -> bool:
    return isinstance(found, Ambiguous) and found.task_name is None


def _of_this_sentence(found: Single) -> Single:
    """Return *found*; what it took from an earlier part of the sentence is told as said in the sentence."""
    if isinstance(found, Unfitting):
        return found
    spans = tuple(replace(span, turn_id=None) if span.turn_id == _THIS_SENTENCE else span for span in found.spans)
    return replace(found, spans=spans)


def _shifted(found: Single, stretch: Stretch) -> Single:
    """Return *found*, read from *stretch*, with its places in the whole sentence."""
    if isinstance(found, Unfitting):
        return found
    return replace(found, spans=tuple(_moved(span, stretch) for span in found.spans))


def _moved(span: Span, stretch: Stretch) -> Span:
    # What points into an earlier turn, or into what is remembered, stays where it is.
    if span.memory is not None or stretch.scene.text[span.start : span.end] != span.text:
        return span
    return replace(span, start=span.start + stretch.start, end=span.end + stretch.start)


def _is_about_task(found: Single) -> bool:
    """Return whether *found* is a wish that somebody can do something about, if only by asking back."""
    return not isinstance(found, Unfitting)
