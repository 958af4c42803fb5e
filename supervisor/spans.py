"""What a supervisor does, as spans: understanding a sentence, and taking a report."""

from collections.abc import Sequence
from datetime import datetime

from contracts import subjects
from contracts.messages import ChatTurn, CompletionReport
from contracts.traces import read_context
from runtime import tracing
from runtime.pull import Delivery
from runtime.tracing.letters import processing
from supervisor.catalogue import Catalogue
from supervisor.understanding.outcome import Interpretation, Interpreter


class Spanned:
    """Interprets as *interpreter* does, in a span that tells what came of it and not a word of what was said."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._interpreter = interpreter

    async def interpret(
        self,
        text: str,
        *,
        catalogue: Catalogue,
        previous: Sequence[ChatTurn],
        user_id: str | None = None,
        now: datetime | None = None,
    ) -> Interpretation:
        """Return what *text* asks for."""
        with tracing.span("interpret") as span:
            found = await self._interpreter.interpret(
                text, catalogue=catalogue, previous=previous, user_id=user_id, now=now
            )
            span.note({"tasklore.interpretation": type(found).__name__.lower()})
        return found


def note_report(delivery: Delivery, report: CompletionReport) -> None:
    """Tell in the trace of its task that *report* arrived in *delivery*."""
    if not tracing.is_on() or (parent := read_context(delivery.headers)) is None:
        return
    attributes = processing(delivery.subject) | {
        "tasklore.agent": report.agent_id,
        "tasklore.task": report.task_name,
        "tasklore.task_id": report.task_id,
        "tasklore.status": report.status,
        "tasklore.memory.outcome": report.memory.outcome,
    }
    name = f"process {subjects.place(delivery.subject)}"
    delivery.span = tracing.begin(name, kind="consumer", parent=parent, attributes=attributes)
