"""The two ways through NATS that are compared: subjects, streams and worker command of each, spelled as on the wire."""

import json
import os
import sys
import time
import uuid
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.budget import parameters

SUPERVISOR = "bench"
#: Assignments the baseline fetches and answers at once; 50, 100, 200 and 500 were tried: all within noise.
RAW_BATCH = 100
#: The same at low load: a larger batch makes nats-py wait for companions that do not come.
RAW_BATCH_ALONE = 1


@dataclass(frozen=True)
class Lane:
    """One contestant on NATS: where its tasks go in, where its reports come out, how its worker is started.

    `{nats_url}` and `{batch}` in `command` are filled in at the start. `provisions` is True when the worker itself
    creates its streams and consumer. `memory` is what its assignments say of the long-term memory; with
    `asks_anew` no question is asked twice.
    """

    name: str
    tasks_stream: str
    task_subject: str
    consumer: str
    reports_stream: str
    reports_prefix: str
    command: tuple[str, ...]
    provisions: bool
    memory: str = "use"
    asks_anew: bool = False


RAW = Lane(
    name="raw",
    tasks_stream="RAW_TASKS",
    task_subject="rawtasks.BudgetTrackerAgent.analyze_budget",
    consumer="raw",
    reports_stream="RAW_REPORTS",
    reports_prefix="rawreports",
    command=(sys.executable, "-m", "benchmarks.raw_worker", "{nats_url}", "{batch}"),
    provisions=False,
)
OURS = Lane(
    name="ours",
    tasks_stream="TASKS",
    task_subject="tasks.BudgetTrackerAgent.analyze_budget",
    consumer="BudgetTrackerAgent",
    reports_stream="REPORTS",
    reports_prefix="reports",
    command=(
        sys.executable,
        "-m",
        "tasklore",
        "worker",
        "tasklore.workers.agents.budget",
    ),
    provisions=True,
)
COMPUTED = replace(OURS, name="computed", memory="bypass")
MISSED = replace(OURS, name="missed", asks_anew=True)
SLOW = Lane(
    name="slow",
    tasks_stream="TASKS",
    task_subject="tasks.SlowAgent.answer_slowly",
    consumer="SlowAgent",
    reports_stream="REPORTS",
    reports_prefix="reports",
    command=(sys.executable, "-m", "tasklore", "worker", "benchmarks.agents.slow"),
    provisions=True,
)


def new_task_id() -> str:
    """Return a UUID of version 7: milliseconds since the epoch, then randomness."""
    bits = (time.time_ns() // 1_000_000) << 80 | int.from_bytes(os.urandom(10))
    bits = bits & ~(0xF << 76) | 0x7 << 76
    return str(uuid.UUID(int=bits & ~(0x3 << 62) | 0x2 << 62))


def assignment(lane: Lane, task_parameters: dict[str, Any]) -> tuple[str, bytes]:
    """Return the task id and the JSON body of one assignment; both contestants get the same body."""
    task_id = new_task_id()
    _, agent_id, task_name = lane.task_subject.split(".")
    body = {
        "schema_version": 1,
        "task_id": task_id,
        "agent_id": agent_id,
        "supervisor_id": SUPERVISOR,
        "task": {"name": task_name, "parameters": task_parameters},
        "created_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "deadline": None,
        "max_attempts": 5,
        "memory": lane.memory,
        "request_id": None,
        "parent_id": None,
        "user_id": None,
        "conversation_id": None,
        "session_id": None,
        "phase": None,
    }
    return task_id, json.dumps(body).encode()


def budget_assignment(lane: Lane, number: int) -> tuple[str, bytes]:
    """Return the *number*-th budget question as an assignment."""
    question = parameters(number)
    if lane.asks_anew:
        question["budget_limit"] = 50_000 + number
    return assignment(lane, question)
