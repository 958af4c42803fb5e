"""An order: one delivery that has been read, with everything its run and its report need."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError
from pydantic_core import from_json

from contracts import subjects
from contracts.errors import InvalidInput, TaskExpired
from contracts.faults import fault_of
from contracts.identifiers import checked_name, user_token
from contracts.messages import MemoryOutcome, TaskAssignment
from contracts.parameters.model import Parameters
from contracts.parameters.neighbours import Neighbourhood
from memory import keys
from memory.ledger.runs import Ended
from memory.long_term.entries import Remembered
from runtime.messaging.pull import Delivery
from workers.agent import Agent
from workers.task import Task


@dataclass(frozen=True, slots=True)
class Neighbour:
    """An answer to a neighbouring question: the *key* of its entry, and by field how far away that question is, told.

    *farthest* is the largest of these as a number; *computed_for* are the parameters of that question, as JSON holds
    them.
    """

    key: str
    answer: Remembered
    distances: dict[str, str]
    farthest: float
    computed_for: dict[str, Any]


@dataclass(slots=True, eq=False)
class Order:
    """An assignment that a worker holds. `question` is its key for people, `memory_key` where its answer is remembered.

    `outcome` is what the memory has to do with it so far: `miss` and `refreshed` will be remembered once computed.
    `user` is the token of who asked, so that forgetting a user finds what its tasks stored; None when unsaid.
    `crashes` of the runs before ended without a word, `excused` of them are not held against it. `deadline` is the
    assignment's, else the task's own counted from its creation, in UTC; None for no limit. `remembered` is an answer
    that was recalled, but has to go into the session of the order's phase before anybody is told of it.
    `neighbourhood` is where its question stands among those that may be near to it, None when none may; `near` is what
    was found there, once its own question is known not to be remembered.
    """

    delivery: Delivery
    assignment: TaskAssignment
    task: Task
    parameters: Parameters
    generation: int
    attempt: int
    first_attempt: int
    queued_ms: int
    question: str
    memory_key: str | None
    outcome: MemoryOutcome
    user: str | None
    deadline: datetime | None
    crashes: int = 0
    excused: int = 0
    remembered: Remembered | None = None
    neighbourhood: Neighbourhood | None = None
    near: Neighbour | None = None

    def ended(self, *, excused: bool = False, uncounted: bool = False) -> Ended:
        """Return the run that began with this delivery, as one that ended without a report."""
        return Ended(self.assignment.task_id, self.generation, self.delivery.reply, excused, uncounted)

    @property
    def served_key(self) -> str | None:
        """The key of the entry that answers it: its own, or that of a neighbour."""
        return self.memory_key if self.near is None else self.near.key

    @property
    def runs_allowed(self) -> int:
        """How many runs the task may have, the first included."""
        return min(self.assignment.max_attempts, self.task.runs_allowed)

    @property
    def tries(self) -> int:
        """Runs that count against `runs_allowed`.

        An outage of ours, or a worker that was told to leave, is no fault of the task. A crash may be the doing of a
        neighbour, and is not held against a task that may run twice.
        """
        return self.attempt - self.excused - (self.crashes if self.task.idempotent else 0)


@dataclass(slots=True, eq=False)
class Unfit:
    """A delivery that no run can mend: `assignment` is None when not even its sender is known."""

    delivery: Delivery
    assignment: TaskAssignment | None
    generation: int
    attempt: int
    problem: Exception
    expired: bool = False


def read_order(delivery: Delivery, agent: Agent, now: datetime, *, remembers: bool) -> Order | Unfit:
    """Return *delivery* as an order for *agent*, or why it cannot be one; *remembers* is the agent's memory switch."""
    try:
        return _read(delivery, agent, now, remembers=remembers)
    except Exception as error:  # noqa: BLE001 - a validator of the user's may raise anything: this one is unfit, no other
        generation, attempt = _counted(delivery)
        return Unfit(delivery, _salvage(delivery.body), generation, attempt, error)


def _read(delivery: Delivery, agent: Agent, now: datetime, *, remembers: bool) -> Order | Unfit:
    generation, attempt = _counted(delivery)
    try:
        assignment = _read_assignment(delivery.body)
    except InvalidInput as error:
        return Unfit(delivery, _salvage(delivery.body), generation, attempt, error)
    try:
        task = _task_of(agent, assignment)
        deadline = _deadline_of(task, assignment)
        if deadline is not None and deadline <= now:
            late = TaskExpired(f"the deadline {deadline.isoformat()} had passed before a worker was free")
            return Unfit(delivery, assignment, generation, attempt, late, expired=True)
        if assignment.writes:
            _demand_session(assignment)
        parameters = task.parameters.read(assignment.task.parameters)
        owner = task.owner_of(assignment)
    except InvalidInput as error:
        return Unfit(delivery, assignment, generation, attempt, error)
    asker = user_token(assignment.user_id) if assignment.user_id else None
    outcome = _outcome(task, assignment, remembers=remembers)
    # Of the class: a parameter may be called `key`.
    question = Parameters.key(parameters, task.name)
    memory_key = None
    if outcome in ("miss", "refreshed"):
        memory_key = keys.ltm(
            agent.agent_id, agent.memory_version(task), question, asker if owner is not None else None
        )
    queued_ms = max(0, int((now - _aware(assignment.created_at)).total_seconds() * 1000))
    return Order(
        delivery,
        assignment,
        task,
        parameters,
        generation,
        attempt,
        delivery.number(subjects.ATTEMPT_HEADER),
        queued_ms,
        question,
        memory_key,
        outcome,
        asker,
        deadline,
        neighbourhood=Parameters.neighbourhood(parameters, task.name) if memory_key is not None else None,
    )


def _read_assignment(body: bytes) -> TaskAssignment:
    if len(body) > subjects.MAX_BODY:
        msg = f"the body has {len(body)} bytes, at most {subjects.MAX_BODY} are taken; send a reference instead"
        raise InvalidInput(msg)
    try:
        return TaskAssignment.model_validate_json(body)
    except ValidationError as error:
        found = "; ".join(
            fault_of(problem)
            for problem in error.errors(include_url=False, include_input=False, include_context=False)[:5]
        )
        msg = f"this is no task assignment: {found}"
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


def _task_of(agent: Agent, assignment: TaskAssignment) -> Task:
    if assignment.agent_id != agent.agent_id:
        msg = f"agent_id is {assignment.agent_id!r}, but the subject is of {agent.agent_id!r}; correct one of them"
        raise InvalidInput(msg)
    task = agent.tasks.get(assignment.task.name)
    if task is None:
        msg = f"{agent.agent_id} has no task {assignment.task.name!r}; it has {', '.join(sorted(agent.tasks))}"
        raise InvalidInput(msg)
    return task


def _deadline_of(task: Task, assignment: TaskAssignment) -> datetime | None:
    if assignment.deadline is not None:
        return _aware(assignment.deadline)
    if task.deadline is None:
        return None
    try:
        return _aware(assignment.created_at) + task.deadline
    except OverflowError as error:
        msg = f"created_at {assignment.created_at.isoformat()} leaves no room for a deadline; correct it"
        raise InvalidInput(msg) from error


def _demand_session(assignment: TaskAssignment) -> None:
    """Refuse outputs that have no place to go to: better before a run than after it."""
    if not (assignment.session_id and assignment.phase):
        msg = "writes names what goes into a session, but session_id or phase is missing; send both, or no writes"
        raise InvalidInput(msg)
    checked_name(assignment.session_id, "session_id")
    checked_name(assignment.phase, "phase")


def _outcome(task: Task, assignment: TaskAssignment, *, remembers: bool) -> MemoryOutcome:
    if task.remember == "never" or not remembers:
        return "off"
    if assignment.memory == "use":
        return "miss"
    # A word from a newer supervisor must not serve an answer that it may not want.
    return "refreshed" if assignment.memory == "refresh" else "bypassed"


def _counted(delivery: Delivery) -> tuple[int, int]:
    """Return generation and attempt of *delivery*, as headers and JetStream count them."""
    return delivery.generation, delivery.number(subjects.ATTEMPT_HEADER) + delivery.deliveries - 1


def _aware(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
