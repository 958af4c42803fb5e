"""What a request's headers say of its trace, as HTTP allows them to be written."""

import pytest
from starlette.types import Message, Receive, Scope, Send

from contracts.traces import TraceContext, made_context
from runtime import tracing
from runtime.metrics import Metrics
from supervisor.http.observation import ObservationMiddleware

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
    await ObservationMiddleware(app, Metrics())({"type": "http", "method": "GET", "headers": lines}, receive, send)
    return found[0]


async def test_a_state_in_several_lines_is_one() -> None:
    """As HTTP has it for every header that is a list, and W3C for this one."""
    found = await context_within(("traceparent", PARENT), ("tracestate", "a=1"), ("tracestate", "b=2"))
    assert found == TraceContext(PARENT, "a=1,b=2")


@pytest.mark.parametrize("second", [PARENT, made_context(9, 8, 1).parent, "x"])
async def test_of_several_contexts_none_is_taken(second: str) -> None:
    """Nobody could say whose child the request is."""
    assert await context_within(("traceparent", PARENT), ("traceparent", second)) is None


async def test_a_state_without_a_context_is_nothing() -> None:
    """Nor is it carried on."""
    assert await context_within(("tracestate", "a=1")) is None
