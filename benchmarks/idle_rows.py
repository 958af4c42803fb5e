"""What idle supervisors cost the two servers: real processes, each with an id of its own, on servers of this row.

Fifty do not fit on a machine of two cores beside what they talk to: what one costs is measured with a few, and is
what each further one adds.
"""

import asyncio
import json
import sys
import urllib.request
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from redis.asyncio import Redis

from benchmarks.processes import NotMeasuredError, Worker, running
from benchmarks.profiles import Profile
from benchmarks.table import Row, missing
from tasklore.runtime.servers.embedded import EmbeddedServers

#: Numbers of supervisors that are measured, one after the other.
_NUMBERS = (1, 5, 10)
#: The supervisors of which Valkey's thread is asked to spend no more than this part of its time.
_ASKED_NUMBER = 50
_ASKED_PART = 0.01
#: Seconds until they have settled, and for which they are measured: several times what their slowest look takes.
_SETTLE_S = 6.0
_MEASURED_S = 20.0
_READY_S = 60.0


@dataclass(frozen=True)
class _Costs:
    """What was spent up to some moment: seconds of CPU, commands and messages."""

    valkey_s: float
    nats_s: float
    commands: int
    messages: int


async def measure(servers: EmbeddedServers, profile: Profile) -> list[Row]:  # noqa: ARG001 - as every family
    """Return a row for each number of supervisors; *servers* have other clients, and are left alone."""
    rows: list[Row] = []
    try:
        async with (
            EmbeddedServers(monitor=True) as own,
            Redis.from_url(own.redis_url) as redis,
            AsyncExitStack() as stack,
        ):
            supervisors: list[Worker] = []
            before = await _count(own, redis)
            await asyncio.sleep(_MEASURED_S / 4)
            empty = _part(before, await _count(own, redis), _MEASURED_S / 4)
            spent: dict[int, _Costs] = {}
            for number in _NUMBERS:
                while len(supervisors) < number:
                    supervisors.append(await _start(stack, own, len(supervisors)))
                await asyncio.sleep(_SETTLE_S)
                before = await _count(own, redis)
                await asyncio.sleep(_MEASURED_S)
                spent[number] = _part(before, await _count(own, redis), _MEASURED_S)
            rows += [_row(number, spent, empty) for number in spent]
    except (NotMeasuredError, TimeoutError, OSError) as error:
        rows.append(missing("idle supervisors", str(error) or "not ready in time"))
    return rows


def _part(before: _Costs, after: _Costs, seconds: float) -> _Costs:
    """Return what was spent in a second of those between the two; numbers are those of the whole time."""
    return _Costs(
        valkey_s=(after.valkey_s - before.valkey_s) / seconds,
        nats_s=(after.nats_s - before.nats_s) / seconds,
        commands=after.commands - before.commands,
        messages=after.messages - before.messages,
    )


def _row(number: int, spent: dict[int, _Costs], empty: _Costs) -> Row:
    own = spent[number]
    commands = own.commands / number / _MEASURED_S
    messages = own.messages / number / _MEASURED_S
    of_many = ""
    if number == max(spent) > min(spent):
        # One of them does what is done once for all; each further one costs the same.
        few = min(spent)
        each = (own.valkey_s - spent[few].valkey_s) / (number - few)
        part = own.valkey_s + each * (_ASKED_NUMBER - number)
        of_many = f", of {_ASKED_NUMBER} {part:.2%} (asked {_ASKED_PART:.0%})"
    return Row(
        f"{number} idle {'supervisor' if number == 1 else 'supervisors'}",
        compared=f"Valkey's thread {own.valkey_s:.2%}{of_many}",
        how=(
            f"each {commands:.1f} commands and {messages:.1f} messages a second; "
            f"NATS {own.nats_s:.2%}; Valkey alone {empty.valkey_s:.2%}"
        ),
    )


async def _start(stack: AsyncExitStack, own: EmbeddedServers, number: int) -> Worker:
    environment = {
        "TASKLORE_NATS_URL": own.nats_url,
        "TASKLORE_REDIS_URL": own.redis_url,
        "TASKLORE_SUPERVISOR_ID": f"idle-{number}",
        "TASKLORE_LOG_LEVEL": "error",
        "TASKLORE_API_PORT": "none",
    }
    command = (sys.executable, "-m", "tasklore", "supervisor")
    supervisor = await stack.enter_async_context(running(command, environment))
    async with asyncio.timeout(_READY_S):
        while "ready http=" not in supervisor.log.read_text():
            supervisor.ensure_running()
            await asyncio.sleep(0.1)
    return supervisor


async def _count(own: EmbeddedServers, redis: Redis) -> _Costs:
    stats = await redis.info("stats")
    varz = await asyncio.to_thread(_read_varz, own)
    return _Costs(
        valkey_s=_cpu_s(own.valkey.pid, is_main=True),
        nats_s=_cpu_s(own.nats.pid),
        commands=int(stats["total_commands_processed"]),
        messages=int(varz["in_msgs"]) + int(varz["out_msgs"]),
    )


def _read_varz(own: EmbeddedServers) -> dict[str, int]:
    """Return the numbers of the NATS server, on loopback."""
    url = f"{own.nats.monitor_url}/varz"
    with urllib.request.urlopen(url, timeout=5.0) as page:  # noqa: S310 - a server of ours
        found: dict[str, int] = json.load(page)
    return found


def _cpu_s(pid: int | None, *, is_main: bool = False) -> float:
    """Return the seconds of CPU that the threads of *pid* have spent, or its main one, to the nanosecond."""
    threads = list(Path(f"/proc/{pid}/task").glob(f"{pid}" if is_main else "*"))
    return sum(int((one / "schedstat").read_text().split()[0]) for one in threads) / 1e9
