"""The prompt for a batch: its turns as data, numbered, the turns before them, and kept items that are near."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date

from tasklore.contracts.messages import ChatTurn, Fact
from tasklore.memory.documents.items import Body
from tasklore.memory.documents.kinds import Kinds
from tasklore.memory.rendering.documents import without_rendered
from tasklore.memory.rendering.quoting import plain
from tasklore.workers.agents.switchboard.nearby import NumberedEntries, items_near
from tasklore.workers.listening.values import TurnBatch

#: Characters of a turn that are read; the rest of a longer one is a document, not a statement.
LONGEST = 8_000
#: Turns before those of the batch that are shown, and characters of each: what was asked stands at its end.
_BEFORE = 6
_BEFORE_SHOWN = 300


@dataclass(frozen=True, slots=True)
class PromptScene:
    """The turns and items of one question.

    *turns* are those of the person that are learned from, with their own words alone as text; the number of the first
    is 1. *around* are all turns in order, these among them. *known* are facts, by turn id, that they taught already.
    """

    turns: tuple[ChatTurn, ...]
    around: tuple[ChatTurn, ...] = ()
    shown: NumberedEntries = field(default_factory=NumberedEntries)
    known: Mapping[str, tuple[Fact, ...]] = field(default_factory=dict)

    @property
    def today(self) -> date:
        """The day of the last turn."""
        return self.turns[-1].at.date()

    @property
    def text(self) -> str:
        """The texts of all shown turns, in which words are grounded."""
        return "\n".join(turn.text for turn in self.around)


def scene_of(batch: TurnBatch, bodies: Mapping[str, Body], kinds: Kinds) -> PromptScene:
    """Return the scene of *batch* over the documents *bodies*; without turns where none of the person has a word."""
    own = {turn.turn_id for turn in batch.turns if turn.speaker == "person"}
    heard = [with_own_words(turn) for turn in batch.turns]
    turns = tuple(
        turn
        for turn in heard
        if turn.turn_id in own and any(map(str.isalnum, turn.text))
    )
    if not turns:
        return PromptScene(())
    others = [
        with_own_words(turn, from_end=True)
        for turn in batch.before
        if turn.at <= turns[-1].at
    ]
    first = turns[0].at
    earlier = [turn for turn in others if turn.at <= first][-_BEFORE:]
    between = [turn for turn in others if turn.at > first] + [
        turn for turn in heard if turn.turn_id not in own
    ]
    around = tuple(sorted((*earlier, *between, *turns), key=lambda turn: turn.at))
    scene = PromptScene(turns, around, known=batch.known)
    return replace(scene, shown=items_near(scene.text, bodies, kinds, scene.today))


def with_own_words(turn: ChatTurn, *, from_end: bool = False) -> ChatTurn:
    """Return *turn* with its speaker's own words alone, as far as they are shown."""
    words = own_words(turn.text)
    return turn.model_copy(
        update={"text": words[-_BEFORE_SHOWN:] if from_end else words[:LONGEST]}
    )


def own_words(text: str) -> str:
    """Return *text* without rendered memory and without quoted lines (`> ...`)."""
    kept = without_rendered(text)
    return "\n".join(
        line for line in kept.splitlines() if not line.lstrip().startswith(">")
    )


def question_of(scene: PromptScene) -> str:
    """Return the question: every text is one JSON string, which it cannot end itself."""
    lines = [f"today: {scene.today:%A} {scene.today}"]
    if scene.shown.entries:
        lines += ["items", *scene.shown.lines]
    known = [fact for facts in scene.known.values() for fact in facts]
    if known:
        lines += ["noted already", *(f"- {plain(fact.text)}" for fact in known)]
    return "\n".join([*lines, "turns", *_turn_lines(scene)])


def _turn_lines(scene: PromptScene) -> Iterable[str]:
    numbers = {turn.turn_id: number for number, turn in enumerate(scene.turns, start=1)}
    for turn in scene.around:
        said = json.dumps(turn.text, ensure_ascii=False)
        day = "" if turn.at.date() == scene.today else f" {turn.at.date()}"
        who = "person" if turn.speaker == "person" else "assistant"
        yield (
            f"{numbers[turn.turn_id]}{day}: {said}"
            if turn.turn_id in numbers
            else f"[{who}{day}] {said}"
        )


def categories_of(kinds: Kinds) -> Sequence[str]:
    """Return a line for each place of the documents."""
    return [
        f"{place.path}: {place.meaning}"
        for kind in kinds.by_id.values()
        for place in kind.places
    ]
