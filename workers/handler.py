"""What the signature of a task's function says: which argument is what, and how its result is written."""

import asyncio
import contextlib
import contextvars
import functools
import inspect
import math
import threading
import typing
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from itertools import zip_longest
from typing import Any, TypeVar

from pydantic import (
    BaseModel,
    JsonValue,
    PydanticUserError,
    TypeAdapter,
    ValidationError,
)
from pydantic.errors import PydanticInvalidForJsonSchema
from pydantic_core import from_json

from tasklore.contracts.errors import ConfigurationError, GiveUp
from tasklore.contracts.parameters.model import Parameters
from tasklore.contracts.quantities.amounts.amount import RESULT
from tasklore.workers.context.context import Context

T = TypeVar("T")

#: Arguments that cannot be given by name.
UNNAMED = (
    inspect.Parameter.VAR_POSITIONAL,
    inspect.Parameter.VAR_KEYWORD,
    inspect.Parameter.POSITIONAL_ONLY,
)

#: What JSON has where a number is none: NaN and infinity become null, unless the type says otherwise.
_LOST_NUMBERS = (b"null", b"NaN", b"Infinity")


@dataclass(frozen=True, kw_only=True)
class Handler:
    """A task's function, with the names of its arguments by role; None for a role it does not take."""

    function: Callable[..., Any]
    label: str
    parameters: type[Parameters]
    parameters_name: str
    context_name: str | None
    settings_name: str | None
    result: TypeAdapter[Any]
    is_async: bool

    async def call(self, parameters: Parameters, context: Context) -> bytes:
        """Return the result as JSON; a plain function runs in a thread, so that it blocks no other task.

        Raises:
            GiveUp: the result does not fit the return annotation.
            Exception: whatever the function raises.
        """
        arguments: dict[str, Any] = {self.parameters_name: parameters}
        if self.context_name is not None:
            arguments[self.context_name] = context
        if self.settings_name is not None:
            arguments[self.settings_name] = context.settings
        if self.is_async:
            value = await self.function(**arguments)
        else:
            value = await in_thread(functools.partial(self.function, **arguments))
            if inspect.isawaitable(value):
                value = await value
        return self._write(value)

    def result_schema(self) -> dict[str, JsonValue] | None:
        """Return the JSON schema of the result, None for a type that JSON schema cannot describe."""
        try:
            return self.result.json_schema(mode="serialization")
        except PydanticInvalidForJsonSchema:
            return None

    def _write(self, value: Any) -> bytes:
        try:
            checked = self.result.validate_python(value)
            written = self.result.dump_json(checked, by_alias=True, context=RESULT)
            if any(word in written for word in _LOST_NUMBERS):
                plain = self.result.dump_python(checked, by_alias=True, context=RESULT)
                _demand_numbers(plain, from_json(written))
        except (ValidationError, ValueError, TypeError) as error:
            msg = f"{self.label} returned a {type(value).__name__} that does not fit its return annotation: {error}"
            raise GiveUp(msg) from error
        return written


def read_handler(
    function: Callable[..., Any],
    label: str,
    settings: type[BaseModel] | None,
    names: Mapping[str, Any],
) -> Handler:
    """Return what the signature of *function* says; *names* are those visible where it is defined.

    Args:
        function: what `@agent.task` decorates.
        label: "TripAgent.share_trip", for messages.
        settings: the settings class of the agent, None when it has none.
        names: local names that annotations in quotes may use, beside the module's own.

    Raises:
        ConfigurationError: the signature cannot be served; the message says how to mend it.
    """
    hints = hints_of(function, label, names)
    roles: dict[type, str] = {}
    parameters: type[Parameters] | None = None
    for name, parameter in inspect.signature(function).parameters.items():
        kind = hints.get(name)
        role = _role_of(kind, settings)
        if role is None or parameter.kind in UNNAMED:
            raise ConfigurationError(f"{label}: {_what_fits(name, kind, settings)}")
        if role in roles:
            msg = f"{label} takes two of {role.__name__}: {roles[role]!r} and {name!r}; merge them into one class"
            raise ConfigurationError(msg)
        roles[role] = name
        if role is Parameters:
            parameters = typing.cast("type[Parameters]", kind)
    if parameters is None:
        msg = f"{label} takes no parameters class; add an argument whose annotation is a subclass of Parameters"
        raise ConfigurationError(msg)
    _demand_closed(parameters, label)
    return Handler(
        function=function,
        label=label,
        parameters=parameters,
        parameters_name=roles[Parameters],
        context_name=roles.get(Context),
        settings_name=roles.get(settings) if settings is not None else None,
        result=_result_of(hints, label),
        is_async=inspect.iscoroutinefunction(function),
    )


def hints_of(
    function: Callable[..., Any], label: str, names: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the annotations of *function*, those in quotes read with *names* beside the module's own.

    Raises:
        ConfigurationError: it is no plain function, or an annotation cannot be read.
    """
    plain = inspect.isfunction(function) or inspect.ismethod(function)
    if (
        not plain
        or inspect.isasyncgenfunction(function)
        or inspect.isgeneratorfunction(function)
    ):
        msg = f"{label} is not a plain function; decorate a `def` or `async def` that returns its result"
        raise ConfigurationError(msg)
    try:
        return typing.get_type_hints(function, localns=dict(names), include_extras=True)
    except (NameError, TypeError, AttributeError) as error:
        msg = f"{label} has an annotation that cannot be read: {error}; define or import it above the function"
        raise ConfigurationError(msg) from error


def _role_of(kind: Any, settings: type[BaseModel] | None) -> type | None:
    if not isinstance(kind, type):
        return None
    if issubclass(kind, Parameters):
        return Parameters
    if kind is Context:
        return Context
    return settings if settings is not None and kind is settings else None


def _what_fits(name: str, kind: Any, settings: type[BaseModel] | None) -> str:
    """Return why the argument *name* is not served, and what would be."""
    fitting = [
        "a subclass of Parameters",
        "Context",
        *([settings.__name__] if settings is not None else []),
    ]
    what = (
        "has no annotation"
        if kind is None
        else f"is annotated with {getattr(kind, '__name__', kind)}"
    )
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        cure = (
            f"derive it from Parameters, or hand it to Agent(settings={kind.__name__})"
        )
    else:
        cure = "move plain values into the parameters class"
    return f"the argument {name!r} {what}; a task takes named arguments of {', '.join(fitting)} only: {cure}"


def _demand_closed(parameters: type[Parameters], label: str) -> None:
    config = parameters.model_config
    if config.get("extra") != "forbid" or not config.get("frozen"):
        name = parameters.__name__
        msg = f"{label}: {name} must stay closed and frozen; remove `extra` and `frozen` from its model_config"
        raise ConfigurationError(msg)


def _result_of(hints: Mapping[str, Any], label: str) -> TypeAdapter[Any]:
    if "return" not in hints:
        msg = f"{label} has no return annotation; say what it returns (a pydantic model, dict, Amount, ...)"
        raise ConfigurationError(msg)
    try:
        return TypeAdapter(hints["return"])
    except PydanticUserError as error:
        msg = f"{label} returns {hints['return']!r}, which has no JSON form; return a pydantic model of plain fields"
        raise ConfigurationError(msg) from error


def _demand_numbers(value: Any, written: Any, place: str = "") -> None:
    """Return when each number of *value* is one in *written*, its JSON, or is spelled there by the type's own wish.

    Raises:
        ValueError: JSON has no such number, and would have null; names the field.
    """
    if isinstance(value, float | Decimal) and not math.isfinite(value):
        if isinstance(written, str):
            return
        where = f"{place.removeprefix('.')} is {value}" if place else f"it is {value}"
        msg = f"{where}, which JSON has no number for; return None, a text, or another number"
        raise ValueError(msg)
    if isinstance(value, Mapping):
        found = written if isinstance(written, Mapping) else {}
        for name, part in value.items():
            _demand_numbers(part, found.get(str(name)), f"{place}.{name}")
    elif isinstance(value, list | tuple | set | frozenset | deque):
        items = written if isinstance(written, list) else []
        for index, (part, one) in enumerate(zip_longest(value, items)):
            _demand_numbers(part, one, f"{place}[{index}]")


async def in_thread(function: Callable[[], T]) -> T:
    """Return what *function* returns, run in a thread of its own that nothing waits for once the process ends.

    A pool would let slow functions delay quick ones, and its threads are joined at the end: a worker that is to leave
    would stay for as long as its slowest function. Slots bound the threads, but for those whose deadline has passed.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()

    def tell(value: Any, error: BaseException | None) -> None:
        if not done.done() and error is not None:
            done.set_exception(error)
        elif not done.done():
            done.set_result(value)

    def run() -> None:
        value: Any = None
        error: BaseException | None = None
        try:
            value = context.run(function)
        except StopIteration as stop:
            # A future cannot carry it: it would end the coroutine that awaits as if that had returned.
            error = RuntimeError(f"raised StopIteration({stop.value!r})")
            error.__cause__ = stop
        except BaseException as raised:  # noqa: BLE001 - it belongs to whoever awaits
            error = raised
        # The loop is gone when the process has left meanwhile: then nobody wants to know.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(tell, value, error)

    threading.Thread(target=run, name="tasklore-task", daemon=True).start()
    return await done
