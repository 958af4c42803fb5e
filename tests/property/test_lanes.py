"""Turns of tenants beside a model of the stream: nothing is lost, passed over or taken twice, and shares are fair."""

import random
from collections import Counter, defaultdict

import pytest

from runtime.messaging.direct import Stored
from supervisor.admission.lanes import HELD_S, Lane


class Stream:
    """A stream of one lane, a desk that reads it as the real one does, and a clock."""

    def __init__(self, weights: dict[str, float] | None = None) -> None:
        self.now = 0.0
        self.weights = weights or {}
        self.stored: dict[int, Stored] = {}
        self.last = 0
        self.taken: list[Stored] = []
        self.begin()

    def begin(self) -> None:
        """Let a new desk begin: it learns who waits, and nothing of their messages."""
        self.lane = Lane("Agent", "normal", lambda: self.now)
        self.cursor = self.last + 1
        for token in {message.subject.split(".")[3] for message in self.stored.values()}:
            self.lane.arrive(token, None)

    def put(self, token: str) -> None:
        """Store a message."""
        self.last += 1
        self.stored[self.last] = Stored(self.last, f"waiting.Agent.normal.{token}.work", "", {}, b"")

    def read(self, number: int) -> None:
        """Let the desk read at most *number* new messages."""
        for sequence in range(self.cursor, min(self.last, self.cursor + number - 1) + 1):
            self.cursor = sequence + 1
            if (message := self.stored.get(sequence)) is not None:
                self.lane.arrive(message.subject.split(".")[3], message)

    def move(self, room: int) -> list[Stored]:
        """Let the desk move at most *room* messages, and remove them; nothing that was not moved may go."""
        tenants, batch = self.lane.missing(room)
        for tenant in tenants:
            # As they were stored, in order.
            behind = [
                message
                for sequence, message in self.stored.items()
                if sequence > tenant.after and message.subject.split(".")[3] == tenant.token
            ]
            self.lane.fill(tenant, behind[:batch], has_more=len(behind) > batch)
        found: list[Stored] = []
        while len(found) < room and (message := self.lane.take(self.weights)) is not None:
            found.append(message)
        self.taken += found
        moved = {message.sequence for message in self.taken}
        for subject, before in self.lane.removals(self.cursor):
            prefix = subject.rstrip("*>")
            for sequence in [one for one in self.stored if one < before]:
                if self.stored[sequence].subject.startswith(prefix):
                    assert sequence in moved, f"{sequence} was removed and never moved"
                    del self.stored[sequence]
        return found


@pytest.mark.parametrize("seed", range(30))
def test_every_message_is_moved_once_and_in_the_order_of_its_tenant(seed: int) -> None:
    """However arrivals, reads, moves, pauses and deaths of the desk follow one another."""
    chance = random.Random(seed)
    stream, tenants = Stream(), [f"t{number}" for number in range(chance.choice((1, 3, 40)))]
    for _ in range(200):
        match chance.randrange(10):
            case 0 | 1 | 2 | 3:
                for _ in range(chance.choice((1, 5, 60))):
                    stream.put(chance.choice(tenants))
            case 4 | 5:
                stream.read(chance.choice((1, 20, 500)))
            case 6 | 7 | 8:
                stream.move(chance.choice((1, 4, 64)))
            case _:
                stream.now += chance.choice((0.1, HELD_S * 2))
                if chance.random() < 0.2:
                    # What is moved twice then is swallowed by its message id.
                    stream.begin()
    stream.read(stream.last + 1)
    while stream.move(64):
        pass
    firsts = list(dict.fromkeys(message.sequence for message in stream.taken))
    assert sorted(firsts) == list(range(1, stream.last + 1))
    by_tenant = defaultdict(list)
    for message in {message.sequence: message for message in stream.taken}.values():
        by_tenant[message.subject].append(message.sequence)
    assert all(sequences == sorted(sequences) for sequences in by_tenant.values())
    assert not stream.stored


def test_turns_follow_weights_and_late_comers_save_up_none() -> None:
    """One, two and four parts of seven; then a newcomer gets its share from its arrival on, and no more."""
    stream = Stream({"b": 2.0, "c": 4.0})
    for token in "abc":
        for _ in range(4000):
            stream.put(token)
    stream.read(20_000)
    turns = Counter(message.subject.split(".")[3] for _ in range(100) for message in stream.move(35))
    assert shares(turns) == {"a": 0.14, "b": 0.29, "c": 0.57}
    for _ in range(4000):
        stream.put("d")
    stream.read(20_000)
    turns = Counter(message.subject.split(".")[3] for _ in range(100) for message in stream.move(80))
    assert shares(turns) == pytest.approx({"a": 0.125, "b": 0.25, "c": 0.5, "d": 0.125}, abs=0.01)


def shares(turns: Counter[str]) -> dict[str, float]:
    """Return each tenant's part of *turns*."""
    return {token: round(number / turns.total(), 2) for token, number in turns.items()}


def test_a_message_that_was_erased_while_it_was_held_is_not_moved() -> None:
    stream = Stream()
    stream.put("a")
    stream.put("b")
    stream.read(10)
    del stream.stored[1]
    stream.now += HELD_S * 2
    assert [message.sequence for message in stream.move(10)] == [2]
    assert not stream.move(10)
