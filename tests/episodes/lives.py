"""Made-up people by name and what each tells an assistant over two years, with questions by how they are answered.

One turn, several, by time, what changed, by a pronoun ("She gave me"), in the turn behind a question, and never said:
of the person, and of a stranger. A seed makes the same people again; the parts `seen` and `unseen` share no wording.
"""

import random
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.episodes.chats import Person, Question, Turn

__all__ = ["QUESTIONS", "make_lives"]

_FOLDER = Path(__file__).with_name("lives")
_BEGIN = datetime(2024, 11, 1, 8, tzinfo=UTC)
_END = datetime(2026, 11, 1, tzinfo=UTC)
#: Questions of a person by how they are answered.
QUESTIONS = {
    "one": 13,
    "several": 5,
    "time": 5,
    "changed": 4,
    "pronoun": 4,
    "next": 3,
    "never": 3,
    "stranger": 3,
}
#: Words of a turn where turns are long.
_LONG_WORDS = 300
#: Share of the questions that name the person, as an agent asks.
_IN_THIRD_PERSON = 0.5
_THIRD = (
    (r"\bhave I\b", "has {name}"),
    (r"\bdo I\b", "does {name}"),
    (r"\bdid I\b", "did {name}"),
    (r"\bcan't I\b", "can't {name}"),
    (r"\bam I\b", "is {name}"),
    (r"\b[Mm]y\b|\bour\b", "{name}'s"),
    (r"\bme\b|\bI\b", "{name}"),
)


@dataclass(frozen=True, slots=True)
class _Event:
    """What happened once: its *topic*, its values by slot, and the ids of the turns that answer questions of it."""

    topic: dict[str, Any]
    values: dict[str, str]
    evidence: tuple[str, ...]
    at: datetime


def make_lives(
    part: str, people: int = 20, turns: int = 600, *, are_turns_long: bool = False
) -> list[Person]:
    """Return *people* of the part `seen` or `unseen`, each with about *turns* turns and 40 questions."""
    texts = tomllib.loads((_FOLDER / f"{part}.toml").read_text("utf-8"))
    return [
        _Life(texts, name, turns, are_turns_long=are_turns_long).person
        for name in texts["names"][:people]
    ]


class _Life:
    """One person in the making."""

    def __init__(
        self, texts: dict[str, Any], name: str, turns: int, *, are_turns_long: bool
    ) -> None:
        self.person = Person(name)
        self._texts = texts
        self._dice = random.Random(name)
        self._is_long = are_turns_long
        self._conversation = 0
        self._at = _BEGIN
        self._events: list[_Event] = []
        self._talk(turns)
        self._ask()

    def _talk(self, turns: int) -> None:
        """Tell of all that happens in conversations spread over the time, amid everything else."""
        due = [
            (topic, values)
            for topic in self._texts["topics"]
            for values in self._dice.sample(topic["values"], topic["times"])
        ]
        self._dice.shuffle(due)
        step = (_END - _BEGIN) / turns
        gap = turns / (len(due) + 1)
        told = 0
        left = 0
        while len(self.person.turns) < turns:
            if left <= 0:
                self._conversation += 1
                left = self._dice.randrange(6, 30)
                self._at = _BEGIN + step * len(self.person.turns)
            before = len(self.person.turns)
            if told < len(due) and before >= gap * (told + 1):
                self._tell(*due[told])
                told += 1
            else:
                self._chatter()
            left -= len(self.person.turns) - before

    def _tell(self, topic: dict[str, Any], spelled: str) -> None:
        values = dict(zip(topic["slots"], spelled.split("|"), strict=True))
        lines = self._dice.choice(topic["told"]).split(" / ")
        has_marks = any("*" in line[:1] for line in lines)
        evidence = []
        for line in lines:
            is_reply = line.startswith("a: ")
            core = line.removeprefix("a: ").removeprefix("*").format_map(values)
            text = core if is_reply else self._wrapped(core)
            turn = self._say("assistant" if is_reply else "person", text, core)
            if not is_reply and (line.startswith("*") or not has_marks):
                evidence.append(turn.turn_id)
        self._events.append(_Event(topic, values, tuple(evidence), self._at))
        self._say("assistant", self._dice.choice(self._texts["replies"]))

    def _wrapped(self, text: str) -> str:
        """Return *text* with what people say around it."""
        lead, tail = (
            self._dice.choice(self._texts["leads"]),
            self._dice.choice(self._texts["tails"]),
        )
        return f"{lead}{text}{tail}"

    def _chatter(self) -> None:
        self._say("person", self._filled("chatter"))
        if self._dice.random() < 0.6:
            self._say("assistant", self._filled("answers"))

    def _filled(self, which: str) -> str:
        slots = {
            name: self._dice.choice(words)
            for name, words in self._texts["fillers"].items()
        }
        return self._dice.choice(self._texts[which]).format_map(slots)

    def _say(self, speaker: str, text: str, core: str = "") -> Turn:
        number = len(self.person.turns)
        self._at += timedelta(seconds=self._dice.randrange(20, 200))
        turn = Turn(
            f"{self.person.person_id}-{number}",
            f"c{self._conversation}",
            speaker,
            self._at,
            self._lengthened(text) if self._is_long else text,
            core or text,
        )
        self.person.turns.append(turn)
        return turn

    def _lengthened(self, text: str) -> str:
        """Return *text* amid others, `_LONG_WORDS` in all."""
        texts = [text]
        while sum(len(one.split()) for one in texts) < _LONG_WORDS:
            place = self._dice.randrange(len(texts) + 1)
            texts.insert(place, self._filled(self._dice.choice(("chatter", "answers"))))
        return " ".join(texts)

    def _ask(self) -> None:
        asked: dict[str, list[Question]] = {kind: [] for kind in QUESTIONS}
        for question in (*self._of_events(), *self._of_topics(), *self._of_nothing()):
            asked[question.kind].append(question)
        for kind, count in QUESTIONS.items():
            self._dice.shuffle(asked[kind])
            self.person.questions += asked[kind][:count]

    def _of_events(self) -> Iterator[Question]:
        """Yield the questions that one event answers."""
        for event in self._events:
            for kind in ("one", "pronoun", "next"):
                for text in event.topic.get(kind, ()):
                    worded = _filled_question(text, event.values)
                    yield self._question(worded, kind, event.evidence)

    def _of_topics(self) -> Iterator[Question]:
        """Yield the questions of all that happened of a kind, of the last of it, and of that of a month."""
        for topic in self._texts["topics"]:
            happened = [event for event in self._events if event.topic is topic]
            every = tuple(one for event in happened for one in event.evidence[:1])
            if not happened:
                continue
            for text in topic.get("several", ()):
                yield self._question(text, "several", every)
            for text in topic.get("newest", ()):
                yield self._question(text, "changed", happened[-1].evidence)
            for text in topic.get("time", ()):
                yield from self._of_periods(text, happened)

    def _of_nothing(self) -> Iterator[Question]:
        """Yield the questions that nothing answers."""
        for text in self._texts["never"]:
            yield self._question(text, "never", ())
        for text in self._texts["asked_of_strangers"]:
            name = self._dice.choice(self._texts["strangers"])
            yield Question(text.format(name=name), "stranger", (), _END)

    def _of_periods(self, text: str, happened: list[_Event]) -> Iterator[Question]:
        for month in dict.fromkeys(f"{event.at:%B %Y}" for event in happened):
            of_month = (one for one in happened if f"{one.at:%B %Y}" == month)
            evidence = tuple(event.evidence[0] for event in of_month)
            yield self._question(text.format(period=month), "time", evidence)

    def _question(self, text: str, kind: str, evidence: tuple[str, ...]) -> Question:
        if self._dice.random() < _IN_THIRD_PERSON:
            for pattern, put in _THIRD:
                text = re.sub(pattern, put.format(name=self.person.person_id), text)
        return Question(text, kind, evidence, _END)


def _filled_question(text: str, values: dict[str, str]) -> str:
    """Return *text* with its slots filled; "@" takes the words of the assistant's own question."""
    filled = text.removeprefix("@").format_map(values)
    if not text.startswith("@"):
        return filled
    for pattern, put in (
        (r"\bare you\b|\byou are\b|\byou're\b", "am I"),
        (r"\byour\b", "my"),
        (r"\byou\b", "I"),
    ):
        filled = re.sub(pattern, put, filled)
    return filled
