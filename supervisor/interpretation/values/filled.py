"""What one sentence says about one task, while it is being read."""

from dataclasses import dataclass, field
from typing import Any

from supervisor.understanding.outcome import Span
from supervisor.interpretation.values.amounts import Doubt
from supervisor.interpretation.values.fields import FieldShape
from supervisor.interpretation.values.plain_values import Reading
from supervisor.interpretation.values.scene import Item


@dataclass
class Filled:
    """What one sentence says about one task: values ready for JSON, where they stand, doubts, and what is left over.

    *computed* tells of a value that was not said itself what it was made of ("20 % of 5000").
    *unplaced* is the question about an amount that must not be left out although nothing says which field it is for.
    """

    values: dict[str, Any] = field(default_factory=dict)
    spans: list[Span] = field(default_factory=list)
    doubts: list[Doubt] = field(default_factory=list)
    loose: list[Item] = field(default_factory=list)
    guessed: set[str] = field(default_factory=set)
    computed: dict[str, str] = field(default_factory=dict)
    unplaced: str | None = None
    is_certain: bool = True

    def has(self, shape: FieldShape) -> bool:
        """True when *shape* was said, if only to raise a doubt."""
        return shape.name in self.values or any(doubt.field is shape for doubt in self.doubts)

    def put(self, reading: Reading, text: str) -> None:
        """Keep *reading*; of a list its value is one item."""
        self.values[reading.field.name] = reading.value
        self.point(reading.field.name, reading.start, reading.end, text)
        if not reading.is_sure:
            self.guess(reading.field.name)

    def guess(self, name: str) -> None:
        """Record that nothing in the sentence announces the value of *name*."""
        self.guessed.add(name)
        self.is_certain = False

    def point(self, name: str, start: int, end: int, text: str) -> None:
        """Record that the value of *name* rests on these characters of *text*."""
        self.spans.append(Span(name, start, end, text[start:end]))

    def drop(self, name: str) -> None:
        """Take the value of *name* back, as if it had never been said."""
        self.values.pop(name, None)
        self.spans = [span for span in self.spans if span.field != name]
        self.guessed.discard(name)

    def doubt(self, doubt: Doubt) -> None:
        """Record that *doubt* has to be asked; a value that was there is dropped."""
        self.values.pop(doubt.field.name, None)
        self.spans = [span for span in self.spans if span.field != doubt.field.name]
        if not any(other.field is doubt.field for other in self.doubts):
            self.doubts.append(doubt)
        self.is_certain = False
