"""The notifier of waits: sends notices of questions, and wakes tasks whose wake-up or schedule was lost."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta

from tasklore.contracts import subjects
from tasklore.contracts.admission.waits import QuestionNotice, Wait, wait_id
from tasklore.contracts.errors import MessageTooLarge
from tasklore.memory.ledger.waits import LATE, WaitName, Waits, WaitState
from tasklore.runtime.claim_loop import ClaimLoop
from tasklore.runtime.messaging.link import Link
from tasklore.supervisor.approvals.answers import Answers
from tasklore.supervisor.webhooks.events import WebhookEvents

#: Waits looked at once by one process.
_AT_ONCE = 32
_LEASE = timedelta(seconds=30)
#: After which time it is looked whether a wait is still open: its task may have ended since.
_STILL_OPEN = timedelta(hours=1)
#: After which time a task that was woken and has not begun is woken again: the stream swallows one that comes sooner.
_AGAIN = timedelta(minutes=6)

#: Sends the notice *number* (1 is the first) of a question.
Notify = Callable[[WaitName, WaitState, int], Awaitable[None]]


class WaitNotifier(ClaimLoop[WaitName, WaitName]):
    """Looks at open waits when they are due, in this process; `run` until `drain`."""

    # Each look may be done twice: a notice is then sent twice, a task woken twice and run once.
    is_exclusive = False

    def __init__(
        self, answers: Answers, notify: Notify, webhooks: WebhookEvents | None = None
    ) -> None:
        super().__init__("wait", at_once=_AT_ONCE, lease_s=_LEASE.total_seconds())
        self.answers = answers
        self._waits: Waits = answers.waits
        self._notify = notify
        self._webhooks = webhooks

    async def is_idle(self) -> bool:
        """Return whether no wait is open."""
        return await self._waits.is_idle()

    async def due(self, limit: int) -> Sequence[WaitName]:
        """Return waits that are to be looked at."""
        return await self._waits.due(_now(), limit)

    async def claim(self, key: WaitName) -> WaitName | None:
        """Return *key* unless another process looks at it."""
        return key if await self._waits.claim(key, _now(), _LEASE) else None

    async def work(self, key: WaitName, lease: WaitName) -> float:  # noqa: ARG002 - as the loop calls it
        """Look at one wait, and note when it is to be looked at next."""
        state = await self._waits.read(key.task_id, key.slot)
        now = _now()
        is_over = state is not None and (
            state.answer is not None or now >= state.wait.until + LATE
        )
        if (
            state is not None
            and is_over
            and state.wait.kind == "ask"
            and self._webhooks is not None
        ):
            await self._webhooks.note_question(key, state)
        if state is None or state.has_report or state.is_withdrawn:
            await self._waits.drop(key)
            return 0.0
        wait = state.wait
        if is_over:
            # A task that has begun since reads the answer, or that there is none.
            try:
                is_woken = await self.answers.wake(key.task_id, key.slot)
            except MessageTooLarge:
                # Its delivery in TASKS is offered again within the hour.
                is_woken = False
            if is_woken:
                await self._waits.look_at(key, now + _AGAIN)
            else:
                await self._waits.drop(key)
            return 0.0
        if wait.kind == "ask" and (number := _count_notices(wait, now)) > state.notices:
            await self._notify(key, state, number)
            if self._webhooks is not None:
                await self._webhooks.note_question(key, state, number)
            await self._waits.note_notices(key.task_id, key.slot, number)
        await self._waits.look_at(key, _next_look(wait, now))
        return 0.0

    async def renew(self, lease: WaitName) -> bool:
        """Return True: a look takes less than its lease."""
        return lease is not None

    async def give_back(self, lease: WaitName) -> None:
        """Do nothing: the next look is noted already."""


def event_sender(link: Link) -> Notify:
    """Return a function that sends notices on *link*; while it is not connected they are lost."""

    async def send(name: WaitName, state: WaitState, number: int) -> None:
        wait = state.wait
        notice = QuestionNotice(
            approval_id=wait_id(name.task_id, name.slot),
            task_id=name.task_id,
            agent_id=wait.agent_id,
            task_name=wait.task_name,
            question=wait.text,
            who=wait.those_asked(_now()),
            until=wait.until,
            number=number,
        )
        if link.is_connected:
            link.send(
                subjects.questions(name.task_id), notice.model_dump_json().encode()
            )

    return send


def _count_notices(wait: Wait, now: datetime) -> int:
    """Return how many notices of a question are due by *now*: that it was asked, its escalation and its reminders."""
    escalated = wait.escalation is not None and now >= wait.escalation.at
    return (
        1
        + int(escalated)
        + (
            int((now - wait.asked_at).total_seconds() // wait.remind_s)
            if wait.remind_s
            else 0
        )
    )


def _next_look(wait: Wait, now: datetime) -> datetime:
    times = [wait.until + LATE, now + _STILL_OPEN]
    if wait.kind == "ask" and wait.remind_s:
        count = (now - wait.asked_at).total_seconds() // wait.remind_s + 1
        times.append(wait.asked_at + timedelta(seconds=wait.remind_s * count))
    if wait.escalation is not None and wait.escalation.at > now:
        times.append(wait.escalation.at)
    return min(times)


def _now() -> datetime:
    return datetime.now(UTC)
