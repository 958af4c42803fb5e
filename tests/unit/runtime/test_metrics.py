"""Metrics: the names that dashboards read, zeros from the start, and no series that strangers can multiply."""

import threading
from collections.abc import Callable
from decimal import Decimal

import prometheus_client
from prometheus_client.parser import text_string_to_metric_families

from tasklore.runtime.messaging.broker import make_broker
from tasklore.runtime.metrics import MAX_TASKS, Metrics
from tasklore.runtime.metrics_table import families
from tasklore.runtime.models.prices import Expense

#: What FastStream adds in a process that hears and speaks every family of subjects that a worker does, rounded up.
FRAME_SERIES = 150

#: What counts, the series that it counts under, and by how much.
COUNTS: list[tuple[Callable[[Metrics], object], str, dict[str, str], float]] = [
    (
        lambda metrics: metrics.count_deliveries(1, redelivered=1),
        "deliveries",
        {"redelivered": "true"},
        1,
    ),
    (
        lambda metrics: metrics.count_lease_heartbeat(delivered=False),
        "lease_heartbeats",
        {"result": "failed"},
        1,
    ),
    (Metrics.count_stale_report, "stale_reports_refused", {}, 1),
    (Metrics.count_consumer_missing, "consumer_missing", {}, 1),
    (Metrics.count_publish_retry, "publish_retries", {}, 1),
    (
        lambda metrics: metrics.count_publish_refused("full"),
        "publish_refused",
        {"reason": "full"},
        1,
    ),
    (Metrics.count_stream_lost, "streams_lost", {}, 1),
    (
        lambda metrics: metrics.count_tasks_republished(200),
        "tasks_republished",
        {},
        200,
    ),
    (
        lambda metrics: metrics.count_dead_letter("expired"),
        "dead_letters",
        {"reason": "expired"},
        1,
    ),
    (
        lambda metrics: metrics.count_reconnect("nats"),
        "reconnects",
        {"peer": "nats"},
        1,
    ),
    (
        lambda metrics: metrics.count_webhook("failed"),
        "webhooks",
        {"outcome": "failed"},
        1,
    ),
    (lambda metrics: metrics.count_turn("learned"), "turns", {"outcome": "learned"}, 1),
    (lambda metrics: metrics.count_fact("applied"), "facts", {"outcome": "applied"}, 1),
    (
        lambda metrics: metrics.count_edit("delete", "refused"),
        "document_edits",
        {"operation": "delete", "outcome": "refused"},
        1,
    ),
    (
        lambda metrics: metrics.count_edit_refused("overlap"),
        "edits_refused",
        {"reason": "overlap"},
        1,
    ),
    (Metrics.count_stale_draft, "stale_drafts", {}, 1),
    (
        lambda metrics: metrics.count_listen_retry("facts"),
        "listen_retries",
        {"queue": "facts"},
        1,
    ),
    (
        lambda metrics: metrics.count_pipeline("completed"),
        "pipeline_runs",
        {"outcome": "completed"},
        1,
    ),
    (
        lambda metrics: metrics.count_phase("restarted"),
        "pipeline_phases",
        {"outcome": "restarted"},
        1,
    ),
    (lambda metrics: metrics.count_session_hits(3), "session_hits", {}, 3),
    (
        lambda metrics: metrics.count_lookup("A", "hit", 39),
        "memory_lookups",
        {"agent": "A", "outcome": "hit"},
        39,
    ),
    (lambda metrics: metrics.count_saved(2.5), "memory_saved_seconds", {}, 2.5),
    (lambda metrics: metrics.count_saved(-1), "memory_saved_seconds", {}, 0),
]


def end_task(
    metrics: Metrics,
    agent: str,
    task: str,
    outcome: str,
    *,
    queued_s: float,
    run_s: float,
) -> None:
    """Count one report the way a conclusion does."""
    metrics.count_tasks(agent, task, outcome)
    metrics.observe_task(agent, task, queued_s=queued_s, run_s=run_s)


def samples(metrics: Metrics) -> dict[str, dict[frozenset[tuple[str, str]], float]]:
    """Return what a scraper reads: values by name and labels."""
    found: dict[str, dict[frozenset[tuple[str, str]], float]] = {}
    for family in text_string_to_metric_families(metrics.render().decode()):
        for sample in family.samples:
            found.setdefault(sample.name, {})[frozenset(sample.labels.items())] = (
                sample.value
            )
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


def test_each_count_has_its_series() -> None:
    """And no other one rises with it; a clock that went backwards saves nothing."""
    for count, name, labels, number in COUNTS:
        metrics = Metrics()
        before = samples(Metrics())
        count(metrics)
        assert value(metrics, f"tasklore_{name}_total", **labels) == number
        risen = {
            (series, key)
            for series, found in samples(metrics).items()
            for key, one in found.items()
            if series.startswith("tasklore_")
            and one != before.get(series, {}).get(key, 0.0)
        }
        assert risen == (
            {(f"tasklore_{name}_total", frozenset(labels.items()))} if number else set()
        )


def test_gauges_are_read_when_scraped() -> None:
    held = [1]
    metrics = Metrics()
    assert "tasklore_facts_pending" not in samples(metrics)
    metrics.watch_slots(64, lambda: len(held))
    metrics.watch_event_loop(lambda: 0.5)
    metrics.watch_waiting("facts", lambda: 7, lambda: 12.5)
    held.append(2)
    names = (
        "slots",
        "slots_used",
        "event_loop_lag_seconds",
        "facts_pending",
        "oldest_fact_age_seconds",
    )
    assert [value(metrics, f"tasklore_{name}") for name in names] == [
        64,
        2,
        0.5,
        7,
        12.5,
    ]


def test_what_counts_a_loss_stands_at_zero_before_the_first() -> None:
    """Otherwise the first loss is a new series, and no rise."""
    found = samples(Metrics())
    losses = (
        "stale_reports_refused consumer_missing publish_retries publish_refused "
        "dead_letters reconnects crashed_runs"
    )
    losses = (
        f"{losses} turns facts document_edits edits_refused stale_drafts "
        "listen_retries pipeline_runs pipeline_phases"
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


def test_a_language_model_is_counted_in_tokens_money_and_errors() -> None:
    """An attempt without an error counts none."""
    metrics = used(Metrics())
    metrics.record("finder", "m", Expense(10, 20, Decimal("0.25")), 0.3, None, 0.2)
    assert (
        value(
            metrics, "tasklore_llm_tokens_total", role="finder", model="m", type="input"
        )
        == 11
    )
    assert (
        value(
            metrics,
            "tasklore_llm_tokens_total",
            role="finder",
            model="m",
            type="output",
        )
        == 22
    )
    assert (
        value(metrics, "tasklore_llm_cost_usd_total", role="finder", model="m") == 0.75
    )
    assert (
        value(metrics, "tasklore_llm_request_tokens_sum", model="m", type="output")
        == 20
    )
    assert (
        value(
            metrics,
            "tasklore_llm_time_to_first_chunk_seconds_count",
            role="finder",
            model="m",
        )
        == 1
    )
    metrics.record("finder", "own", Expense(3, 4, unpriced=True), 0.3, None)
    assert samples(metrics)["tasklore_llm_unpriced_tokens_total"] == {
        frozenset({("model", "own")}): 10.0
    }
    assert samples(metrics)["tasklore_llm_errors_total"] == {
        frozenset({("class", "LlmTimeout")}): 1.0
    }


def test_dead_letters_are_counted_where_somebody_looks_after_them() -> None:
    """How many lie there and for how long, beside the counter of a like name; elsewhere there is no such series."""
    metrics = Metrics()
    assert "tasklore_dead_letters" not in samples(metrics)
    metrics.watch_dead_letters(lambda: 3, lambda: 86_400.5)
    metrics.count_dead_letter("gave_up")
    assert value(metrics, "tasklore_dead_letters") == 3
    assert value(metrics, "tasklore_dead_letters_oldest_seconds") == 86_400.5
    assert value(metrics, "tasklore_dead_letters_total", reason="gave_up") == 1


def test_analyses_are_counted_by_how_they_and_their_sections_end() -> None:
    """Agents of ours by their names; those of stories, whose number has no end, together."""
    metrics = Metrics()
    metrics.count_analysis("partial")
    metrics.count_section("StoryFactAgent", "ok")
    for number in range(3):
        metrics.count_section(f"Own{number}Agent", "late")
    assert value(metrics, "tasklore_analyses_total", outcome="partial") == 1
    assert value(metrics, "tasklore_analyses_total", outcome="served") == 0
    assert (
        value(
            metrics,
            "tasklore_analysis_sections_total",
            agent="StoryFactAgent",
            outcome="ok",
        )
        == 1
    )
    assert (
        value(
            metrics,
            "tasklore_analysis_sections_total",
            agent="StoryFactAgent",
            outcome="failed",
        )
        == 0
    )
    assert (
        value(
            metrics, "tasklore_analysis_sections_total", agent="other", outcome="late"
        )
        == 3
    )


def test_strangers_cannot_make_series_without_end() -> None:
    """Past the limit every further name is one."""
    metrics = Metrics()
    for number in range(MAX_TASKS + 30):
        end_task(metrics, "A", f"t{number}", "rejected", queued_s=0, run_s=0)
    end_task(metrics, "A", "t0", "rejected", queued_s=0, run_s=0)
    assert (
        value(
            metrics,
            "tasklore_tasks_total",
            agent="other",
            task="other",
            outcome="rejected",
        )
        == 30
    )
    assert (
        value(metrics, "tasklore_tasks_total", agent="A", task="t0", outcome="rejected")
        == 2
    )


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
        metrics.record(role, "m", Expense(1, 2, Decimal(0)), 0.3, None, 0.1)
    count = sum(len(series) for series in samples(metrics).values())
    assert count <= 2000 - FRAME_SERIES, (
        f"{count + FRAME_SERIES} series are more than the 2,000 that the page of metrics promises: "
        "lower MAX_TASKS in runtime/counting/words.py, or leave one out"
    )


def test_what_waits_is_told_by_agent_where_somebody_looks() -> None:
    """Tasks, their time, workers, the oldest; series come and go with what there is to tell."""
    metrics = Metrics()
    waiting = {"A": 3.0}
    assert "tasklore_tasks_unfinished" not in samples(metrics)
    metrics.watch_tasks(
        lambda: waiting, lambda: {"A": 12.5}, lambda: {"A": 0.0, "B": 2.0}, lambda: 7.5
    )
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


def test_a_finished_task_shows_its_other_outcomes_at_zero() -> None:
    """The first failure of a task that always succeeded is seen as a rise."""
    metrics = used(Metrics())
    assert (
        value(metrics, "tasklore_tasks_total", agent="A", task="t", outcome="completed")
        == 1
    )
    assert (
        value(metrics, "tasklore_tasks_total", agent="A", task="t", outcome="failed")
        == 0
    )
    assert (
        value(
            metrics, "tasklore_memory_lookups_total", agent="A", outcome="unavailable"
        )
        == 0
    )
