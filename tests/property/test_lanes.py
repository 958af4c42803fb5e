"""Turns of tenants beside a model of the stream: nothing is lost, passed over or taken twice, and shares are fair."""

import random
from collections import Counter, defaultdict

import pytest

from tasklore.supervisor.admission.lanes import Lane


class Stream:
    """A stream of one lane, and a desk that reads it as the real one does."""

    def __init__(self, weights: dict[str, float] | None = None) -> None:
        self.weights = weights or {}
        self.stored: dict[int, str] = {}
        self.last = 0
        self.taken: list[tuple[int, str]] = []
        self.begin()

    def begin(self) -> None:
        """Let a new desk begin, which knows nothing."""
        self.lane = Lane("Agent", "normal")
        self.cursor = 1

    def put(self, token: str) -> None:
        """Store a message, one a second."""
        self.last += 1
        self.stored[self.last] = token

    def read(self, number: int) -> None:
        """Let the desk read at most *number* new messages."""
        for sequence in range(
            self.cursor, min(self.last, self.cursor + number - 1) + 1
        ):
            self.cursor = sequence + 1
            if (token := self.stored.get(sequence)) is not None:
                self.lane.arrive(token, sequence, float(sequence))

    def move(self, room: int, oldest: int = 0) -> list[str]:
        """Let the desk move at most *room* messages, and remove them; nothing that was not moved may go.

        So many of the *oldest* go first. Return whose messages were moved.
        """
        sequences = list(
            filter(None, (self.lane.take_oldest(self.weights) for _ in range(oldest)))
        )
        assert sequences == sorted(sequences)
        while (
            len(sequences) < room
            and (sequence := self.lane.take(self.weights)) is not None
        ):
            sequences.append(sequence)
        found = [
            (sequence, self.stored[sequence])
            for sequence in sequences
            if sequence in self.stored
        ]
        self.taken += found
        moved = {sequence for sequence, _ in self.taken}
        for subject, before in self.lane.removals(self.cursor):
            words = subject.split(".")
            token = words[3] if len(words) == 5 else None
            for sequence in [one for one in self.stored if one < before]:
                if token in (None, self.stored[sequence]):
                    assert sequence in moved, f"{sequence} was removed and never moved"
                    del self.stored[sequence]
        return [token for _, token in found]


@pytest.mark.parametrize("seed", range(30))
def test_every_message_is_moved_once_and_in_the_order_of_its_tenant(seed: int) -> None:
    """However arrivals, reads, moves, pauses and deaths of the desk follow one another."""
    chance = random.Random(seed)
    stream = Stream()
    tenants = [f"t{number}" for number in range(chance.choice((1, 3, 40)))]
    for _ in range(200):
        match chance.randrange(10):
            case 0 | 1 | 2 | 3:
                for _ in range(chance.choice((1, 5, 60))):
                    stream.put(chance.choice(tenants))
            case 4 | 5:
                stream.read(chance.choice((1, 20, 500)))
            case 6 | 7 | 8:
                stream.move(chance.choice((1, 4, 64)), chance.choice((0, 0, 3)))
            case _:
                # What is moved twice then is swallowed by its message id.
                if chance.random() < 0.2:
                    stream.begin()
    stream.read(stream.last + 1)
    while stream.move(64):
        pass
    firsts = dict(stream.taken)
    assert sorted(firsts) == list(range(1, stream.last + 1))
    by_tenant = defaultdict(list)
    for sequence, token in firsts.items():
        by_tenant[token].append(sequence)
    assert all(sequences == sorted(sequences) for sequences in by_tenant.values())
    assert not stream.stored


def test_turns_follow_weights_and_late_comers_save_up_none() -> None:
    """One, two and four parts of seven; then a newcomer gets its share from its arrival on, and no more."""
    stream = Stream({"b": 2.0, "c": 4.0})
    for token in "abc":
        for _ in range(4000):
            stream.put(token)
    stream.read(20_000)
    turns = Counter(token for _ in range(100) for token in stream.move(35))
    assert shares(turns) == {"a": 0.14, "b": 0.29, "c": 0.57}
    for _ in range(4000):
        stream.put("d")
    stream.read(20_000)
    turns = Counter(token for _ in range(100) for token in stream.move(35))
    assert shares(turns) == pytest.approx(
        {"a": 0.125, "b": 0.25, "c": 0.5, "d": 0.125}, abs=0.01
    )


def shares(turns: Counter[str]) -> dict[str, float]:
    """Return each tenant's part of *turns*."""
    return {token: round(number / turns.total(), 2) for token, number in turns.items()}


def test_a_lane_knows_since_when_its_oldest_task_waits() -> None:
    stream = Stream()
    assert stream.lane.waits_since() is None
    for token in "abab":
        stream.put(token)
    stream.read(10)
    assert stream.lane.waits_since() == 1.0
    assert stream.move(1, oldest=1) == ["a"]
    assert stream.lane.waits_since() == 2.0
    assert stream.move(3) == ["b", "a", "b"]
    assert stream.lane.waits_since() is None


def test_a_message_that_was_erased_keeps_nothing_back() -> None:
    stream = Stream()
    stream.put("a")
    stream.put("b")
    stream.read(10)
    del stream.stored[1]
    assert stream.move(1) == []
    assert stream.move(1) == ["b"]
    assert not stream.stored


def test_names_that_one_key_invents_have_the_turns_of_one() -> None:
    """A key with 3,000 tenants, a tenant of 0.2 with its weight, and one task of another key, which is next."""
    stream = Stream({"acme": 2.0, "t1": 3.0})
    for number in range(3000):
        stream.put(f"many=t{number % 300}")
        stream.put("acme")
    stream.read(10_000)
    stream.move(60)
    stream.put("few=x")
    stream.read(10_000)
    assert "few=x" in stream.move(4)
    moved = [token for _ in range(100) for token in stream.move(12)]
    keys = Counter(token.partition("=")[0] for token in moved)
    assert shares(keys) == pytest.approx({"many": 0.33, "acme": 0.67}, abs=0.01)
    tenants = Counter(token for token in moved if token.startswith("many="))
    assert tenants["many=t1"] == pytest.approx(3 * tenants["many=t2"], abs=2)


def test_a_lane_forgets_names_that_wait_no_more() -> None:
    stream = Stream()
    for number in range(100):
        stream.put(f"key=t{number}")
    stream.read(1000)
    while stream.move(64):
        pass
    assert len(stream.lane) == 0
