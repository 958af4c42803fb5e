"""Stands for `tasklore.memory.conversations.inbox.Inbox` and `observations.Observations` in tests without servers."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from tasklore.contracts.conversations import (
    Digest,
    History,
    Page,
    TakenMessages,
    Utterance,
)
from tasklore.contracts.identifiers import checked_name
from tasklore.contracts.messages import ChatTurn
from tasklore.contracts.observations import Observation
from tasklore.memory import keys
from tasklore.memory.conversations import observations
from tasklore.memory.conversations.conversation import KEEP
from tasklore.memory.conversations.inbox import (
    as_heard,
    check_page,
    check_summary,
    own_message,
    utterance_of,
)

#: Tasks of which it is known what they took.
_TASKS = 32


@dataclass(slots=True)
class _Range:
    """What a task took as new: the messages numbered above `since`, up to `upto`."""

    since: int
    upto: int
    is_settled: bool = False


@dataclass(slots=True)
class _Conversation:
    """One conversation; `said` is by number, what waits is with its id, and that is among the other ids."""

    total: int = 0
    seen: int = 0
    said: dict[int, Utterance] = field(default_factory=dict)
    ids: dict[str, int] = field(default_factory=dict)
    waiting: list[tuple[str, Utterance]] = field(default_factory=list)
    own: set[int] = field(default_factory=set)
    answers: set[int] = field(default_factory=set)
    tasks: dict[str, _Range] = field(default_factory=dict)
    digest: Digest = field(default_factory=Digest)
    observed: dict[str, Observation] = field(default_factory=dict)

    def put(self, known_as: str, message: Utterance) -> None:
        self.total += 1
        self.said[self.total] = message
        self.ids[known_as] = self.total

    def add(self, message: Utterance) -> bool:
        is_new = message.message_id not in self.ids
        if is_new:
            self.put(message.message_id, message)
        return is_new

    def bound(self, keep: int) -> None:
        self.fold(self.total - keep)
        for number in [number for number in self.said if number <= self.total - keep]:
            del self.said[number]
        waiting = {known_as for known_as, _ in self.waiting}
        self.ids = {
            id_: number
            for id_, number in self.ids.items()
            if number > self.total - keep or id_ in waiting
        }

    def fold(self, upto: int) -> None:
        left = [self.said[number] for number in range(self.digest.count + 1, upto + 1)]
        if not left:
            return
        times = [message.time for message in left]
        self.digest = replace(
            self.digest,
            count=upto,
            speakers=Counter(self.digest.speakers)
            + Counter(message.speaker for message in left),
            since=min(times)
            if self.digest.since is None
            else min(self.digest.since, *times),
            until=max(times)
            if self.digest.until is None
            else max(self.digest.until, *times),
        )

    def see_own(self) -> None:
        while self.seen + 1 in self.own:
            self.seen += 1
        shown = min([self.seen, *(task.since for task in self.tasks.values())])
        self.own = {number for number in self.own if number > shown}


class FakeInbox:
    """Conversations in memory; `turn` adds what a person said, `put` a past."""

    def __init__(
        self,
        *,
        window: int = 50,
        keep: int = KEEP,
        keep_observations: int = observations.KEEP,
    ) -> None:
        self._window = window
        self._keep = keep
        self._keep_observations = keep_observations
        self._conversations: dict[str, _Conversation] = {}

    def put(
        self,
        owner: str,
        past: Iterable[Utterance] = (),
        observed: Iterable[Observation] = (),
    ) -> None:
        """Set *past* as heard and said already, and *observed* as observed."""
        of = self._of(owner)
        for message in past:
            of.add(message)
        of.seen = of.total
        of.observed |= {
            f"before-{number}": one
            for number, one in enumerate(observed, len(of.observed) + 1)
        }

    def turn(self, turn: ChatTurn) -> bool:
        """Add what was said in the conversation of *turn*, as `conversation.Conversations.append` does."""
        of = self._of(turn.conversation_id)
        is_new = of.add(utterance_of(turn))
        if is_new and turn.speaker == "assistant":
            of.answers.add(of.total)
        of.bound(self._keep)
        return is_new

    async def post(
        self,
        owner: str,
        message: Utterance,
        *,
        user_id: str | None = None,
        known_as: str | None = None,
    ) -> bool:
        """Deliver *message* once."""
        of = self._of(owner)
        known_as = message.message_id if known_as is None else known_as
        if known_as in of.ids:
            return False
        of.ids[known_as] = 0
        of.waiting.append((known_as, _give_owner(as_heard(message), user_id)))
        if len(of.waiting) > self._keep:
            of.put(*of.waiting.pop(0))
        of.bound(self._keep)
        return True

    async def take(
        self,
        owner: str,
        task_id: str,
        arriving: Sequence[Utterance] = (),
        *,
        observations: int = 0,
        senses: bool = True,
        user_id: str | None = None,
    ) -> TakenMessages:
        """Return the conversation with which of it is new to the task."""
        of = self._of(owner)
        task_id = checked_name(task_id, "task id")
        for message in arriving:
            of.add(_give_owner(as_heard(message), user_id))
        known = of.tasks.get(task_id)
        if known is None or not (known.is_settled or of.seen <= known.since):
            for waited in of.waiting:
                of.put(*waited)
            of.waiting.clear()
            of.bound(self._keep)
            of.tasks.pop(task_id, None)
            known = of.tasks[task_id] = _Range(
                max(of.seen, of.total - len(of.said)), of.total
            )
            of.tasks = dict(list(of.tasks.items())[-_TASKS:])
            of.fold(min(known.since, of.total - self._window))
        of.bound(self._keep)
        done = of.observed.get(task_id)
        before = _before(of, task_id, observations)
        if not senses:
            before = tuple(one.model_copy(update={"sensed": None}) for one in before)
        return TakenMessages(_history(of, known), before, done, known.is_settled)

    async def settle(
        self,
        owner: str,
        task_id: str,
        said: Utterance | None = None,
        *,
        observation: Observation | None = None,
        user_id: str | None = None,
    ) -> None:
        """Note that the messages taken are no longer new, and the task's own words and observations."""
        of = self._of(owner)
        task_id = checked_name(task_id, "task id")
        if observation is not None:
            await self.note(owner, task_id, observation)
        known = of.tasks.get(task_id)
        if known is not None:
            known.is_settled = True
            of.seen = max(of.seen, known.upto)
        if said is not None and of.add(
            _give_owner(own_message(task_id, said), user_id)
        ):
            of.own.add(of.total)
        of.see_own()
        of.bound(self._keep)

    async def summarise(
        self, owner: str, upto: int, text: str, *, removals: int | None = None
    ) -> bool:
        """Keep *text* as the summary of the first *upto* messages."""
        check_summary(text)
        of = self._of(owner)
        if (
            removals not in (None, of.digest.removals)
            or not of.digest.summarised < upto <= of.digest.count
        ):
            return False
        of.digest = replace(of.digest, summary=text, summarised=upto)
        return True

    async def page(
        self, owner: str, before: int | None = None, count: int = 100
    ) -> Page:
        """Return up to *count* messages before a number."""
        place, count = check_page(before, count)
        of = self._of(owner)
        numbers = [number for number in of.said if not place or number < place]
        shown = numbers[-count:]
        is_first = not shown or shown[0] == numbers[0]
        before = None if is_first else shown[0]
        return Page(
            tuple(of.said[number] for number in shown), before, of.total - len(of.said)
        )

    async def note(self, owner: str, task_id: str, observation: Observation) -> bool:
        """Keep what the agent observed in a task, once."""
        of = self._of(owner)
        if task_id in of.observed:
            return False
        of.observed[task_id] = observation
        of.observed = dict(list(of.observed.items())[-self._keep_observations :])
        return True

    async def recent(self, owner: str, count: int) -> tuple[Observation, ...]:
        """Return the last *count* observations, as `tasklore.memory.conversations.observations.Observations` does."""
        return _before(self._of(owner), "", count)

    async def recent_observations(
        self, owner: str, count: int
    ) -> tuple[Observation, ...]:
        """Return the last *count* observations."""
        return await self.recent(owner, count)

    def _of(self, owner: str) -> _Conversation:
        return self._conversations.setdefault(
            keys.conversation(owner).said, _Conversation()
        )


def _give_owner(message: Utterance, user_id: str | None) -> Utterance:
    return (
        message
        if message.user_id or not user_id
        else message.model_copy(update={"user_id": user_id})
    )


def _history(of: _Conversation, known: _Range) -> History:
    start = min(of.digest.count, known.since)
    shown = [number for number in of.said if start < number <= known.upto]
    known_to_all = of.own | of.answers
    past = [
        number for number in shown if number <= known.since or number in known_to_all
    ]
    current = [
        number
        for number in shown
        if number > known.since and number not in known_to_all
    ]
    return History(
        tuple(of.said[number] for number in (*past, *current)), len(current), of.digest
    )


def _before(of: _Conversation, task_id: str, count: int) -> tuple[Observation, ...]:
    before: list[Observation] = []
    for noted_in, observation in of.observed.items():
        if noted_in == task_id:
            break
        before.append(observation)
    return tuple(before[-count:]) if count > 0 else ()
