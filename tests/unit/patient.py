"""A system in perfect health as the doctor would have found it, for tests to make ill in one place."""

import copy
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from tasklore.commands.doctor.examination import check
from tasklore.commands.doctor.facts import (
    Facts,
    HealthPage,
    MonitorFacts,
    NatsFacts,
    ProcessFacts,
    RedisFacts,
    Skew,
)
from tasklore.commands.doctor.rules import Diagnosis
from tasklore.commands.doctor.stream_checks import declare_streams
from tasklore.contracts.messages import AgentCard, TaskCard, WorkerPresence
from tasklore.runtime.messaging.streams import PullSource
from tasklore.runtime.settings import Settings

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
SETTINGS = Settings()
INFO = {
    "redis_version": "7.2.4",
    "valkey_version": "9.1.2",
    "role": "master",
    "aof_enabled": 1,
    "aof_last_write_status": "ok",
    "aof_last_bgrewrite_status": "ok",
    "rdb_last_bgsave_status": "ok",
    "maxmemory": 0,
    "maxmemory_policy": "noeviction",
    "used_memory": 2**20,
    "evicted_keys": 0,
    "loading": 0,
    "cluster_enabled": 0,
}
CONFIG = {"appendfsync": "everysec", "no-appendfsync-on-rewrite": "no", "save": ""}
VARZ = {
    "server_id": "N1",
    "server_name": "one",
    "cluster": {},
    "jetstream": {
        "config": {"sync_interval": 10**9, "max_storage": 10**12},
        "stats": {"storage": 10**6},
    },
}


def consumer(
    name: str = "TripAgent", stream: str = "TASKS", **changes: Any
) -> dict[str, Any]:
    """Return what the server says of a consumer; a change of a name that its configuration has is made there."""
    configuration = PullSource(
        stream=stream, durable=name, filter_subject=f"tasks.{name}.>", ack_wait_s=30.0
    ).configuration()
    info: dict[str, Any] = {"name": name, "config": configuration, "num_waiting": 1}
    for key, value in changes.items():
        (configuration if key in configuration else info)[key] = value
    return info


def worker(
    worker_id: str = "w-1",
    agent_id: str = "TripAgent",
    version: int = 1,
    digest: str = "d1",
) -> WorkerPresence:
    """Return a live worker."""
    return WorkerPresence(
        worker_id=worker_id,
        agent_id=agent_id,
        version=version,
        digest=digest,
        slots=8,
        started_at=NOW,
    )


def card(agent_id: str = "TripAgent", *tasks: str) -> AgentCard:
    """Return the card of an agent with *tasks*, one when none are named; with "" it has none."""
    names = [name for name in tasks or ("share_trip",) if name]
    return AgentCard(
        agent_id=agent_id,
        tasks=tuple(TaskCard(name=name, parameters={}) for name in names),
        digest="d1",
    )


def streams(settings: Settings = SETTINGS) -> dict[str, Any]:
    """Return what the server says of every stream."""
    state = {"messages": 0, "bytes": 0, "first_ts": "0001-01-01T00:00:00Z"}
    return {
        one["name"]: {
            "config": copy.deepcopy(one),
            "state": dict(state),
            "cluster": {"leader": "one"},
        }
        for one in declare_streams(settings)
    }


def healthy_nats(**changes: Any) -> NatsFacts:
    """Return a NATS that nothing is wrong with but *changes*."""
    facts = NatsFacts(
        url="nats://127.0.0.1:4222",
        version="2.15.1",
        max_payload=2**20,
        server={"id": "N1", "name": "one"},
        account={"streams": 8, "storage": 0, "limits": {"max_storage": -1}},
        streams=streams(),
        consumers={
            "TASKS": [consumer()],
            "REPORTS": [consumer("SupervisorAgent", "REPORTS")],
            "TURNS": [consumer("turns-0", "TURNS")],
            "FACTS": [consumer("facts-0", "FACTS")],
        },
        cards=(card(),),
        workers=(worker(),),
        skew=Skew(0.001, 0.001),
    )
    return replace(facts, **changes)


def healthy_redis(info: Mapping[str, Any] | None = None, **changes: Any) -> RedisFacts:
    """Return a Valkey that nothing is wrong with but *info* and *changes*."""
    facts = RedisFacts(
        url="redis://127.0.0.1:6379",
        info=INFO | dict(info or {}),
        settings=CONFIG,
        skew=Skew(0, 0.001),
    )
    return replace(facts, **changes)


def monitor(**config: Any) -> MonitorFacts:
    """Return what the monitoring says, with *config* of JetStream."""
    varz = copy.deepcopy(VARZ)
    varz["jetstream"]["config"] |= config  # type: ignore[index]  # as written above
    return MonitorFacts("http://127.0.0.1:8222", "--monitor", varz)


def process(**changes: Any) -> ProcessFacts:
    """Return a supervisor that is well but for *changes*."""
    well = HealthPage(200, {"status": "ok", "checks": {}})
    return replace(
        ProcessFacts(
            name="supervisor",
            url="http://127.0.0.1:8080",
            is_named=True,
            alive=well,
            ready=well,
        ),
        **changes,
    )


def healthy(**changes: Any) -> Facts:
    """Return a system that nothing is wrong with but *changes*."""
    facts = Facts(
        now=NOW,
        nats=healthy_nats(),
        redis=healthy_redis(),
        monitor=monitor(),
        processes=(process(),),
    )
    return replace(facts, **changes)


def findings(
    facts: Facts, settings: Settings = SETTINGS, **strangers: str | None
) -> list[Diagnosis]:
    """Return all that the doctor says about *facts*."""
    return list(check(facts, settings, strangers))


def complaints(
    facts: Facts, settings: Settings = SETTINGS, **strangers: str | None
) -> dict[str, Diagnosis]:
    """Return what is neither ok nor a note, by check; fails when one check complains twice."""
    found = [
        one
        for one in findings(facts, settings, **strangers)
        if one.mark not in ("ok", "note")
    ]
    assert len({one.check for one in found}) == len(found), found
    return {one.check: one for one in found}


def ago(**span: float) -> str:
    """Return the time so long before NOW as the server writes it."""
    return (NOW - timedelta(**span)).isoformat()
