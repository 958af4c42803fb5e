"""Reading deliveries as jobs: the assignment, its parameters and deadline, and the place of its remembered result."""

from datetime import UTC, datetime, timedelta

from pydantic import ValidationError
from pydantic_core import from_json

from tasklore.contracts import subjects
from tasklore.contracts.errors import InvalidInput, TaskExpired
from tasklore.contracts.faults import fault_of
from tasklore.contracts.identifiers import checked_name, user_token
from tasklore.contracts.messages import MemoryOutcome, TaskAssignment
from tasklore.contracts.moments import describe_deadline, describe_time
from tasklore.contracts.parameters.model import Parameters
from tasklore.memory import keys
from tasklore.runtime.messaging.pull import Delivery
from tasklore.workers.agent import Agent
from tasklore.workers.execution.job import Job, UnfitJob
from tasklore.workers.task import Task


class JobReader:
    """Reads deliveries of *agent* as jobs; *remembers* is the agent's memory switch."""

    def __init__(self, agent: Agent, *, remembers: bool = True) -> None:
        self._agent_id = agent.agent_id
        self._tasks = agent.tasks
        self._remembers = remembers
        self._versions = {
            task.name: agent.memory_version(task) for task in agent.tasks.values()
        }

    def read(self, delivery: Delivery, now: datetime) -> Job | UnfitJob:
        """Return *delivery* as a job, or why it cannot be one."""
        generation = 1
        attempt = delivery.deliveries
        if delivery.headers:
            generation = delivery.generation
            attempt = delivery.number(subjects.ATTEMPT_HEADER) + delivery.deliveries - 1
        assignment = None
        try:
            assignment = _read_assignment(delivery.body)
            return self._job(
                delivery,
                assignment=assignment,
                generation=generation,
                attempt=attempt,
                now=now,
            )
        except Exception as error:  # noqa: BLE001 - a validator of the user's may raise anything: only this one is unfit
            return UnfitJob(
                delivery=delivery,
                assignment=assignment or _salvage(delivery.body),
                generation=generation,
                attempt=attempt,
                problem=error,
            )

    def _job(
        self,
        delivery: Delivery,
        assignment: TaskAssignment,
        generation: int,
        attempt: int,
        now: datetime,
    ) -> Job | UnfitJob:
        agent_id = self._agent_id
        call = assignment.task
        if assignment.agent_id != agent_id:
            msg = f"agent_id is {assignment.agent_id!r}, but the subject is of {agent_id!r}; correct one of them"
            raise InvalidInput(msg)
        task = self._tasks.get(call.name)
        if task is None:
            msg = f"{agent_id} has no task {call.name!r}; it has {', '.join(sorted(self._tasks))}"
            raise InvalidInput(msg)
        created_at = assignment.waits_from
        age = now - created_at
        begins = (
            created_at
            if assignment.approval is None
            else max(created_at, assignment.approval.until)
        )
        deadline = _deadline_of(task, assignment, begins)
        if deadline is not None and deadline <= now:
            expired = TaskExpired(
                f"{describe_deadline(deadline)} in the queue, where it had waited {describe_time(_in_ms(age))} for a "
                f"worker of {agent_id} that is free; allow more time or start more workers",
                deadline,
            )
            return UnfitJob(
                delivery=delivery,
                assignment=assignment,
                generation=generation,
                attempt=attempt,
                problem=expired,
                is_expired=True,
            )
        if assignment.writes:
            _demand_session(assignment)
        user = user_token(assignment.user_id) if assignment.user_id else None
        memory: MemoryOutcome = "off"
        if task.remember != "never" and self._remembers:
            memory = _read_memory_mode(assignment)
        parameters = task.parameters.read(call.parameters)
        # Of the class: a parameter may be called `key`.
        question = Parameters.key(parameters, task.name)
        owner = task.owner_of(assignment)
        memory_key = neighbourhood = None
        if memory in ("miss", "refreshed"):
            version = self._versions[task.name]
            memory_key = keys.ltm(
                agent_id, version, question, user if owner is not None else None
            )
            neighbourhood = Parameters.neighbourhood(parameters, task.name)
        return Job(
            delivery=delivery,
            assignment=assignment,
            task=task,
            parameters=parameters,
            generation=generation,
            attempt=attempt,
            queued_ms=_in_ms(age),
            question=question,
            memory_key=memory_key,
            memory=memory,
            user=user,
            deadline=deadline,
            neighbourhood=neighbourhood,
        )


def _read_assignment(body: bytes) -> TaskAssignment:
    if len(body) > subjects.MAX_BODY:
        msg = f"the body has {len(body)} bytes, at most {subjects.MAX_BODY} are taken; send a reference instead"
        raise InvalidInput(msg)
    try:
        # What `model_validate_json` calls, after a tenth of the time for options that are not given.
        return TaskAssignment.__pydantic_validator__.validate_json(body)  # type: ignore[no-any-return]  # theirs
    except ValidationError as error:
        problems = error.errors(
            include_url=False, include_input=False, include_context=False
        )[:5]
        msg = f"this is not a task assignment: {'; '.join(map(fault_of, problems))}"
        raise InvalidInput(msg) from error


def _salvage(body: bytes) -> TaskAssignment | None:
    """Return just enough of a broken assignment to report to its sender, or None."""
    try:
        raw = from_json(body[: subjects.MAX_BODY], allow_partial="trailing-strings")
        task = raw.get("task")
        name = task.get("name") if isinstance(task, dict) else None
        return TaskAssignment.model_validate(
            {
                "task_id": raw.get("task_id"),
                "agent_id": raw.get("agent_id"),
                "supervisor_id": raw.get("supervisor_id"),
                "task": {"name": name or "unknown"},
                "created_at": datetime.now(UTC),
            }
        )
    except (ValueError, AttributeError, RecursionError):
        return None


def _read_memory_mode(assignment: TaskAssignment) -> MemoryOutcome:
    if assignment.memory == "refresh" or (
        assignment.memory == "use" and assignment.approval is not None
    ):
        # A yes is to a run, which no remembered answer stands for.
        return "refreshed"
    # An unknown word of a newer supervisor must not serve an answer that it may not want.
    return "miss" if assignment.memory == "use" else "bypassed"


def _deadline_of(
    task: Task, assignment: TaskAssignment, created_at: datetime
) -> datetime | None:
    if assignment.deadline is not None:
        return _aware(assignment.deadline)
    if task.deadline is None:
        return None
    try:
        return created_at + task.deadline
    except OverflowError as error:
        msg = f"created_at {assignment.created_at.isoformat()} leaves no room for a deadline; correct it"
        raise InvalidInput(msg) from error


def _demand_session(assignment: TaskAssignment) -> None:
    """Refuse outputs without a session before the run rather than after it."""
    if not (assignment.session_id and assignment.phase):
        msg = "writes names what goes into a session, but session_id or phase is missing; send both, or no writes"
        raise InvalidInput(msg)
    checked_name(assignment.session_id, "session_id")
    checked_name(assignment.phase, "phase")


def _in_ms(age: timedelta) -> int:
    return max(0, age.days * 86_400_000 + age.seconds * 1000 + age.microseconds // 1000)


def _aware(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
