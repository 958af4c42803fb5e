"""The HTTP API: requests by their route, never by their path, and how long each took to be answered."""

from runtime.counting.series import Children, Series
from runtime.counting.words import CONNECTION_REFUSALS, HTTP_BUCKETS


class HttpCounts:
    """What a supervisor counts that serves the HTTP API."""

    def __init__(self, series: Series) -> None:
        self._http_requests = series.counter(
            "http_requests", "Requests to the HTTP API that were answered.", "route", "method", "status"
        )
        self._http_duration = series.histogram(
            "http_request_duration_seconds",
            "From the head of a request to the end of its answer; of a stream, to its end.",
            HTTP_BUCKETS,
            "route",
        )
        refused = series.counter("http_connections_refused", "Connections to the HTTP API refused or cut.", "reason")
        self._connections_refused = Children(refused, CONNECTION_REFUSALS)

    def count_http_request(self, route: str, method: str, status: int, duration_s: float) -> None:
        """Count a request; *status* 499 is of one whose sender went away before it was answered."""
        self._http_requests.labels(route, method, str(status)).inc()
        self._http_duration.labels(route).observe(duration_s)

    def count_connection_refused(self, reason: str) -> None:
        """Count a connection that was refused or cut; *reason* is one of `CONNECTION_REFUSALS`."""
        self._connections_refused[reason].inc()
