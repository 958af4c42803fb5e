"""What a process counts, in a registry of its own: one asyncio process a pod, no multiprocess mode, no global registry.

Labels are agents, tasks, outcomes, reasons and models; never an id, a user or a text. Everything that counts a loss
stands at 0 from the start, so that the first loss is a rise and not a new series.
"""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib import metadata
from typing import Any, get_args

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Info,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST as CONTENT_TYPE

from contracts.analysis_roster import ROSTER
from contracts.messages import MemoryOutcome, Status
from contracts.words import OTHER
from runtime.llm_prices import Expense

__all__ = ["CONTENT_TYPE", "Metrics"]

#: Seconds; from what a remembered answer takes to half an hour.
TASK_BUCKETS = (0.005, 0.01, 0.025, 0.1, 0.25, 1, 2.5, 10, 30, 60, 300, 900, 1800)
#: Seconds; recalling has 0.05 in all.
LOOKUP_BUCKETS = (0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1)
#: Seconds; a language model takes its time.
LLM_BUCKETS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
#: Tasks with series of their own; names may come from strangers, so that any further one is counted as `other`.
MAX_TASKS = 64
#: Why a message can end in DEAD; others may be counted too.
DEAD_REASONS = ("attempts", "gave_up", "crashes", "deadline", "unreadable")
#: Why a stream can refuse a message: it is full, nobody stores its subject, or anything else.
REFUSALS = ("full", "no_stream", "other")
PEERS = ("nats", "redis")
#: Where a task waits for its next run.
RETRY_WAYS = ("nak", "schedule")
#: What can become of a turn, of a fact, and of an edit that a plan wants; see `workers.listening`.
TURN_OUTCOMES = ("learned", "nothing", "anonymous", "needs_model", "failed")
FACT_OUTCOMES = ("applied", "known", "rejected", "conflict", "needs_model", "failed")
#: How the run of a pipeline, and one phase of it, can end.
PIPELINE_OUTCOMES = ("completed", "failed", "cancelled")
PHASE_OUTCOMES = ("done", "failed", "skipped", "restarted")
#: What can become of an analysis of a story's response, and of each of its sections.
ANALYSIS_OUTCOMES = ("fresh", "partial", "served")
SECTION_OUTCOMES = ("ok", "failed", "late", "skipped")
#: Agents of our own that find sections; those of stories are counted as `other`, as their number has no end.
SECTION_AGENTS = frozenset(seat.agent_id for seat in ROSTER)
EDIT_OPERATIONS = ("insert", "update", "delete")
EDIT_REFUSALS = (
    # What documents refuse, whoever asks for it.
    *("path", "missing", "protected", "type", "size", "depth", "overlap", "file", "value"),
    # What the memory worker's arbiter refuses before that.
    *("place", "evidence", "merge", "mention", "sweep", "rank", "guarded", "older", "model"),
    # What the switchboard refuses to hear in a turn.
    *("kind", "support", "shape", "confidence", "quoted", "question", "greeting", "others", "number", "name"),
    *("polarity", "known", "too_many"),
)

# A second series for each one, with the time of its birth, which nobody reads.
disable_created_metrics()  # type: ignore[no-untyped-call]  # theirs


class _Children(dict[str, Counter]):
    """The series of a counter by the last of its labels, each bound once; those of *words* stand at 0 from the start.

    Looking up labels costs three times what counting does.
    """

    def __init__(self, counter: Counter, words: Iterable[str], *labels: str) -> None:
        super().__init__((word, counter.labels(*labels, word)) for word in words)
        self._counter = counter
        self._labels = labels

    def __missing__(self, word: str) -> Counter:
        child = self[word] = self._counter.labels(*self._labels, word)
        return child


@dataclass(frozen=True, slots=True)
class _TaskSeries:
    """What is counted whenever a task of one name ends."""

    outcomes: _Children
    queue_wait: Histogram
    duration: Histogram


class Metrics:
    """Everything this process counts; it is the meter that the engines, the outbox, the leases and the LLM ask for.

    Counting is for any thread. *version* None is that of the installed distribution.
    """

    def __init__(self, version: str | None = None) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        Info("tasklore_build", "The running version.", registry=self.registry).info(
            {"version": version or _installed_version()}
        )
        self._by_task: dict[tuple[str, str], _TaskSeries] = {}
        self._by_agent: dict[str, _Children] = {}
        self._declare_tasks()
        self._declare_transport()
        self._declare_listening()
        self._declare_pipelines()
        self._declare_analyses()
        self._declare_llm()

    def count_tasks(self, agent: str, task: str, outcome: str, number: int = 1) -> None:
        """Count *number* terminal reports by their status."""
        series = self._by_task.get((agent, task)) or self._new_task(agent, task)
        series.outcomes[outcome].inc(number)

    def observe_task(self, agent: str, task: str, *, queued_s: float, run_s: float | None) -> None:
        """Note that a task waited *queued_s* and ran *run_s* seconds; None when its answer was served instead."""
        series = self._by_task.get((agent, task)) or self._new_task(agent, task)
        series.queue_wait.observe(queued_s)
        if run_s is not None:
            series.duration.observe(run_s)

    def count_lookup(self, agent: str, outcome: str, number: int = 1) -> None:
        """Count what the memory had to do with *number* tasks."""
        lookups = self._by_agent.get(agent)
        if lookups is None:
            lookups = self._by_agent[agent] = _Children(self._lookups, _words(MemoryOutcome), agent)
        lookups[outcome].inc(number)

    def count_saved(self, seconds: float) -> None:
        """Count the time that served answers once took to compute."""
        self._saved.inc(max(0.0, seconds))

    def time_lookup(self) -> AbstractContextManager[object]:
        """Measure one recall of the memory, of however many keys, while the block runs."""
        return self._lookup_duration.time()

    def watch_slots(self, slots: int, used: Callable[[], float]) -> None:
        """Export how many messages may be held, and what *used* says at each scrape."""
        self._slots.set(slots)
        self._slots_used.set_function(used)

    def watch_event_loop(self, lag_s: Callable[[], float]) -> None:
        """Export what *lag_s* says at each scrape; it is called from another thread."""
        self._loop_lag.set_function(lag_s)

    def watch_dead_letters(self, waiting: Callable[[], float], oldest_s: Callable[[], float]) -> None:
        """Export what *waiting* and *oldest_s* say at each scrape; only a process that looks after DEAD has these."""
        self._gauge("dead_letters_waiting", "Messages that lie set aside.").set_function(waiting)
        self._gauge("dead_letters_oldest_seconds", "Since the oldest of them was set aside.").set_function(oldest_s)

    def watch_waiting(self, queue: str, waiting: Callable[[], float], oldest_s: Callable[[], float]) -> None:
        """Export what *waiting* and *oldest_s* say of *queue*, `turns` or `facts`, in a process that listens to it.

        Both are of all users and the same in every such process: whoever scales by them takes the maximum, not the sum.
        """
        one = queue.removesuffix("s")
        self._gauge(f"{queue}_pending", f"All {queue} that wait, whoever reads them.").set_function(waiting)
        self._gauge(f"oldest_{one}_age_seconds", "Since the oldest of them was said.").set_function(oldest_s)

    def count_turn(self, outcome: str) -> None:
        """Count a turn that is dealt with; *outcome* is one of `TURN_OUTCOMES`."""
        self._turns[outcome].inc()

    def count_fact(self, outcome: str) -> None:
        """Count a fact that is dealt with, or waits for a model; *outcome* is one of `FACT_OUTCOMES`."""
        self._facts[outcome].inc()

    def count_edit(self, operation: str) -> None:
        """Count an edit that is stored."""
        self._edits[operation].inc()

    def count_edit_refused(self, reason: str) -> None:
        """Count a plan that did not fit and changed nothing; *reason* is one of `EDIT_REFUSALS`."""
        self._edits_refused[reason].inc()

    def count_stale_draft(self) -> None:
        """Count edits that were worked out anew, since others had changed the documents meanwhile."""
        self._stale_drafts.inc()

    def count_listen_retry(self, queue: str) -> None:
        """Count turns or facts whose run raised and that run again; *queue* is `turns` or `facts`."""
        self._listen_retries[queue].inc()

    def count_pipeline(self, outcome: str) -> None:
        """Count a run of a pipeline that ended; *outcome* is one of `PIPELINE_OUTCOMES`."""
        self._pipelines[outcome].inc()

    def count_phase(self, outcome: str) -> None:
        """Count a phase that needs no more work, or begins again; *outcome* is one of `PHASE_OUTCOMES`."""
        self._phases[outcome].inc()

    def count_session_hits(self, number: int) -> None:
        """Count *number* entries of sessions that were read instead of computed."""
        self._session_hits.inc(number)

    def count_analysis(self, outcome: str) -> None:
        """Count an analysis that is as far as it gets, or was served; *outcome* is one of `ANALYSIS_OUTCOMES`."""
        self._analyses[outcome].inc()

    def count_section(self, agent: str, outcome: str) -> None:
        """Count what became of a section of *agent*; *outcome* is one of `SECTION_OUTCOMES`."""
        self._sections[agent if agent in SECTION_AGENTS else OTHER][outcome].inc()

    def count_delivery(self, *, redelivered: bool) -> None:
        """Count a message that arrived, for the first time or again."""
        self._deliveries[redelivered].inc()

    def count_consumer_missing(self) -> None:
        """Count that a consumer or its stream was not there."""
        self._consumer_missing.inc()

    def count_orphaned(self, number: int) -> None:
        """Count deliveries of a consumer that is gone: they run to their end and cannot be acknowledged."""
        self._orphaned.inc(number)

    def count_crashed_run(self) -> None:
        """Count a run that ended without a word, as the next one finds it in the ledger."""
        self._crashed_runs.inc()

    def count_replaced_run(self) -> None:
        """Count a run that was stopped here because another worker runs the task meanwhile."""
        self._replaced_runs.inc()

    def count_retry(self, how: str) -> None:
        """Count another run that is to follow; *how* is `nak` when the task waits in TASKS, `schedule` in LATER."""
        self._retries[how].inc()

    def count_lease_heartbeat(self, *, delivered: bool) -> None:
        """Count a lease that was renewed, or could not be."""
        self._heartbeats[delivered].inc()

    def count_publish_retry(self) -> None:
        """Count a message that was sent again."""
        self._publish_retries.inc()

    def count_publish_refused(self, reason: str) -> None:
        """Count a message that a stream did not take, each time that it was sent; *reason* is one of `REFUSALS`."""
        self._publish_refused[reason].inc()

    def count_stream_lost(self) -> None:
        """Count that a stream of tasks was found to be another than before."""
        self._streams_lost.inc()

    def count_tasks_republished(self, number: int) -> None:
        """Count *number* tasks that were published anew after their stream was lost."""
        self._tasks_republished.inc(number)

    def count_stale_report(self) -> None:
        """Count a result that came after another attempt had finished, and was refused."""
        self._stale_reports.inc()

    def count_dead_letter(self, reason: str) -> None:
        """Count a message set aside; *reason* is one of a few words."""
        self._dead_letters[reason].inc()

    def count_reconnect(self, peer: str) -> None:
        """Count a connection that was lost and is tried again; *peer* is `nats` or `redis`."""
        self._reconnects[peer].inc()

    def record(self, role: str, model: str, usage: Expense, duration_s: float, error_class: str | None) -> None:
        """Count one attempt to ask a language model; *error_class* None is a success."""
        self._llm_tokens.labels(role, model, "input").inc(usage.input_tokens)
        self._llm_tokens.labels(role, model, "output").inc(usage.output_tokens)
        self._llm_cost.labels(role, model).inc(float(usage.cost_usd))
        self._llm_duration.labels(role, model).observe(duration_s)
        if error_class is not None:
            self._llm_errors.labels(error_class).inc()

    def render(self) -> bytes:
        """Return everything in Prometheus' text format, of the type `CONTENT_TYPE`."""
        return generate_latest(self.registry)

    def _new_task(self, agent: str, task: str) -> _TaskSeries:
        if len(self._by_task) >= MAX_TASKS:
            agent = task = OTHER
        series = _TaskSeries(
            _Children(self._tasks, _words(Status), agent, task),
            self._queue_wait.labels(agent),
            self._duration.labels(agent, task),
        )
        return self._by_task.setdefault((agent, task), series)

    def _declare_tasks(self) -> None:
        self._tasks = self._counter("tasks", "Terminal reports.", "agent", "task", "outcome")
        self._queue_wait = self._histogram("task_queue_wait_seconds", "From sent to started.", TASK_BUCKETS, "agent")
        self._duration = self._histogram(
            "task_duration_seconds", "From started to done.", TASK_BUCKETS, "agent", "task"
        )
        self._lookups = self._counter("memory_lookups", "Questions to the long-term memory.", "agent", "outcome")
        self._saved = self._counter("memory_saved_seconds", "Computing that remembered answers spared.")
        self._lookup_duration = self._histogram(
            "memory_lookup_duration_seconds", "The memory's answer for one batch.", LOOKUP_BUCKETS
        )
        self._crashed_runs = self._counter("crashed_runs", "Runs that ended without a word.")
        self._replaced_runs = self._counter("replaced_runs", "Runs stopped because another worker had taken the task.")
        self._retries = _Children(self._counter("retries", "Further runs of tasks that raised.", "how"), RETRY_WAYS)
        self._stale_reports = self._counter("stale_reports_refused", "Results after another attempt had finished.")
        self._dead_letters = _Children(self._counter("dead_letters", "Messages set aside.", "reason"), DEAD_REASONS)

    def _declare_transport(self) -> None:
        self._slots = self._gauge("slots", "Messages that may be held at once.")
        self._slots_used = self._gauge("slots_used", "Messages held now.")
        deliveries = self._counter("deliveries", "Messages that arrived.", "redelivered")
        self._deliveries = {again: deliveries.labels(str(again).lower()) for again in (False, True)}
        heartbeats = self._counter("lease_heartbeats", "Renewals of leases on held messages.", "result")
        self._heartbeats = {True: heartbeats.labels("sent"), False: heartbeats.labels("failed")}
        self._consumer_missing = self._counter("consumer_missing", "Reads of a consumer or stream that is not there.")
        self._orphaned = self._counter("orphaned_deliveries", "Deliveries of a consumer that is gone.")
        self._publish_retries = self._counter("publish_retries", "Messages sent again under the same id.")
        refused = self._counter("publish_refused", "Messages that a stream did not take.", "reason")
        self._publish_refused = _Children(refused, REFUSALS)
        self._streams_lost = self._counter("streams_lost", "Streams of tasks found new in the place of another.")
        self._tasks_republished = self._counter("tasks_republished", "Tasks published anew after that.")
        self._reconnects = _Children(self._counter("reconnects", "Connections lost and tried again.", "peer"), PEERS)
        self._loop_lag = self._gauge("event_loop_lag_seconds", "How late the event loop is.")

    def _declare_listening(self) -> None:
        self._turns = _Children(self._counter("turns", "Turns dealt with.", "outcome"), TURN_OUTCOMES)
        self._facts = _Children(self._counter("facts", "Facts dealt with.", "outcome"), FACT_OUTCOMES)
        self._edits = _Children(self._counter("edits", "Edits of documents.", "operation"), EDIT_OPERATIONS)
        refused = self._counter("edits_refused", "Plans that did not fit and changed nothing.", "reason")
        self._edits_refused = _Children(refused, EDIT_REFUSALS)
        self._stale_drafts = self._counter("stale_drafts", "Edits worked out anew after somebody else's.")
        retries = self._counter("listen_retries", "Further runs of turns and facts that raised.", "queue")
        self._listen_retries = _Children(retries, ("turns", "facts"))

    def _declare_pipelines(self) -> None:
        runs = self._counter("pipeline_runs", "Runs of pipelines that ended.", "outcome")
        self._pipelines = _Children(runs, PIPELINE_OUTCOMES)
        phases = self._counter("pipeline_phases", "Phases that are through, or begin again.", "outcome")
        self._phases = _Children(phases, PHASE_OUTCOMES)
        self._session_hits = self._counter("session_hits", "Entries of sessions read instead of computed.")

    def _declare_analyses(self) -> None:
        analyses = self._counter("analyses", "Analyses of responses that are done, or were served.", "outcome")
        self._analyses = _Children(analyses, ANALYSIS_OUTCOMES)
        sections = self._counter("analysis_sections", "Sections of analyses that ended.", "agent", "outcome")
        self._sections = {
            agent: _Children(sections, SECTION_OUTCOMES, agent) for agent in (*sorted(SECTION_AGENTS), OTHER)
        }

    def _declare_llm(self) -> None:
        self._llm_tokens = self._counter("llm_tokens", "Tokens, also of failed attempts.", "role", "model", "type")
        self._llm_cost = self._counter("llm_cost_usd", "US dollars by list price.", "role", "model")
        self._llm_duration = self._histogram(
            "llm_request_duration_seconds", "One attempt to ask a language model.", LLM_BUCKETS, "role", "model"
        )
        self._llm_errors = self._counter("llm_errors", "Failed attempts.", "class")

    def _counter(self, name: str, about: str, *labels: str) -> Counter:
        return Counter(f"tasklore_{name}", about, labels, registry=self.registry)

    def _gauge(self, name: str, about: str) -> Gauge:
        return Gauge(f"tasklore_{name}", about, registry=self.registry)

    def _histogram(self, name: str, about: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
        return Histogram(f"tasklore_{name}", about, labels, buckets=buckets, registry=self.registry)


def _words(closed: Any) -> tuple[str, ...]:
    return tuple(word for word in get_args(closed) if word != OTHER)


def _installed_version() -> str:
    try:
        return metadata.version("tasklore")
    except metadata.PackageNotFoundError:
        return "unknown"
