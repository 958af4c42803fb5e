"""Conversations against a plain model, on the fake and on real servers: whatever happens, in whatever order."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from typing import ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    rule,
    run_state_machine_as_test,
)
from redis.asyncio import Redis

from tasklore.contracts.conversations import TakenMessages, Utterance
from tasklore.contracts.messages import ChatTurn
from tasklore.memory.conversations.conversation import Conversations
from tasklore.memory.conversations.inbox import Inbox, utterance_of
from tasklore.runtime.servers.embedded import EmbeddedServers
from tests.fakes.inbox import FakeInbox
from tests.integration.inboxes import ids, whole
from tests.property.examples import examples

WINDOW = 4
KEEP = 12
TASKS = [f"t{number}" for number in range(6)]
SPEAKERS = ["Ann", "Bob", "Ünal 'x'"]
_owners = count()


@dataclass
class Model:
    """What a conversation is meant to be: every message that entered, what waits, and what each task was shown."""

    entered: list[Utterance] = field(default_factory=list)
    waiting: list[Utterance] = field(default_factory=list)
    own: set[str] = field(default_factory=set)
    shown: dict[str, list[str]] = field(default_factory=dict)
    settled: set[str] = field(default_factory=set)
    used: set[str] = field(default_factory=set)
    #: Tasks whose messages another task may have settled meanwhile.
    overtaken: set[str] = field(default_factory=set)

    @property
    def kept(self) -> list[Utterance]:
        """What is still there."""
        return self.entered[-KEEP:]

    @property
    def known(self) -> list[Utterance]:
        """What is not taken a second time."""
        return self.kept + self.waiting

    def unused(self) -> list[str]:
        """Return what no settled task was shown as new."""
        return [
            one
            for one in ids(tuple(self.kept))
            if one not in self.used and one not in self.own
        ]

    def enter(self, messages: list[Utterance]) -> None:
        """Add those that are not known."""
        for message in messages:
            if message.message_id not in ids(tuple(self.known)):
                self.entered.append(message)

    def take(self, task: str, taken: TakenMessages) -> None:
        """Hold what was shown against what is meant, for the task's first run and for its later ones."""
        new = ids(taken.history.current)
        before = [
            one for one in self.shown.get(task, []) if one in ids(tuple(self.kept))
        ]
        is_first = task not in self.shown
        if is_first or (
            task not in self.settled and task in self.overtaken and new != before
        ):
            self.entered += self.waiting
            self.waiting = []
            assert new == self.unused(), (
                "not everything unused is new, or something else is"
            )
            self._demand_digest(taken)
        else:
            assert new == before, "a retry is shown something else"
        assert {
            one.message_id for one in taken.history.messages if one.own
        } <= self.own, "words in its own mouth"
        assert taken.is_settled == (task in self.settled)
        assert task in self.settled or not self.used & set(new), (
            "shown as new after success"
        )
        self.shown[task] = new
        self.overtaken.discard(task)

    def settle(self, task: str, said: Utterance | None) -> None:
        """Note it."""
        if task in self.shown:
            self.settled.add(task)
            self.used |= set(self.shown[task])
        self.overtaken |= self.shown.keys() - {task}
        if said is not None and said.message_id not in ids(tuple(self.known)):
            self.entered.append(said)
            self.own.add(said.message_id)

    def _demand_digest(self, taken: TakenMessages) -> None:
        """Count by hand what is not shown."""
        history = taken.history
        fallen = self.entered[: history.earlier.count]
        assert history.earlier.speakers == dict(Counter(one.speaker for one in fallen))
        times = [one.time for one in fallen]
        assert (history.earlier.since, history.earlier.until) == (
            (min(times), max(times)) if times else (None, None)
        )
        rest = self.entered[history.earlier.count :]
        assert sorted(ids(history.messages)) == sorted(ids(tuple(rest)))
        assert [one for one in ids(history.past) if one not in self.own] == [
            one
            for one in ids(tuple(rest))
            if one not in self.own and one not in ids(history.current)
        ]
        assert len(rest) >= min(WINDOW, len(self.entered))


class Histories(RuleBasedStateMachine):
    """One conversation and its model; what is done to either."""

    url: ClassVar[str | None] = None

    def __init__(self) -> None:
        super().__init__()
        self.model = Model()
        self.owner = f"owner-{next(_owners)}"
        self.numbers = count(1)
        self.runner = asyncio.Runner()
        self.client = Redis.from_url(self.url) if self.url is not None else None
        self.inbox: Inbox | FakeInbox = FakeInbox(window=WINDOW, keep=KEEP)
        if self.client is not None:
            self.inbox = Inbox(self.client, 60, window=WINDOW, keep=KEEP)

    def teardown(self) -> None:
        """Close what was opened."""
        if self.client is not None:
            self.runner.run(self.client.aclose())
        self.runner.close()

    def message(self, speaker: str) -> Utterance:
        """Return a new one."""
        number = next(self.numbers)
        claims = number % 3 == 0
        return Utterance(
            message_id=f"m{number}",
            speaker=speaker,
            message=f"word {number}",
            time=number * 0.1,
            own=claims,
        )

    @rule(speaker=st.sampled_from(SPEAKERS))
    def post(self, speaker: str) -> None:
        """Somebody speaks to the agent."""
        message = self.message(speaker)
        assert self.runner.run(self.inbox.post(self.owner, message))
        self.model.waiting.append(message)
        if len(self.model.waiting) > KEEP:
            self.model.entered.append(self.model.waiting.pop(0))

    @rule(data=st.data())
    def post_again(self, data: st.DataObject) -> None:
        """Somebody is not sure whether it arrived."""
        if self.model.known:
            assert not self.runner.run(
                self.inbox.post(
                    self.owner, data.draw(st.sampled_from(self.model.known))
                )
            )

    @rule(text=st.text(min_size=1, max_size=5))
    def speak(self, text: str) -> None:
        """A person speaks in the conversation."""
        number = next(self.numbers)
        turn = ChatTurn(
            turn_id=f"p{number}",
            conversation_id=self.owner,
            speaker="person",
            text=text,
            at=datetime.fromtimestamp(number, UTC),
        )
        if isinstance(self.inbox, FakeInbox):
            assert self.inbox.turn(turn)
        else:
            assert self.client is not None
            body = turn.model_dump_json().encode()
            store = Conversations(self.client, keep_turns=KEEP, deadline_s=60)
            assert self.runner.run(store.append(self.owner, body, turn.turn_id))
        self.model.enter([utterance_of(turn)])

    @rule(
        task=st.sampled_from(TASKS),
        speakers=st.lists(st.sampled_from(SPEAKERS), max_size=3),
        data=st.data(),
    )
    def take(self, task: str, speakers: list[str], data: st.DataObject) -> None:
        """A task takes, with new and known messages; sometimes it is the same again."""
        known = (
            data.draw(st.lists(st.sampled_from(self.model.known), max_size=2))
            if self.model.known
            else []
        )
        arriving = known + [self.message(speaker) for speaker in speakers]
        taken = self.runner.run(self.inbox.take(self.owner, task, arriving))
        self.model.enter(arriving)
        self.model.take(task, taken)
        assert len(set(ids(taken.history.messages))) == len(taken.history.messages)

    @rule(task=st.sampled_from(TASKS), speaks=st.booleans())
    def settle(self, task: str, speaks: bool) -> None:
        """A task comes to its end, perhaps a second time, perhaps without having taken."""
        said = (
            self.message("Me").model_copy(update={"message_id": f"{task}:said"})
            if speaks
            else None
        )
        self.runner.run(self.inbox.settle(self.owner, task, said))
        self.model.settle(task, said)

    @rule(size=st.integers(1, 5))
    def read(self, size: int) -> None:
        """All pages together are what is kept."""
        assert self.runner.run(whole(self.inbox, self.owner, size)) == ids(
            tuple(self.model.kept)
        )

    @rule(
        size=st.integers(1, 4), speakers=st.lists(st.sampled_from(SPEAKERS), max_size=2)
    )
    def read_while_it_grows(self, size: int, speakers: list[str]) -> None:
        """No message is in two pages, and none is between them, but for those that have fallen off."""
        found: list[str] = []
        page = self.runner.run(self.inbox.page(self.owner, None, size))
        at_first = ids(tuple(self.model.kept))
        while True:
            found = ids(page.messages) + found
            if page.before is None:
                break
            for speaker in speakers:
                self.take_one(speaker)
            page = self.runner.run(self.inbox.page(self.owner, page.before, size))
        assert found == at_first[len(at_first) - len(found) :]
        assert set(found) >= set(at_first) & set(ids(tuple(self.model.kept)))

    def take_one(self, speaker: str) -> None:
        """One more message enters."""
        message = self.message(speaker)
        taken = self.runner.run(self.inbox.take(self.owner, "t0", [message]))
        self.model.enter([message])
        self.model.take("t0", taken)

    @invariant()
    def nothing_is_lost(self) -> None:
        """What was said is used, kept as new, or waits, as far as as much is kept."""
        assert len(self.model.waiting) <= KEEP


@contextmanager
def _on(url: str | None) -> Iterator[None]:
    Histories.url = url
    try:
        yield
    finally:
        Histories.url = None


def test_the_fake_delivers_once_loses_nothing_and_keeps_its_order() -> None:
    """It stands for the store."""
    run_state_machine_as_test(Histories, settings=examples(30, stateful_step_count=40))


def test_the_store_delivers_once_loses_nothing_and_keeps_its_order(
    servers: EmbeddedServers,
) -> None:
    """As the fake does, by the same laws."""
    with _on(servers.redis_url):
        run_state_machine_as_test(
            Histories, settings=examples(30, stateful_step_count=40)
        )
