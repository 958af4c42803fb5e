"""An agent: a named, versioned set of tasks and listeners, and the decorators that add them."""

import copy
import functools
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from types import MappingProxyType
from typing import Any, Literal, TypeVar, overload

from pydantic import BaseModel

from tasklore.contracts.errors import ConfigurationError, InvalidInput
from tasklore.contracts.identifiers import checked_name
from tasklore.workers.agent_settings import (
    changed_settings,
    fingerprint,
    initial_settings,
)
from tasklore.workers.context.access import REMEMBER_FOR
from tasklore.workers.context.children import Callee, declare_callable
from tasklore.workers.listening.declaration import (
    Listener,
    ListenOptions,
    Queue,
    read_listener,
)
from tasklore.workers.middleware import Middleware
from tasklore.workers.task import (
    Task,
    TaskOptions,
    Use,
    demand_version,
    read_schedule,
    read_task,
    words_of,
)

F = TypeVar("F", bound=Callable[..., Any])


class Agent:
    """What a module declares once, at its top level, and decorates its tasks with.

    Args:
        agent_id: 1 to 64 letters, digits, `_` or `-`; it stands in subjects and keys, so renaming forgets everything.
        version: raise it when the results of every task mean something new; remembered ones are then left behind.
        description: one sentence for those who choose an agent.
        keywords: words in a sentence that point at this agent.
        settings: a pydantic model with a default for every field, or an instance of one. Values other than the
            defaults become part of the memory's keys.
        middleware: hooks around its tasks, called in this order (see `tasklore.workers.middleware`).

    Raises:
        ConfigurationError: one of them cannot be used.
    """

    def __init__(
        self,
        agent_id: str,
        *,
        version: int = 1,
        description: str = "",
        keywords: Iterable[str] = (),
        settings: BaseModel | type[BaseModel] | None = None,
        middleware: Iterable[Middleware] = (),
    ) -> None:
        try:
            self.agent_id = checked_name(agent_id, "agent_id")
        except (InvalidInput, TypeError) as error:
            msg = f"agent_id {agent_id!r} must be 1 to 64 letters, digits, '_' or '-'"
            raise ConfigurationError(msg) from error
        demand_version(version, agent_id)
        self.version = version
        self.description = description
        self.keywords = words_of(keywords, f"{agent_id}: keywords")
        self._settings = initial_settings(agent_id, settings)
        self._fingerprint = fingerprint(self._settings)
        self.middleware = tuple(middleware)
        if not all(isinstance(one, Middleware) for one in self.middleware):
            raise ConfigurationError(
                f"{agent_id}: middleware takes instances of Middleware, not {self.middleware!r}"
            )
        self._tasks: dict[str, Task] = {}
        self._listeners: dict[str, Listener] = {}

    def __repr__(self) -> str:
        listens = f", listens=[{', '.join(self._listeners)}]" if self._listeners else ""
        return f"Agent({self.agent_id!r}, version={self.version}, tasks=[{', '.join(self._tasks)}]{listens})"

    @property
    def tasks(self) -> Mapping[str, Task]:
        """The tasks by name, in the order of their declaration."""
        return MappingProxyType(self._tasks)

    @property
    def listeners(self) -> Mapping[str, Listener]:
        """What it listens to, by queue: `turns`, `facts` or both."""
        return MappingProxyType(self._listeners)

    @property
    def settings(self) -> BaseModel | None:
        """The settings in force, None when the agent declares none."""
        return self._settings

    @overload
    def task(self, handler: F, /) -> F: ...

    @overload
    def task(
        self,
        handler: None = None,
        /,
        *,
        name: str | None = None,
        version: int = 1,
        remember: Literal["shared", "user", False] = False,
        remember_for: timedelta | None = REMEMBER_FOR,
        max_attempts: int | None = None,
        deadline: timedelta | None = None,
        retry_base: timedelta | None = None,
        retry_cap: timedelta | None = None,
        retry_on: Iterable[type[Exception]] = (),
        idempotent: bool = True,
        uses: Iterable[Use] = (),
        keywords: Iterable[str] = (),
        examples: Iterable[str] = (),
        in_words: bool = True,
        confirm: bool | str = False,
        every: timedelta | None = None,
        cron: str | None = None,
        time_zone: str = "UTC",
        missed: Literal["skip", "once", "all"] = "once",
    ) -> Callable[[F], F]: ...

    def task(
        self,
        handler: Callable[..., Any] | None = None,
        /,
        *,
        name: str | None = None,
        version: int = 1,
        remember: Literal["shared", "user", False] = False,
        remember_for: timedelta | None = REMEMBER_FOR,
        max_attempts: int | None = None,
        deadline: timedelta | None = None,
        retry_base: timedelta | None = None,
        retry_cap: timedelta | None = None,
        retry_on: Iterable[type[Exception]] = (),
        idempotent: bool = True,
        uses: Iterable[Use] = (),
        keywords: Iterable[str] = (),
        examples: Iterable[str] = (),
        in_words: bool = True,
        confirm: bool | str = False,
        every: timedelta | None = None,
        cron: str | None = None,
        time_zone: str = "UTC",
        missed: Literal["skip", "once", "all"] = "once",
        at_most: int | None = None,
        per: str | Iterable[str] = (),
    ) -> Any:
        """Add a function as a task and return it unchanged, so that it can still be called and tested directly.

        Its arguments are known by annotation: one subclass of `Parameters`, and if wanted `Context` and the agent's
        settings class. Its docstring is what a supervisor reads to choose it. A plain `def` runs in a thread.

        Args:
            handler: the function, when the decorator is written without parentheses.
            name: the task's name, by default the function's.
            version: raise it when results mean something new.
            remember: who may be served a remembered result: everybody, the user who asked, or nobody (False).
            remember_for: how long, 30 days by default, None for ever; a remembered task that uses clock, model or
                `context.once` must say it, since its results go stale.
            max_attempts: runs, the first included; the worker's setting by default.
            deadline: how long it may take, its time in the queue included, when the request does not say.
            retry_base: the pause before its second run, which doubles with every further one; the worker's by default.
            retry_cap: the longest such pause.
            retry_on: errors of programming (TypeError and the like) that are worth another run all the same.
            idempotent: whether running it twice does no harm, so that it may run while the ledger is away.
            uses: "llm", "clock", "edits": what it touches through its context.
            keywords: words in a sentence that point at this task, beside those of the agent.
            examples: sentences that ask for it.
            in_words: whether a person may ask for it in words, or only pipelines, analyses and programs.
            confirm: whether it has effects that a person who asks in words is shown, and says yes to, before it starts;
                "role:finance" or "user:ana" for those whose yes it needs instead, for which it waits up to seven days.
            every: how often it begins by itself, in whole seconds; all its parameters then need defaults.
            cron: when it does instead, as "0 9 * * mon-fri".
            time_zone: by whose clocks (IANA).
            missed: which times are made up for at which no supervisor ran: none ("skip"), the last, or all.
            at_most: how many runs of it may go on at once, over all workers; the others wait without a slot.
            per: for each value of which that holds: parameters, or "tenant" or "user" of who asks.

        Raises:
            ConfigurationError: the function or an option cannot be served; the message says how to mend it.
        """
        options = TaskOptions(
            name=name,
            version=version,
            remember=remember,
            remember_for=remember_for,
            max_attempts=max_attempts,
            deadline=deadline,
            retry_base=retry_base,
            retry_cap=retry_cap,
            idempotent=idempotent,
            uses=uses,
            keywords=keywords,
            examples=examples,
            in_words=in_words,
            confirm=confirm,
            retry_on=retry_on,
            schedule=read_schedule(every, cron, time_zone, missed),
            at_most=at_most,
            per=per,
        )
        names = dict(sys._getframe(1).f_locals)  # noqa: SLF001 - quoted annotations may name classes local to the caller
        add = functools.partial(self._add, options, names)
        return add if handler is None else add(handler)

    def listen(
        self,
        queue: Queue,
        *,
        items: int | None = None,
        users: int | None = None,
        attempts: int | None = None,
        deadline: timedelta | None = None,
    ) -> Callable[[F], F]:
        """Add a function as the listener of *queue* and return it unchanged.

        Of "turns" it is given one `ChatTurn` and returns the facts in it; of "facts" a `FactBatch` of one user, and it
        returns a `Ruling` for each. Its arguments are known by annotation: that one, and if wanted `ListenContext` and
        the agent's settings class. A plain `def` runs in a thread. Whatever is one user's comes in the order in which
        it was said, and never twice at the same time; all workers of one system share a queue, so that only one agent
        should listen to it.

        Args:
            queue: "turns" or "facts".
            items: rows of one user a claim takes at most.
            users: for how many users it works at once in one process.
            attempts: runs that a row may have before it is set aside.
            deadline: how long one run may take; None is no limit.

        The first three are the worker's settings by default.

        Raises:
            ConfigurationError: the function or an option cannot be served; the message says how to mend it.
        """
        options = ListenOptions(
            items=items, users=users, attempts=attempts, deadline=deadline
        )
        names = dict(sys._getframe(1).f_locals)  # noqa: SLF001 - the documented way to the caller's names

        def add(function: F) -> F:
            listener = read_listener(
                function,
                agent_id=self.agent_id,
                queue=queue,
                options=options,
                settings=self._settings_class,
                names=names,
            )
            if queue in self._listeners:
                msg = f"{self.agent_id} listens to {queue!r} twice; merge {self._listeners[queue].label} and this one"
                raise ConfigurationError(msg)
            self._listeners[queue] = listener
            return function

        return add

    def memory_version(self, task: Task) -> str:
        """Return the version part of memory keys: "v1.2-9f3c2a17" for version 1 of the agent and 2 of *task*.

        The digest of the task's code follows, so that edited code serves no old answer. Settings other than the
        defaults add `+` and their fingerprint, so that no answer of theirs serves others.
        """
        code = f"-{task.code}" if task.code else ""
        mark = f"+{self._fingerprint}" if self._fingerprint else ""
        return f"v{self.version}.{task.version}{code}{mark}"

    def configured(self, values: Mapping[str, Any]) -> "Agent":
        """Return the same agent with the settings in *values*, by name, in place of its own.

        Raises:
            ConfigurationError: a name is no setting of the agent, or a value does not fit it.
        """
        agent = copy.copy(self)
        agent._settings = changed_settings(self.agent_id, self._settings, values)  # noqa: SLF001 - its own class
        agent._fingerprint = fingerprint(agent._settings)  # noqa: SLF001
        agent._tasks = dict(self._tasks)  # noqa: SLF001
        agent._listeners = dict(self._listeners)  # noqa: SLF001
        return agent

    def with_defaults(
        self, *, max_attempts: int, deadline: timedelta | None
    ) -> "Agent":
        """Return the same agent, its tasks with these limits where they declare none of their own."""
        agent = copy.copy(self)
        agent._tasks = {  # noqa: SLF001 - its own class
            task.name: replace(
                task,
                max_attempts=max_attempts
                if task.max_attempts is None
                else task.max_attempts,
                deadline=deadline if task.deadline is None else task.deadline,
            )
            for task in self._tasks.values()
        }
        return agent

    @property
    def _settings_class(self) -> type[BaseModel] | None:
        return None if self._settings is None else type(self._settings)

    def _add(self, options: TaskOptions, names: Mapping[str, Any], function: F) -> F:
        task = read_task(
            function,
            agent_id=self.agent_id,
            options=options,
            settings=self._settings_class,
            names=names,
        )
        if task.name in self._tasks:
            msg = f"{self.agent_id} has two tasks {task.name!r}; rename one, or give it @agent.task(name=...)"
            raise ConfigurationError(msg)
        self._tasks[task.name] = task
        declare_callable(
            task.handler.function, Callee(self.agent_id, task.name, task.handler.result)
        )
        return function
