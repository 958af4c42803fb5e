"""What is shipped for monitoring, tried with a real Prometheus and its tools; only run by `make monitoring-check`."""

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis.asyncio import Redis

from deploy.checks import monitoring
from tests.acceptance.external_program import Outside, outside
from tests.acceptance.ledger_counts import ended
from tests.acceptance.prometheus import ROOT, Prometheus
from tests.acceptance.system import System
from tests.receiver import SECRET

pytestmark = pytest.mark.monitoring

SHIPPED = ROOT / "deploy" / "prometheus"
#: Tasks of one load: half of them are asked twice, so that memory has something to say.
TASKS = 600


def run(*command: str | Path) -> str:
    """Return what *command* says; it must be content."""
    done = subprocess.run(
        [str(one) for one in command],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_promtool_reads_the_configuration_and_the_rules() -> None:
    assert "SUCCESS" in run("promtool", "check", "config", SHIPPED / "prometheus.yml")
    for rules in SHIPPED.glob("rules/*.yml"):
        run("promtool", "check", "rules", "--lint-fatal", rules)


def test_every_alert_fires_when_it_should_and_not_beside_it() -> None:
    """By the tests that are shipped with the rules; that there are both of each is checked in `deploy.checks`."""
    files = sorted(SHIPPED.glob("tests/*.yml"))
    assert run("promtool", "test", "rules", *files).count("SUCCESS") == len(files)


def test_amtool_reads_who_is_told() -> None:
    config = SHIPPED / "alertmanager.yml"
    run("amtool", "check-config", config)
    for severity, receiver in (("critical", "pager"), ("warning", "office")):
        assert (
            run(
                "amtool",
                "config",
                "routes",
                "test",
                f"--config.file={config}",
                f"severity={severity}",
            ).strip()
            == receiver
        )


@pytest.fixture
def redis(own_system: System) -> Iterator[Redis]:
    """Give a client of the system's store."""
    return Redis.from_url(own_system.servers.redis_url)  # type: ignore[no-any-return]


async def load(program: Outside) -> None:
    """Have tasks done that are remembered, asked again, failing, refused; return once each is reported."""
    wanted = [
        ("remembered", {"label": "load", "number": number % (TASKS // 2)})
        for number in range(TASKS)
    ]
    wanted += [
        ("trouble", {"label": f"t{number}", "kind": "give_up"}) for number in range(10)
    ]
    wanted += [("fresh", {"label": "load", "number": "none"}) for _ in range(5)]
    for name, parameters in wanted:
        await program.assign("ProbeAgent", name, parameters)
    await program.until(
        lambda: len({report["task_id"] for report in program.heard}) == len(wanted)
    )


def without_zeros(by_outcome: dict[str, float]) -> dict[str, float]:
    """Return the outcomes that there were."""
    return {outcome: number for outcome, number in by_outcome.items() if number}


async def test_a_real_scrape_of_real_processes_adds_up(
    own_system: System, redis: Redis, tmp_path: Path
) -> None:
    """Under load: each name that is asked for is there, counters equal the ledger, nothing fires, no page is long."""
    workers = [
        own_system.worker(),
        own_system.worker(),
        own_system.worker("switchboard", "memory"),
    ]
    supervisor = own_system.supervisor(webhook_secret=SECRET)
    processes = [one.ready() for one in (*workers, supervisor)]
    with Prometheus(
        tmp_path / "prometheus", (one.http.removeprefix("http://") for one in processes)
    ) as prometheus:
        async with outside(own_system.servers.nats_url) as program:
            await load(program)
        known = await ended(redis)
        assert sum(known.values()) == TASKS + 15

        def adds_up() -> bool:
            counted = prometheus.by(
                "outcome", "sum by (outcome) (tasklore_tasks_total)"
            )
            told = prometheus.by("outcome", "outcome:tasklore_ledger_tasks:max")
            return without_zeros(counted) == without_zeros(told) == known

        await asyncio.to_thread(
            prometheus.until, adds_up, f"the counters equal the ledger: {known}"
        )
        await asyncio.to_thread(look, prometheus, len(processes))


def look(prometheus: Prometheus, targets: int) -> None:
    """Look at everything else that was scraped."""
    asked = [
        *monitoring.rule_queries(),
        *monitoring.panel_queries(),
        *monitoring.scaler_queries(),
    ]
    wanted = {name for one in asked for name in monitoring.names_in(one.expr)}
    # Recorded without a series as long as nobody asks a model. What is recorded is so at the rules' next turn.
    prometheus.until(
        lambda: wanted - prometheus.names() <= {"tasklore:llm_errors:ratio10m"},
        "all names are there",
    )
    # A busy process may miss a scrape, for which it has a second.
    prometheus.until(
        lambda: sum(prometheus.by("instance", "up").values()) == targets, "all are up"
    )
    assert max(prometheus.by("instance", "scrape_samples_scraped").values()) <= 2000
    rules = [
        rule for group in prometheus.get("rules")["groups"] for rule in group["rules"]
    ]
    assert {
        rule["name"]: rule.get("lastError") for rule in rules if rule["health"] != "ok"
    } == {}
    assert [
        rule["name"] for rule in rules if rule.get("state", "inactive") == "firing"
    ] == []
