"""An agent: a named, versioned set of tasks and listeners, and the decorators that add them."""

import copy
import functools
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from types import MappingProxyType
from typing import Any, TypeVar, Unpack, overload

from pydantic import BaseModel

from tasklore.contracts.errors import ConfigurationError, InvalidInput
from tasklore.contracts.identifiers import checked_name
from tasklore.workers.agent_settings import (
    changed_settings,
    fingerprint,
    initial_settings,
)
from tasklore.workers.context.children import Callee, declare_callable
from tasklore.workers.listening.declaration import (
    Listener,
    ListenOptions,
    Queue,
    read_listener,
)
from tasklore.workers.middleware import Middleware
from tasklore.workers.task import Task, read_task
from tasklore.workers.task_options import TaskOptions, demand_version, words_of

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
    def task(self, /, **options: Unpack[TaskOptions]) -> Callable[[F], F]: ...

    def task(
        self,
        handler: Callable[..., Any] | None = None,
        /,
        **options: Unpack[TaskOptions],
    ) -> Any:
        """Add a function as a task and return it unchanged, so that it can still be called and tested directly.

        Its arguments are known by annotation: one subclass of `Parameters`, and if wanted `Context` and the agent's
        settings class. Its docstring is what a supervisor reads to choose it. A plain `def` runs in a thread.

        Args:
            handler: the function, when the decorator is written without parentheses.
            options: as `tasklore.TaskOptions` describes them: `remember="shared"`, `at_most=1` and so on.

        Raises:
            ConfigurationError: the function or an option cannot be served; the message says how to mend it.
        """
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
