"""The FastStream broker of a process: typed handlers and publishers for messages on core NATS, with middleware.

Handlers are given messages that `reads` or `reads_or_ignores` has read. FastStream's own reading of JSON raises where
nobody sees it: at an array of a thousand levels, a number of five thousand digits, or a header that says it is text.
"""

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, TypeVar

import nats.errors
import structlog
from faststream import BaseMiddleware, ExceptionMiddleware
from faststream.exceptions import SkipMessage
from faststream.message import StreamMessage
from faststream.nats import NatsBroker, NatsNKey, NatsSecurity
from faststream.nats.prometheus.provider import NatsMetricsSettingsProvider
from faststream.prometheus import ConsumeAttrs
from faststream.prometheus.middleware import PrometheusMiddleware
from faststream.response import PublishCommand
from nats.aio.msg import Msg
from prometheus_client import CollectorRegistry
from pydantic import ValidationError

from tasklore.contracts import subjects
from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.faults import fault_of
from tasklore.contracts.messages import Message
from tasklore.contracts.traces import read_context
from tasklore.runtime.access import ServerCredentials, access_of, inbox_prefix
from tasklore.runtime.messaging.connection import PING_S, RECONNECT_WAIT_S
from tasklore.runtime.messaging.refusals import Refusals, ServerRefusal
from tasklore.runtime.servers.endpoints import addresses_in
from tasklore.runtime.tracing import span
from tasklore.runtime.tracing.letters import processing

log = structlog.get_logger(__name__)

M = TypeVar("M", bound=Message)

#: What is asked, and answered by whoever serves it.
_ASKED = frozenset({"requests", "pipelines", "analyses", "operations"})
#: Problems of one message that are told of.
_MOST_PROBLEMS = 5
#: Seconds that running handlers have to finish when the process stops.
GRACEFUL_S = 5.0


class UnreadableMessage(InvalidInput):
    """The body is no message of the expected kind; the error names the fields, for the sender."""


def make_broker(
    url: str,
    name: str,
    registry: CollectorRegistry,
    closed: Callable[[], None],
    refused: Callable[[ServerRefusal], None] = lambda _refusal: None,
) -> NatsBroker:
    """Return a broker called *name*, not yet connected, that never gives up reconnecting to *url*.

    It serves requests, progress, cancellation and cards. Tasks do not pass through it: the pull engine has a connection
    of its own (see docs/architecture.md). *closed* is told when the connection is closed for good, at the end too:
    for a message that is too large the server ends it, and nats-py does not reconnect. *refused* is told what we
    may not listen to.
    """
    access = access_of()
    refusals = Refusals(access.role)
    # Whoever asks chooses where the answer goes: only what we listen to is ours.
    refusals.listen(
        lambda refusal: refused(refusal) if refusal.kind == "subscription" else None
    )

    async def tell_closed() -> None:
        closed()

    async def tell_error(error: Exception) -> None:
        if not refusals.hear(error) and not isinstance(
            error, nats.errors.UnexpectedEOF | OSError
        ):
            log.info("broker_error", error=str(error) or type(error).__name__)

    return _Broker(
        addresses_in(url),
        name=name,
        error_cb=tell_error,
        security=_security(access),
        inbox_prefix=inbox_prefix(access.role) if access.role else "_INBOX",
        max_reconnect_attempts=-1,
        reconnect_time_wait=RECONNECT_WAIT_S,  # type: ignore[arg-type]  # the library sleeps it: a float serves
        connect_timeout=2,
        ping_interval=PING_S,  # type: ignore[arg-type]  # as above
        max_outstanding_pings=2,
        graceful_timeout=GRACEFUL_S,
        closed_cb=tell_closed,
        logger=None,
        middlewares=[
            _Traced,
            PrometheusMiddleware[Any, Any](
                settings_provider_factory=lambda _message: _ByFamily(),
                registry=registry,
                # Its own name would be a label with an id in it; the scraper knows the process anyway.
                app_name="tasklore",
                metrics_prefix="tasklore_broker",
            ),
            _loud_failures(),
        ],
    )


def _security(access: ServerCredentials) -> NatsSecurity | None:
    """Return what the broker shows of us, as `Access.nats_options` does for the other connections."""
    context = access.nats_tls()
    if access.seed_file is not None:
        return NatsNKey.from_seed(
            access.nats_options()["nkeys_seed_str"], ssl_context=context
        )
    return NatsSecurity(ssl_context=context) if context is not None else None


def reads(model: type[M]) -> Callable[[StreamMessage[Msg]], Awaitable[M]]:
    """Return a decoder for handlers of *model* whose sender is answered.

    Raises:
        UnreadableMessage: by the decoder.
    """

    async def read(message: StreamMessage[Msg]) -> M:
        try:
            return model.model_validate_json(message.body)
        except ValidationError as error:
            problem = _problems_in(error)
            log.info("unreadable_message", kind=model.__name__, problem=problem)
            raise UnreadableMessage(problem) from error

    return read


def reads_or_ignores(model: type[M]) -> Callable[[StreamMessage[Msg]], Awaitable[M]]:
    """Return a decoder for one-way handlers of *model*: unreadable messages do not reach them."""
    read = reads(model)

    async def read_or_ignore(message: StreamMessage[Msg]) -> M:
        try:
            return await read(message)
        except UnreadableMessage as error:
            raise SkipMessage from error

    return read_or_ignore


async def reads_nothing(message: StreamMessage[Msg]) -> bytes:
    """Return the body as it is: a decoder for handlers that look at the subject alone."""
    return bytes(message.body)


def _problems_in(error: ValidationError) -> str:
    """Return the wrong fields and their faults, without a word of their values."""
    return "; ".join(
        fault_of(problem)
        for problem in error.errors(
            include_url=False, include_input=False, include_context=False
        )[:_MOST_PROBLEMS]
    )


def _loud_failures() -> ExceptionMiddleware:
    """Return a middleware that logs what no handler was to raise: FastStream would pass over it in silence."""
    failures = ExceptionMiddleware()

    @failures.add_handler(Exception)
    async def tell(error: Exception) -> None:
        log.error("handler_failed", exc_info=error)

    return failures


class _Broker(NatsBroker):
    """A broker that can be stopped when its connection is closed, broken or silent: there is nothing left to drain."""

    async def stop(
        self,
        exc_type: type[BaseException] | None = None,
        exc_val: BaseException | None = None,
        exc_tb: TracebackType | None = None,
    ) -> None:
        try:
            async with asyncio.timeout(GRACEFUL_S):
                await super().stop(exc_type, exc_val, exc_tb)
        except* (nats.errors.Error, OSError, RuntimeError, TimeoutError) as errors:
            # There is nobody to say goodbye to: closed, reconnecting, or silent.
            log.info("broker_not_drained", error=type(errors.exceptions[0]).__name__)


class _Traced(BaseMiddleware[PublishCommand, Any]):
    """Lets what a request leads to belong to the trace that its sender named, or to one of its own."""

    async def consume_scope(
        self,
        call_next: Callable[[StreamMessage[Msg]], Awaitable[object]],
        msg: StreamMessage[Msg],
    ) -> object:
        subject = msg.raw_message.subject
        if subject.partition(".")[0] not in _ASKED:
            return await call_next(msg)
        with span(
            f"process {subject}",
            kind="server",
            parent=read_context(msg.headers),
            attributes=processing(subject),
        ):
            return await call_next(msg)


class _ByFamily(NatsMetricsSettingsProvider):
    """Labels by the kind of a subject, never by the subject itself, which ends in a task id or is an inbox."""

    def get_consume_attrs_from_message(self, msg: StreamMessage[Msg]) -> ConsumeAttrs:
        found = super().get_consume_attrs_from_message(msg)
        return {
            **found,
            "destination_name": subjects.metric_label(found["destination_name"]),
        }

    def get_publish_destination_name_from_cmd(self, cmd: PublishCommand) -> str:
        return subjects.metric_label(cmd.destination)
