"""The executor of one agent: computes answers that are not remembered, once for identical questions, under the ledger.

After the recall a job waits for its turn and for the same question elsewhere, asks the ledger, runs, and is reported.
"""

import asyncio
import contextlib
import contextvars
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import structlog

from tasklore.contracts.errors import (
    GiveUp,
    InvalidInput,
    MemoryUnavailable,
    RunReplaced,
    TaskCancelled,
    TaskExpired,
    TaskloreError,
    WorkerLost,
)
from tasklore.contracts.messages import MemoryOutcome, Usage
from tasklore.contracts.moments import (
    describe_deadline,
    describe_time,
    spell_moment,
)
from tasklore.memory.ledger.expired import spell_expired
from tasklore.memory.ledger.ledger import read_wait
from tasklore.memory.ledger.runs import (
    Beginning,
    CancelRequest,
    Held,
    NotDue,
    ReportExpired,
    RunPermission,
    Suspect,
)
from tasklore.memory.long_term.entries import CachedResult
from tasklore.memory.long_term.single_flight import Joined
from tasklore.runtime import tracing
from tasklore.runtime.messaging.pull import PullEngine
from tasklore.runtime.metrics import Metrics
from tasklore.workers.context.branches import RunParked
from tasklore.workers.context.context import Context
from tasklore.workers.execution.bounded_runs import BoundedRuns
from tasklore.workers.execution.crash_isolation import CrashIsolation, StillBusy
from tasklore.workers.execution.job import Job
from tasklore.workers.execution.outcome import elapsed_ms, outcome_of
from tasklore.workers.execution.report_publisher import ReportPublisher
from tasklore.workers.execution.retry_decision import RetryPolicy, decide_retry
from tasklore.workers.execution.retry_scheduling import Retries
from tasklore.workers.execution.run_slot import RunSlot, lent_when_long
from tasklore.workers.execution.run_waits import (
    explain_expiry,
    run_wait,
    to_retry_wait,
)
from tasklore.workers.execution.running_jobs import (
    Leaving,
    RunningJob,
    RunningJobs,
    run_contained,
)
from tasklore.workers.execution.stores import Stores
from tasklore.workers.middleware import Call, Hooks, call_task, notify
from tasklore.workers.user_code import describe_place

log = structlog.get_logger(__name__)

#: Seconds a question waits for another worker that computes it, when its task has no deadline.
JOIN_S = 300.0
#: Crashes after which a task still runs beside all others, and after which in a small group of such; then it is alone.
CRASHES_BESIDE_ALL = 1
CRASHES_IN_GROUP = 2
#: Crashes of runs beside which nothing ran, after which a task is given up: by then no other task can be to blame.
CRASHES_ALONE = 3
#: Seconds until a task is offered again that waits for the ledger or runs elsewhere, or failed by a mistake of ours.
_PARKED_S = 2.0
_MISTAKE_S = 2.0


class Executor:
    """Brings jobs that are not served from memory to their end.

    Args:
        worker_id: Names this process in reports.
        stores: Memory, ledger, flights and sessions.
        publisher: Publishes reports.
        retries: Lets tasks run again.
        retry: When they do, unless they say so themselves.
        make_context: Makes the context of a run.
        metrics: Counts crashes and replacements.
        exclusive: Which runs may overlap in this process.
        bounded: Which may overlap over all workers.
        hooks: Middleware of the agent.
        lease_s: Seconds for which the ledger keeps a run from being started elsewhere; as the lease of its delivery.
        now: The clock, in UTC.
    """

    def __init__(
        self,
        *,
        worker_id: str,
        stores: Stores,
        publisher: ReportPublisher,
        retries: Retries,
        retry: RetryPolicy,
        make_context: Callable[[Job, RunSlot], Context],
        metrics: Metrics,
        exclusive: CrashIsolation,
        bounded: BoundedRuns,
        hooks: Hooks,
        lease_s: float = 30.0,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._worker_id = worker_id
        self._stores = stores
        self._publisher = publisher
        self._retries = retries
        self._retry = retry
        self._make_context = make_context
        self._metrics = metrics
        self._exclusive = exclusive
        self._bounded = bounded
        self._hooks = hooks
        self._lease_ms = max(1, int(lease_s * 1000))
        self._now = now
        self.jobs = RunningJobs()

    async def execute(self, job: Job, engine: PullEngine) -> None:
        """Bring *job* to its end, or hand it back; whatever happens, it is not lost."""
        try:
            with (
                contextlib.nullcontext()
                if (trace := job.delivery.trace) is None
                else tracing.within(trace)
            ):
                await self._execute(RunningJob(job), engine)
        except asyncio.CancelledError:
            # The worker leaves before the task has ended, which is no fault of the task.
            await self._stores.release(job.to_ended(excused=True))
            engine.hand_back(job.delivery)
            raise
        except Exception:
            log.exception("execution_failed", task_id=job.assignment.task_id)
            await self._stores.release(job.to_ended())
            engine.hand_back(job.delivery, _MISTAKE_S)

    async def _execute(self, running: RunningJob, engine: PullEngine) -> None:
        job = running.job
        try:
            try:
                await self.jobs.enter(running)
                if job.recalled is not None:
                    await self._hand_on(
                        running,
                        job.recalled,
                        "hit" if job.near is None else "near",
                        engine,
                    )
                elif job.memory == "miss":
                    await self._compute_once(running, engine)
                else:
                    await self._compute(running, engine)
            finally:
                self.jobs.exit(running)
        except Leaving as error:
            if running.has_begun:
                await self._stores.release(job.to_ended(excused=True))
            engine.hand_back(job.delivery, error.pause_s)
        except RunReplaced as error:
            self._metrics.count_replaced_run()
            log.warning(
                "run_replaced", task_id=job.assignment.task_id, error=str(error)
            )
            # Its delivery is the other worker's by now: acknowledging it would take it from there.
            engine.forget(job.delivery)
        except RunParked as waiting:
            await self._retries.wait(job, waiting.waits, engine)
        except (InvalidInput, TaskCancelled, TaskExpired) as error:
            await self._fail(job, error, engine)

    async def _compute_once(self, running: RunningJob, engine: PullEngine) -> None:
        """Compute unless an identical question is being computed: then wait for its answer."""
        job = running.job
        key = job.memory_key or ""

        async def recall() -> bytes | None:
            found = (await self._stores.long_term.recall_many([key]))[0]
            return found.result_json if found is not None else None

        left_s = job.seconds_left(self._now())
        async with running.waiting(), lent_when_long(engine, job.delivery):
            turn = await self._stores.flights.join(
                key, recall, wait_s=JOIN_S if left_s is None else left_s
            )
        if not isinstance(turn, Joined):
            async with turn:
                if (result := await self._compute(running, engine)) is not None:
                    turn.share(result)
            return
        if not job.assignment.writes:
            self._stores.count_hit(key, job.user)
            job.memory = "joined"
            outcome = outcome_of(
                job, "completed", self._worker_id, result_json=turn.value
            )
            outcome.age_ms = 0
            await self._publisher.publish([outcome], engine)
            return
        found = None
        with contextlib.suppress(MemoryUnavailable):
            found = (await self._stores.long_term.recall_many([key]))[0]
        if found is None or found.result_json != turn.value:
            # How long computing it took is not known.
            found = CachedResult(int(self._now().timestamp() * 1000), 0, turn.value)
        await self._hand_on(running, found, "joined", engine)

    async def _hand_on(
        self,
        running: RunningJob,
        answer: CachedResult,
        memory: MemoryOutcome,
        engine: PullEngine,
    ) -> None:
        """Put an *answer* that needs no run into the session of its phase, and report it.

        The ledger is asked first: a redelivery whose report is out must not touch what others have read since.
        """
        job = running.job
        # Where runs of it crashed before, it is harmless to hand on what another one computed.
        if await self._begin(job, engine) is None:
            return
        job.memory = memory
        running.begin()
        try:
            await self._stores.put_into_session(
                job.assignment, answer.result_json, answer.computed_ms
            )
        except Exception as error:  # noqa: BLE001 - it becomes the report, or another run
            await self._fail(job, error, engine)
            return
        if (key := job.entry_key) is not None:
            self._stores.count_hit(key, job.user)
        outcome = outcome_of(
            job, "completed", self._worker_id, result_json=answer.result_json
        )
        outcome.age_ms = 0
        if memory in ("hit", "near"):
            outcome.age_ms = max(
                0, int(self._now().timestamp() * 1000) - answer.created_at_ms
            )
            outcome.saved_ms = answer.computed_ms
            outcome.usage = self._stores.usage_of(job, answer)
        await self._publisher.publish([outcome], engine)

    async def _compute(self, running: RunningJob, engine: PullEngine) -> bytes | None:
        """Run the task once there is a place for it under each bound; return its result if it completed."""
        if (places := await self._bounded.places_of(running)) is None:
            return await self._run_beside_others(running, engine)
        async with self._bounded.hold(places, running, engine) as may_run:
            return await self._run_beside_others(running, engine) if may_run else None

    async def _run_beside_others(
        self, running: RunningJob, engine: PullEngine
    ) -> bytes | None:
        """Run the task beside fewer the more often it may have killed a worker; return its result if it completed."""
        job = running.job
        # Tasks that must not run twice have few runs, and are not to lose them by a neighbour that strikes again.
        most = (CRASHES_BESIDE_ALL, CRASHES_IN_GROUP) if job.task.idempotent else (0,)
        crashes = 0
        for most_crashes in (*most, None):
            if most_crashes is not None and crashes > most_crashes:
                continue
            alone = most_crashes is None
            grouped = most_crashes == CRASHES_IN_GROUP
            running.check()
            if alone or grouped or not self._exclusive.enter_at_once():
                try:
                    async with running.waiting():
                        await self._exclusive.enter(alone=alone, grouped=grouped)
                except StillBusy as error:
                    log.info(
                        "task_left_to_others",
                        task_id=job.assignment.task_id,
                        reason=str(error),
                    )
                    engine.hand_back(job.delivery, _PARKED_S * random.uniform(1, 2))  # noqa: S311 - jitter
                    return None
            slot = RunSlot(
                running,
                self.jobs,
                engine,
                self._exclusive,
                alone=alone,
                grouped=grouped,
            )
            try:
                found = await self._begin(
                    job, engine, alone=alone, most_crashes=most_crashes or 0
                )
                if isinstance(found, RunPermission):
                    return await self._run(running, engine, slot)
            finally:
                slot.leave()
            if found is None:
                return None
            if found.crashes_alone >= CRASHES_ALONE or not (
                job.task.idempotent or found.runs < job.runs_allowed
            ):
                await self._give_up(job, found, engine)
                return None
            crashes = found.crashes
            log.warning(
                "task_suspected",
                agent=job.assignment.agent_id,
                task=job.task.name,
                task_id=job.assignment.task_id,
                crashes=crashes,
            )
        engine.hand_back(job.delivery, _PARKED_S)
        return None

    async def _begin(
        self,
        job: Job,
        engine: PullEngine,
        *,
        alone: bool = False,
        most_crashes: int = 0,
    ) -> RunPermission | Suspect | None:
        """Ask the ledger for a run; a generation with a report gets it again, one at work elsewhere is left there.

        A suspect has crashed more than *most_crashes* times and does not run *alone*. None when it is dealt with.

        Raises:
            TaskCancelled: the task, or the one it is a part of, is to be cancelled.
            TaskExpired: its time is over before it could begin.
        """
        assignment = job.assignment
        if job.deadline is not None and job.seconds_left(self._now()) == 0:
            waited = self._now() - assignment.waits_from
            expired = TaskExpired(
                f"{describe_deadline(job.deadline)} before it could begin, after it had waited "
                f"{describe_time(waited / timedelta(milliseconds=1))}; allow more time or start more workers",
                job.deadline,
            )
            raise await explain_expiry(
                self._stores.ledger, assignment.named, job.generation, expired
            )
        try:
            found = await self._ask_ledger(job, alone=alone, most_crashes=most_crashes)
        except MemoryUnavailable as error:
            if job.task.idempotent:
                # Without the ledger the deliveries count the runs, of which some may have been handed back unstarted.
                job.attempt = min(job.attempt, job.runs_allowed)
                return RunPermission(job.attempt)
            log.warning(
                "parked_without_ledger", task_id=assignment.task_id, error=str(error)
            )
            # The ledger may have noted that the run begins, which it does not.
            self._stores.ended.keep(job.to_ended(excused=True))
            engine.hand_back(job.delivery, _PARKED_S)
            return None
        if isinstance(found, Suspect):
            return found
        if isinstance(found, RunPermission):
            job.attempt = found.number
            job.crashes = found.crashes
            job.excused = found.excused
            job.waited_for = read_wait(found.waited_for)
            if job.tries <= job.runs_allowed:
                return found
            await self._give_up(
                job, Suspect(found.crashes, 0, found.number - 1), engine
            )
        elif isinstance(found, CancelRequest):
            raise TaskCancelled(found.reason)
        elif isinstance(found, Held | NotDue):
            await self._put_off(job, found, engine)
        else:
            if not isinstance(found, ReportExpired):
                await self._publisher.repeat(job, found, engine)
                return None
            # How it ended is listed already, better than this report says it.
            self._publisher.send(
                assignment,
                generation=job.generation,
                body=spell_expired(assignment, job.generation, found),
                delivery=job.delivery,
                engine=engine,
            )
        return None

    async def _put_off(
        self, job: Job, found: Held | NotDue, engine: PullEngine
    ) -> None:
        """Offer *job* again when it may run; until then it is not pending where that takes long."""
        if isinstance(found, Held):
            engine.hand_back(job.delivery, min(_PARKED_S, found.wait_ms / 1000))
        else:
            await self._retries.lay_aside(job, found.wait_ms, engine)

    async def _ask_ledger(
        self, job: Job, *, alone: bool, most_crashes: int
    ) -> Beginning:
        assignment = job.assignment
        ledger = self._stores.ledger
        now = self._now()
        if job.is_early(now):
            # A program published it to TASKS; one of a supervisor comes out of LATER in time.
            return NotDue((assignment.waits_from - now) // timedelta(milliseconds=1))
        above = dict.fromkeys(filter(None, (assignment.parent_id, assignment.root_id)))
        if above and (wish := await ledger.cancel_request(*above)) is not None:
            return CancelRequest(f"its parent was cancelled: {wish.reason}")
        found = await ledger.begin(
            assignment.named,
            generation=job.generation,
            worker_id=self._worker_id,
            now_ms=int(now.timestamp() * 1000),
            lease_ms=self._lease_ms,
            before=job.first_attempt - 1,
            alone=alone,
            most_crashes=most_crashes,
            token=job.delivery.reply,
            make_row=job.make_row,
        )
        if isinstance(found, RunPermission | Suspect) and found.is_news:
            self._metrics.count_crashed_run()
        return found

    async def _run(
        self, running: RunningJob, engine: PullEngine, slot: RunSlot
    ) -> bytes | None:
        """Run the task, remember its result, put it into its phase's session and report; return it, None without one.

        Raises:
            RunReplaced: another worker has taken the task: its result here is of no use.
            TaskCancelled: the task was cancelled before it could begin.
        """
        job = running.job
        run_ms = 0
        running.begin()
        context = self._make_context(job, slot)

        async def call_in_time(call: Call, variables: contextvars.Context) -> bytes:
            nonlocal run_ms
            run = asyncio.create_task(run_contained(job, call), context=variables)
            ended = running.run(run, context, job.seconds_left(self._now()))
            try:
                return await context.follow(ended)
            finally:
                run_ms = elapsed_ms(context.started)
                await context.close_output()
                running.raise_if_parked()

        try:
            await running.demand_start(context, job.seconds_left(self._now()))
            with tracing.span(f"run {job.task.name}"):
                result = await call_task(job, context, self._hooks, call_in_time)
        except (RunReplaced, Leaving, RunParked):
            raise
        except Exception as error:  # noqa: BLE001 - whatever a task raises becomes its report or its retry
            await self._fail(job, error, engine, context=context, run_ms=run_ms)
            return None
        if job.memory_key is not None and job.memory in ("miss", "refreshed"):
            await self._stores.remember(
                job,
                key=job.memory_key,
                result=result,
                run_ms=run_ms,
                now=self._now(),
                nano_usd=context.nano_usd,
            )
        if job.assignment.writes:
            try:
                await self._stores.put_into_session(
                    job.assignment, result, run_ms - context.waited_ms
                )
            except Exception as error:  # noqa: BLE001 - as above; the result answers those who wait for the same question
                await self._fail(job, error, engine, context=context, run_ms=run_ms)
                return result
        outcome = outcome_of(
            job, "completed", self._worker_id, result_json=result, run_ms=run_ms
        )
        outcome.waited_ms = min(run_ms, context.waited_ms)
        outcome.usage = context.usage
        if await self._publisher.publish([outcome], engine):
            await context.end()
            if job.attempt > 1 or context.has_waited:
                await self._retries.close(job)
        return result

    async def _fail(
        self,
        job: Job,
        error: Exception,
        engine: PullEngine,
        *,
        context: Context | None = None,
        run_ms: int | None = None,
    ) -> None:
        """Let the task run again, or report the failure that *error* makes it; without a *context* it did not run."""
        assignment = job.assignment
        now = self._now()
        usage = context.usage if context is not None else Usage()
        has_answer = bool(usage.input_tokens or usage.output_tokens)
        waits_for = None
        try:
            waits_for = run_wait(error, None if has_answer else job.waited_for, now)
            if waits_for is not None and context is not None:
                # No attempt: the next run has its number, and numbers its events on.
                follows = {"run": job.attempt, "emitted": context.emitted}
                waits_for = waits_for.model_copy(update=follows)
        except GiveUp as over:
            error = over
        function = job.task.handler.function
        decision = decide_retry(
            error,
            task=job.task,
            attempt=job.tries,
            max_attempts=job.runs_allowed,
            retry=self._retry.of(job.task),
            now=now,
            left_s=job.seconds_left(now),
            excused=job.excused,
        )
        if decision.pause_s is not None:
            named = {
                "agent": assignment.agent_id,
                "task_id": assignment.task_id,
                "attempt": job.attempt,
            }
            # A bug is seen when it first happens, not when the last run has failed; an end of the process is one.
            is_said = isinstance(error, TaskloreError) and (
                error.__cause__ is None or isinstance(error.__cause__, Exception)
            )
            place = None if is_said else describe_place(error, function)
            tell = log.info if place is None else log.warning
            tell(
                "task_retried",
                **named,
                error=type(error).__name__,
                pause_s=round(decision.pause_s, 3),
                **({} if place is None else {"place": place}),
            )
            notify(self._hooks.before_retry, job, decision, error)
            is_ours = isinstance(error, MemoryUnavailable)
            await self._retries.retry(
                job,
                decision.pause_s,
                engine,
                excused=is_ours,
                waits_for=waits_for
                or to_retry_wait(
                    error, run=job.attempt, now=now, pause_s=decision.pause_s
                ),
            )
            return
        outcome = outcome_of(job, decision.status, self._worker_id, run_ms=run_ms)
        outcome.error = error
        outcome.place = describe_place(error, function)
        outcome.dead_reason = decision.dead_reason
        if decision.dead_reason == "deadline" and job.deadline is not None:
            deadline = spell_moment(job.deadline)
            outcome.remark = f"no other run fits before the deadline, {deadline}"
        outcome.usage = context.usage if context is not None else None
        outcome.waited_ms = context.waited_ms if context is not None else 0
        if not await self._publisher.publish([outcome], engine):
            await self._stores.release(job.to_ended())
            return
        if context is not None:
            await context.cancel_children()
        if job.attempt > 1 or (context is not None and context.has_waited):
            await self._retries.close(job)

    async def _give_up(self, job: Job, suspect: Suspect, engine: PullEngine) -> None:
        """Set a task aside whose runs end without a report."""
        job.attempt = suspect.runs
        outcome = outcome_of(job, "failed", self._worker_id)
        outcome.dead_reason = "crashes" if suspect.crashes else "attempts"
        lost = "" if suspect.lost is None else f" (the last: {suspect.lost})"
        if suspect.crashes and not suspect.crashes_alone:
            outcome.error = WorkerLost(
                f"the worker process ended in {suspect.crashes} of {suspect.runs} runs "
                f"of this task{lost}, each time while other tasks ran in it, any of "
                "which may have been the cause, and no more runs are allowed; check "
                "what they did, then redrive it"
            )
        elif suspect.crashes:
            outcome.error = WorkerLost(
                f"{suspect.crashes} runs of this task crashed without a report{lost}, "
                f"{suspect.crashes_alone} of them while it ran alone; it probably kills "
                "its worker process: fix it, then redrive it"
            )
        else:
            outcome.error = WorkerLost(
                f"{suspect.runs} runs of this task ended without a report; redrive it"
            )
        outcome.place = describe_place(outcome.error, job.task.handler.function)
        if not await self._publisher.publish([outcome], engine):
            await self._stores.release(job.to_ended())
