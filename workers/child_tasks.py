"""The tasks that tasks of this process call: published, awaited by their reports, and cancelled with their parent."""

import asyncio
import math
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import structlog
from pydantic import ValidationError

from tasklore.contracts import subjects
from tasklore.contracts.errors import (
    InvalidInput,
    MemoryUnavailable,
    TaskCancelled,
    Unreachable,
)
from tasklore.contracts.messages import (
    AgentCard,
    Cancellation,
    CompletionReport,
    TaskAssignment,
    TaskCard,
)
from tasklore.memory.ledger.ledger import Ledger
from tasklore.memory.ledger.task_rows import row_of
from tasklore.memory.ledger.unnoted_tasks import StoredTask, UnnotedTasks
from tasklore.runtime import tracing
from tasklore.runtime.messaging.direct import read_last
from tasklore.runtime.task_caller import TaskCaller, first_letter

if TYPE_CHECKING:
    from tasklore.runtime.messaging.link import Arrival, Link
    from tasklore.runtime.messaging.outbox import Outbox

log = structlog.get_logger(__name__)

#: Seconds between looks for a report whose hint may have been lost: first, and at most.
_LOOK_S = 2.0
_LOOK_CAP_S = 15.0
#: Seconds for which an agent that was found is not looked for again.
_CARD_S = 60.0
#: Seconds in which a cancellation that a child has heard of gets into the ledger, and for the last try at the end.
_NOTED_S = 1.0
#: Seconds until children that a ledger was too late for are noted in it again.
_NOTE_AGAIN_S = 1.0
#: How a report says that the ledger was away, so that only the stream has it.
_UNFENCED = b'"fence":"none"'


@dataclass(slots=True, eq=False, kw_only=True)
class _ExpectedChild:
    """The report of a *generation* of a child, by *find* where it is not heard.

    `heard` are fenced ones by generation; `is_unfenced` tells of another.
    """

    task_id: str
    generation: int
    find: Callable[["_ExpectedChild"], Awaitable[bytes | None]]
    is_new: bool
    news: asyncio.Event = field(default_factory=asyncio.Event)
    heard: dict[str, bytes] = field(default_factory=dict)
    is_unfenced: bool = False

    async def report(self, within_s: float) -> CompletionReport | None:
        """Return the report, None when there is none within *within_s* seconds."""
        loop = asyncio.get_running_loop()
        gives_up_at = loop.time() + within_s
        pause_s = 0.0 if not self.is_new else _LOOK_S
        self.is_new = True
        while (left_s := gives_up_at - loop.time()) > 0:
            try:
                async with asyncio.timeout(min(pause_s, left_s)):
                    await self.news.wait()
            except TimeoutError:
                pause_s = min(max(_LOOK_S, pause_s * 1.5), _LOOK_CAP_S)
            self.news.clear()
            stored = self.heard.get(str(self.generation)) or await self.find(self)
            if stored is not None:
                try:
                    return CompletionReport.model_validate_json(stored)
                except ValidationError:
                    log.warning("unreadable_report", task_id=self.task_id)
                    self.heard.clear()
        return None


class ChildTasks:
    """Asks other agents for tasks in the name *caller_id*, under which their reports are published and heard.

    All processes of one role share that name: a parent that runs again elsewhere hears of its children there.
    """

    def __init__(
        self,
        *,
        link: "Link",
        outbox: "Outbox",
        ledger: Ledger,
        caller_id: str,
        publish_cancellation: Callable[[Cancellation], Awaitable[None]],
    ) -> None:
        self._link = link
        self._outbox = outbox
        self._ledger = ledger
        self.caller_id = caller_id
        self._publish_cancellation = publish_cancellation
        self._is_listening = False
        self._opening = asyncio.Lock()
        self._waiting: dict[str, list[_ExpectedChild]] = defaultdict(list)
        self._unnoted = UnnotedTasks(ledger)
        self._noting: asyncio.Task[None] | None = None
        self._cards: dict[str, tuple[float, AgentCard]] = {}

    async def aclose(self) -> None:
        """Stop noting children, after one more try of a second; what is left then is in the stream alone."""
        noting = self._noting
        if noting is None:
            return
        noting.cancel()
        await asyncio.gather(noting, return_exceptions=True)
        try:
            async with asyncio.timeout(_NOTED_S):
                await self._unnoted.note_together()
        except (MemoryUnavailable, TimeoutError) as error:
            log.warning(
                "children_not_in_ledger",
                tasks=len(self._unnoted),
                error=str(error) or type(error).__name__,
            )

    async def ask(
        self, assignment: TaskAssignment, parent_generation: int, *, may_be_known: bool
    ) -> CompletionReport:
        """Return the report of *assignment*, which is published unless an earlier run of its parent has done so.

        A failed one is asked for anew, as its next generation, once for each time that the parent was redriven.
        *may_be_known* is False where no earlier run of the parent can have asked.

        Raises:
            MemoryUnavailable: it is not known whether it was asked for.
            NotAccepted: it could not be published.
        """
        async with self._opening:
            if not self._is_listening:
                await self._link.listen(subjects.reports_to(self.caller_id), self._hear)
                self._is_listening = True
        generation = 1
        entry = await self._ledger.read(assignment.named) if may_be_known else None
        if entry is not None:
            generation = entry.newest
            stored = entry.generations[entry.newest].report
            report = (
                None if stored is None else CompletionReport.model_validate_json(stored)
            )
            if report is not None and (
                report.status == "completed" or generation >= parent_generation
            ):
                return report
            generation += report is not None
        caller = TaskCaller(
            send=partial(self._publish, generation=generation),
            reports=_ChildReports(partial(self._expect, generation=generation)),
        )
        found = await caller.call(
            assignment, within_s=math.inf, is_new=not may_be_known
        )
        assert found is not None  # noqa: S101 - it is waited for without an end
        return found

    @contextmanager
    def _expect(
        self, assignment: TaskAssignment, *, generation: int, is_new: bool
    ) -> Iterator[_ExpectedChild]:
        expected = _ExpectedChild(
            task_id=assignment.named,
            generation=generation,
            find=self._find_report,
            is_new=is_new,
        )
        waiting = self._waiting[assignment.task_id]
        waiting.append(expected)
        try:
            yield expected
        finally:
            waiting.remove(expected)
            if not waiting:
                self._waiting.pop(assignment.task_id, None)

    async def demand_task(self, agent_id: str, task_name: str) -> TaskCard:
        """Return the card of a task; one that no agent has announced is not asked for: it would wait for ever.

        Raises:
            InvalidInput: there is no such agent, or it has no such task.
            Unreachable: NATS did not answer.
        """
        now = asyncio.get_running_loop().time()
        found_at, card = self._cards.get(agent_id, (0.0, None))
        if (
            card is None
            or now - found_at > _CARD_S
            or all(task.name != task_name for task in card.tasks)
        ):
            stream = subjects.bucket_stream(subjects.AGENTS_BUCKET)
            announced = await read_last(
                self._link.client, stream, f"$KV.{subjects.AGENTS_BUCKET}.{agent_id}"
            )
            if announced is None or not announced.data:
                raise InvalidInput(
                    f"unknown agent {agent_id!r}: correct the name, or start a worker "
                    "for it"
                )
            card = AgentCard.model_validate_json(announced.data)
            self._cards[agent_id] = now, card
        for task in card.tasks:
            if task.name == task_name:
                return task
        names = ", ".join(task.name for task in card.tasks)
        raise InvalidInput(
            f"agent {agent_id!r} has no task {task_name!r}; it has {names}"
        )

    async def raise_if_cancelled(self, parent: TaskAssignment) -> None:
        """Wait a moment whether *parent* is to be cancelled too, or a task above it.

        Raises:
            TaskCancelled: it is.
        """
        above = dict.fromkeys(filter(None, (parent.parent_id, parent.root_id)))
        gives_up_at = asyncio.get_running_loop().time() + _NOTED_S
        while asyncio.get_running_loop().time() < gives_up_at:
            if (
                request := await self._ledger.cancel_request(parent.named, *above)
            ) is not None:
                raise TaskCancelled(request.reason or "cancelled on request")
            await asyncio.sleep(_NOTED_S / 10)

    async def cancel(self, task_id: str, reason: str) -> None:
        """Ask that *task_id* and all below it end; one that is not heard of it runs on."""
        try:
            await self._publish_cancellation(
                Cancellation(task_id=task_id, reason=reason)
            )
        except Exception as error:  # noqa: BLE001 - whatever the broker raises, its parent has ended
            log.info(
                "child_not_cancelled",
                task_id=task_id,
                error=str(error) or type(error).__name__,
            )

    async def _publish(self, assignment: TaskAssignment, generation: int) -> None:
        """Publish *assignment* until it is stored, and then have it noted in the ledger.

        Noting is not awaited: a process that dies before it loses the task only together with its stream. For the
        order see `tasklore.supervisor.dispatch`.
        """
        letter = first_letter(assignment, generation)
        await self._outbox.put(
            letter.subject, letter.body, letter.message_id, headers=letter.headers
        )
        self._unnoted.keep(
            StoredTask(
                assignment.named,
                generation=generation,
                body=letter.body,
                trace=str(tracing.current() or ""),
                row=row_of(assignment, generation, assignment.agent_id),
                parent_id=assignment.parent_id,
            )
        )
        if self._noting is None:
            self._noting = asyncio.create_task(self._note_published())

    async def _note_published(self) -> None:
        """Note the published children in the ledger, once it is there; those that come meanwhile are noted together."""
        try:
            while self._unnoted:
                try:
                    await self._unnoted.note_together()
                except MemoryUnavailable as error:
                    log.warning(
                        "ledger_away", tasks=len(self._unnoted), error=str(error)
                    )
                    await asyncio.sleep(_NOTE_AGAIN_S)
        finally:
            self._noting = None

    def _hear(self, arrival: "Arrival") -> None:
        _, _, task_id, generation = arrival.subject.split(".")
        for waiter in self._waiting.get(task_id, ()):
            if _UNFENCED in arrival.body:
                waiter.is_unfenced = True
            else:
                # The ledger took it before it was published.
                waiter.heard[generation] = arrival.body
            waiter.news.set()

    async def _find_report(self, expected: _ExpectedChild) -> bytes | None:
        """Return the report that the ledger holds; the stream is asked when the ledger is away, or was."""
        task_id = expected.task_id
        generation = expected.generation
        try:
            stored = await self._ledger.find_report(task_id, generation)
            if stored is not None or not expected.is_unfenced:
                return stored
        except MemoryUnavailable:
            pass
        try:
            found = await read_last(
                self._link.client,
                subjects.REPORTS,
                subjects.report(self.caller_id, task_id, generation),
            )
        except Unreachable as error:
            log.info("report_not_read", task_id=task_id, error=str(error))
            return None
        return None if found is None else found.data


@dataclass(frozen=True, slots=True)
class _ChildReports:
    """The source of the reports of one generation of a child."""

    listen: Callable[..., AbstractContextManager[_ExpectedChild]]

    def expect(
        self, assignment: TaskAssignment, *, is_new: bool = False
    ) -> AbstractContextManager[_ExpectedChild]:
        """Listen for the report of *assignment* within the block."""
        return self.listen(assignment, is_new=is_new)
