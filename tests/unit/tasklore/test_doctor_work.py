"""The doctor's findings about streams, consumers, workers and settings."""

from typing import Any

import pytest

from tasklore.commands.doctor.facts import Facts
from tasklore.commands.doctor.server_checks import Durability
from tasklore.commands.doctor.settings_checks import check_settings
from tasklore.runtime.settings import Settings
from tests.unit.patient import (
    SETTINGS,
    card,
    complaints,
    consumer,
    findings,
    healthy,
    healthy_nats,
    monitor,
    streams,
    worker,
)


def system(**nats: Any) -> Facts:
    return healthy(nats=healthy_nats(**nats))


def with_stream(name: str, **config: Any) -> Facts:
    """Return a system in which one stream has another *config*."""
    changed = streams()
    changed[name]["config"] |= config
    return system(streams=changed)


def test_missing_streams_are_one_problem() -> None:
    facts = system(streams=streams() | {"LATER": None, "KV_agents": None})
    finding = complaints(facts)["nats.streams"]
    assert finding.found == "missing: LATER, bucket agents"
    assert "start a supervisor or worker" in str(finding.cure)
    assert "bootstrap job" in str(
        complaints(facts, Settings(provision="never"))["nats.streams"].cure
    )


@pytest.mark.parametrize(
    ("last_seq", "created", "is_ill"),
    [
        (7, "2026-01-01T11:00:00.000000002Z", True),
        (7, "2026-01-01T10:59:59.999990000Z", False),
        (0, "2026-01-01T11:00:00.000000002Z", False),
    ],
)
def test_a_stream_with_a_message_older_than_itself_is_a_problem(
    last_seq: int, created: str, is_ill: bool
) -> None:
    changed = streams()
    changed["TASKS"]["state"] |= {
        "last_seq": last_seq,
        "last_ts": "2026-01-01T10:59:59.999990001Z",
    }
    found = complaints(
        system(streams=changed | {"TASKS": changed["TASKS"] | {"created": created}})
    )
    assert (
        "nats.streams" in found
        and "TASKS: its last message" in found["nats.streams"].found
    ) is is_ill
    assert not is_ill or "nats stream rm -f TASKS" in str(found["nats.streams"].cure)


def test_a_setting_that_differs_everywhere_is_one_finding() -> None:
    finding = complaints(system(streams=streams(Settings(replicas=3))))["nats.drift"]
    assert finding.found.startswith(
        "LATER, TASKS, WAITING, REPORTS, TURNS, FACTS, MESSAGES, DEAD, OUTPUT and 2 more: "
    )
    assert str(finding.cure).startswith("set TASKLORE_REPLICAS=3 if that is meant")


@pytest.mark.parametrize(
    ("window_s", "is_twofold"), [(120, True), (240, True), (270, False)]
)
def test_a_window_below_the_retry_horizon_may_store_twice(
    window_s: int, is_twofold: bool
) -> None:
    finding = complaints(with_stream("REPORTS", duplicate_window=window_s * 10**9))[
        "nats.duplicate_window"
    ]
    assert finding.mark == "problem"
    assert ("stored twice" in finding.found) is is_twofold


@pytest.mark.parametrize(
    ("others", "copies", "mark"), [(2, 1, "warning"), (2, 3, None), (0, 1, None)]
)
def test_fewer_than_three_copies_in_a_cluster_are_a_warning(
    others: int, copies: int, mark: str | None
) -> None:
    settings = Settings(replicas=copies)
    facts = healthy(
        nats=healthy_nats(streams=streams(settings), others=others),
        monitor=monitor(sync_always=True),
    )
    found = complaints(facts, settings)
    assert {name: one.mark for name, one in found.items()} == (
        {"nats.replicas": mark} if mark else {}
    )


@pytest.mark.parametrize(
    ("cluster", "mark", "words"),
    [
        (
            {"leader": "a", "replicas": [{"name": "b", "current": False}]},
            "warning",
            "TASKS on b",
        ),
        ({"replicas": [{"name": "b", "current": True}]}, "problem", "without a leader"),
    ],
)
def test_absent_copies_and_leaders_are_reported(
    cluster: dict[str, Any], mark: str, words: str
) -> None:
    settings = Settings(replicas=3)
    changed = streams(settings)
    changed["TASKS"]["cluster"] = cluster
    finding = complaints(system(streams=changed, others=2), settings)["nats.replicas"]
    assert (finding.mark, words in finding.found) == (mark, True)


@pytest.mark.parametrize(
    ("part", "mark"), [(0.5, "ok"), (0.85, "warning"), (0.97, "problem")]
)
def test_a_queue_that_fills_up_is_reported_before_it_is_full(
    part: float, mark: str
) -> None:
    changed = streams()
    changed["TASKS"]["state"] |= {
        "messages": 9,
        "bytes": int(part * SETTINGS.tasks_max_bytes),
    }
    (finding,) = [
        one for one in findings(system(streams=changed)) if one.check == "nats.tasks"
    ]
    assert (finding.mark, "9 tasks" in finding.found) == (mark, True)


@pytest.mark.parametrize(
    ("changes", "check", "words"),
    [
        ({"ack_wait": 5 * 10**8}, "nats.consumer", "ack_wait of 0.5 s"),
        ({"max_deliver": 5}, "nats.consumer", "gives up after 5"),
        ({"filter_subject": "tasks.Other.>"}, "nats.drift", "filter_subject"),
        ({"max_ack_pending": 1000}, "nats.drift", "max_ack_pending"),
        ({"paused": True}, "nats.consumer", "is paused"),
    ],
)
def test_a_consumer_that_would_lose_or_double_work_is_reported(
    changes: dict[str, Any], check: str, words: str
) -> None:
    found = complaints(
        system(
            consumers={
                "TASKS": [consumer(**changes)],
                "REPORTS": [consumer("SupervisorAgent")],
            }
        )
    )
    assert list(found) == [check]
    assert words in found[check].found
    assert "nats consumer" in str(found[check].cure)


def test_an_unordered_partition_of_messages_is_reported() -> None:
    reports = [consumer("SupervisorAgent")]
    messages = [
        consumer(
            "inbox-3", "MESSAGES", filter_subject="messages.3.>", max_ack_pending=100
        ),
        consumer("own", "MESSAGES"),
    ]
    finding = complaints(
        system(
            consumers={"TASKS": [consumer()], "REPORTS": reports, "MESSAGES": messages}
        )
    )["nats.drift"]
    assert (
        "consumer inbox-3 of MESSAGES: max_ack_pending is 100, wanted 1; its supervisors do not"
        in finding.found
    )


def test_an_agent_that_only_listens_needs_no_consumer_of_tasks() -> None:
    consumers = {"TASKS": [], "REPORTS": [consumer("SupervisorAgent")]}
    assert "nats.consumer" not in complaints(
        system(consumers=consumers, cards=[card("TripAgent", "")])
    )


def test_tasks_for_an_unknown_agent_are_reported() -> None:
    finding = complaints(system(waiting={"TirpAgent": 1, "TripAgent": 5}))[
        "nats.waiting"
    ]
    assert finding.found == "1 task waits for TirpAgent, of which no worker is alive"
    assert "if the name is right" in str(finding.cure)


def test_different_workers_of_one_version_are_a_conflict() -> None:
    finding = complaints(system(workers=(worker("w-1"), worker("w-2", digest="d2"))))[
        "nats.conflict"
    ]
    assert (finding.mark, "w-1, w-2" in finding.found) == ("problem", True)
    update = system(workers=(worker("w-1"), worker("w-2", version=2, digest="d2")))
    assert complaints(update) == {}
    assert "nats.versions" in [
        one.check for one in findings(update) if one.mark == "note"
    ]


@pytest.mark.parametrize(
    ("reports", "mark", "words"),
    [
        ([], "warning", "has ever read"),
        (
            [consumer("SupervisorAgent", num_waiting=0, num_pending=2)],
            "warning",
            "2 reports wait",
        ),
        (
            [consumer("SupervisorAgent", num_waiting=0)],
            "note",
            "no reports at the moment",
        ),
        ([consumer("SupervisorAgent")], "ok", "reads its reports"),
    ],
)
def test_a_supervisor_is_judged_by_its_consumer(
    reports: list[Any], mark: str, words: str
) -> None:
    facts = system(consumers={"TASKS": [consumer()], "REPORTS": reports})
    (finding,) = [one for one in findings(facts) if one.check == "nats.supervisor"]
    assert (finding.mark, words in finding.found) == (mark, True)


@pytest.mark.parametrize(
    ("changes", "found", "check"),
    [
        ({"ack_wait_s": 2}, "standard", "settings.ack_wait"),
        ({"ledger_keep_days": 0.003}, "standard", "settings.ledger"),
        ({"durability": "strict"}, "standard", "settings.durability"),
        ({"grace_s": 0, "ack_wait_s": 3600}, "standard", None),
        (
            {"llm_base_url": "http://127.0.0.1:1/v1", "llm_model": "own"},
            "standard",
            "settings.llm_prices",
        ),
        (
            {"llm_base_url": "http://127.0.0.1:1/v1"},
            "standard",
            "settings.llm_model",
        ),
    ],
)
def test_unsafe_settings_are_reported(
    changes: dict[str, Any], found: Durability, check: str | None
) -> None:
    told = [
        one
        for one in check_settings(Settings(**changes), {}, found)
        if one.mark != "ok"
    ]
    assert [one.check for one in told] == ([check] if check else [])
    assert all(one.cure for one in told)


def test_a_mistyped_variable_is_a_warning() -> None:
    finding = complaints(healthy(), TASKLORE_DURABLITY="TASKLORE_DURABILITY")[
        "settings.unknown"
    ]
    assert (finding.mark, finding.cure) == ("warning", "write TASKLORE_DURABILITY")


def test_memory_that_nobody_keeps_is_said_and_a_warning_once_something_waits() -> None:
    """No worker listens: a note, as that may be meant; turns that wait for one are no plan."""

    def memory_of(waiting: int, *read: str) -> Any:
        changed = streams()
        changed["TURNS"]["state"]["messages"] = waiting
        heard = {name: [consumer(f"{name}-0", name)] for name in read}
        facts = system(streams=changed, consumers=heard)
        return [one for one in findings(facts) if one.check == "nats.memory"]

    assert memory_of(3, "TURNS", "FACTS") == []
    [off] = memory_of(0)
    assert (off.mark, "no worker listens to turns and facts" in off.found) == (
        "note",
        True,
    )
    [unheard] = memory_of(94)
    assert (unheard.mark, unheard.found.endswith("94 turns wait")) == ("warning", True)
    [unwritten] = memory_of(0, "TURNS")
    assert "listens to facts, so what people say is not written" in unwritten.found
