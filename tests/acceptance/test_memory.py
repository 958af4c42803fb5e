"""One question is computed once: by two workers at once, after a restart, and again when a setting changes it."""

import asyncio
import json
from pathlib import Path

from tests.acceptance.external_program import outside
from tests.acceptance.system import System

#: 500 is above 1.5 times the mean of these (300), and below twice it.
BUDGET = {"budget_limit": 5000, "spent": 1000, "history": [100, 500, 300, 300]}


async def test_two_hundred_identical_questions_at_once_on_two_workers_are_one_computation(
    own_system: System,
) -> None:
    workers = [own_system.worker(slots=128) for _ in range(2)]
    for worker in workers:
        worker.ready()
    async with outside(own_system.servers.nats_url) as program:
        question = {"label": "crowd", "ms": 400}
        tasks = await asyncio.gather(
            *(program.assign("ProbeAgent", "remembered", question) for _ in range(200))
        )
        reports = await asyncio.gather(*(program.report_of(task) for task in tasks))
        stored = await program.reports()
    assert len(own_system.runs("crowd")) == 1
    assert {report["status"] for report in reports} == {"completed"}
    outcomes = [report["memory"]["outcome"] for report in reports]
    assert outcomes.count("miss") == 1
    assert set(outcomes) <= {"miss", "joined", "hit"}
    assert len({report["worker_id"] for report in reports}) == 2
    assert sorted(stored.values()) == [1] * 200


async def test_another_multiplier_is_another_question_and_the_old_answer_is_not_forgotten(
    own_system: System, tmp_path: Path
) -> None:
    """2.0 misses, 1.5 misses and finds more, 2.0 again hits; and each worker leaves in good order."""
    outcomes = []
    async with outside(own_system.servers.nats_url) as program:
        for multiplier in ("2.0", "1.5", "2.0"):
            config = tmp_path / "agent_config.json"
            config.write_text(
                json.dumps(
                    {
                        "agent_id": "BudgetTrackerAgent",
                        "anomaly_threshold_multiplier": float(multiplier),
                    }
                )
            )
            # What is asked about is the key: a busy machine must not answer "unavailable" for it.
            options = ("--config", str(config))
            worker = own_system.worker(
                "tasklore.workers.agents.budget", options=options, memory_budget_ms=5000
            ).ready()
            report = await program.ask("BudgetTrackerAgent", "analyze_budget", BUDGET)
            outcomes.append(
                (
                    multiplier,
                    report["memory"]["outcome"],
                    len(report["result"]["anomalies"]),
                )
            )
            worker.terminate()
            assert await asyncio.to_thread(worker.wait) == 0
            assert "Traceback" not in worker.log()
    assert outcomes == [("2.0", "miss", 0), ("1.5", "miss", 1), ("2.0", "hit", 0)]
