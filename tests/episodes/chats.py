"""Made-up chats of people with an assistant over two years, and questions about them with the turns that answer these.

The two parts share no name, place, thing or wording, so that what was tuned on `development` is unseen on `held`.
"""

import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from tests.episodes.wordings import PARTS, Fact, Part

__all__ = ["Person", "Question", "Turn", "make_people"]

_BEGIN = datetime(2024, 11, 1, 8, tzinfo=UTC)
_END = datetime(2026, 11, 1, tzinfo=UTC)
_MONTHS = (
    "January February March April May June July August September October November December".split()  # noqa: SIM905
)


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a chat; `speaker` is `person` or `assistant`, and `core` what of it tells something, else all."""

    turn_id: str
    conversation_id: str
    speaker: str
    at: datetime
    text: str
    core: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """A question, what it asks for, and the ids of all turns that answer it; none of `never`."""

    text: str
    kind: str
    evidence: tuple[str, ...]
    asked_at: datetime


@dataclass
class Person:
    """One person with all turns in the order of time, and questions about them."""

    person_id: str
    turns: list[Turn] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)


def make_people(part: str, count: int = 10, turns: int = 1_000) -> list[Person]:
    """Return *count* people of the part `development` or `held`, each with about *turns* turns and 30 questions."""
    return [
        _Life(PARTS[part], f"{part}-{number}", turns).person for number in range(count)
    ]


class _Life:
    """One person in the making."""

    def __init__(self, part: Part, person_id: str, turns: int) -> None:
        self.person = Person(person_id)
        self._part = part
        self._dice = random.Random(person_id)
        self._turns = turns
        self._said: dict[str, str] = {}
        self._talk(self._events())
        self._ask()

    def _events(self) -> list[tuple[Fact, dict[str, str]]]:
        """Return what happens, in the order in which it is spoken of."""
        events = []
        self._happened: dict[str, list[tuple[dict[str, str], str]]] = {}
        for fact in self._part.facts:
            values = self._dice.sample(fact.values, min(fact.times, len(fact.values)))
            events += [
                (fact, dict(zip(fact.slots, value, strict=True))) for value in values
            ]
        self._dice.shuffle(events)
        return events

    def _talk(self, events: list[tuple[Fact, dict[str, str]]]) -> None:
        """Speak of *events* in conversations that are spread over the time, amid everything else."""
        pending = list(enumerate(events))
        gap = self._turns / (len(events) + 1)
        due = [gap * (number + 1) for number, _ in pending]
        conversation = 0
        at = _BEGIN
        step = (_END - _BEGIN) / self._turns
        left = 0
        while len(self.person.turns) < self._turns:
            if left <= 0:
                conversation = conversation + 1
                left = self._dice.randrange(6, 30)
                at = _BEGIN + step * len(self.person.turns)
            at += timedelta(seconds=self._dice.randrange(20, 200))
            before = len(self.person.turns)
            if pending and len(self.person.turns) >= due[pending[0][0]]:
                self._speak_of(*pending.pop(0)[1], conversation, at)
            else:
                self._chatter(conversation, at)
            left -= len(self.person.turns) - before

    def _speak_of(
        self, fact: Fact, values: dict[str, str], conversation: int, at: datetime
    ) -> None:
        wording = self._dice.choice(fact.wordings)
        if isinstance(wording, tuple):
            # The assistant asks, and the answer has no word of the question.
            self._say(conversation, at, "assistant", wording[0].format_map(values))
            wording = wording[1]
        turn = self._say(conversation, at, "person", wording.format_map(values))
        self._say(
            conversation,
            at,
            "assistant",
            self._dice.choice(self._part.replies).format_map(values),
        )
        self._happened.setdefault(fact.name, []).append((values, turn.turn_id))

    def _chatter(self, conversation: int, at: datetime) -> None:
        line = self._dice.choice(self._part.chatter)
        slots = {
            name: self._dice.choice(words) for name, words in self._part.fillers.items()
        }
        self._say(conversation, at, "person", line.format_map(slots))
        if self._dice.random() < 0.6:
            self._say(
                conversation,
                at,
                "assistant",
                self._dice.choice(self._part.answers).format_map(slots),
            )

    def _say(self, conversation: int, at: datetime, speaker: str, text: str) -> Turn:
        number = len(self.person.turns)
        at += timedelta(seconds=number % 7)
        turn = Turn(
            f"{self.person.person_id}-{number}", f"c{conversation}", speaker, at, text
        )
        self.person.turns.append(turn)
        return turn

    def _ask(self) -> None:
        asked = [
            question
            for fact in self._part.facts
            for question in self._questions_of(fact)
        ]
        never = [
            Question(text, "never", (), _END)
            for text in self._dice.sample(self._part.never, 8)
        ]
        self._dice.shuffle(asked)
        self.person.questions = [*asked[:22], *never]

    def _questions_of(self, fact: Fact) -> list[Question]:
        happened = self._happened.get(fact.name, [])
        by_id = {turn.turn_id: turn for turn in self.person.turns}
        found = []
        for text in fact.single:
            values, turn_id = self._dice.choice(happened)
            found.append(Question(text.format_map(values), "single", (turn_id,), _END))
        found += [
            Question(text, "several", tuple(turn_id for _, turn_id in happened), _END)
            for text in fact.several
        ]
        for text in fact.newest:
            found.append(Question(text, "changed", (happened[-1][1],), _END))
        for text in fact.at_time:
            _, turn_id = self._dice.choice(happened)
            day = by_id[turn_id].at
            period = f"{_MONTHS[day.month - 1]} {day.year}"
            same = tuple(
                other
                for _, other in happened
                if (by_id[other].at.year, by_id[other].at.month)
                == (day.year, day.month)
            )
            found.append(Question(text.format(period=period), "time", same, _END))
        return found
