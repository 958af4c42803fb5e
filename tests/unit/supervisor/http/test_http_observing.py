"""The trace context that a request's headers carry."""

import pytest
from starlette.types import Message, Receive, Scope, Send

from tasklore.contracts.traces import TraceContext, made_context
from tasklore.runtime import tracing
from tasklore.runtime.metrics import Metrics
from tasklore.supervisor.http.observation import ObservationMiddleware

PARENT = made_context(7, 8, 1).parent


async def context_within(*headers: tuple[str, str]) -> TraceContext | None:
    """Return the context that a request with *headers* is answered in."""
    found: list[TraceContext | None] = []

    async def app(_scope: Scope, _receive: Receive, _send: Send) -> None:
        found.append(tracing.current())

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def send(_message: Message) -> None:
        """Answer nobody."""

    lines = [(name.encode(), value.encode()) for name, value in headers]
    await ObservationMiddleware(app, Metrics())(
        {"type": "http", "method": "GET", "headers": lines}, receive, send
    )
    return found[0]


async def test_a_trace_state_in_several_lines_is_joined() -> None:
    found = await context_within(
        ("traceparent", PARENT), ("tracestate", "a=1"), ("tracestate", "b=2")
    )
    assert found == TraceContext(PARENT, "a=1,b=2")


@pytest.mark.parametrize("second", [PARENT, made_context(9, 8, 1).parent, "x"])
async def test_several_trace_contexts_are_ignored(second: str) -> None:
    assert (
        await context_within(("traceparent", PARENT), ("traceparent", second)) is None
    )
