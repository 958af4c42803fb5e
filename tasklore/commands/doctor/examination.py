"""`tasklore doctor`: find the system, gather its facts side by side, check them, print the findings."""

import asyncio
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from urllib.parse import urlsplit

from tasklore.commands.doctor.facts import (
    Facts,
    MonitorFacts,
    NatsFacts,
    RedisFacts,
    Unanswered,
)
from tasklore.commands.doctor.nats_facts import examine_nats
from tasklore.commands.doctor.pages import examine_monitor, examine_processes
from tasklore.commands.doctor.redis_facts import examine_redis
from tasklore.commands.doctor.report import Report
from tasklore.commands.doctor.rules import Diagnosis
from tasklore.commands.doctor.server_checks import (
    check_nats,
    check_redis,
    find_durability,
)
from tasklore.commands.doctor.settings_checks import check_settings
from tasklore.commands.doctor.stream_checks import check_streams, declare_streams
from tasklore.commands.doctor.work_checks import check_processes, check_work
from tasklore.commands.endpoints import current_endpoints, endpoints_dir
from tasklore.commands.render.screen import patience, print_json
from tasklore.commands.stores import count_left_behind
from tasklore.runtime import logs
from tasklore.runtime.servers.endpoints import FILE_NAME, Endpoints, read_endpoints
from tasklore.runtime.settings import Settings
from tasklore.runtime.variables import unknown_variables

#: Processes whose pages are asked for at once; the others are counted.
MOST_PROCESSES = 64


async def print_examination(
    monitor: str | None, *, strict: bool, asks_models: bool = False, as_json: bool
) -> int:
    """Examine the system of this environment, print the findings, and return the exit code.

    With *asks_models* its models are asked instead of its servers, which need not run.
    """
    # Complaints of the libraries arrive as findings.
    logs.configure("error")
    settings = Settings.load(nats_monitor_url=monitor)
    if asks_models:
        from tasklore.commands.doctor.model_checks import ask_models

        async with patience("asking the models"):
            answers = [one async for one in ask_models(settings)]
        report = Report(answers, "unknown", {})
    else:
        endpoints, monitor_source = find_system(settings)
        async with patience("examining the servers"):
            report = await examine(endpoints, settings, monitor_source)
    if as_json:
        print_json(report.document(strict=strict))
    else:
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        print("\n".join(report.lines(width)), flush=True)
    return report.exit_code(strict=strict)


async def examine(
    endpoints: Endpoints,
    settings: Settings,
    monitor_source: str,
    clock: Callable[[], float] = time.time,
) -> Report:
    """Examine the system at *endpoints* as *settings* would run it; takes some seconds when servers are silent.

    *monitor_source* says where the address of the monitoring comes from, *clock* our time in seconds since 1970.
    """
    facts = await _gather_facts(endpoints, settings, monitor_source, clock)
    addresses = {"nats": facts.nats.url}
    if facts.redis is not None:
        addresses["redis"] = facts.redis.url
    findings = tuple(
        check(facts, settings, unknown_variables(os.environ, Settings.model_fields))
    )
    return Report(findings, find_durability(facts), addresses)


def check(
    facts: Facts, settings: Settings, unknown: dict[str, str | None]
) -> Iterator[Diagnosis]:
    """Yield every finding about *facts*; *unknown* are variables that name no setting, with the nearest that does."""
    yield from check_nats(facts.nats, facts.monitor)
    yield from check_streams(facts, settings)
    yield from check_work(facts.nats, settings)
    yield from check_redis(facts.redis)
    yield from check_processes(facts)
    yield from check_settings(settings, unknown, find_durability(facts))


def find_system(settings: Settings) -> tuple[Endpoints, str]:
    """Return where everything is, and where the address of the monitoring comes from."""
    found = current_endpoints()
    written = read_endpoints(endpoints_dir())
    if written is not None and (written.nats, written.redis) == (
        found.nats,
        found.redis,
    ):
        # With both variables set the file is not needed to find the servers; it still knows the rest.
        found = written
    if settings.nats_monitor_url is None:
        return found, FILE_NAME
    source = (
        "--monitor"
        if settings.source("nats_monitor_url") == "argument"
        else "TASKLORE_NATS_MONITOR_URL"
    )
    return Endpoints(
        nats=found.nats,
        redis=found.redis,
        http=found.http,
        workers=found.workers,
        monitor=settings.nats_monitor_url,
    ), source


async def _gather_facts(
    endpoints: Endpoints,
    settings: Settings,
    monitor_source: str,
    clock: Callable[[], float],
) -> Facts:
    names = [stream["name"] for stream in declare_streams(settings)]
    async with asyncio.TaskGroup() as group:
        examining_nats = group.create_task(examine_nats(endpoints.nats, names, clock))
        examining_redis: asyncio.Task[RedisFacts] | None = None
        examining_monitor: asyncio.Task[MonitorFacts] | None = None
        if endpoints.redis is not None:
            examining_redis = group.create_task(
                examine_redis(endpoints.redis, settings.supervisor_id, clock)
            )
        if endpoints.monitor is not None:
            examining_monitor = group.create_task(
                examine_monitor(endpoints.monitor, monitor_source)
            )
    nats = examining_nats.result()
    redis = None if examining_redis is None else examining_redis.result()
    monitor = None if examining_monitor is None else examining_monitor.result()
    if (
        redis is not None
        and redis.refusal is None
        and endpoints.redis is not None
        and not isinstance(nats.cards, Unanswered)
    ):
        redis = replace(
            redis, left_behind=await count_left_behind(endpoints.redis, nats.cards)
        )
    places = _places(endpoints, nats)
    processes = await examine_processes(places[:MOST_PROCESSES])
    now = datetime.fromtimestamp(clock(), UTC)
    return Facts(
        now=now,
        nats=nats,
        redis=redis,
        monitor=monitor,
        processes=processes,
        unexamined=max(0, len(places) - MOST_PROCESSES),
    )


def _places(endpoints: Endpoints, nats: NatsFacts) -> list[tuple[str, str, bool]]:
    """Return name and address of every process, those of endpoints.json first, and whether it names them."""
    named = {url: (name, url, True) for name, url in endpoints.workers.items() if url}
    if endpoints.http:
        named = {endpoints.http: ("supervisor", endpoints.http, True), **named}
    workers = () if isinstance(nats.workers, Unanswered) else nats.workers
    for worker in workers:
        # Any program may write into the bucket: only the address of a host and no more is followed.
        url = worker.http or ""
        parts = urlsplit(url)
        if (
            parts.scheme in ("http", "https")
            and parts.netloc
            and url.endswith(parts.netloc)
        ):
            named.setdefault(url, (worker.worker_id, url, False))
    return list(named.values())
