"""Messages about one task: its assignment, its progress, its cancellation and its report."""

from datetime import UTC, datetime
from operator import not_
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, Field, JsonValue, model_validator

from tasklore.contracts import subjects
from tasklore.contracts.admission.waits import START, wait_id
from tasklore.contracts.callers import Caller, caller_of, name_tenant
from tasklore.contracts.identifiers import Name, TaskName
from tasklore.contracts.message_parts import Message, Part, is_none
from tasklore.contracts.words import reads_unknown_as_other, writes_only_known

MemoryMode = Literal["use", "refresh", "bypass", "other"]
Priority = Literal["interactive", "normal", "batch", "other"]
MemoryOutcome = Literal[
    "hit",
    "miss",
    "joined",
    "near",
    "refreshed",
    "bypassed",
    "off",
    "unavailable",
    "other",
]
Status = Literal["completed", "failed", "rejected", "expired", "cancelled", "other"]
Fence = Literal["ledger", "none", "other"]


#: Tasks above one another; deeper is a loop, not a plan.
MOST_ANCESTORS = 32


class TaskCall(Part):
    """Which task to run, with parameters in any spelling that the task's `Parameters` accept."""

    name: Name
    parameters: dict[str, Any] = Field(default_factory=dict)


class RequiredApproval(Part):
    """The yes that a task needs before it starts: of *who*, a user or a role, and *until* when.

    *words* are those of the person in which the task was found.
    """

    who: str
    words: str = ""
    until: AwareDatetime


class TaskAssignment(Message):
    """One task for one agent; published to `tasks.{agent_id}.{task.name}`.

    `deadline` counts from anywhere, queue time included; None means no limit. `max_attempts` counts runs, the first
    included. `memory` says whether a remembered answer may serve (`use`), is recomputed and overwritten (`refresh`) or
    neither read nor written (`bypass`). An unknown `memory` word is treated as `bypass`. `session_id` and `phase` name
    the run of a pipeline and the step this is; `writes` names what of the result the worker puts into that session
    before it reports: `results` is the whole, any other name a property of it; `keep_ms` is how long these entries
    live, None as long as the session. `story_id` and `response_number` say which response of which story is analysed.
    `parent_id` is the task that this one is a part of, `root_id` the one at the top of the tree, and `ancestors` are
    the calls from there down to the parent, each as `Agent.task:digest` of its parameters. `caller` is who asked for
    it, or for what it is a part of: a schedule, a run, a parent. `tenant` is whose budgets and share it counts to,
    beside its user's: that of the caller, or what a program without one says. `priority` says whose turn is sooner
    where tasks of an agent wait; an unknown word, or none, is `normal`. `not_before` is when its first run may
    begin; None is at once. `has_own_deadline` says whether `deadline` is the one that the task declared when it was
    sent (True) or its sender's choice (False); None, as of 0.2, does not say. `approval` is the yes that it needs
    first, where it was found in words and its card names an `approver`; None, as for every task that is sent by its
    name, is none.
    """

    task_id: Name
    agent_id: Name
    supervisor_id: Name
    task: TaskCall
    created_at: datetime
    deadline: datetime | None = None
    max_attempts: int = Field(default=5, ge=1, le=1000)
    memory: Annotated[
        MemoryMode, reads_unknown_as_other(MemoryMode), writes_only_known
    ] = "use"
    request_id: str | None = None
    parent_id: str | None = None
    root_id: Name | None = Field(default=None, exclude_if=is_none)
    ancestors: tuple[str, ...] | None = Field(
        default=None, max_length=MOST_ANCESTORS, exclude_if=is_none
    )
    user_id: str | None = None
    tenant: str | None = Field(
        default=None, min_length=1, max_length=200, exclude_if=is_none
    )
    caller: Caller | None = Field(default=None, exclude_if=is_none)
    priority: Annotated[
        Priority | None, reads_unknown_as_other(Priority), writes_only_known
    ] = Field(default=None, exclude_if=is_none)
    conversation_id: str | None = None
    session_id: str | None = None
    phase: str | None = None
    writes: tuple[Name, ...] | None = None
    keep_ms: int | None = Field(default=None, ge=1)
    story_id: Name | None = None
    response_number: int | None = Field(default=None, ge=0)
    not_before: datetime | None = Field(default=None, exclude_if=is_none)
    has_own_deadline: bool | None = Field(default=None, exclude_if=is_none)
    approval: RequiredApproval | None = Field(default=None, exclude_if=is_none)

    _name_tenant = model_validator(mode="after")(name_tenant)

    @property
    def named(self) -> TaskName:
        """Its id, with its agent."""
        return TaskName(self.agent_id, self.task_id)

    @property
    def asked_by(self) -> Caller | None:
        """Who asked for it, None where that is not known."""
        return caller_of(self.caller, self.tenant)

    @property
    def approval_id(self) -> str | None:
        """The id of the question for the yes that it needs first, None where it needs none."""
        return wait_id(self.task_id, START) if self.approval is not None else None

    @property
    def waits_from(self) -> datetime:
        """When it may begin, in UTC: time in the queue and a task's own deadline count from here."""
        moment = self.not_before or self.created_at
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)

    @property
    def waits_on(self) -> str:
        """The subject on which it waits for its turn: that of its key's own tenant, else of its key.

        Whatever a key without a tenant names (a tenant, a user) takes turns within those of the key, and so does
        what no key asked for.
        """
        caller = self.caller or Caller()
        tenant = self.tenant or self.user_id or self.supervisor_id
        is_own = caller.tenant is not None and not caller.named
        priority = (
            self.priority if self.priority in ("interactive", "batch") else "normal"
        )
        return subjects.waiting(
            self.agent_id,
            priority,
            tenant,
            self.task.name,
            key=None if is_own else caller.name,
        )


class ErrorNote(Part):
    """Why a task did not complete: `type` is the class of the error, `message` names the field and the cure."""

    type: str
    message: str
    retryable: bool = False


class MemoryNote(Part):
    """What the long-term memory had to do with a result.

    `age_ms` is how old a served answer is (None unless one was served), `saved_ms` how long computing it took, left out
    where nothing was spared. `near` adds `computed_for`, the parameters
    whose answer was served, `distances`, how far each of them exactly is from what was asked, by field ("200", "0.5
    points", "0.2 km", "PT10M", and "0" for not at all), and `distance`, the largest of these as a number. All of it is
    None otherwise, and `distances` is then left out.
    """

    outcome: Annotated[
        MemoryOutcome, reads_unknown_as_other(MemoryOutcome), writes_only_known
    ]
    key: str | None = None
    age_ms: int | None = None
    saved_ms: int | None = Field(default=None, exclude_if=is_none)
    distance: float | None = None
    computed_for: dict[str, JsonValue] | None = None
    distances: dict[str, str] | None = Field(default=None, exclude_if=is_none)


class Usage(Part):
    """What a task spent on language models, over all of its calls.

    `cost_usd` is None when the price of a model is not known, and `unpriced` then says so. Both are left out where they
    say nothing: readers of 0.1 take a number for the cost or none at all, but no null. `cached_tokens` are those of the
    input that the provider had cached, `models` those that answered, and `saved_usd` what a served answer had cost.
    `estimated_tokens` are those of input and output that no provider counted: their number is ours, by length.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = Field(default=0.0, exclude_if=is_none)
    unpriced: bool = Field(default=False, exclude_if=not_)
    cached_tokens: int = Field(default=0, exclude_if=not_)
    estimated_tokens: int = Field(default=0, exclude_if=not_)
    models: tuple[str, ...] = Field(default=(), exclude_if=not_)
    saved_usd: float = Field(default=0.0, exclude_if=not_)

    @model_validator(mode="before")
    @classmethod
    def _read_left_out(cls, said: Any) -> Any:
        return (
            {**said, "cost_usd": None}
            if isinstance(said, dict) and said.get("unpriced") is True
            else said
        )


class CompletionReport(Message):
    """The one terminal report of a generation of a task; published to `reports.{supervisor_id}.{task_id}.{generation}`.

    `result` is None unless `status` is `completed`; `error` is None only then. `fence` is `none` when the ledger was
    away, so that "exactly one" rests on the stream alone. `queued_ms` runs from `created_at`, or `not_before`, to the
    first look at it. `waited_ms` is the part of `run_ms` in which it waited for what another task of its session
    computed; left out where there was none.
    """

    task_id: Name
    generation: int = Field(default=1, ge=1)
    agent_id: Name
    supervisor_id: Name
    task_name: Name
    status: Annotated[Status, reads_unknown_as_other(Status), writes_only_known]
    result: Any = None
    error: ErrorNote | None = None
    memory: MemoryNote
    attempt: int = Field(default=1, ge=0)
    fence: Annotated[Fence, reads_unknown_as_other(Fence), writes_only_known] = "ledger"
    worker_id: str
    queued_ms: int = 0
    run_ms: int = 0
    waited_ms: int | None = Field(default=None, exclude_if=is_none)
    usage: Usage = Usage()
    finished_at: datetime

    @property
    def named(self) -> TaskName:
        """The id of its task, with the agent."""
        return TaskName(self.agent_id, self.task_id)


class Progress(Message):
    """How far a running task is; `fraction` is 0 to 1, or None when the end is not known."""

    task_id: Name
    agent_id: Name
    fraction: float | None = Field(default=None, ge=0, le=1)
    text: str = ""
    at: datetime


class EmittedValue(Part):
    """A value that a running task emitted beside text, such as a call of a tool; *kind* is the agent's word for it."""

    kind: Name = "value"
    value: JsonValue = None


class TaskOutput(Message):
    """Output of a running task; published to `output.{supervisor_id}.{task_id}.{generation}.{attempt}`.

    `events` are texts and values in the order in which they were emitted. `first` is the number of the first of them,
    counted from 1 in each attempt; a missing number was lost. `run` is the same in all messages of one run: of two runs
    of one attempt the one that comes first on the subject counts. `end` says that nothing follows. With `waited` the
    run before it did not break off but ended to wait. One that waited for room or for a model is no attempt: the next
    run of the same attempt counts in its place and goes on counting events, from the number `before`.
    """

    run: str = Field(min_length=1, max_length=64)
    first: int = Field(default=1, ge=1)
    events: tuple[str | EmittedValue, ...] = ()
    end: bool = Field(default=False, exclude_if=not_)
    waited: bool = Field(default=False, exclude_if=not_)
    before: int = Field(default=0, ge=0, exclude_if=not_)


class Cancellation(Message):
    """The request to stop a task; published to `cancel.{task_id}`."""

    task_id: Name
    reason: str = ""
