"""What the doctor thinks of streams, consumers, workers and settings."""

from typing import Any

import pytest

from runtime.settings import Settings
from tasklore.doctor.facts import Facts, Unanswered
from tasklore.doctor.server_checks import Durability
from tasklore.doctor.settings_checks import check_settings
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
    """Return a system that is well but for *nats*."""
    return healthy(nats=healthy_nats(**nats))


def with_stream(name: str, **config: Any) -> Facts:
    """Return a system in which one stream has another *config*."""
    changed = streams()
    changed[name]["config"] |= config
    return system(streams=changed)


def test_missing_streams_are_one_problem_that_names_them() -> None:
    """Buckets by the name that people know; the cure depends on who may create them."""
    facts = system(streams=streams() | {"LATER": None, "KV_agents": None})
    finding = complaints(facts)["nats.streams"]
    assert finding.found == "missing: LATER, bucket agents"
    assert "start a supervisor or worker" in str(finding.cure)
    assert "bootstrap job" in str(complaints(facts, Settings(provision="never"))["nats.streams"].cure)


def test_a_stream_that_does_not_answer_is_a_problem_and_not_missing() -> None:
    """It may have no leader: nobody should create it anew."""
    finding = complaints(system(streams=streams() | {"DEAD": Unanswered("no answer within 2 s")}))["nats.streams"]
    assert finding.found == "without an answer about DEAD: no answer within 2 s"


@pytest.mark.parametrize(
    ("last_seq", "created", "is_ill"),
    [
        (7, "2026-01-01T11:00:00.000000002Z", True),
        (7, "2026-01-01T10:59:59.999990000Z", False),
        (0, "2026-01-01T11:00:00.000000002Z", False),
    ],
)
def test_a_stream_with_a_message_older_than_itself_is_to_be_made_anew(
    last_seq: int, created: str, is_ill: bool
) -> None:
    """It was made while one of its name was being deleted; an empty one tells nothing."""
    changed = streams()
    changed["TASKS"]["state"] |= {"last_seq": last_seq, "last_ts": "2026-01-01T10:59:59.999990001Z"}
    found = complaints(system(streams=changed | {"TASKS": changed["TASKS"] | {"created": created}}))
    assert ("nats.streams" in found and "TASKS: its last message" in found["nats.streams"].found) is is_ill
    assert not is_ill or "nats stream rm -f TASKS" in str(found["nats.streams"].cure)


def test_one_setting_that_differs_everywhere_is_one_finding() -> None:
    """Somebody forgot the variable: the cure names it first."""
    finding = complaints(system(streams=streams(Settings(replicas=3))))["nats.drift"]
    assert finding.found.startswith(
        "LATER, TASKS, REPORTS, TURNS, FACTS, MESSAGES, DEAD, bucket agents, bucket workers: "
    )
    assert str(finding.cure).startswith("set TASKLORE_REPLICAS=3 if that is meant")


@pytest.mark.parametrize(("window_s", "is_twofold"), [(120, True), (240, True), (270, False)])
def test_a_window_below_the_retry_horizon_may_store_twice(window_s: int, is_twofold: bool) -> None:
    """Whatever its length, another window than ours is drift; the finding says when it is worse than that."""
    finding = complaints(with_stream("REPORTS", duplicate_window=window_s * 10**9))["nats.duplicate_window"]
    assert finding.mark == "problem"
    assert ("stored twice" in finding.found) is is_twofold


def test_the_window_of_a_bucket_is_nothing_but_a_setting() -> None:
    """Nobody repeats a put under one message id for minutes."""
    assert "nats.drift" in complaints(with_stream("KV_agents", duplicate_window=10**9))


@pytest.mark.parametrize(
    ("others", "copies", "mark"), [(2, 1, "warning"), (2, 2, "warning"), (2, 3, None), (0, 1, None)]
)
def test_fewer_than_three_copies_in_a_cluster_are_a_warning(others: int, copies: int, mark: str | None) -> None:
    """One server alone can have no more than one."""
    settings = Settings(replicas=copies)
    facts = healthy(nats=healthy_nats(streams=streams(settings), others=others), monitor=monitor(sync_always=True))
    found = complaints(facts, settings)
    assert {name: one.mark for name, one in found.items()} == ({"nats.replicas": mark} if mark else {})


@pytest.mark.parametrize(
    ("cluster", "mark", "words"),
    [
        ({"leader": "a", "replicas": [{"name": "b", "current": False}]}, "warning", "TASKS on b"),
        ({"leader": "a", "replicas": [{"name": "b", "current": True, "offline": True}]}, "warning", "TASKS on b"),
        ({"replicas": [{"name": "b", "current": True}]}, "problem", "without a leader"),
    ],
)
def test_copies_that_are_away_or_without_a_leader_are_told(cluster: dict[str, Any], mark: str, words: str) -> None:
    """Which stream, and on which server."""
    settings = Settings(replicas=3)
    changed = streams(settings)
    changed["TASKS"]["cluster"] = cluster
    finding = complaints(system(streams=changed, others=2), settings)["nats.replicas"]
    assert (finding.mark, words in finding.found) == (mark, True)


@pytest.mark.parametrize(("part", "mark"), [(0.5, "ok"), (0.85, "warning"), (0.97, "problem")])
def test_a_queue_that_fills_up_is_told_before_it_is_full(part: float, mark: str) -> None:
    """Past its limit new tasks are refused."""
    changed = streams()
    changed["TASKS"]["state"] |= {"messages": 9, "bytes": int(part * SETTINGS.tasks_max_bytes)}
    (finding,) = [one for one in findings(system(streams=changed)) if one.check == "nats.tasks"]
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
def test_a_consumer_that_would_lose_or_double_work_is_told(changes: dict[str, Any], check: str, words: str) -> None:
    """By its name, with the command that mends it."""
    found = complaints(system(consumers={"TASKS": [consumer(**changes)], "REPORTS": [consumer("SupervisorAgent")]}))
    assert list(found) == [check]
    assert words in found[check].found
    assert "nats consumer" in str(found[check].cure)


def test_a_partition_of_messages_without_an_order_is_told() -> None:
    """What one says to an agent must not overtake what the same one said before; strangers' consumers are theirs."""
    reports = [consumer("SupervisorAgent")]
    messages = [
        consumer("inbox-3", "MESSAGES", filter_subject="messages.3.>", max_ack_pending=100),
        consumer("own", "MESSAGES"),
    ]
    finding = complaints(system(consumers={"TASKS": [consumer()], "REPORTS": reports, "MESSAGES": messages}))[
        "nats.drift"
    ]
    assert "consumer inbox-3 of MESSAGES: max_ack_pending is 100, wanted 1; its supervisors do not" in finding.found


def test_an_ack_wait_of_another_length_is_no_finding() -> None:
    """Workers adjust it as they start."""
    consumers = {"TASKS": [consumer(ack_wait=2 * 10**9)], "REPORTS": [consumer("SupervisorAgent")]}
    assert complaints(system(consumers=consumers)) == {}


def test_workers_without_a_consumer_take_nothing() -> None:
    """They would make it themselves unless that is left to others."""
    finding = complaints(system(consumers={"TASKS": [], "REPORTS": [consumer("SupervisorAgent")]}))["nats.consumer"]
    assert finding.mark == "problem"


def test_an_agent_that_only_listens_needs_no_consumer_of_tasks() -> None:
    """It takes none."""
    consumers = {"TASKS": [], "REPORTS": [consumer("SupervisorAgent")]}
    assert "nats.consumer" not in complaints(system(consumers=consumers, cards=[card("TripAgent", "")]))


@pytest.mark.parametrize("counts", [{"num_pending": 3}, {"num_ack_pending": 3}])
def test_pending_tasks_without_a_live_worker_are_a_warning(counts: dict[str, int]) -> None:
    """Those that a dead worker held wait too."""
    consumers = {"TASKS": [consumer(num_waiting=0, **counts)], "REPORTS": [consumer("SupervisorAgent")]}
    finding = complaints(system(consumers=consumers, workers=()))["nats.waiting"]
    assert finding.found == "3 tasks wait for TripAgent, of which no worker is alive"
    assert "start a worker" in str(finding.cure)


def test_tasks_for_an_agent_that_nobody_ever_started_are_seen_in_the_stream() -> None:
    """No consumer counts them, and any program may have misspelt a name."""
    finding = complaints(system(waiting={"TirpAgent": 1, "TripAgent": 5}))["nats.waiting"]
    assert finding.found == "1 task waits for TirpAgent, of which no worker is alive"
    assert "if the name is right" in str(finding.cure)


def test_a_worker_in_another_language_is_seen_by_what_it_asks_for() -> None:
    """It need not write into our bucket."""
    consumers = {"TASKS": [consumer(num_pending=3, num_waiting=1)], "REPORTS": [consumer("SupervisorAgent")]}
    assert complaints(system(consumers=consumers, workers=())) == {}


def test_two_live_workers_of_one_version_that_differ_are_a_conflict() -> None:
    """Different versions side by side are a rolling update."""
    finding = complaints(system(workers=(worker("w-1"), worker("w-2", digest="d2"))))["nats.conflict"]
    assert (finding.mark, "w-1, w-2" in finding.found) == ("problem", True)
    update = system(workers=(worker("w-1"), worker("w-2", version=2, digest="d2")))
    assert complaints(update) == {}
    assert "nats.versions" in [one.check for one in findings(update) if one.mark == "note"]


@pytest.mark.parametrize(
    ("reports", "mark", "words"),
    [
        ([], "warning", "has ever read"),
        ([consumer("SupervisorAgent", num_waiting=0, num_pending=2)], "warning", "2 reports wait"),
        ([consumer("SupervisorAgent", num_waiting=0)], "note", "no reports at the moment"),
        ([consumer("SupervisorAgent")], "ok", "reads its reports"),
    ],
)
def test_a_supervisor_is_seen_by_its_consumer(reports: list[Any], mark: str, words: str) -> None:
    """Nothing else tells whether one lives: it is in no bucket."""
    facts = system(consumers={"TASKS": [consumer()], "REPORTS": reports})
    (finding,) = [one for one in findings(facts) if one.check == "nats.supervisor"]
    assert (finding.mark, words in finding.found) == (mark, True)


def test_buckets_that_do_not_answer_are_unknown() -> None:
    """Nobody is called dead for it."""
    found = complaints(system(workers=Unanswered("late"), consumers={"TASKS": [consumer(num_pending=3)]}))
    assert found["nats.workers"].mark == "unknown"
    assert "nats.waiting" not in found


@pytest.mark.parametrize(
    ("changes", "found", "check"),
    [
        ({"ack_wait_s": 2}, "standard", "settings.ack_wait"),
        ({"ledger_keep_days": 0.003}, "standard", "settings.ledger"),
        ({"ledger_keep_days": 0.5, "retry_cap_s": 86_400}, "standard", "settings.ledger"),
        ({"durability": "strict"}, "standard", "settings.durability"),
        ({"durability": "strict"}, "strict", None),
        ({"grace_s": 0, "ack_wait_s": 3600}, "standard", None),
        ({"llm_base_url": "http://127.0.0.1:1/v1", "llm_finder_model": "own"}, "standard", "settings.llm_prices"),
        ({"llm_base_url": "http://a", "llm_model": "own", "llm_prices": "own=0/0"}, "standard", None),
    ],
)
def test_settings_are_unsafe_only_where_a_promise_breaks(
    changes: dict[str, Any], found: Durability, check: str | None
) -> None:
    """A short grace period hands tasks back, which loses nothing."""
    told = [one for one in check_settings(Settings(**changes), {}, found) if one.mark != "ok"]
    assert [one.check for one in told] == ([check] if check else [])
    assert all(one.cure for one in told)


def test_a_mistyped_variable_is_a_warning_with_the_right_one() -> None:
    """It does nothing, and whoever set it thinks that it does."""
    finding = complaints(healthy(), TASKLORE_DURABLITY="TASKLORE_DURABILITY")["settings.unknown"]
    assert (finding.mark, finding.cure) == ("warning", "write TASKLORE_DURABILITY")
