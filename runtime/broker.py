"""The FastStream broker of a process: typed handlers and publishers for what is said on core NATS, with middleware."""

from collections.abc import Awaitable, Callable

import structlog
from faststream.nats import NatsBroker
from faststream.nats.prometheus import NatsPrometheusMiddleware
from prometheus_client import CollectorRegistry

from runtime.connection import PING_S, RECONNECT_WAIT_S

log = structlog.get_logger(__name__)

#: Seconds that running handlers have to finish when the process stops.
GRACEFUL_S = 5.0


def make_broker(
    url: str, name: str, registry: CollectorRegistry, *, reconnected: Callable[[], Awaitable[None]] | None = None
) -> NatsBroker:
    """Return a broker called *name*, not yet connected, that never gives up reconnecting to *url*.

    It serves requests, progress, cancellation and cards. Tasks do not pass through it: the pull engine has a connection
    of its own (see docs/architecture.md).
    """
    return NatsBroker(
        url,
        name=name,
        max_reconnect_attempts=-1,
        reconnect_time_wait=RECONNECT_WAIT_S,  # type: ignore[arg-type]  # the library sleeps it: a float serves
        connect_timeout=2,
        ping_interval=PING_S,  # type: ignore[arg-type]  # as above
        max_outstanding_pings=2,
        graceful_timeout=GRACEFUL_S,
        reconnected_cb=reconnected,
        logger=None,
        middlewares=[NatsPrometheusMiddleware(registry=registry, app_name=name, metrics_prefix="tasklore_broker")],
    )
