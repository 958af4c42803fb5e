"""Waits in the kit: scripted persons answer, scripted signals come, and the clock jumps over the rest."""

from collections import deque
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from pydantic_core import to_jsonable_python

from tasklore.contracts.admission.waits import Approval, Wait, WaitAnswer


class KitWaits:
    """Stands for `tasklore.memory.ledger.waits.Waits`: waits and their answers, by task and slot.

    Args:
        answers: Those to questions, in order: a bool for an Approval, a model or JSON; None lets its time pass.
        signals: Values by the name of the signal; one that is not there lets its time pass.
    """

    def __init__(
        self, answers: Iterable[Any] = (), signals: Mapping[str, Any] | None = None
    ) -> None:
        self.questions: list[str] = []
        self._script = deque(answers)
        self._signals = signals or {}
        self._waits: dict[tuple[str, str], Wait] = {}
        self._answers: dict[tuple[str, str], WaitAnswer] = {}

    async def find(
        self, task_id: str, wait: Wait
    ) -> tuple[Wait | None, WaitAnswer | None]:
        """Return the record in the slot of *wait*, and its answer."""
        place = (task_id, wait.slot)
        return self._waits.get(place), self._answers.get(place)

    async def is_last_waiting(
        self,
        task_id: str,  # noqa: ARG002 - each run of the kit is the first
        generation: int,  # noqa: ARG002
        run: int,  # noqa: ARG002
    ) -> bool:
        """Return False: the output of a task in the kit is not resumed."""
        return False

    async def answer(
        self,
        task_id: str,
        slot: str,
        answer: WaitAnswer,
        *,
        is_signal: bool = False,  # noqa: ARG002
    ) -> WaitAnswer | None:
        """Store *answer* unless there is one."""
        return (
            None
            if self._answers.setdefault((task_id, slot), answer) is answer
            else self._answers[task_id, slot]
        )

    def end(self, task_id: str, wait: Wait, now: datetime) -> datetime:
        """End *wait* as scripted; return the time after it.

        Raises:
            AssertionError: nothing is scripted for a question.
        """
        self._waits[task_id, wait.slot] = wait
        value = None
        is_there = False
        if wait.kind == "ask":
            self.questions.append(wait.text)
            assert self._script, (  # noqa: S101 - the test's own
                f"the task asks {wait.text!r}; pass an answer: AgentKit(agent, answers=[...])"
            )
            value = self._script.popleft()
            is_there = value is not None
            if isinstance(value, bool):
                value = Approval(approved=value)
        elif wait.kind == "signal":
            value = self._signals.get(wait.text)
            is_there = wait.text in self._signals
        if not is_there:
            return max(now, wait.until)
        said = to_jsonable_python(value)
        answer = WaitAnswer(
            value=said, by="user:kit", at=now, door="http", digest=wait.digest
        )
        self._answers[task_id, wait.slot] = answer
        return now
