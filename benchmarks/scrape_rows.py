"""What a scrape costs: the page of a process with as many series as there may be, and the counters of the ledger.

The page is asked for over HTTP from another thread, as Prometheus does; what is measured is the whole way.
"""

import time
import urllib.request
from decimal import Decimal

from benchmarks.profiles import Profile
from benchmarks.table import Row, percentile
from tasklore.memory import keys
from tasklore.memory.command_batch import CommandBatch
from tasklore.memory.ledger.tally import Tally
from tasklore.runtime.health import HealthServer
from tasklore.runtime.metrics import MAX_TASKS, Metrics
from tasklore.runtime.metrics_table import families
from tasklore.runtime.models.prices import Expense
from tasklore.runtime.process import calm_collector
from tasklore.runtime.servers import valkey

#: Milliseconds that a scrape may take.
ALLOWED_MS = 20.0
AGENTS = 20
_BATCH = 1024


async def measure(redis_url: str, profile: Profile) -> list[Row]:
    """Return a row for a scrape, and one for reading how many tasks ended out of the ledger."""
    return [_scrape(profile), await _tally(redis_url, profile)]


def full_process() -> Metrics:
    """Return metrics as of a process with twenty agents that counted each of their tasks, and four roles of models."""
    metrics = families()
    for number in range(2 * MAX_TASKS):
        agent = f"Agent{number % AGENTS}"
        task = f"task_{number}"
        metrics.count_tasks(agent, task, "completed")
        metrics.observe_task(agent, task, queued_s=0.1, run_s=0.2)
        metrics.count_lookup(agent, "hit")
    for role in ("default", "summary", "supervisor", "finder"):
        metrics.record(role, "model", Expense(1, 2, Decimal(0)), 0.3, "LlmTimeout")
    return metrics


def _scrape(profile: Profile) -> Row:
    metrics = full_process()
    # As every process of ours does before it serves: else the row is of pauses that none of them has.
    calm_collector()
    took = []
    cpu = []
    lines = 0
    with HealthServer(
        "127.0.0.1", 0, alive={}, ready={}, metrics=metrics.render
    ) as server:
        for _ in range(max(50, profile.questions // 10)):
            started = time.perf_counter()
            started_cpu = time.process_time()
            with urllib.request.urlopen(f"{server.url}/metrics", timeout=10) as reply:  # noqa: S310 - our own address
                page = reply.read()
            took.append((time.perf_counter() - started) * 1000)
            cpu.append((time.process_time() - started_cpu) * 1000)
            lines = sum(not line.startswith(b"#") for line in page.splitlines())
    return Row(
        f"scrape of {lines:,} series",
        p50_ms=percentile(took[1:], 0.5),
        p99_ms=percentile(took[1:], 0.99),
        compared=f"allowed {ALLOWED_MS:g} ms, 2,000 series; CPU {percentile(cpu[1:], 0.5):.1f} ms, "
        f"p99 {percentile(cpu[1:], 0.99):.1f}",
        how=f"over HTTP; {AGENTS} agents of {MAX_TASKS} tasks",
    )


async def _tally(redis_url: str, profile: Profile) -> Row:
    took = []
    cpu = []
    async with valkey.connect(redis_url, name="bench-tally", deadline_s=10) as client:
        exchange = CommandBatch(client, 10.0)
        counters = list(keys.every_ended())
        for start in range(0, len(counters), _BATCH):
            await exchange.run(
                [
                    ("HINCRBY", key, "completed", 1)
                    for key in counters[start : start + _BATCH]
                ]
            )
        tally = Tally(client)
        for _ in range(max(5, profile.questions // 100)):
            started = time.perf_counter()
            started_cpu = time.process_time()
            await tally.read()
            took.append((time.perf_counter() - started) * 1000)
            cpu.append((time.process_time() - started_cpu) * 1000)
        for start in range(0, len(counters), _BATCH):
            await exchange.run(
                [("UNLINK", key) for key in counters[start : start + _BATCH]]
            )
    return Row(
        f"tasks that ended, from {len(counters):,} counters",
        p50_ms=percentile(took, 0.5),
        p99_ms=percentile(took, 0.99),
        compared=f"CPU {percentile(cpu, 0.5):.0f} ms of ours, every 10 s",
        how="a supervisor reads them for tasklore_ledger_tasks",
    )
