"""The FastStream broker of a process: typed handlers and publishers for what is said on core NATS, with middleware."""

from typing import Any

from faststream.message import StreamMessage
from faststream.nats import NatsBroker
from faststream.nats.prometheus.provider import NatsMetricsSettingsProvider
from faststream.prometheus import ConsumeAttrs
from faststream.prometheus.middleware import PrometheusMiddleware
from faststream.response import PublishCommand
from nats.aio.msg import Msg
from prometheus_client import CollectorRegistry

from contracts import subjects
from runtime.connection import PING_S, RECONNECT_WAIT_S

#: Seconds that running handlers have to finish when the process stops.
GRACEFUL_S = 5.0


def make_broker(url: str, name: str, registry: CollectorRegistry) -> NatsBroker:
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
        logger=None,
        middlewares=[
            PrometheusMiddleware[Any, Any](
                settings_provider_factory=lambda _message: _ByFamily(),
                registry=registry,
                app_name=name,
                metrics_prefix="tasklore_broker",
            )
        ],
    )


class _ByFamily(NatsMetricsSettingsProvider):
    """Labels by what is said, never by the subject itself: that ends in a task id, or is somebody's inbox."""

    def get_consume_attrs_from_message(self, msg: StreamMessage[Msg]) -> ConsumeAttrs:
        found = super().get_consume_attrs_from_message(msg)
        return {**found, "destination_name": subjects.family(found["destination_name"])}

    def get_publish_destination_name_from_cmd(self, cmd: PublishCommand) -> str:
        return subjects.family(cmd.destination)
