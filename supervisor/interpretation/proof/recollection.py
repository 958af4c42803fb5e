"""What is remembered of the person who asks, as far as it is offered to a model, and what of it may become a value."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from supervisor.interpretation.proof.evidence import Proven, Source, Used, prove
from supervisor.interpretation.proof.plain_statements import is_plain, shown, speaks_of
from supervisor.interpretation.questions import agreed_in, ask_whether
from supervisor.interpretation.values.amounts import Doubt
from supervisor.interpretation.values.fields import FieldShape
from supervisor.interpretation.values.filling import Filled, fill
from supervisor.interpretation.values.scene import scene_of
from supervisor.interpretation.wishes.routing import Prepared


@dataclass(frozen=True, slots=True)
class Remembered:
    """One thing that is remembered: where it stands, and what it says with the heading that it stands under.

    *names* are what its document, and each part of it on the way there, is called: they may say whose it is. *heading*
    is how *text* begins before what was said. *is_sure* is False when the document says anything more of it: that it
    was inferred, is in conflict, or is of a record that somebody is named in.
    """

    place: str
    text: str
    names: tuple[str, ...] = ()
    heading: str = ""
    is_sure: bool = True


@dataclass(frozen=True, slots=True)
class Recollection:
    """`text` is a block for a prompt, empty when nothing is remembered; `lines` are what is shown in it."""

    text: str = ""
    lines: tuple[Remembered, ...] = ()

    def sources(self) -> tuple[Source, ...]:
        """Return the lines as texts that may be quoted."""
        return tuple(
            Source(scene_of(line.text), None, line.place, line.names, line.heading, line.is_sure) for line in self.lines
        )


class Recalling(Protocol):
    """What is needed to know what is remembered of somebody."""

    async def of(self, user_id: str | None, text: str) -> Recollection:
        """Return what is remembered of *user_id* that has most to do with *text*; nothing of nobody, and in doubt."""


def prove_remembered(
    task: Prepared, field: FieldShape, said: Sequence[str], quote: str, sources: Sequence[Source], used: Used
) -> Proven | Doubt | None:
    """Return *said* as the value of *field*; None when *quote* is not remembered, or the rules read it otherwise.

    The person did not refer to it: that a number stands there does not show what it is for, so a model's word for that
    is not enough. Where two values are remembered, only the person knows which one holds, and where a line says more
    than the value, of whom and when it holds: then they are asked.
    """
    told = [(source, read) for source in sources if (read := _read_there(task, field, source)) is not None]
    if not told or any(read.value != told[0][1].value for _, read in told):
        return None
    # In the block each text stands in quotes of ours.
    proven = prove(field, said, quote.replace('"', "").strip(), [source for source, _ in told], used)
    if proven is None or proven.value != told[0][1].value:
        return None
    odd = [source for source, read in told if not is_plain(task.cues, field, source, read.spans)]
    known = [source for source, _ in told]
    odd += [source for source in sources if source not in known and speaks_of(task.cues, field, source.scene)]
    return _in_doubt(task, field, proven.value, odd[0]) if odd else proven


def read_agreed(task: Prepared, asked: Sequence[FieldShape], agreed: str) -> Filled:
    """Return the values of *asked* that a person agreed to, who was asked for *agreed* (`questions.agreed_in`)."""
    read = fill(scene_of(agreed), task, asked)
    names = {shape.name for shape in asked}
    return Filled(values={name: value for name, value in read.values.items() if name in names})


def _in_doubt(task: Prepared, field: FieldShape, value: Any, source: Source) -> Doubt | None:
    """Return the question whether *value* holds, None when a yes could not be read as that value."""
    doubt = Doubt(field, ask_whether(field, value, shown(field, source)))
    agreed = read_agreed(task, [field], agreed_in(doubt.question))
    return doubt if agreed.values.get(field.name) == value else None


def _read_there(task: Prepared, field: FieldShape, source: Source) -> Proven | None:
    """Return what the rules are sure to read for *field* in *source*, None for nothing."""
    read = fill(source.scene, task)
    if field.name in read.guessed or read.values.get(field.name) is None:
        return None
    return Proven(read.values[field.name], tuple(span for span in read.spans if span.field == field.name))
