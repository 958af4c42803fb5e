"""The interpreter by rules: deterministic, in-process, and the same for every agent.

One flow: the utterance is cut into segments, each is routed to a task, its slots are filled, values are carried over
from the conversation, and missing or doubtful ones become a question. An answer to such a question is read first.
"""

import asyncio
import re
import threading
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime
from itertools import islice
from typing import Any, NamedTuple

from tasklore.contracts.messages import ChatTurn
from tasklore.contracts.quantities.numerals import DecimalMark
from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.understanding.clarification import (
    answer_questions,
    rest_instead,
)
from tasklore.supervisor.understanding.conclusion import (
    Filled,
    conclude,
    find_shares,
    find_unknown_words,
    is_only_talk,
)
from tasklore.supervisor.understanding.conversation import (
    OWN_WORDS,
    Open,
    Past,
    carry_over,
    goes_on,
    open_questions,
    past_tasks,
)
from tasklore.supervisor.understanding.currencies import settle_earlier
from tasklore.supervisor.understanding.outcome import (
    Clarification,
    Interpretation,
    Several,
    Single,
    TextSpan,
    Understood,
    Unfitting,
)
from tasklore.supervisor.understanding.questions import (
    ask_to_confirm,
    ask_which_task,
    is_denied,
    leave,
    reply_without_task,
)
from tasklore.supervisor.understanding.routing import Route, Router, RoutingTask
from tasklore.supervisor.understanding.slots import fill
from tasklore.supervisor.understanding.utterance import (
    STOP,
    ReadUtterance,
    collapse_space,
    without_list_numbers,
    word_set,
)
from tasklore.supervisor.understanding.values import candidates
from tasklore.supervisor.understanding.wholeness import mark_loose

#: Tasks of one utterance; more start nothing.
MOST_TASKS = 8
#: Places at which an utterance may be cut: each costs a look at the words behind it.
_MOST_CUTS = 24
#: Evidence from which on a part of a sentence asks for another task: a keyword, not a mere cue.
_STRONG = 2.8
_CUT = re.compile(
    r"(?P<full>[.!?;](?=\s)\s*|\s*\n\s*)(?:(?:and|then|also)\s+)*"
    r"|(?:\s*,\s*|\s+)(?:and then|and also|and|then|also|but also|but(?!\s+(?:with|without|for|only|not|now)\b)|plus"
    r"|as well as)\s+|\s*,\s+",
    re.IGNORECASE,
)
#: Words that open a request of their own.
_OPENERS = word_set(
    "i i'm i'd i've we what what's how where when who which can could please is are let tell give show"
)
#: Words that begin the same task once more, and that take back a part of it.
_AGAIN = re.compile(
    r"(?:again|once more|the same (?:for|with|again|but|on|at)|what about|how about)\b",
    re.IGNORECASE,
)
_CORRECTION = re.compile(
    r"(?:sorry|no|actually|or rather|wait|i mean|or)\b", re.IGNORECASE
)
#: Characters past which a text is read in a thread: a sentence takes a millisecond, 20,000 characters 200 of them, and
#: the examples of a catalogue up to a second.
_LONG = 300
#: Catalogues whose prepared tasks are kept: the latest, and parts of it that clients chose, the last ones used.
_MOST_ROUTERS = 64
#: Threads that read long texts: they share one interpreter, so more would read nothing sooner.
_READERS = 2
#: Characters of an utterance that a reply quotes.
_MOST_QUOTED = 200


class Segment(NamedTuple):
    """One part of an utterance, *start* to *end*, with the task it asks for."""

    start: int
    end: int
    utterance: ReadUtterance
    choice: Route | None


class RuleInterpreter:
    """Reads utterances by names, cues, examples and values; keeps nothing but the index of the latest catalogue.

    Where one task was chosen, words that name none are about that one: its missing values are asked for, and a
    value in them is shown for a yes.
    """

    def __init__(self, *, decimal_mark: DecimalMark | None = None) -> None:
        """Make one for people who write *decimal_mark* before decimals; None asks what "1.500" means."""
        self.decimal_mark = decimal_mark
        self._whole: Catalogue | None = None
        self._routers: dict[Catalogue, Router] = {}
        self._indexing = threading.Lock()
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="read")

    def router(self, catalogue: Catalogue) -> Router:
        """Return the prepared tasks of *catalogue*, made once for each while its whole is the latest.

        It is made outside the lock, in which nothing waits: two threads may make the same one, of which one is kept.
        """
        router = self._find_router(catalogue)
        if router is None:
            router = Router(catalogue)
            with self._indexing:
                if self._whole is catalogue.whole:
                    router = self._routers.setdefault(catalogue, router)
        return router

    def _find_router(self, catalogue: Catalogue) -> Router | None:
        """Return the prepared tasks that are kept, as the last ones used; there is room for one more then."""
        with self._indexing:
            whole = catalogue.whole
            if self._whole is not whole:
                self._whole = whole
                self._routers.clear()
            router = self._routers.pop(catalogue, None)
            if router is not None:
                self._routers[catalogue] = router
            elif len(self._routers) >= _MOST_ROUTERS:
                # Whoever asks about one part after the other takes the whole from nobody.
                del self._routers[
                    next(one for one in self._routers if one is not whole)
                ]
            return router

    async def interpret(
        self,
        text: str,
        *,
        catalogue: Catalogue,
        previous: Sequence[ChatTurn],
        user_id: str | None = None,  # noqa: ARG002 - rules do not guess who means what they remember
        now: datetime | None = None,
    ) -> Interpretation:
        """Return the interpretation of *text*; a long text is read, and a new catalogue learned, in a thread."""
        if len(text) <= _LONG and catalogue in self._routers:
            return self.understand(
                text, catalogue=catalogue, previous=previous, now=now
            )
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(
            self._readers,
            lambda: self.understand(
                text, catalogue=catalogue, previous=previous, now=now
            ),
        )

    def understand(
        self,
        text: str,
        *,
        catalogue: Catalogue,
        previous: Sequence[ChatTurn] = (),
        now: datetime | None = None,
    ) -> Interpretation:
        """Return the interpretation of *text*, after the *previous* turns of its conversation, oldest first."""
        router = self.router(catalogue)
        utterance = ReadUtterance(
            without_list_numbers(collapse_space(text)),
            decimal_mark=self.decimal_mark,
            now=now,
        )
        if not router.tasks:
            return Unfitting(router.catalogue.abilities())
        choice = router.choose(utterance)
        pasts = past_tasks(previous, router)
        opened = open_questions(previous, router)
        if opened and (rest := rest_instead(utterance)) is not None:
            meant = router.choose(rest)
            if meant is not None and meant.task not in {one.task for one in opened}:
                utterance = rest
                choice = meant
                opened = []
        if opened and (
            answered := self._answer(
                utterance,
                choice=choice,
                opened=opened,
                previous=previous,
                router=router,
                pasts=pasts,
            )
        ):
            return _together(settle_all(answered, router, previous))
        last = pasts[0].task.offer if pasts else None
        if (
            reply := reply_without_task(
                utterance, choice, router.catalogue.abilities(), last
            )
        ) is not None:
            return Unfitting(reply)
        parts = read_segments(
            segments_of(
                utterance,
                choice,
                router,
                [pasts[0].task] if pasts and goes_on(utterance) else [],
            ),
            router,
            pasts,
        )
        return _together(settle_all(parts, router, previous))

    def _answer(
        self, utterance: ReadUtterance, choice: Route | None, opened: Sequence[Open], previous: Sequence[ChatTurn],
        router: Router, pasts: list[Past],
    ) -> list[Single] | None:  # fmt: skip
        """Return the outcomes of *opened* questions by *utterance*, and those of other requests in it."""
        asking = {one.task for one in opened if one.task is not None}
        segments = segments_of(utterance, choice, router, asking) if asking else []
        new = [
            one
            for one in segments
            if one.choice is not None and one.choice.task not in asking
        ]
        if not new or len(new) == len(segments):
            return answer_questions(
                opened,
                utterance=utterance,
                choice=choice,
                router=router,
                previous=previous,
            )
        rest = utterance.only(
            *((one.start, one.end) for one in segments if one not in new)
        )
        answered = answer_questions(
            opened, utterance=rest, choice=None, router=router, previous=previous
        )
        return [*answered, *read_segments(new, router, pasts)] if answered else None


def settle_all(
    parts: Sequence[Single], router: Router, previous: Sequence[ChatTurn]
) -> list[Single]:
    """Return *parts*, with a question for each whose amounts are in another currency than in *previous* turns."""
    return [_settle(part, router, previous) for part in parts]


def _settle(part: Single, router: Router, previous: Sequence[ChatTurn]) -> Single:
    if isinstance(part, Unfitting) or part.agent_id is None:
        return part
    call = part.task if isinstance(part, Understood) else part.call
    task = router.find(part.agent_id, call.name) if call is not None else None
    if task is None or call is None:
        return part
    return settle_earlier(part, call, task.schema.slots, previous)


def read_segments(
    segments: Sequence[Segment], router: Router, pasts: list[Past]
) -> list[Single]:
    """Return the outcome of each of *segments*; it may refer to those before it."""
    parts: list[Single] = []
    for segment in segments:
        found = read_segment(segment.utterance, segment.choice, router, pasts)
        parts.append(found)
        task = (
            router.find(found.agent_id, found.task.name)
            if isinstance(found, Understood)
            else None
        )
        if task is not None and isinstance(found, Understood):
            pasts.insert(0, Past(task, found.task, None))
    return [_show_shared(one, parts[at + 1 :], router) for at, one in enumerate(parts)]


def _show_shared(part: Single, later: Sequence[Single], router: Router) -> Single:
    """Return *part*, shown for a yes with the values that *later* ones of its agent took, and that may be its too.

    "Ferritin 22 and creatinine 1.0, I am 29" says the age for both.
    """
    if not isinstance(part, Understood):
        return part
    task = router.find(part.agent_id, part.task.name)
    found: dict[str, Any] = {}
    spans: list[TextSpan] = []
    for one in later:
        if not isinstance(one, Understood) or one.agent_id != part.agent_id:
            continue
        other = router.find(one.agent_id, one.task.name)
        if task is None or other is None or other is task:
            continue
        for name in sorted(
            one.task.parameters.keys() - part.task.parameters.keys() - found.keys()
        ):
            slot = task.schema.slot(name)
            its = other.schema.slot(name)
            if slot and its and (slot.kind, slot.unit) == (its.kind, its.unit):
                found[name] = one.task.parameters[name]
                spans += [span for span in one.spans if span.field == name]
    if task is None or not found:
        return part
    said = {**part.task.parameters, **found}
    known = {one.name: said[one.name] for one in task.schema.slots if one.name in said}
    return Clarification(
        ask_to_confirm(task.offer, known),
        agent_id=part.agent_id,
        task_name=part.task.name,
        known=known,
        spans=(*part.spans, *spans),
    )


def read_segment(
    utterance: ReadUtterance,
    choice: Route | None,
    router: Router,
    pasts: Sequence[Past],
) -> Single:
    """Return the outcome of one segment: by itself, or completed from the *pasts*, the latest first."""
    if is_denied(utterance, choice or (Route(pasts[0].task, 0.0) if pasts else None)):
        return Unfitting(leave("it", router.catalogue.abilities()), is_loose=True)
    if pasts and (
        choice is None
        or pasts[0].task in choice.rivals
        or (choice.rivals and choice.task is pasts[0].task)
    ):
        filled = carry_over(utterance, pasts[0].task, pasts, is_asked_for=False)
        if filled is not None:
            filled.left += find_shares(utterance, filled)
            found = conclude(filled, utterance.text)
            return mark_loose(found, utterance, filled.task, own=OWN_WORDS)
    if choice is None and router.chosen is not None:
        filled = fill(utterance, router.chosen)
        if filled.values or any(map(filled.is_open, router.chosen.schema.required)):
            return conclude(filled, utterance.text, is_doubted=True)
    if choice is None:
        said = f' "{utterance.text.strip()[:_MOST_QUOTED]}"' if pasts else ""
        return Unfitting(
            f"I cannot tell what to do with{said or ' that'}. {router.catalogue.abilities()}"
        )
    if not choice.rivals and choice.task.schema.is_named_whole:
        # All of its words are those of the task: no capital letter in them names anybody.
        return conclude(Filled(task=choice.task), utterance.text)
    if not choice.rivals:
        filled = carry_over(utterance, choice.task, pasts, is_asked_for=True) or Filled(
            task=choice.task
        )
        return _conclude(filled, utterance, pasts)
    return _prefer((choice.task, *choice.rivals), utterance, pasts)


def _conclude(
    filled: Filled, utterance: ReadUtterance, pasts: Sequence[Past]
) -> Single:
    """Return the conclusion for a task that the words ask for; one that goes on with one of *pasts* is sure."""
    if pasts and goes_on(utterance):
        filled.left += find_shares(utterance, filled)
        found = conclude(filled, utterance.text)
        return mark_loose(found, utterance, filled.task, own=OWN_WORDS)
    filled.left = sorted({*filled.left, *find_unknown_words(utterance, filled)})
    found = conclude(filled, utterance.text, is_doubted=is_only_talk(utterance, filled))
    return mark_loose(found, utterance, filled.task)


def _prefer(
    tasks: Sequence[RoutingTask], utterance: ReadUtterance, pasts: Sequence[Past]
) -> Single:
    """Return the one of several likely *tasks* whose slots the values fit best, or ask which is meant."""
    tried = [fill(utterance, task) for task in tasks]
    fits = [
        len(filled.values) + len(filled.questions) - 2 * len(filled.left) - len(filled.whose)
        - sum(filled.is_open(slot) for slot in filled.task.schema.required)
        for filled in tried
    ]  # fmt: skip
    best = [one for one, fit in zip(tried, fits, strict=True) if fit == max(fits)]
    if len(best) == 1 and max(fits) > 0:
        found = _conclude(best[0], utterance, pasts)
        # Another task fits the words nearly as well.
        return replace(found, is_loose=True) if isinstance(found, Understood) else found
    return Clarification(ask_which_task([filled.task.offer for filled in best]))


def _together(parts: Sequence[Single]) -> Interpretation:
    if len(parts) > MOST_TASKS:
        return Unfitting(
            f"That asks for {len(parts)} tasks at once, and I take {MOST_TASKS} in one sentence: nothing was started."
            " Say some of them now, and the others after that."
        )
    return parts[0] if len(parts) == 1 else Several(tuple(parts))


# -- segments --------------------------------------------------------------------------------------------------------


def segments_of(
    utterance: ReadUtterance,
    whole: Route | None,
    router: Router,
    about: Collection[RoutingTask] = (),
) -> list[Segment]:
    """Return the segments of *utterance*, mostly one; a part that asks for no task stays with its neighbour.

    *whole* is the choice for all of it. The first may ask for none where it answers a question *about* a task, or goes
    on with it.
    """
    closed = (*utterance.quotations, *utterance.value_spans)
    cuts = [
        match.span()
        for match in islice(_CUT.finditer(utterance.text), _MOST_CUTS)
        if match.start()
        and match.end() < len(utterance.text)
        and not any(
            start <= match.start() and match.end() <= end for start, end in closed
        )
    ]
    if not cuts:
        return [Segment(0, len(utterance.text), utterance, whole)]
    places = [0, *(end for _, end in cuts)]
    ends = [*(start for start, _ in cuts), len(utterance.text)]
    read = [utterance.only(place) for place in zip(places, ends, strict=True)]
    if not any(_may_open(part, router) for part in read[1:]):
        return [Segment(0, len(utterance.text), utterance, whole)]
    found: list[tuple[int, int, Route | None]] = []
    for start, end, part in zip(places, ends, read, strict=True):
        choice = router.choose(part) if not found or _may_open(part, router) else None
        if found and not _begins_anew(
            found[-1], part=part, choice=choice, whole=utterance, about=about
        ):
            first, _, before = found[-1]
            found[-1] = (first, end, before if before is not None else choice)
        else:
            found.append((start, end, choice))
    if len(found) == 1:
        return [Segment(0, len(utterance.text), utterance, whole)]
    alone = dict(zip(zip(places, ends, strict=True), read, strict=True))
    segments = []
    for start, end, choice in found:
        part = alone.get((start, end)) or utterance.only((start, end))
        segments.append(
            Segment(
                start,
                end,
                part,
                choice if (start, end) in alone else router.choose(part),
            )
        )
    return segments


def _may_open(part: ReadUtterance, router: Router) -> bool:
    """Return whether *part* begins as a request may, so that it is worth a look at all tasks."""
    words = [token for token in part.tokens if token.is_word]
    first = next((token for token in words if token.text not in STOP), None)
    is_request = first is not None and (
        words[0].text in _OPENERS or first.stem in router.openers
    )
    return is_request or (
        bool(words) and _AGAIN.match(part.text, words[0].start) is not None
    )


def _tells_more(
    before: ReadUtterance, part: ReadUtterance, task: RoutingTask, other: RoutingTask
) -> bool:
    """Return whether *part*, "i'm 61", names no task of its own, and has a value for what *task* lacks *before*."""
    if not other.names.isdisjoint(part.stems):
        return False
    filled = fill(before, task)
    return any(
        filled.is_open(slot) and any(one.values for one in candidates(part, slot))
        for slot in task.schema.slots
    )


def _completes(
    before: ReadUtterance, part: ReadUtterance, task: RoutingTask, choice: Route | None
) -> bool:
    """Return whether *part*, "what about creatinine 1.4?", says only values of *task* that were not said *before*."""
    if choice is None or choice.task is not task:
        return False
    said = fill(before, task).values.keys()
    more = fill(part, task).values.keys()
    return bool(said and more) and said.isdisjoint(more)


def _begins_anew(
    last: tuple[int, int, Route | None],
    part: ReadUtterance,
    choice: Route | None,
    whole: ReadUtterance,
    about: Collection[RoutingTask],
) -> bool:
    """Return whether *part* asks for another task than *last* does, or for the same once more."""
    words = [token for token in part.tokens if token.is_word]
    if words and _AGAIN.match(part.text, words[0].start) and last[2] is not None:
        return not _completes(whole.only(last[:2]), part, last[2].task, choice)
    if (
        choice is None
        or choice.rivals
        or choice.score < _STRONG
        or (last[2] is None and (not about or choice.task in about))
    ):
        return False
    if _CORRECTION.match(part.text, words[0].start if words else 0):
        return False
    if last[2] is not None and not part.value_spans:
        content = {token.stem for token in words if token.text not in STOP}
        if len(content) == 1 and content <= last[2].task.said:
            return False  # the "book it" behind "Is it free?"
    if last[2] is None:
        return True
    if choice.task is not last[2].task:
        return not _tells_more(whole.only(last[:2]), part, last[2].task, choice.task)
    before = whole.only(last[:2])
    find = choice.task.cues.find
    leading = {cue.slot for cue in find(part.tokens) if cue.first == 0}
    if leading and leading.isdisjoint(cue.slot for cue in find(before.tokens)):
        return False  # the "spent 42k" behind "limit 50k"
    twice = (
        fill(before, choice.task).values.keys() & fill(part, choice.task).values.keys()
    )
    return any(
        slot.name in twice for slot in choice.task.schema.slots if not slot.is_list
    )
