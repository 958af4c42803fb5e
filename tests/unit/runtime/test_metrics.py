"""Metrics: the names that dashboards read, zeros from the start, and no series that strangers can multiply."""

import threading
from decimal import Decimal
from pathlib import Path

import prometheus_client
from prometheus_client.parser import text_string_to_metric_families

from runtime.messaging.broker import make_broker
from runtime.metrics import MAX_TASKS, Metrics
from runtime.metrics_table import families, page
from runtime.models.prices import Expense

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "metrics.md"
#: What FastStream adds in a process that hears and speaks every family of subjects that a worker does, rounded up.
FRAME_SERIES = 150

COUNTED = {
    "tasklore_tasks_total": {"agent", "task", "outcome"},
    "tasklore_task_queue_wait_seconds_count": {"agent"},
    "tasklore_task_duration_seconds_count": {"agent", "task"},
    "tasklore_memory_lookups_total": {"agent", "outcome"},
    "tasklore_memory_saved_seconds_total": set(),
    "tasklore_memory_lookup_duration_seconds_count": set(),
    "tasklore_stale_reports_refused_total": set(),
    "tasklore_dead_letters_total": {"reason"},
    "tasklore_slots": set(),
    "tasklore_slots_used": set(),
    "tasklore_deliveries_total": {"redelivered"},
    "tasklore_lease_heartbeats_total": {"result"},
    "tasklore_consumer_missing_total": set(),
    "tasklore_orphaned_deliveries_total": set(),
    "tasklore_crashed_runs_total": set(),
    "tasklore_replaced_runs_total": set(),
    "tasklore_retries_total": {"how"},
    "tasklore_publish_retries_total": set(),
    "tasklore_publish_refused_total": {"reason"},
    "tasklore_streams_lost_total": set(),
    "tasklore_tasks_republished_total": set(),
    "tasklore_reconnects_total": {"peer"},
    "tasklore_event_loop_lag_seconds": set(),
    "tasklore_turns_total": {"outcome"},
    "tasklore_facts_total": {"outcome"},
    "tasklore_messages_total": {"outcome"},
    "tasklore_document_edits_total": {"operation", "outcome"},
    "tasklore_edits_refused_total": {"reason"},
    "tasklore_stale_drafts_total": set(),
    "tasklore_listen_retries_total": {"queue"},
    "tasklore_pipeline_runs_total": {"outcome"},
    "tasklore_pipeline_phases_total": {"outcome"},
    "tasklore_session_hits_total": set(),
    "tasklore_cards_refused_total": set(),
    "tasklore_analyses_total": {"outcome"},
    "tasklore_analysis_sections_total": {"agent", "outcome"},
    "tasklore_http_requests_total": {"route", "method", "status"},
    "tasklore_http_request_duration_seconds_count": {"route"},
    "tasklore_http_connections_refused_total": {"reason"},
    "tasklore_llm_tokens_total": {"role", "model", "type"},
    "tasklore_llm_cost_usd_total": {"role", "model"},
    "tasklore_llm_unpriced_tokens_total": {"model"},
    "tasklore_llm_request_duration_seconds_count": {"role", "model"},
    "tasklore_llm_errors_total": {"class"},
    "tasklore_build_info": {"version"},
}


def end_task(metrics: Metrics, agent: str, task: str, outcome: str, *, queued_s: float, run_s: float) -> None:
    """Count one report the way a conclusion does."""
    metrics.count_tasks(agent, task, outcome)
    metrics.observe_task(agent, task, queued_s=queued_s, run_s=run_s)


def samples(metrics: Metrics) -> dict[str, dict[frozenset[tuple[str, str]], float]]:
    """Return what a scraper reads: values by name and labels."""
    found: dict[str, dict[frozenset[tuple[str, str]], float]] = {}
    for family in text_string_to_metric_families(metrics.render().decode()):
        for sample in family.samples:
            found.setdefault(sample.name, {})[frozenset(sample.labels.items())] = sample.value
    return found


def value(metrics: Metrics, name: str, **labels: str) -> float:
    """Return the value of one series."""
    return samples(metrics)[name][frozenset(labels.items())]


def used(metrics: Metrics) -> Metrics:
    """Count one of everything."""
    end_task(metrics, "A", "t", "completed", queued_s=0.1, run_s=0.2)
    metrics.count_lookup("A", "hit")
    metrics.record("finder", "m", Expense(1, 2, Decimal("0.5")), 0.3, "LlmTimeout")
    metrics.record("finder", "own", Expense(1, 2, unpriced=True), 0.1, None)
    metrics.count_http_request("/v1/agents", "GET", 200, 0.1)
    return metrics


def test_every_name_and_label_that_dashboards_read_is_there() -> None:
    """With the prefix and the unit in the name."""
    found = samples(used(Metrics("1.2.3")))
    assert {name: {label for label, _ in next(iter(found[name]))} for name in COUNTED} == COUNTED


def test_nothing_else_of_ours_is_exported() -> None:
    """A series that nobody documents is a series that nobody reads."""
    found = samples(used(Metrics("1")))
    ours = {name for name in found if name.startswith("tasklore_") and not name.endswith(("_bucket", "_sum"))}
    assert ours == set(COUNTED)


def test_what_counts_a_loss_stands_at_zero_before_the_first() -> None:
    """Otherwise the first loss is a new series, and no rise."""
    found = samples(Metrics())
    losses = (
        "stale_reports_refused consumer_missing publish_retries publish_refused dead_letters reconnects crashed_runs"
    )
    losses = (
        f"{losses} turns facts document_edits edits_refused stale_drafts listen_retries pipeline_runs pipeline_phases"
    )
    losses = f"{losses} analyses analysis_sections http_connections_refused"
    for name in f"{losses} replaced_runs orphaned_deliveries streams_lost tasks_republished retries".split():
        assert set(found[f"tasklore_{name}_total"].values()) == {0.0}
    for reason in ("attempts", "gave_up", "crashes", "deadline", "unreadable"):
        assert value(Metrics(), "tasklore_dead_letters_total", reason=reason) == 0
    assert value(Metrics(), "tasklore_lease_heartbeats_total", result="failed") == 0
    for reason in ("full", "no_stream", "other"):
        assert value(Metrics(), "tasklore_publish_refused_total", reason=reason) == 0
    for name in ("streams_lost", "tasks_republished"):
        assert value(Metrics(), f"tasklore_{name}_total") == 0


def test_a_finished_task_shows_its_other_outcomes_at_zero() -> None:
    """The first failure of a task that always succeeded is seen as a rise."""
    metrics = used(Metrics())
    assert value(metrics, "tasklore_tasks_total", agent="A", task="t", outcome="completed") == 1
    assert value(metrics, "tasklore_tasks_total", agent="A", task="t", outcome="failed") == 0
    assert value(metrics, "tasklore_memory_lookups_total", agent="A", outcome="unavailable") == 0


def test_times_are_observed_in_seconds() -> None:
    """Waiting by agent, running by task."""
    metrics = Metrics()
    end_task(metrics, "A", "t", "failed", queued_s=1.5, run_s=700)
    assert value(metrics, "tasklore_task_queue_wait_seconds_sum", agent="A") == 1.5
    assert value(metrics, "tasklore_task_duration_seconds_bucket", agent="A", task="t", le="300.0") == 0
    assert value(metrics, "tasklore_task_duration_seconds_bucket", agent="A", task="t", le="1800.0") == 1


def test_the_memory_counts_lookups_and_what_they_spared() -> None:
    """Many at once, as one batch brings them; a clock that went backwards spares nothing."""
    metrics = Metrics()
    metrics.count_lookup("A", "hit", 39)
    metrics.count_lookup("A", "hit")
    metrics.count_saved(2.5)
    metrics.count_saved(-1)
    with metrics.time_lookup():
        pass
    assert value(metrics, "tasklore_memory_lookups_total", agent="A", outcome="hit") == 40
    assert value(metrics, "tasklore_memory_saved_seconds_total") == 2.5
    assert value(metrics, "tasklore_memory_lookup_duration_seconds_count") == 1


def test_what_is_transported_is_counted_by_kind() -> None:
    """Deliveries, heartbeats, reports refused, letters set aside, connections lost."""
    metrics = Metrics()
    metrics.count_deliveries(1, redelivered=1)
    metrics.count_lease_heartbeat(delivered=False)
    metrics.count_stale_report()
    metrics.count_consumer_missing()
    metrics.count_publish_retry()
    metrics.count_publish_refused("full")
    metrics.count_stream_lost()
    metrics.count_tasks_republished(200)
    metrics.count_dead_letter("expired")
    metrics.count_reconnect("nats")
    assert value(metrics, "tasklore_deliveries_total", redelivered="true") == 1
    assert value(metrics, "tasklore_deliveries_total", redelivered="false") == 0
    assert value(metrics, "tasklore_lease_heartbeats_total", result="failed") == 1
    assert value(metrics, "tasklore_dead_letters_total", reason="expired") == 1
    assert value(metrics, "tasklore_reconnects_total", peer="nats") == 1
    assert value(metrics, "tasklore_publish_refused_total", reason="full") == 1
    assert value(metrics, "tasklore_publish_refused_total", reason="no_stream") == 0
    assert value(metrics, "tasklore_streams_lost_total") == 1
    assert value(metrics, "tasklore_tasks_republished_total") == 200
    for name in ("stale_reports_refused", "consumer_missing", "publish_retries"):
        assert value(metrics, f"tasklore_{name}_total") == 1


def test_a_language_model_is_counted_in_tokens_money_and_errors() -> None:
    """An attempt without an error counts none."""
    metrics = used(Metrics())
    metrics.record("finder", "m", Expense(10, 20, Decimal("0.25")), 0.3, None)
    assert value(metrics, "tasklore_llm_tokens_total", role="finder", model="m", type="input") == 11
    assert value(metrics, "tasklore_llm_tokens_total", role="finder", model="m", type="output") == 22
    assert value(metrics, "tasklore_llm_cost_usd_total", role="finder", model="m") == 0.75
    metrics.record("finder", "own", Expense(3, 4, unpriced=True), 0.3, None)
    assert samples(metrics)["tasklore_llm_unpriced_tokens_total"] == {frozenset({("model", "own")}): 10.0}
    assert samples(metrics)["tasklore_llm_errors_total"] == {frozenset({("class", "LlmTimeout")}): 1.0}


def test_gauges_are_read_when_scraped() -> None:
    """Nobody pushes them."""
    held, metrics = [1], Metrics()
    metrics.watch_slots(64, lambda: len(held))
    metrics.watch_event_loop(lambda: 0.5)
    held.append(2)
    assert value(metrics, "tasklore_slots") == 64
    assert value(metrics, "tasklore_slots_used") == 2
    assert value(metrics, "tasklore_event_loop_lag_seconds") == 0.5


def test_dead_letters_are_counted_where_somebody_looks_after_them() -> None:
    """How many lie there and for how long, beside the counter of a like name; elsewhere there is no such series."""
    metrics = Metrics()
    assert "tasklore_dead_letters" not in samples(metrics)
    metrics.watch_dead_letters(lambda: 3, lambda: 86_400.5)
    metrics.count_dead_letter("gave_up")
    assert value(metrics, "tasklore_dead_letters") == 3
    assert value(metrics, "tasklore_dead_letters_oldest_seconds") == 86_400.5
    assert value(metrics, "tasklore_dead_letters_total", reason="gave_up") == 1


def test_what_waits_for_a_listener_is_told_where_one_listens() -> None:
    """By queue: how much, and for how long the oldest; elsewhere there is no such series, which would be a zero."""
    metrics = Metrics()
    assert "tasklore_facts_pending" not in samples(metrics)
    metrics.watch_waiting("turns", lambda: 4, lambda: 0.5)
    metrics.watch_waiting("facts", lambda: 7, lambda: 12.5)
    assert value(metrics, "tasklore_turns_pending") == 4
    assert value(metrics, "tasklore_facts_pending") == 7
    assert value(metrics, "tasklore_oldest_turn_age_seconds") == 0.5
    assert value(metrics, "tasklore_oldest_fact_age_seconds") == 12.5


def test_what_listeners_do_is_counted_by_outcome() -> None:
    """Turns, facts, edits that were stored and plans that were refused."""
    metrics = Metrics()
    metrics.count_turn("learned")
    metrics.count_fact("applied")
    metrics.count_edit("insert", "applied")
    metrics.count_edit("delete", "refused")
    metrics.count_edit_refused("overlap")
    metrics.count_stale_draft()
    metrics.count_listen_retry("facts")
    assert value(metrics, "tasklore_turns_total", outcome="learned") == 1
    assert value(metrics, "tasklore_turns_total", outcome="nothing") == 0
    assert value(metrics, "tasklore_facts_total", outcome="applied") == 1
    assert value(metrics, "tasklore_document_edits_total", operation="insert", outcome="applied") == 1
    assert value(metrics, "tasklore_document_edits_total", operation="insert", outcome="refused") == 0
    assert value(metrics, "tasklore_document_edits_total", operation="delete", outcome="refused") == 1
    assert value(metrics, "tasklore_edits_refused_total", reason="overlap") == 1
    assert value(metrics, "tasklore_stale_drafts_total") == 1
    assert value(metrics, "tasklore_listen_retries_total", queue="facts") == 1


def test_pipelines_are_counted_by_how_they_and_their_phases_end() -> None:
    """A run that never failed shows its failures at zero."""
    metrics = Metrics()
    metrics.count_pipeline("completed")
    metrics.count_phase("done")
    metrics.count_phase("restarted")
    metrics.count_session_hits(3)
    assert value(metrics, "tasklore_pipeline_runs_total", outcome="completed") == 1
    assert value(metrics, "tasklore_pipeline_runs_total", outcome="failed") == 0
    assert value(metrics, "tasklore_pipeline_phases_total", outcome="done") == 1
    assert value(metrics, "tasklore_pipeline_phases_total", outcome="restarted") == 1
    assert value(metrics, "tasklore_session_hits_total") == 3


def test_analyses_are_counted_by_how_they_and_their_sections_end() -> None:
    """Agents of ours by their names; those of stories, whose number has no end, together."""
    metrics = Metrics()
    metrics.count_analysis("partial")
    metrics.count_section("StoryFactAgent", "ok")
    for number in range(3):
        metrics.count_section(f"Own{number}Agent", "late")
    assert value(metrics, "tasklore_analyses_total", outcome="partial") == 1
    assert value(metrics, "tasklore_analyses_total", outcome="served") == 0
    assert value(metrics, "tasklore_analysis_sections_total", agent="StoryFactAgent", outcome="ok") == 1
    assert value(metrics, "tasklore_analysis_sections_total", agent="StoryFactAgent", outcome="failed") == 0
    assert value(metrics, "tasklore_analysis_sections_total", agent="other", outcome="late") == 3


def test_strangers_cannot_make_series_without_end() -> None:
    """Past the limit every further name is one."""
    metrics = Metrics()
    for number in range(MAX_TASKS + 30):
        end_task(metrics, "A", f"t{number}", "rejected", queued_s=0, run_s=0)
    end_task(metrics, "A", "t0", "rejected", queued_s=0, run_s=0)
    assert value(metrics, "tasklore_tasks_total", agent="other", task="other", outcome="rejected") == 30
    assert value(metrics, "tasklore_tasks_total", agent="A", task="t0", outcome="rejected") == 2


def test_an_outcome_from_the_future_is_counted_too() -> None:
    """A newer writer's word does not stop an older worker."""
    metrics = Metrics()
    metrics.count_lookup("A", "other")
    assert value(metrics, "tasklore_memory_lookups_total", agent="A", outcome="other") == 1


def test_a_process_with_all_its_agents_stays_under_two_thousand_series() -> None:
    """Twenty agents with as many tasks as have series of their own, all outcomes, on a scraper that pays by the series.

    The frame's own are in it, as many as the families of subjects that a process hears and speaks, and four models.
    """
    metrics = families()
    make_broker("nats://127.0.0.1:1", "counted", metrics.registry, lambda: None)
    for number in range(2 * MAX_TASKS):
        agent = f"A{number % 20}"
        end_task(metrics, agent, f"t{number}", "completed", queued_s=0, run_s=0)
        metrics.count_lookup(agent, "hit")
    for role in ("default", "summary", "interpreter", "finder"):
        metrics.record(role, "m", Expense(1, 2, Decimal(0)), 0.3, "LlmTimeout")
    assert sum(len(series) for series in samples(metrics).values()) <= 2000 - FRAME_SERIES


def test_a_process_that_serves_the_api_stays_far_under_it() -> None:
    """Thirty routes with four statuses each; it runs no tasks."""
    metrics = families()
    before = sum(len(series) for series in samples(metrics).values())
    for number in range(30):
        for status in (200, 404, 422, 503):
            metrics.count_http_request(f"/v1/{number}", "GET", status, 0.1)
    assert sum(len(series) for series in samples(metrics).values()) - before <= 500


def test_what_waits_is_told_by_agent_where_somebody_looks() -> None:
    """Tasks, their time, workers, the oldest; series come and go with what there is to tell."""
    metrics, waiting = Metrics(), {"A": 3.0}
    assert "tasklore_tasks_unfinished" not in samples(metrics)
    metrics.watch_tasks(lambda: waiting, lambda: {"A": 12.5}, lambda: {"A": 0.0, "B": 2.0}, lambda: 7.5)
    assert value(metrics, "tasklore_tasks_unfinished", agent="A") == 3
    assert value(metrics, "tasklore_backlog_slot_seconds", agent="A") == 12.5
    assert value(metrics, "tasklore_workers", agent="B") == 2
    assert value(metrics, "tasklore_oldest_task_age_seconds") == 7.5
    del waiting["A"]
    assert "tasklore_tasks_unfinished" not in samples(metrics)


def test_the_ledgers_count_is_told_once_it_is_known() -> None:
    """Nothing before that, as a zero would be a lie; then every outcome, also those that a newer writer adds."""
    metrics = Metrics()
    known: dict[str, int] = {}
    metrics.watch_ledger(lambda: known, lambda: 2.5)
    assert value(metrics, "tasklore_ledger_age_seconds") == 2.5
    assert "tasklore_ledger_tasks" not in samples(metrics)
    known |= {"completed": 7, "postponed": 1}
    told = samples(metrics)["tasklore_ledger_tasks"]
    assert told[frozenset({("outcome", "completed")})] == 7
    assert told[frozenset({("outcome", "failed")})] == 0
    assert told[frozenset({("outcome", "postponed")})] == 1


def test_the_page_of_metrics_is_up_to_date() -> None:
    """Made anew with `python -m runtime.metrics_table > docs/reference/metrics.md`."""
    assert PAGE.read_text(encoding="utf-8") == page()


def test_the_page_lists_every_name_that_is_exported() -> None:
    """Of a process that watches everything."""
    text = PAGE.read_text(encoding="utf-8")
    metrics = families()
    missing = {one.name for one in metrics.declared if f"| `{one.name}` |" not in text}
    assert missing == set()
    assert {name for name in COUNTED if f"`{name.removesuffix('_count')}`" not in text} == set()


def test_two_registries_do_not_know_each_other_or_the_global_one() -> None:
    """Several roles can live in one process, as they do in tests."""
    first, second = used(Metrics()), Metrics()
    assert "tasklore_llm_errors_total" not in samples(second)
    assert "tasklore_llm_errors_total" in samples(first)
    assert b"tasklore_" not in prometheus_client.generate_latest()


def test_counting_from_several_threads_loses_nothing() -> None:
    """The lease thread counts beside the event loop."""
    metrics = Metrics()

    def count() -> None:
        for _ in range(2_000):
            metrics.count_lease_heartbeat(delivered=True)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert value(metrics, "tasklore_lease_heartbeats_total", result="sent") == 8_000


def test_the_page_is_what_the_client_library_writes() -> None:
    """Series are spelled by us, since it spells all of them anew in every scrape; quotes and line ends included."""
    metrics = families()
    metrics.count_tasks('a "quoted" \\ agent\n', "naïve", "completed")
    metrics.observe_task("TripAgent", "book", queued_s=0.1, run_s=2e9)
    metrics.count_http_request("/v1/requests", "POST", 200, 0.01)

    expected = prometheus_client.generate_latest(metrics.registry)

    assert _without_process(metrics.render()) == _without_process(expected)


def _without_process(page: bytes) -> list[bytes]:
    """Return the lines of *page* that do not tell of this process: those are other ones a moment later."""
    return [line for line in page.splitlines() if b"process_" not in line]
