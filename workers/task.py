"""A task: one thing an agent can do, with everything that its caller, its memory and its host need to know of it."""

import hashlib
import inspect
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal, get_args

from pydantic import BaseModel, JsonValue

from tasklore.contracts.admission.schedules import MissedTicks, Timing
from tasklore.contracts.admission.waits import demand_person
from tasklore.contracts.errors import ConfigurationError, InvalidInput
from tasklore.contracts.identifiers import checked_name
from tasklore.contracts.messages import TaskAssignment
from tasklore.contracts.parameters.model import Parameters
from tasklore.contracts.zones import zone_of
from tasklore.workers.code import code_digest
from tasklore.workers.context.access import REMEMBER_FOR, Access
from tasklore.workers.context.context import Context
from tasklore.workers.handler import Handler, read_handler

Use = Literal["llm", "clock", "edits"]

#: Uses that make a result go stale, so that its author has to say when.
_STALE = ("clock", "llm")

#: What the wire allows; more is a loop, not a retry.
_MOST_ATTEMPTS = 1000
#: Places of one bound: more are none.
_MOST_AT_ONCE = 1000
#: What a run may be bound by that is no parameter; a parameter of that name goes first.
_CALLER = ("tenant", "user")
#: Runs of a task for which neither it nor its worker's settings say a number.
MAX_ATTEMPTS = 5


@dataclass(frozen=True, kw_only=True, eq=False)
class Task(Access):
    """One task as `@agent.task` declared it.

    `remember_for` None means for ever. `deadline` is what a supervisor gives when the request says none; None: no
    limit. `max_attempts` counts runs, the first included; `retry_base` and `retry_cap` are the first and the longest
    pause between two runs; None: the worker's settings. `idempotent` says that running it twice does no harm, so that
    it may run while the ledger is away. `retry_on` are errors that are worth another run although they look like slips
    of its code. `code` is the digest of its code, None when nothing is remembered. One to `confirm` is shown to a
    person who asks for it in words, and starts with their yes, or with that of its `approver` where it has one.
    `schedule` is when it begins by itself. At most `at_most` runs of it go on at once over all workers, for each value
    of `per`; None: no limit.
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
            msg = f"user_id is missing; {self.name} is remembered for each user, so say who asks"
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
        return await self.handler.call(parameters, context)

    def result_schema(self) -> dict[str, JsonValue] | None:
        """Return the JSON schema of its result, None when there is none."""
        return self.handler.result_schema()


@dataclass(frozen=True, kw_only=True)
class TaskOptions:
    """What `@agent.task(...)` was given, not yet checked."""

    name: str | None
    version: int
    remember: Literal["shared", "user", False]
    remember_for: timedelta | None
    max_attempts: int | None
    deadline: timedelta | None
    retry_base: timedelta | None
    retry_cap: timedelta | None
    idempotent: bool
    uses: Iterable[Use]
    keywords: Iterable[str]
    examples: Iterable[str]
    in_words: bool
    confirm: bool | str
    schedule: Timing | None
    retry_on: Iterable[type[Exception]]
    at_most: int | None
    per: str | Iterable[str]


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
    name = (
        options.name
        if options.name is not None
        else getattr(function, "__name__", "task")
    )
    label = f"{agent_id}.{name}"
    _demand_name(name, f"{agent_id}: the task name")
    handler = read_handler(function, label, settings, names)
    description = inspect.getdoc(function)
    if not description:
        msg = f"{label} has no docstring; say what it answers: the supervisor reads it to choose the task"
        raise ConfigurationError(msg)
    _demand_limits(options, label)
    remember = _remember(options, label)
    task = Task(
        name=name,
        version=options.version,
        description=description,
        remember=remember,
        remember_for=options.remember_for,
        max_attempts=options.max_attempts,
        deadline=options.deadline,
        retry_base=options.retry_base,
        retry_cap=options.retry_cap,
        idempotent=options.idempotent,
        uses=_uses(options, label),
        keywords=words_of(options.keywords, f"{label}: keywords"),
        examples=words_of(options.examples, f"{label}: examples"),
        in_words=options.in_words,
        confirm=bool(options.confirm),
        approver=_approver(options, label),
        schedule=options.schedule,
        retry_on=_retry_on(options, label),
        at_most=options.at_most,
        per=_per(options, label, handler.parameters),
        code=None if remember == "never" else code_digest(function, label),
        handler=handler,
    )
    _demand_lifetime(task, label)
    needed = [
        field
        for field, one in task.parameters.model_fields.items()
        if one.is_required()
    ]
    if task.schedule is not None and needed:
        msg = f"{label} begins by itself, so each of its parameters needs a default: give one to {', '.join(needed)}"
        raise ConfigurationError(msg)
    return task


def read_schedule(
    every: timedelta | None, cron: str | None, time_zone: str, missed: MissedTicks
) -> Timing | None:
    """Return when a task begins by itself, None for never; supervisors read the cron expression.

    Raises:
        ConfigurationError: both are given, the time is no whole seconds, or there is no such zone.
    """
    if every is None and cron is None:
        return None
    if every is not None and cron is not None:
        raise ConfigurationError(
            "every and cron are two ways to say it; leave one of them out"
        )
    if every is not None and (
        every < timedelta(seconds=1) or every % timedelta(seconds=1)
    ):
        raise ConfigurationError(
            f"every must be whole seconds, at least one, not {every!r}"
        )
    if missed not in ("skip", "once", "all"):
        raise ConfigurationError(
            f'missed must be "skip", "once" or "all", not {missed!r}'
        )
    try:
        zone_of(time_zone)
    except InvalidInput as error:
        raise ConfigurationError(str(error)) from error
    return Timing(
        cron=cron,
        every_s=every // timedelta(seconds=1) if every else None,
        time_zone=time_zone,
        missed=missed,
    )


def words_of(words: Iterable[str], what: str) -> tuple[str, ...]:
    """Return *words* as a tuple.

    Raises:
        ConfigurationError: it is one string instead of several, or holds something else than strings.
    """
    if isinstance(words, str):
        raise ConfigurationError(f"{what} must be several strings; write ({words!r},)")
    several = tuple(words)
    if not all(isinstance(word, str) and word.strip() for word in several):
        raise ConfigurationError(
            f"{what} must be strings that are not empty, not {several!r}"
        )
    return several


def demand_version(version: int, what: str) -> None:
    """Refuse a version that is no whole number from 1.

    Raises:
        ConfigurationError: it is another.
    """
    if type(version) is not int or version < 1:
        raise ConfigurationError(
            f"{what}: version must be a whole number from 1, not {version!r}"
        )


def _demand_name(name: str, what: str) -> None:
    try:
        checked_name(name, what)
    except InvalidInput as error:
        raise ConfigurationError(str(error)) from error


def _demand_limits(options: TaskOptions, label: str) -> None:
    demand_version(options.version, label)
    attempts = options.max_attempts
    if attempts is not None and (
        type(attempts) is not int or not 1 <= attempts <= _MOST_ATTEMPTS
    ):
        msg = f"{label}: max_attempts counts runs, the first included: 1 to {_MOST_ATTEMPTS}, not {attempts!r}"
        raise ConfigurationError(msg)
    for name in ("remember_for", "deadline", "retry_base", "retry_cap"):
        span = getattr(options, name)
        if span is not None and not (
            isinstance(span, timedelta) and span > timedelta(0)
        ):
            raise ConfigurationError(
                f"{label}: {name} must be a timedelta above zero, or None; not {span!r}"
            )
    if (
        options.retry_base is not None
        and options.retry_cap is not None
        and options.retry_base > options.retry_cap
    ):
        raise ConfigurationError(
            f"{label}: retry_base {options.retry_base} exceeds retry_cap {options.retry_cap}"
        )


def _per(
    options: TaskOptions, label: str, parameters: type[Parameters]
) -> tuple[str, ...]:
    most = options.at_most
    per = options.per
    names = (per,) if isinstance(per, str) else words_of(per, f"{label}: per")
    if most is None:
        if names:
            msg = f"{label}: per without at_most; say how many runs there may be for each value, as at_most=1"
            raise ConfigurationError(msg)
        return ()
    if type(most) is not int or not 1 <= most <= _MOST_AT_ONCE:
        raise ConfigurationError(
            f"{label}: at_most counts runs: 1 to {_MOST_AT_ONCE:,}, not {most!r}"
        )
    known = [*parameters.model_fields, *_CALLER]
    for name in names:
        if name not in known:
            raise ConfigurationError(
                f"{label}: per knows no {name!r}; it knows {', '.join(known)}"
            )
    return names


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


def _approver(options: TaskOptions, label: str) -> str | None:
    if isinstance(options.confirm, bool):
        return None
    try:
        return demand_person(options.confirm)
    except (InvalidInput, AttributeError) as error:
        msg = f"{label}: confirm={options.confirm!r}; write True, 'user:ana' or 'role:finance'"
        raise ConfigurationError(msg) from error


def _retry_on(options: TaskOptions, label: str) -> tuple[type[Exception], ...]:
    kinds = tuple(options.retry_on)
    if not all(
        isinstance(kind, type) and issubclass(kind, Exception) for kind in kinds
    ):
        raise ConfigurationError(
            f"{label}: retry_on takes classes of exceptions, not {kinds!r}"
        )
    return kinds


def _demand_lifetime(task: Task, label: str) -> None:
    if task.remember == "never":
        if task.remember_for is not REMEMBER_FOR:
            msg = f'{label}: remember_for without remember; add remember="shared" or "user", or leave remember_for out'
            raise ConfigurationError(msg)
        return
    stale = [use for use in _STALE if use in task.uses]
    if stale and not task.says_how_long:
        msg = (
            f"{label} is remembered and uses {' and '.join(map(repr, stale))}, so its results go stale; say when with "
            "remember_for=timedelta(...), or leave remember out"
        )
        raise ConfigurationError(msg)


def _remember(options: TaskOptions, label: str) -> Literal["shared", "user", "never"]:
    if options.remember is False:
        return "never"
    if options.remember not in ("shared", "user"):
        msg = f'{label}: remember must be "shared", "user" or False, not {options.remember!r}'
        raise ConfigurationError(msg)
    return options.remember


def _uses(options: TaskOptions, label: str) -> frozenset[str]:
    uses = words_of(options.uses, f"{label}: uses")
    unknown = sorted(set(uses) - set(get_args(Use)))
    if unknown:
        msg = (
            f"{label}: uses knows {', '.join(get_args(Use))}, not {', '.join(unknown)}"
        )
        raise ConfigurationError(msg)
    return frozenset(uses)
