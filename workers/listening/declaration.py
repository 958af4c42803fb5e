"""Listeners as `@agent.listen` declares them: functions of turns or facts, checked as a task's function is."""

import collections.abc
import functools
import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Literal, get_args

from pydantic import BaseModel, TypeAdapter, ValidationError

from tasklore.contracts.errors import ConfigurationError, GiveUp
from tasklore.contracts.messages import ChatTurn, Fact
from tasklore.workers.handler import UNNAMED, hints_of, in_thread
from tasklore.workers.listening.context import ListenContext
from tasklore.workers.listening.values import FactBatch, Ruling, TurnBatch, TurnFacts

Queue = Literal["turns", "facts"]

#: What a listener of each queue may be given: one of these.
_GIVEN: dict[str, tuple[type, ...]] = {
    "turns": (ChatTurn, TurnBatch),
    "facts": (FactBatch,),
}
#: What its answer consists of.
_ANSWERED: dict[type, type] = {ChatTurn: Fact, TurnBatch: TurnFacts, FactBatch: Ruling}

_SEVERAL = (
    list,
    tuple,
    collections.abc.Sequence,
    collections.abc.Collection,
    collections.abc.Iterable,
)

#: The most that an option may say; more is a mistake.
_MOST = {"items": 500, "users": 1_000, "attempts": 1_000}

_FACTS = TypeAdapter(tuple[Fact, ...])


@dataclass(frozen=True, kw_only=True, eq=False)
class Listener:
    """One listener as it was declared.

    `items` is how many rows of one user it is given at once, `users` for how many it works at once, `attempts` how many
    runs a row may have; None: the worker's settings. `deadline` is how long one run may take, None: no limit.
    `is_batched` is true for a listener of turns that takes several at once.
    """

    queue: Queue
    label: str
    items: int | None
    users: int | None
    attempts: int | None
    deadline: timedelta | None
    function: Callable[..., Any] = field(repr=False)
    given_name: str
    context_name: str | None
    settings_name: str | None
    is_async: bool
    is_batched: bool

    def with_defaults(self, *, items: int, users: int, attempts: int) -> "Listener":
        """Return the same listener with these limits where it declares none of its own."""
        return replace(
            self,
            items=items if self.items is None else self.items,
            users=users if self.users is None else self.users,
            attempts=attempts if self.attempts is None else self.attempts,
        )

    async def learn(
        self, batch: TurnBatch, context: ListenContext
    ) -> tuple[TurnFacts, ...]:
        """Return the facts of the turns of *batch*; it has one turn unless the listener takes several.

        Raises:
            GiveUp: it returned something else than facts, or facts of a turn that it was not given.
            Exception: whatever it raises.
        """
        if self.is_batched:
            return self._demand_turns(batch, await self._call(batch, context))
        (turn,) = batch.turns
        said = await self._call(turn, context)
        try:
            facts = _FACTS.validate_python(
                tuple(said) if isinstance(said, Sequence) else said
            )
        except ValidationError as error:
            raise GiveUp(f"{self.label} did not return facts: {error}") from error
        return (TurnFacts(turn.turn_id, facts, context.waits_for),)

    def _demand_turns(self, batch: TurnBatch, said: Any) -> tuple[TurnFacts, ...]:
        """Return *said* when it speaks of turns of *batch*, of each once at most."""
        learned = tuple(said) if isinstance(said, Sequence) else (said,)
        if not all(isinstance(one, TurnFacts) for one in learned):
            kinds = ", ".join(sorted({type(one).__name__ for one in learned}))
            raise GiveUp(
                f"{self.label} returned {kinds}; return one TurnFacts for each turn that teaches something"
            )
        left = [turn.turn_id for turn in batch.turns]
        for one in learned:
            if one.turn_id not in left:
                raise GiveUp(
                    f"{self.label} learned from {one.turn_id!r}, which is not in the batch, or said so twice"
                )
            left.remove(one.turn_id)
        return learned

    async def rule(
        self, batch: FactBatch, context: ListenContext
    ) -> tuple[Ruling, ...]:
        """Return how a listener of facts rules on *batch*.

        Raises:
            GiveUp: it returned something else than rulings.
            Exception: whatever it raises.
        """
        said = await self._call(batch, context)
        rulings = tuple(said) if isinstance(said, Sequence) else (said,)
        if not all(isinstance(ruling, Ruling) for ruling in rulings):
            kinds = ", ".join(sorted({type(ruling).__name__ for ruling in rulings}))
            raise GiveUp(
                f"{self.label} returned {kinds}; return one Ruling for each fact of the batch"
            )
        return rulings

    async def _call(
        self, given: ChatTurn | TurnBatch | FactBatch, context: ListenContext
    ) -> Any:
        arguments: dict[str, Any] = {self.given_name: given}
        if self.context_name is not None:
            arguments[self.context_name] = context
        if self.settings_name is not None:
            arguments[self.settings_name] = context.settings
        if self.is_async:
            return await self.function(**arguments)
        said = await in_thread(functools.partial(self.function, **arguments))
        return await said if inspect.isawaitable(said) else said


@dataclass(frozen=True, kw_only=True)
class ListenOptions:
    """The arguments of `@agent.listen(...)`, not yet checked."""

    items: int | None
    users: int | None
    attempts: int | None
    deadline: timedelta | None


def read_listener(
    function: Callable[..., Any],
    agent_id: str,
    queue: str,
    options: ListenOptions,
    settings: type[BaseModel] | None,
    names: Mapping[str, Any],
) -> Listener:
    """Return the listener that *function* and *options* declare; *names* as in `tasklore.workers.handler.read_handler`.

    Raises:
        ConfigurationError: something cannot be served; the message says how to mend it.
    """
    label = f"{agent_id}.{getattr(function, '__name__', 'listen')}"
    if queue not in _GIVEN:
        msg = f'{label}: @agent.listen takes "turns" or "facts", not {queue!r}'
        raise ConfigurationError(msg)
    _demand_limits(options, label)
    hints = hints_of(function, label, names)
    roles = _roles_of(
        function, hints=hints, label=label, queue=queue, settings=settings
    )
    given = next(one for one in _GIVEN[queue] if one in roles)
    _demand_answer(hints, label, _ANSWERED[given])
    return Listener(
        queue=typing.cast("Queue", queue),
        label=label,
        items=options.items,
        users=options.users,
        attempts=options.attempts,
        deadline=options.deadline,
        function=function,
        given_name=roles[given],
        context_name=roles.get(ListenContext),
        settings_name=roles.get(settings) if settings is not None else None,
        is_async=inspect.iscoroutinefunction(function),
        is_batched=given is TurnBatch,
    )


def _roles_of(
    function: Callable[..., Any],
    hints: Mapping[str, Any],
    label: str,
    queue: str,
    settings: type[BaseModel] | None,
) -> dict[type, str]:
    """Return the name of each argument by its class."""
    given = _GIVEN[queue]
    fitting: list[type] = [
        *given,
        ListenContext,
        *([settings] if settings is not None else []),
    ]
    roles: dict[type, str] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        kind = hints.get(name)
        if kind not in fitting or parameter.kind in UNNAMED:
            what = (
                "has no annotation"
                if kind is None
                else f"is annotated with {getattr(kind, '__name__', kind)}"
            )
            words = ", ".join(one.__name__ for one in fitting)
            msg = f"{label}: the argument {name!r} {what}; a listener of {queue} takes named arguments of {words} only"
            raise ConfigurationError(msg)
        if kind in roles:
            raise ConfigurationError(
                f"{label} takes two of {kind.__name__}: {roles[kind]!r} and {name!r}; drop one"
            )
        roles[kind] = name
    names = " or ".join(one.__name__ for one in given)
    taken = [one for one in given if one in roles]
    if not taken:
        msg = f"{label} takes no {names}; add an argument with that annotation: what it listens to comes there"
        raise ConfigurationError(msg)
    if len(taken) > 1:
        raise ConfigurationError(
            f"{label} takes both {names.replace(' or ', ' and ')}; drop one"
        )
    return roles


def _demand_answer(hints: Mapping[str, Any], label: str, wanted: type) -> None:
    hint = hints.get("return")
    if typing.get_origin(hint) not in _SEVERAL or get_args(hint)[:1] != (wanted,):
        msg = f"{label} must say that it returns Sequence[{wanted.__name__}], or a list or tuple of them"
        raise ConfigurationError(msg)


def _demand_limits(options: ListenOptions, label: str) -> None:
    for name, most in _MOST.items():
        value = getattr(options, name)
        if value is not None and (type(value) is not int or not 1 <= value <= most):
            raise ConfigurationError(
                f"{label}: {name} must be a whole number from 1 to {most}, not {value!r}"
            )
    span = options.deadline
    if span is not None and not (isinstance(span, timedelta) and span > timedelta(0)):
        raise ConfigurationError(
            f"{label}: deadline must be a timedelta above zero, or None; not {span!r}"
        )
