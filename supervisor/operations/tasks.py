"""Typed tasks: list them, send one, look at it and at its children, cancel it, send it a signal.

For programs that know agent and task: no word is interpreted.
"""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field, JsonValue, WithJsonSchema, model_validator

from tasklore.contracts.admission.waits import RunWait, WaitReason
from tasklore.contracts.callers import Caller
from tasklore.contracts.identifiers import NAME_PATTERN, Name, user_token
from tasklore.contracts.messages import TaskAssignment
from tasklore.memory.budgets.waiting_tasks import WaitingTasks
from tasklore.memory.holdings.store import Holding
from tasklore.memory.ledger.requests import RequestRecords
from tasklore.memory.ledger.task_list import (
    MOST_OF_PAGE,
    ListedTask,
    TaskFilter,
    TaskList,
    TaskPage,
)
from tasklore.memory.ledger.task_rows import END_STATES, OPEN_STATES, RunState
from tasklore.memory.ledger.task_tree import AlikeTasks as AlikeTasks
from tasklore.memory.ledger.task_tree import TaskTree
from tasklore.memory.ledger.task_tree import Trace as Trace
from tasklore.memory.ledger.task_tree import TracedTask as TracedTask
from tasklore.supervisor.approvals.answers import AnswerRefused
from tasklore.supervisor.approvals.questions import Answered, view_answer
from tasklore.supervisor.cancellation import Canceller
from tasklore.supervisor.operations.card_fit import demand_fit, demand_task
from tasklore.supervisor.operations.dependencies import (
    OperatorDependencies,
    SupervisorDependencies,
)
from tasklore.supervisor.operations.forms import (
    SPAN,
    Cancelled,
    Form,
    Later,
    Seconds,
    View,
    When,
    moment_of,
)
from tasklore.supervisor.operations.idempotency import IdempotencyKey
from tasklore.supervisor.operations.noun import NounDeclaration, serve
from tasklore.supervisor.operations.owners import demand_conversation
from tasklore.supervisor.operations.persons import as_person, refuse_answer
from tasklore.supervisor.operations.refusals import Refused, not_found
from tasklore.supervisor.operations.run_messages import show_messages
from tasklore.supervisor.operations.sent_tasks import (
    NewTask,
    Sent,
    TaskLooks,
    TaskServices,
    demand_accepted,
    demand_callback,
    read_task,
    send_task,
)
from tasklore.supervisor.operations.starts import demand_reachable
from tasklore.supervisor.operations.table import (
    Operations,
    Shows,
    Unfinished,
    operation,
)
from tasklore.supervisor.operations.task_words import TaskWords, find_words
from tasklore.supervisor.requests.outcome_parts import cancel_task

TaskId = Annotated[
    str,
    Field(
        pattern=NAME_PATTERN, description="Task id, as returned when the task was sent."
    ),
]
SignalName = Annotated[
    str, Field(pattern=NAME_PATTERN, description="The name of the signal.")
]
#: Every state by which tasks are listed, open ones first.
STATES = (*OPEN_STATES, *END_STATES)
#: How long ago a failure counts, and how long ago its task may have been sent.
_FAILED_SINCE = timedelta(hours=1)
_SENT_SINCE = timedelta(days=1)
#: Failures that are shown beside their number, and things that tasks wait for.
_MOST_FAILURES = 10
_MOST_WAITS = 10
#: The name of a task, or the call as assignments have it.
_CALL = {
    "anyOf": [
        {"type": "string", "pattern": NAME_PATTERN},
        {
            "type": "object",
            "properties": {
                "name": {"type": "string", "pattern": NAME_PATTERN},
                "parameters": {"type": "object"},
            },
            "required": ["name"],
            "additionalProperties": False,
        },
    ]
}


class SendOptions(Later):
    """How a task is sent, and how long its answer is waited for."""

    user: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=256,
            description="User on whose behalf it runs, and whose memory it sees; "
            "default: that of the key, if it has one.",
        ),
    ] = None
    tenant: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=200,
            description="Tenant whose budgets it uses; default: that of the key, if it "
            "has one.",
        ),
    ] = None
    priority: Annotated[
        Literal["interactive", "normal", "batch"],
        Field(description="Priority among the queued tasks of the agent."),
    ] = "normal"
    conversation: Annotated[
        str | None,
        Field(
            min_length=1, max_length=256, description="The conversation it belongs to."
        ),
    ] = None
    memory: Annotated[
        Literal["use", "refresh", "bypass"],
        Field(
            description="Result cache: use = read and write, refresh = recompute and "
            "overwrite, bypass = ignore."
        ),
    ] = "use"
    within_seconds: Annotated[
        Annotated[Seconds, Field(gt=0, le=604_800)] | None,
        Field(
            description="Deadline, counted from its start time and including its time "
            "in the queue.",
            json_schema_extra={"x-cli": {"option": "--within", "metavar": "SPAN"}},
        ),
    ] = None
    max_attempts: Annotated[
        int | None,
        Field(
            ge=1,
            le=1000,
            strict=False,
            description="Maximum number of runs, including the first.",
        ),
    ] = None
    wait_seconds: Annotated[
        float,
        Field(
            ge=0,
            le=600,
            description="How long to wait for the task to end.",
            json_schema_extra={"x-cli": {"option": "--wait", "metavar": "SPAN"}},
        ),
        SPAN,
    ] = 30.0
    callback_url: Annotated[
        str | None,
        Field(
            description="URL that receives signed webhooks when the task ends or asks "
            "a question."
        ),
    ] = None


class Send(SendOptions):
    """A task for an agent.

    `task` is its name, or an object of `name` and `parameters`, as in the assignments on the wire. `agent_id` may be
    left out where one agent alone has a task of that name.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(strict=True)

    agent_id: Annotated[Name | None, Field(description="The agent.")] = None
    task: Annotated[Name, Field(description="The task to run."), WithJsonSchema(_CALL)]
    parameters: Annotated[
        dict[str, JsonValue],
        Field(
            description="Its parameters.",
            json_schema_extra={"x-cli": {"option": "--parameter", "short": "-p"}},
        ),
    ] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _flatten(cls, body: Any) -> Any:
        """Take the name and the parameters out of an object `task`."""
        call = body.get("task") if isinstance(body, dict) else None
        if not isinstance(call, dict):
            return body
        if unknown := call.keys() - {"name", "parameters"}:
            named = ", ".join(str(name)[:100] for name in sorted(unknown)[:3])
            raise ValueError(f"task has {named}; give it `name` and `parameters` alone")
        if "parameters" in body and "parameters" in call:
            raise ValueError("give `parameters` once, in `task` or beside it")
        flat = {"parameters": call["parameters"]} if "parameters" in call else {}
        return {**body, "task": call.get("name"), **flat}


class Signal(Form):
    """The value of a signal."""

    value: Annotated[JsonValue, Field(description="The signal's payload.")] = None


class TaskQuery(Form):
    """Which tasks are listed: those to which all of it applies. An unknown name is refused: it would filter nothing."""

    agent: Annotated[Name | None, Field(description="The id of their agent.")] = None
    state: Annotated[RunState | None, Field(description="Status.")] = None
    tenant: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=200,
            description="Tenant whose budgets they use; default: that of the key, if "
            "it has one.",
        ),
    ] = None
    user: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=256,
            description="User id; default: the user of the key.",
        ),
    ] = None
    created_after: Annotated[
        When | None,
        Field(
            description="Only tasks created since this age or time, such as 2h "
            "(inclusive).",
            json_schema_extra={"x-cli": {"option": "--since", "metavar": "WHEN"}},
        ),
    ] = None
    created_before: Annotated[
        When | None,
        Field(
            description="Only tasks created before this age or time, such as 2h "
            "(exclusive).",
            json_schema_extra={"x-cli": {"option": "--until", "metavar": "WHEN"}},
        ),
    ] = None
    ended_after: Annotated[
        When | None,
        Field(
            description="Only tasks that ended since this age or time, such as 1h.",
            json_schema_extra={"x-cli": {"option": "--ended-since", "metavar": "WHEN"}},
        ),
    ] = None
    open: Annotated[bool, Field(description="Only unfinished tasks.")] = False
    parent: Annotated[
        Name | None, Field(description="The id of the task that called them.")
    ] = None
    error: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=64,
            description="The class of the error that ended them, such as "
            "`TaskExpired`.",
        ),
    ] = None
    after: Annotated[
        str,
        Field(
            max_length=100,
            description="Pagination cursor: the `after` of the previous page.",
        ),
    ] = ""
    limit: Annotated[
        int, Field(ge=1, le=MOST_OF_PAGE, description="Tasks on a page.")
    ] = 50

    def filter_for(self, caller: Caller) -> TaskFilter:
        """Return which runs *caller* is shown: of its own user and tenant alone, where its key is bound to one.

        Raises:
            NotPermitted: another user or tenant is asked for.
        """
        user_id = caller.demand_user(self.user)
        return TaskFilter(
            agent_id=self.agent,
            state=self.state,
            tenant=caller.for_tenant(self.tenant).tenant,
            user=user_token(user_id) if user_id is not None else None,
            created_from_ms=_in_ms(self.created_after),
            created_before_ms=_in_ms(self.created_before),
            parent_id=self.parent,
            error=self.error,
            ended_from_ms=_in_ms(self.ended_after),
            is_open=self.open,
        )


class WaitCount(View):
    """How many of the open tasks that were looked at wait for one thing; `kind`, `name` and `text` as of a wait."""

    kind: WaitReason
    name: str
    text: str
    said: str
    tasks: int


class TaskCounts(View):
    """Counts of tasks at one time.

    `open` are all that have not ended, and `oldest_ms` is when the first of them was created, ms since 1970. States and
    waits are those of the newest `looked_at` open ones. `failed` ended so within the last hour, of those created within
    the last day, and `failures` are the last of them; where `is_cut`, not all of that day were read: there may be more.
    """

    open: int
    oldest_ms: int | None
    looked_at: int
    states: dict[str, int]
    waits: tuple[WaitCount, ...]
    failed: int
    failures: tuple[ListedTask, ...]
    is_cut: bool


@operation(
    "tasks",
    "list",
    "GET /v1/tasks",
    roles=("ask", "read"),
    shows=Shows(
        rows="tasks",
        picture="tasks",
        example="tasks list --state failed --since 2h",
    ),
)
async def list_tasks(services: TaskLooks, caller: Caller, query: TaskQuery) -> TaskPage:
    """List tasks, the most recently created first; for one user, the most recently ended first.

    Covers the last 100,000 tasks of each agent, of seven days
    (TASKLORE_LEDGER_KEEP_DAYS). A page may be short or empty even if there are more.

    Raises:
        NotPermitted: another user or tenant is asked for than the key's own.
    """
    return await TaskList(services.redis).read(
        query.filter_for(caller), after=query.after, limit=query.limit
    )


@operation(
    "tasks",
    "count",
    "GET /v1/task-counts",
    roles=("ask", "read"),
    shows=Shows(picture="task_counts", example="tasks count"),
)
async def count_tasks(services: TaskLooks, caller: Caller) -> TaskCounts:
    """Count open tasks by state and by why they wait, and those that failed in the last hour.

    A key restricted to a user or tenant counts only theirs.
    """
    tasks = TaskList(services.redis)
    everybody = TaskQuery().filter_for(caller)
    opened = replace(everybody, is_open=True)
    page = await tasks.read(opened, limit=MOST_OF_PAGE)
    count = len(page.tasks)
    oldest_ms = min((one.began_ms for one in page.tasks), default=None)
    if everybody == TaskFilter():
        opened_by_all = await tasks.count_open()
        count = opened_by_all.number
        oldest_ms = opened_by_all.oldest_ms
    now = datetime.now(UTC)
    ended = await tasks.read(
        replace(
            everybody,
            state="failed",
            ended_from_ms=int((now - _FAILED_SINCE).timestamp() * 1000),
            created_from_ms=int((now - _SENT_SINCE).timestamp() * 1000),
        ),
        limit=MOST_OF_PAGE,
    )
    waits = Counter(
        _shape_of(one.waits_for) for one in page.tasks if one.waits_for is not None
    )
    return TaskCounts(
        open=count,
        oldest_ms=oldest_ms,
        looked_at=len(page.tasks),
        states=dict(Counter(one.state for one in page.tasks)),
        waits=tuple(
            WaitCount(kind=kind, name=name, text=text, said=said, tasks=number)
            for (kind, name, text, said), number in waits.most_common(_MOST_WAITS)
        ),
        failed=len(ended.tasks),
        failures=ended.tasks[:_MOST_FAILURES],
        is_cut=ended.after is not None,
    )


@operation(
    "tasks",
    "send",
    "POST /v1/tasks",
    roles=("ask",),
    problems=(404, 409),
    waits=True,
    shows=Shows(
        arguments=("agent_id", "task"),
        example="tasks send ReportAgent write --parameter kind=sales",
    ),
)
async def send(
    services: TaskServices,
    caller: Caller,
    new: Send,
    *,
    idempotency_key: IdempotencyKey = None,
) -> Sent | Unfinished[Sent]:
    """Send a task to an agent."""
    sent = await run_task(
        services,
        caller,
        agent_id=new.agent_id,
        task=new.task,
        parameters=new.parameters,
        options=new,
        chosen=idempotency_key,
    )
    if sent.report is not None:
        return sent
    return Unfinished(view=sent, location=f"/v1/tasks/{sent.task_id}")


@operation(
    "tasks",
    "show",
    "GET /v1/tasks/{task_id}",
    roles=("ask",),
    problems=(404,),
    shows=Shows(example="tasks show 0199a1b2-3c4d"),
)
async def show_task(services: TaskLooks, caller: Caller, task_id: TaskId) -> Sent:
    """Show the status and the result of a task."""
    return await read_task(services, caller, task_id)


@operation(
    "tasks",
    "trace",
    "GET /v1/tasks/{task_id}/trace",
    roles=("ask",),
    problems=(404,),
    shows=Shows(shortcut="trace", picture="trace", example="tasks trace 0199a1b2-3c4d"),
)
async def trace_task(services: TaskLooks, caller: Caller, task_id: TaskId) -> Trace:
    """Show the tree of tasks that a task called: states, times, runs, cached answers, tokens and cost.

    For unfinished tasks, completed steps (which a crash would not repeat) are shown.
    """
    await read_task(services, caller, task_id)
    if (found := await TaskTree(services.redis).read(task_id)) is None:
        raise not_found(
            f"there is nothing of task {task_id!r} in the ledger yet, or it is past its time"
        )
    return found


class TaskAssigned(View):
    """The values that an open task was sent with; `caller` is the name of the key that asked, "" for a program."""

    task_id: str
    agent_id: str
    task: str
    parameters: dict[str, JsonValue]
    created_at: datetime
    deadline: datetime | None
    not_before: datetime | None
    max_attempts: int
    memory: str
    user: str | None
    tenant: str | None
    caller: str
    priority: str
    conversation_id: str | None
    request_id: str | None
    session_id: str | None
    phase: str | None
    parent_id: str | None
    root_id: str | None


@operation(
    "tasks",
    "assignment",
    "GET /v1/tasks/{task_id}/assignment",
    roles=("ask",),
    problems=(404,),
    shows=Shows(example="tasks assignment 0199a1b2-3c4d"),
)
async def show_assignment(
    services: TaskLooks, caller: Caller, task_id: TaskId
) -> TaskAssigned:
    """Show the parameters of an open task, and who sent it. They are not kept after it has ended.

    Raises:
        Refused: 404, there is no such task, or it has ended.
    """
    await read_task(services, caller, task_id)
    entry = await services.ledger.read(await services.ledger.name(task_id))
    kept = None if entry is None else entry.generations[entry.newest].assignment
    if kept is None:
        raise not_found(
            f"the parameters of task {task_id!r} are no longer kept: it has ended"
        )
    try:
        sent = TaskAssignment.model_validate_json(kept)
    except ValueError as error:
        # A worker of another version, or a program, may have written it.
        raise not_found(
            f"the parameters of task {task_id!r} cannot be read here"
        ) from error
    return TaskAssigned(
        task_id=sent.task_id,
        agent_id=sent.agent_id,
        task=sent.task.name,
        parameters=sent.task.parameters,
        created_at=sent.created_at,
        deadline=sent.deadline,
        not_before=sent.not_before,
        max_attempts=sent.max_attempts,
        memory=sent.memory,
        user=sent.user_id,
        tenant=sent.tenant,
        caller="" if sent.caller is None else sent.caller.name,
        priority=sent.priority or "normal",
        conversation_id=sent.conversation_id,
        request_id=sent.request_id,
        session_id=sent.session_id,
        phase=sent.phase,
        parent_id=sent.parent_id,
        root_id=sent.root_id,
    )


@operation(
    "tasks",
    "words",
    "GET /v1/tasks/{task_id}/words",
    roles=("read",),
    problems=(404,),
    shows=Shows(example="tasks words r-1f2e3d"),
)
async def show_words(services: TaskLooks, caller: Caller, task_id: TaskId) -> TaskWords:
    """Show the original words behind a task and how they were understood, as long as the conversation is kept.

    Raises:
        Refused: 404, there is no such task, or no words of it are known.
    """
    await read_task(services, caller, task_id)
    if (found := await find_words(services, caller, task_id)) is None:
        raise not_found(
            f"no words are stored for task {task_id!r}: it was sent by its name, "
            "without a user, or they are no longer in the conversation"
        )
    return found


@operation(
    "tasks",
    "cancel",
    "DELETE /v1/tasks/{task_id}",
    roles=("ask",),
    problems=(404,),
    shows=Shows(
        shortcut="cancel",
        picture="cancelled",
        example='tasks cancel r-1f2e3d --reason "asked twice"',
    ),
)
async def cancel(
    services: TaskLooks,
    caller: Caller,
    task_id: TaskId,
    *,
    reason: Annotated[
        str, Field(max_length=500, description="Reason; included in the report.")
    ] = "",
    ahead: Annotated[
        bool,
        Field(
            description="Also cancel a task that has not been submitted yet, before it "
            "starts. Requires the role `operate`."
        ),
    ] = False,
) -> Cancelled:
    """Cancel a task: a waiting one never starts, a running one is asked to stop; a later success does not count.

    Raises:
        NotPermitted: an unknown one, with a key that is for one user or tenant, or lacks the role.
    """
    try:
        await read_task(services, caller, task_id)
    except Refused as refused:
        is_bound = caller.user is not None or caller.own_tenant is not None
        if not ahead or refused.problem.status != 404 or is_bound:
            raise
        caller.demand_role("operate")
    return await cancel_task(
        services.canceller, task_id, reason or f"cancelled by {caller.name}"
    )


@operation(
    "tasks",
    "signal",
    "POST /v1/tasks/{task_id}/signals/{name}",
    roles=("ask",),
    problems=(404, 409),
    shows=Shows(arguments=("value",), example="tasks signal 0199a1b2-3c4d paid true"),
)
async def signal_task(
    services: TaskServices,
    caller: Caller,
    task_id: TaskId,
    name: SignalName,
    signal: Signal,
) -> Answered:
    """Send a signal to a task."""
    await read_task(services, caller, task_id)
    size = len(signal.model_dump_json().encode())
    await services.dispatch.bounds.demand(caller, None, Holding("signals", size))
    try:
        sent = await services.answers.signal(
            task_id, name, signal.value, as_person(caller)
        )
    except AnswerRefused as refused:
        raise refuse_answer(refused) from refused
    return view_answer(sent)


#: Those that need no supervisor.
OPERATOR_OPERATIONS: Operations[TaskLooks] = (
    list_tasks,
    count_tasks,
    show_task,
    show_assignment,
    show_words,
    trace_task,
    show_messages,
    cancel,
)
OPERATIONS: Operations[TaskServices] = (
    *OPERATOR_OPERATIONS,
    send,
    signal_task,
)
#: What models saw needs a right that supervisors lack.
SUPERVISOR_OPERATIONS: Operations[TaskServices] = tuple(
    one for one in OPERATIONS if one.mounted == "supervisor"
)


async def run_task(
    services: TaskServices,
    caller: Caller,
    *,
    agent_id: str | None,
    task: str,
    parameters: dict[str, JsonValue],
    options: SendOptions,
    chosen: str | None,
    place: str = "parameters.",
) -> Sent:
    """Send *task* as *options* say it, and return its state once it has ended, or they wait no longer.

    *chosen* is the id that the sender gave the task, *place* where the body has *parameters*. None as *agent_id* is the
    one agent that has such a task.

    Raises:
        Refused: as `send_task`; 404, there is no such task; 422, it cannot be sent so, or its agent rejected it.
        NotPermitted: it is for another user or tenant.
    """
    user_id = caller.demand_user(options.user)
    sender = caller.for_tenant(options.tenant)
    offer = demand_task(services.catalogue(), agent_id, task)
    demand_fit(offer.task, parameters, place)
    await demand_conversation(services.conversations, sender, options.conversation)
    now = datetime.now(UTC)
    starts_at = options.find_start(now)
    demand_reachable(starts_at, now)
    new = NewTask(
        offer=offer,
        parameters=parameters,
        user_id=user_id,
        conversation_id=options.conversation,
        chosen=chosen,
        memory=options.memory,
        within_s=options.within_seconds,
        max_attempts=options.max_attempts,
        priority=options.priority,
        starts_at=starts_at,
        callback=demand_callback(services, options.callback_url, user_id, sender),
    )
    sent = await send_task(services, sender, new, options.wait_seconds)
    demand_accepted(sent.report)
    return sent


def _shape_of(wait: RunWait) -> tuple[WaitReason, str, str, str]:
    """Return what makes waits one and the same; each question to a person is another, and all are counted together."""
    if wait.kind == "person":
        return "person", "", "the answers of persons", ""
    return wait.kind, wait.name, wait.text, wait.said


def _in_ms(when: When | None) -> int | None:
    moment = moment_of(when, datetime.now(UTC))
    return None if moment is None else int(moment.timestamp() * 1000)


def for_supervisor(parts: SupervisorDependencies) -> TaskServices:
    """Return the services of operations of tasks in a supervisor."""
    return parts.for_tasks


def for_operator(parts: OperatorDependencies) -> TaskLooks:
    """Return the services of looks at tasks by the rights of an operator."""
    return TaskLooks(
        redis=parts.redis,
        ledger=parts.ledger,
        records=RequestRecords(parts.redis),
        canceller=Canceller(
            parts.link.client,
            parts.outbox,
            parts.ledger,
            "tasklore-operations",
            waiting=WaitingTasks(parts.redis),
        ),
    )


NOUN = NounDeclaration(
    operations=OPERATIONS,
    supervisor=serve(for_supervisor, SUPERVISOR_OPERATIONS),
    operator=serve(for_operator, OPERATOR_OPERATIONS),
)
