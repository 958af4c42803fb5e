"""A task: one thing an agent can do, with everything that its caller, its memory and its host need to know of it."""

import hashlib
import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, cast

from pydantic import BaseModel, JsonValue

from tasklore.contracts.admission.schedules import Timing
from tasklore.contracts.errors import ConfigurationError, InvalidInput
from tasklore.contracts.identifiers import checked_name
from tasklore.contracts.messages import TaskAssignment
from tasklore.contracts.parameters.model import Parameters
from tasklore.workers.code import code_digest
from tasklore.workers.context.access import REMEMBER_FOR, DeclaredAccess
from tasklore.workers.context.context import Context
from tasklore.workers.handler import Handler, read_handler
from tasklore.workers.task_options import OptionReader, TaskOptions

#: Uses that make a result go stale, so that its author has to say when.
_STALE = ("clock", "llm")

#: Runs of a task for which neither it nor its worker's settings say a number.
MAX_ATTEMPTS = 5


@dataclass(frozen=True, kw_only=True, eq=False)
class Task(DeclaredAccess):
    """One task as `@agent.task` declared it, its options checked; `TaskOptions` says what each means.

    `deadline`, `max_attempts`, `retry_base` and `retry_cap` are None where the worker's settings hold. `code` is the
    digest of its code, None when nothing is remembered. One to `confirm` has an `approver` where it needs another yes
    than that of the person who asks. `schedule` is when it begins by itself.
    """

    version: int
    description: str
    max_attempts: int | None
    deadline: timedelta | None
    retry_base: timedelta | None
    retry_cap: timedelta | None
    idempotent: bool
    keywords: tuple[str, ...]
    examples: tuple[str, ...]
    in_words: bool
    confirm: bool = False
    approver: str | None = None
    schedule: Timing | None = None
    retry_on: tuple[type[Exception], ...] = ()
    code: str | None = None
    at_most: int | None = None
    per: tuple[str, ...] = ()
    handler: Handler = field(repr=False)

    @property
    def parameters(self) -> type[Parameters]:
        """The class of its parameters: contract, schema and memory key in one."""
        return self.handler.parameters

    @property
    def runs_allowed(self) -> int:
        """How many runs the task may have, the first included."""
        return self.max_attempts if self.max_attempts is not None else MAX_ATTEMPTS

    def owner_of(self, assignment: TaskAssignment) -> str | None:
        """Return the user for whom the result is remembered, None when it is not remembered for a user.

        Raises:
            InvalidInput: the task is remembered per user and the assignment names none.
        """
        if self.remember != "user":
            return None
        if not assignment.user_id:
            msg = f"user_id is missing; results of {self.name} are cached per user, so send it with one"
            raise InvalidInput(msg)
        return assignment.user_id

    async def run(self, parameters: Parameters, context: Context) -> bytes:
        """Return the result as JSON.

        Raises:
            GiveUp: the result does not fit the return annotation, or the task itself gave up.
            InvalidInput: the task is remembered per user and no user is named.
            Exception: whatever the task raises.
        """
        if self.remember == "user":
            self.owner_of(context.assignment)
        converted = await context.convert_amounts(parameters)
        return await self.handler.call(converted, context)

    def result_schema(self) -> dict[str, JsonValue] | None:
        """Return the JSON schema of its result, None when there is none."""
        return self.handler.result_schema()


def read_task(
    function: Callable[..., Any],
    agent_id: str,
    options: TaskOptions,
    settings: type[BaseModel] | None,
    names: Mapping[str, Any],
) -> Task:
    """Return the task that *function* and *options* declare; *names* as in `read_handler`.

    Raises:
        ConfigurationError: something cannot be served; the message says how to mend it.
    """
    name = options.get("name")
    if name is None:
        name = getattr(function, "__name__", "task")
    label = f"{agent_id}.{name}"
    _demand_name(name, f"{agent_id}: the task name")
    handler = read_handler(function, label, settings, names)
    description = inspect.getdoc(function)
    if not description:
        msg = f"{label} has no docstring; say what it answers: the supervisor reads it to choose the task"
        raise ConfigurationError(msg)
    reader = OptionReader(options, label, handler.parameters)
    remember = reader.read_remember()
    task = Task(
        name=name,
        version=reader.read_version(),
        description=description,
        remember=remember,
        remember_for=reader.read_remember_for(),
        max_attempts=reader.read_max_attempts(),
        deadline=reader.read_deadline(),
        retry_base=reader.read_retry_base(),
        retry_cap=reader.read_retry_cap(),
        idempotent=reader.read_idempotent(),
        uses=reader.read_uses(),
        keywords=reader.read_keywords(),
        examples=reader.read_examples(),
        in_words=reader.read_in_words(),
        confirm=reader.read_confirm(),
        approver=reader.read_approver(),
        schedule=reader.read_schedule(),
        retry_on=reader.read_retry_on(),
        at_most=reader.read_at_most(),
        per=reader.read_per(),
        code=None if remember == "never" else code_digest(function, label),
        handler=handler,
    )
    _demand_lifetime(task, label)
    return task


def _demand_name(name: object, what: str) -> None:
    try:
        checked_name(cast("str", name), what)
    except (InvalidInput, TypeError) as error:
        msg = f"{what} {name!r} must be 1 to 64 letters, digits, '_' or '-'"
        raise ConfigurationError(msg) from error


def _demand_lifetime(task: Task, label: str) -> None:
    if task.remember == "never":
        if task.remember_for is not REMEMBER_FOR:
            msg = f'{label}: remember_for without remember; add remember="shared" or "user", or omit remember_for'
            raise ConfigurationError(msg)
        return
    stale = [use for use in _STALE if use in task.uses]
    if task.parameters.conversions():
        stale.append("convert")
    if stale and not task.says_how_long:
        msg = (
            f"{label} is cached and uses {' and '.join(map(repr, stale))}, so its "
            "results go stale; say when with remember_for=timedelta(...), or omit "
            "remember"
        )
        raise ConfigurationError(msg)


def bound_of(
    task: Task, assignment: TaskAssignment, parameters: Parameters, user: str | None
) -> str:
    """Return the name of the bound that a run of *task* falls under: its own, or that of the values of `per`.

    *user* is the token of the user who asks. Values are digested, as they may be words of a person.
    """
    name = f"{assignment.agent_id}.{task.name}"
    if not task.per:
        return name
    dumped = parameters.model_dump(mode="json", include=set(task.per))
    values = {"tenant": assignment.tenant or "", "user": user or ""} | dumped
    text = json.dumps([values[one] for one in task.per], sort_keys=True)
    return f"{name}:{hashlib.blake2b(text.encode(), digest_size=16).hexdigest()}"
