"""What carries messages: slots, deliveries, leases, publishing, connections, and the event loop under all of it."""

from collections.abc import Callable

from tasklore.contracts.words import OTHER
from tasklore.runtime.counting.series import LabelledCounters, Series
from tasklore.runtime.counting.words import (
    CONNECTION_REFUSALS,
    HTTP_BUCKETS,
    PEERS,
    REFUSALS,
)

#: Tasks that have a series of their own for having blocked the event loop.
MAX_BLOCKING = 16


class TransportCounts:
    """What every process counts of the messages that it holds and sends."""

    def __init__(self, series: Series) -> None:
        self._slots = series.gauge("slots", "Maximum number of messages held at once.")
        self._slots_used = series.gauge("slots_used", "Messages held now.")
        deliveries = series.counter(
            "deliveries", "Messages that arrived.", "redelivered"
        )
        self._deliveries = {
            again: deliveries.labels(str(again).lower()) for again in (False, True)
        }
        heartbeats = series.counter(
            "lease_heartbeats", "Renewals of leases on held messages.", "result"
        )
        self._heartbeats = {
            True: heartbeats.labels("sent"),
            False: heartbeats.labels("failed"),
        }
        self._consumer_missing = series.counter(
            "consumer_missing", "Reads of a consumer or stream that is not there."
        )
        self._orphaned = series.counter(
            "orphaned_deliveries", "Deliveries of a consumer that is gone."
        )
        self._publish_retries = series.counter(
            "publish_retries", "Messages sent again under the same id."
        )
        refused = series.counter(
            "publish_refused", "Messages that a stream refused.", "reason"
        )
        self._publish_refused = LabelledCounters(refused, REFUSALS)
        self._streams_lost = series.counter(
            "streams_lost", "Task streams that were found recreated."
        )
        self._tasks_republished = series.counter(
            "tasks_republished", "Tasks published again after that."
        )
        self._reconnects = LabelledCounters(
            series.counter("reconnects", "Connections lost and tried again.", "peer"),
            PEERS,
        )
        self._loop_lag = series.gauge(
            "event_loop_lag_seconds", "How late the event loop is."
        )
        self._loop_blocks = series.counter(
            "event_loop_blocks",
            "Times that the event loop was blocked for two seconds, by the run that "
            "blocked it.",
            "agent",
            "task",
        )
        self._blocking: set[tuple[str, str]] = set()

    def count_event_loop_block(self, agent: str, task: str) -> None:
        """Count that the event loop stood still for seconds, in a run of *task*; empty outside of any run."""
        if len(self._blocking) >= MAX_BLOCKING and (agent, task) not in self._blocking:
            agent = task = OTHER
        self._blocking.add((agent, task))
        self._loop_blocks.labels(agent, task).inc()

    def watch_slots(self, slots: int, used: Callable[[], float]) -> None:
        """Export how many messages may be held, and what *used* says at each scrape."""
        self._slots.set(slots)
        self._slots_used.set_function(used)

    def watch_event_loop(self, lag_s: Callable[[], float]) -> None:
        """Export what *lag_s* says at each scrape; it is called from another thread."""
        self._loop_lag.set_function(lag_s)

    def count_deliveries(self, number: int, *, redelivered: int) -> None:
        """Count *number* messages that arrived, *redelivered* of them again."""
        self._deliveries[False].inc(number - redelivered)
        if redelivered:
            self._deliveries[True].inc(redelivered)

    def count_lease_heartbeat(self, *, delivered: bool) -> None:
        """Count a lease that was renewed, or could not be."""
        self._heartbeats[delivered].inc()

    def count_consumer_missing(self) -> None:
        """Count that a consumer or its stream was not there."""
        self._consumer_missing.inc()

    def count_orphaned(self, number: int) -> None:
        """Count deliveries of a consumer that is gone: they run to their end and cannot be acknowledged."""
        self._orphaned.inc(number)

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

    def count_reconnect(self, peer: str) -> None:
        """Count a connection that was lost and is tried again; *peer* is `nats` or `redis`."""
        self._reconnects[peer].inc()


class HttpCounts:
    """What a supervisor counts that serves the HTTP API."""

    def __init__(self, series: Series) -> None:
        self._http_requests = series.counter(
            "http_requests",
            "Requests to the HTTP API that were answered.",
            "route",
            "method",
            "status",
        )
        self._http_duration = series.histogram(
            "http_request_duration_seconds",
            "From the head of a request to the end of its answer; of a stream, to its end.",
            HTTP_BUCKETS,
            "route",
        )
        refused = series.counter(
            "http_connections_refused",
            "Connections to the HTTP API refused or cut.",
            "reason",
        )
        self._connections_refused = LabelledCounters(refused, CONNECTION_REFUSALS)

    def count_http_request(
        self, route: str, method: str, status: int, duration_s: float
    ) -> None:
        """Count a request; *status* 499 is of one whose sender went away before it was answered."""
        self._http_requests.labels(route, method, str(status)).inc()
        self._http_duration.labels(route).observe(duration_s)

    def count_connection_refused(self, reason: str) -> None:
        """Count a connection that was refused or cut; *reason* is one of `CONNECTION_REFUSALS`."""
        self._connections_refused[reason].inc()
