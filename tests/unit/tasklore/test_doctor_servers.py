"""The doctor's findings about servers: one for each fault, with its mark and a cure."""

from dataclasses import replace
from typing import Any

import pytest

from tasklore.commands.doctor.facts import (
    HealthPage,
    MonitorFacts,
    RedisFacts,
    Skew,
    Unanswered,
)
from tasklore.commands.doctor.server_checks import find_durability
from tests.unit.patient import (
    CONFIG,
    VARZ,
    complaints,
    findings,
    healthy,
    healthy_nats,
    healthy_redis,
    monitor,
    process,
)


def test_a_healthy_system_has_no_complaint() -> None:
    found = findings(healthy())
    assert {one.mark for one in found} == {"ok"}
    assert [one.cure for one in found if one.cure] == []
    assert find_durability(healthy()) == "standard"


@pytest.mark.parametrize(
    ("changes", "check", "mark"),
    [
        ({"version": "2.13.9"}, "nats.version", "problem"),
        ({"version": ""}, "nats.version", "unknown"),
        ({"max_payload": 2**20 - 1}, "nats.max_payload", "problem"),
        ({"account": Unanswered("not enabled")}, "nats.jetstream", "problem"),
        (
            {"account": {"storage": 96, "limits": {"max_storage": 100}}},
            "nats.account_storage",
            "problem",
        ),
        ({"skew": Skew(7.0, 0.1)}, "nats.clock", "problem"),
        ({"skew": Skew(1.5, 0.6)}, None, "ok"),
        ({"skew": Skew(0.0, 8.0)}, "nats.clock", "unknown"),
        ({"skew": None}, "nats.clock", "unknown"),
    ],
)
def test_faults_of_nats(changes: dict[str, Any], check: str | None, mark: str) -> None:
    found = complaints(healthy(nats=healthy_nats(**changes)))
    assert {name: one.mark for name, one in found.items()} == (
        {check: mark} if check else {}
    )
    assert all(one.cure for one in found.values())


@pytest.mark.parametrize(
    ("info", "check", "mark"),
    [
        ({"valkey_version": "6.9"}, "redis.version", "problem"),
        (
            {"maxmemory_policy": "allkeys-lru", "maxmemory": 2**30},
            "redis.eviction",
            "problem",
        ),
        ({"maxmemory_policy": "allkeys-lru"}, "redis.eviction", "warning"),
        ({"maxmemory": 2**20 * 100 // 85}, "redis.memory", "warning"),
        ({"maxmemory": 2**20}, "redis.memory", "problem"),
        ({"aof_last_write_status": "err"}, "redis.writes", "problem"),
        ({"aof_last_bgrewrite_status": "err"}, "redis.writes", "warning"),
        ({"loading": 1}, "redis.role", "problem"),
        ({"role": "slave"}, "redis.role", "problem"),
        ({"aof_enabled": 0}, "redis.appendonly", "problem"),
    ],
)
def test_faults_of_valkey(info: dict[str, Any], check: str | None, mark: str) -> None:
    found = complaints(healthy(redis=healthy_redis(info)))
    assert {name: one.mark for name, one in found.items()} == (
        {check: mark} if check else {}
    )
    assert all(one.cure for one in found.values())


def test_answers_of_older_code_are_a_note() -> None:
    found = findings(healthy(redis=healthy_redis(left_behind={"TripAgent": 1200})))
    (told,) = [one for one in found if one.check == "redis.left_behind"]
    assert told.mark == "note"
    assert told.found.startswith(
        "1,200 answers of TripAgent from other code or another version"
    )
    assert "`tasklore results forget --stale --agent TripAgent`" in (told.cure or "")


def test_runs_that_were_set_aside_are_a_warning() -> None:
    [finding] = complaints(
        healthy(redis=replace(healthy_redis(), set_aside=("report-1",)))
    ).values()
    assert (finding.check, finding.mark) == ("redis.pipelines", "warning")
    assert "report-1" in finding.found
    assert "resume" in finding.cure


@pytest.mark.parametrize(
    ("config", "durability", "mark"),
    [
        ({"sync_interval": 120 * 10**9, "sync_always": True}, "strict", "ok"),
        ({"sync_interval": 10**9}, "standard", "ok"),
        ({"sync_interval": 120 * 10**9}, "lazy", "problem"),
        ({"sync_interval": 0}, "unknown", "unknown"),
    ],
)
def test_durability_of_jetstream(
    config: dict[str, Any], durability: str, mark: str
) -> None:
    strict_redis = healthy_redis(settings=CONFIG | {"appendfsync": "always"})
    facts = healthy(monitor=monitor(**config), redis=strict_redis)
    (finding,) = [one for one in findings(facts) if one.check == "nats.sync_interval"]
    assert finding.mark == mark
    assert (finding.cure is None) == (mark == "ok")
    assert find_durability(facts) == durability


def test_a_stream_that_cannot_write_is_a_problem_with_its_cure() -> None:
    """As nats-server says it after a full disk, when everything else about it looks well."""
    objection = "JetStream stream '$G > TASKS' write error: no space left on device"
    facts = healthy(monitor=replace(monitor(), unwell=objection))
    finding = complaints(facts)["nats.health"]
    assert finding.mark == "problem"
    assert objection in finding.found
    assert "restart" in str(finding.cure)
    assert "nats.health" not in complaints(healthy(monitor=monitor()))


@pytest.mark.parametrize(
    "seen",
    [
        None,
        MonitorFacts("http://x", "endpoints.json", Unanswered("Connection refused")),
        MonitorFacts("http://x", "--monitor", VARZ | {"server_id": "another"}),
        MonitorFacts("http://x", "--monitor", VARZ | {"jetstream": {}}),
    ],
)
def test_unknown_durability_is_never_called_fine(seen: MonitorFacts | None) -> None:
    facts = healthy(monitor=seen)
    finding = complaints(facts)["nats.sync_interval"]
    assert (finding.mark, find_durability(facts)) == ("unknown", "unknown")
    assert "unknown" in finding.found
    assert "--monitor" in str(finding.cure)


@pytest.mark.parametrize(
    ("settings", "durability", "mark"),
    [
        ({"appendfsync": "always"}, "strict", "ok"),
        ({"appendfsync": "everysec"}, "standard", "ok"),
        ({"appendfsync": "no"}, "lazy", "problem"),
        (
            {"appendfsync": "always", "no-appendfsync-on-rewrite": "yes"},
            "lazy",
            "warning",
        ),
        (Unanswered("unknown command 'CONFIG'"), "unknown", "unknown"),
    ],
)
def test_durability_of_valkey(settings: Any, durability: str, mark: str) -> None:
    given = settings if isinstance(settings, Unanswered) else CONFIG | settings
    facts = healthy(
        redis=healthy_redis(settings=given), monitor=monitor(sync_always=True)
    )
    (finding,) = [one for one in findings(facts) if one.check == "redis.appendonly"]
    assert (finding.mark, find_durability(facts)) == (mark, durability)


def test_a_refused_info_leaves_everything_unknown() -> None:
    facts = healthy(
        redis=RedisFacts(url="redis://x", info=Unanswered("NOPERM"), skew=Skew(0, 0))
    )
    about = {one.check: one.mark for one in findings(facts) if one.group == "redis"}
    assert about == {
        "redis.info": "unknown",
        "redis.appendonly": "unknown",
        "redis.clock": "ok",
    }


def test_a_silent_named_process_is_a_problem() -> None:
    silent = Unanswered("no answer within 2 s")
    finding = complaints(healthy(processes=(process(alive=silent, ready=silent),)))[
        "processes.reachable"
    ]
    assert (finding.mark, finding.is_unreachable) == ("problem", True)


def test_a_silent_worker_elsewhere_is_a_warning() -> None:
    silent = Unanswered("Connection refused")
    facts = healthy(
        processes=(
            process(),
            process(name="w-9", is_named=False, alive=silent, ready=silent),
        )
    )
    finding = complaints(facts)["processes.reachable"]
    assert (finding.mark, finding.is_unreachable) == ("warning", False)
    assert "w-9" in finding.found


@pytest.mark.parametrize(
    ("alive", "ready", "check", "mark"),
    [
        (503, 200, "processes.health", "problem"),
        (200, 503, "processes.ready", "warning"),
        (404, 404, "processes.health", "warning"),
    ],
)
def test_an_unhealthy_process_names_its_failing_checks(
    alive: int, ready: int, check: str, mark: str
) -> None:
    body = {
        "checks": {
            "loop": {"ok": False, "detail": "no beat for 12 s"},
            "pull": {"ok": True, "detail": "fine"},
        }
    }
    found = complaints(
        healthy(
            processes=(
                process(alive=HealthPage(alive, body), ready=HealthPage(ready, body)),
            )
        )
    )
    assert {name: one.mark for name, one in found.items()} == {check: mark}
    assert "no beat for 12 s" in found[check].found or alive == 404
    assert "fine" not in found[check].found


@pytest.mark.parametrize(
    ("check", "mark"), [("models", "warning"), ("model_dialects", "note")]
)
def test_what_a_process_says_of_its_models_is_repeated(check: str, mark: str) -> None:
    """A role without an answer, and a server that is asked in another way."""
    words = "role 'finder': 'own' did not answer it: LlmRejected: not found"
    page = HealthPage(200, {"checks": {check: {"ok": True, "detail": words}}})
    facts = healthy(processes=(process(alive=page, ready=page),))
    [finding] = [one for one in findings(facts) if one.check == f"processes.{check}"]
    assert (finding.mark, words in finding.found) == (mark, True)
    assert finding.cure


def test_workers_that_were_not_asked_are_counted() -> None:
    (finding,) = [one for one in findings(healthy(unexamined=7)) if one.mark == "note"]
    assert "7 further workers" in finding.found
