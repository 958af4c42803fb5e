"""What is remembered of the person who asks, as far as it is offered to a model, and what of it may become a value."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from supervisor.interpretation.evidence import Proven, Source, Used, prove
from supervisor.interpretation.fields import FieldShape
from supervisor.interpretation.filling import fill
from supervisor.interpretation.routing import Prepared
from supervisor.interpretation.scene import scene_of


@dataclass(frozen=True, slots=True)
class Remembered:
    """One thing that is remembered: where it stands, and what it says with the heading that it stands under."""

    place: str
    text: str


@dataclass(frozen=True, slots=True)
class Recollection:
    """`text` is a block for a prompt, empty when nothing is remembered; `lines` are what is shown in it."""

    text: str = ""
    lines: tuple[Remembered, ...] = ()

    def sources(self) -> tuple[Source, ...]:
        """Return the lines as texts that may be quoted."""
        return tuple(Source(scene_of(line.text), memory=line.place) for line in self.lines)


class Recalling(Protocol):
    """What is needed to know what is remembered of somebody."""

    async def of(self, user_id: str | None, text: str) -> Recollection:
        """Return what is remembered of *user_id* that has most to do with *text*; nothing of nobody, and in doubt."""


def prove_remembered(
    task: Prepared, field: FieldShape, said: Sequence[str], quote: str, sources: Sequence[Source], used: Used
) -> Proven | None:
    """Return *said* as the value of *field*; None when *quote* is not remembered, or the rules read it otherwise.

    The person did not refer to it: that a number stands there does not show what it is for, so a model's word for that
    is not enough. Where two values are remembered, only the person knows which one holds.
    """
    told = [(source, value) for source in sources if (value := _read_there(task, field, source)) is not None]
    if not told or any(value != told[0][1] for _, value in told):
        return None
    # In the block each text stands in quotes of ours.
    proven = prove(field, said, quote.replace('"', "").strip(), [source for source, _ in told], used)
    return proven if proven is not None and proven.value == told[0][1] else None


def _read_there(task: Prepared, field: FieldShape, source: Source) -> Any:
    """Return what the rules are sure to read for *field* in *source*, None for nothing."""
    read = fill(source.scene, task)
    return None if field.name in read.guessed else read.values.get(field.name)
