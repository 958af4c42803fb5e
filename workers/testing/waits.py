"""Waits in the kit: scripted persons answer, scripted signals come, and the clock jumps over the rest."""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from pydantic_core import to_jsonable_python

from tasklore.contracts.admission.waits import Approval, Wait, WaitAnswer
from tasklore.memory.ledger.runs import RunName


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

    async def digests(self, task_id: str, slots: Sequence[str]) -> dict[str, str]:
        """Return the digest of the wait in each of *slots*."""
        return {
            slot: self._waits[task_id, slot].digest
            for slot in slots
            if (task_id, slot) in self._waits
        }

    async def ask(self, run: RunName, wait: Wait) -> bool:
        """Put a question whose run goes on elsewhere: no person is notified before the run ends."""
        return (run.task_id, wait.slot) in self._waits

    async def close(self, task_id: str) -> None:
        """Forget the open waits of a task that has ended."""
        for place in [place for place in self._waits if place[0] == task_id]:
            del self._waits[place]

    def end(self, task_id: str, waits: Sequence[Wait], now: datetime) -> datetime:
        """End *waits* as scripted; return the time after that.

        All that are answered are so at once; where none is, the clock jumps to the first end.

        Raises:
            AssertionError: nothing is scripted for a question.
        """
        were_answered = len(self._answers)
        for wait in waits:
            if self._waits.get((task_id, wait.slot)) != wait:
                self._waits[task_id, wait.slot] = wait
                self._script_answer(task_id, wait, now)
        if len(self._answers) > were_answered:
            return now
        return max(now, min(wait.until for wait in waits))

    def _script_answer(self, task_id: str, wait: Wait, now: datetime) -> None:
        if wait.kind == "ask":
            self.questions.append(wait.text)
            assert self._script, (  # noqa: S101 - the test's own
                f"the task asks {wait.text!r}; pass an answer: AgentKit(agent, answers=[...])"
            )
            value = self._script.popleft()
            if value is None:
                return
            if isinstance(value, bool):
                value = Approval(approved=value)
        elif wait.kind == "signal" and wait.text in self._signals:
            value = self._signals[wait.text]
        else:
            return
        self._answers[task_id, wait.slot] = WaitAnswer(
            value=to_jsonable_python(value),
            by="user:kit",
            at=now,
            door="http",
            digest=wait.digest,
        )
