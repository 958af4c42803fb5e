"""`tasklore up`, `worker` and `supervisor`: processes that serve until they are stopped."""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from dataclasses import replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from tasklore.commands.endpoints import current_endpoints, starting_in
from tasklore.commands.exits import OK
from tasklore.commands.extras import without
from tasklore.commands.render.screen import patience, say
from tasklore.commands.up.ports import choose_ports
from tasklore.commands.up.roles import API, READY
from tasklore.commands.up.startup import wait_for_servers
from tasklore.commands.up.system import SystemPlan, running
from tasklore.contracts.errors import ConfigurationError, InvalidInput
from tasklore.runtime import logs
from tasklore.runtime.servers.claims import DirectoryLock
from tasklore.runtime.servers.endpoints import (
    Endpoints,
    masked_url,
    remove_endpoints,
    write_endpoints,
)
from tasklore.runtime.settings import Settings
from tasklore.runtime.watchdog import LEAVE_S, Watchdog

#: Hours for which messages of runs are kept where nobody says so.
RUN_MESSAGES_HOURS = 24.0
#: What is served when nothing is installed under the entry points.
_FALLBACK = "tasklore.workers.agents.budget"
_GROUP = "tasklore.agents"
#: The agents that listen to what people say and keep it, by their entry points.
_REMEMBERING = ("switchboard", "memory")


async def serve_all(
    agents: Sequence[str],
    data_dir: Path | None,
    workers: int,
    *,
    is_temporary: bool,
    keeps_memory: bool,
) -> int:
    """Run a whole system until cancelled, and say where it is; returns 0 after Ctrl-C: that is how it ends.

    Raises:
        InvalidInput: it is to be temporary and to keep data in *data_dir*.
    """
    if is_temporary and data_dir is not None:
        raise InvalidInput(
            "--temporary and --data-dir contradict each other; leave one out"
        )
    settings = Settings.load(data_dir=data_dir)
    # Pipelines may read the files of the folder in which the system is started, unless that is all.
    here = Path.cwd()
    own_folder = "" if here == here.parent else str(here)
    agents = agents or list_installed_agents()
    kept_in = None if is_temporary else settings.data_dir
    plan = SystemPlan(
        agents=_with_memory(agents) if keeps_memory else agents,
        workers=workers,
        data_dir=kept_in,
        durability=settings.durability,
        nats_url=settings.nats_url,
        redis_url=settings.redis_url,
        grace_s=settings.grace_s,
        variables={
            "TASKLORE_PIPELINE_ROOTS": settings.pipeline_roots or own_folder,
            "TASKLORE_RUN_MESSAGES_HOURS": f"{_find_hours(settings):g}",
        },
        serves_operations=settings.api_port is not None,
    )
    async with contextlib.AsyncExitStack() as stack:
        place = await stack.enter_async_context(
            _claim(settings.data_dir, is_kept=plan.data_dir is not None)
        )
        plan = replace(plan, ports=choose_ports(kept_in))
        async with patience("starting servers, supervisor and workers"):
            with starting_in(place):
                system = await stack.enter_async_context(running(plan))
                write_endpoints(place, system.endpoints)
        found = system.endpoints
        api = f" api={found.api}" if found.api is not None else ""
        operations = (
            f" operations={found.operations}" if found.operations is not None else ""
        )
        where = (
            f"nats={masked_url(found.nats)} redis={masked_url(found.redis_url)} http={found.http}"
            f"{api}{operations}"
        )
        print(f"ready {where}", flush=True)
        if sys.stderr.isatty():
            for line in _hints(plan, keeps_memory=keeps_memory):
                say(line)
        with contextlib.suppress(asyncio.CancelledError):
            await system.supervise(say, lambda: _note(place, system.endpoints))
        if sys.stderr.isatty():
            say("stopping; Ctrl-C again kills what is still running")
    return OK


def _find_hours(settings: Settings) -> float:
    """Return for how many hours messages of runs are kept: a day, so that an author can look, or as it is set."""
    is_said = settings.source("run_messages_hours") != "default"
    return settings.run_messages_hours if is_said else RUN_MESSAGES_HOURS


def _with_memory(agents: Sequence[str]) -> list[str]:
    """Return *agents*, with those beside that listen to what people say and remember it."""
    known = {point.name: point.module for point in entry_points(group=_GROUP)}
    return [
        *agents,
        *(
            name
            for name in _REMEMBERING
            if name in known and not {name, known[name]} & set(agents)
        ),
    ]


def _hints(plan: SystemPlan, *, keeps_memory: bool) -> Iterator[str]:
    """Yield what a person may want to know of a system that is ready."""
    yield 'ask in another terminal: tasklore ask "..."'
    if not keeps_memory:
        yield "memory is off (--no-memory): what people say is not stored"
    if plan.data_dir is None:
        yield "all data are discarded on exit (--temporary), including what people said"
    else:
        yield f"data are kept in {plan.data_dir}; --temporary discards them on exit"


def serve_worker(
    references: Sequence[str], config: Path | None, slots: int | None
) -> None:
    """Serve agents in the foreground until SIGTERM or SIGINT."""
    load_worker()
    from tasklore.commands.agents.check import warn_of_unread
    from tasklore.commands.up.worker_setup import prepare
    from tasklore.workers.wiring import run_worker

    prepared = prepare(references, config)
    settings = _settings(slots=slots, supervisor_id=prepared.supervisor_id)
    warn_of_unread(prepared.agents)

    async def serve() -> None:
        await wait_for_servers(settings)
        await run_worker(
            prepared.agents,
            settings,
            remembers=prepared.remembers,
            on_ready=lambda url: print(f"{READY}{url}", flush=True),
        )

    _run(serve())


def load_worker() -> None:
    """Import what a worker runs on, without the packages of other roles that its libraries use where they find them."""
    with without("uvicorn"):
        import tasklore.workers.wiring  # noqa: F401  # imported for whoever uses it next


def serve_supervisor() -> None:
    """Serve requests in the foreground until SIGTERM or SIGINT."""
    from tasklore.supervisor.wiring import run_supervisor

    settings = _settings()

    async def serve() -> None:
        await wait_for_servers(settings)
        await run_supervisor(
            settings,
            on_ready=lambda url: print(f"{READY}{url}", flush=True),
            on_api=lambda url: print(f"{API}{url}", flush=True),
        )

    _run(serve())


def serve_operations() -> None:
    """Serve operations, with the rights of an operator, in the foreground until SIGTERM or SIGINT."""
    from tasklore.commands.memory_hands import lend_hands
    from tasklore.supervisor.operator_process import run_operations

    settings = _settings()

    async def serve() -> None:
        await wait_for_servers(settings)
        await run_operations(
            settings,
            lend_hands,
            on_ready=lambda url: print(f"{READY}{url}", flush=True),
            on_api=lambda url: print(f"{API}{url}", flush=True),
        )

    _run(serve())


def list_installed_agents() -> list[str]:
    """Return the agents that installed distributions declare, ours among them, by name."""
    return sorted({point.name for point in entry_points(group=_GROUP)}) or [_FALLBACK]


def _settings(**arguments: object) -> Settings:
    """Return the settings of a serving process, with the servers of `endpoints.json` when no variable names any."""
    settings = Settings.load(**arguments)
    logs.configure(settings.log_level, settings.log_format)
    if settings.nats_url is not None and settings.redis_url is not None:
        return settings
    found = current_endpoints()
    return Settings.load(**arguments, nats_url=found.nats, redis_url=found.redis_url)


def _run(serve: Coroutine[Any, Any, None]) -> None:
    factory: Callable[[], asyncio.AbstractEventLoop] | None = None
    if sys.platform != "win32":
        import uvloop

        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        try:
            runner.run(serve)
        finally:
            # A thread that is still busy keeps no process from leaving.
            Watchdog(LEAVE_S).beat()


@contextlib.asynccontextmanager
async def _claim(directory: Path, *, is_kept: bool) -> AsyncIterator[Path]:
    """Claim *directory* for this system alone; without data to keep, nothing is left in it at the end.

    Raises:
        ConfigurationError: another system runs from there.
    """
    existed = directory.exists()  # noqa: ASYNC240  # before anything runs
    lock = DirectoryLock(directory, "`tasklore up`")
    await lock.acquire()
    # Of a system that was killed here; its addresses are no longer served.
    remove_endpoints(directory)
    try:
        yield directory
    finally:
        remove_endpoints(directory)
        if not is_kept:
            (directory / "lock").unlink(missing_ok=True)
        lock.release()
        if not is_kept and not existed:
            with contextlib.suppress(OSError):
                directory.rmdir()  # noqa: ASYNC240  # after everything has run


def _note(place: Path, endpoints: Endpoints) -> None:
    try:
        write_endpoints(place, endpoints)
    except ConfigurationError as error:
        say(str(error))
