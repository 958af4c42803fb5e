"""Refusals: the reply to a request over NATS that cannot be read, or that failed."""

import structlog
from faststream import ExceptionMiddleware

from tasklore.contracts.errors import TaskloreError
from tasklore.contracts.messages import PersonReply
from tasklore.runtime.messaging.broker import UnreadableMessage

log = structlog.get_logger(__name__)

_APOLOGY = "Something went wrong here, not with what you asked. Ask again; if it stays, the supervisor's log says why."


def make_refusals() -> ExceptionMiddleware:
    """Return the middleware that answers an unusable request with a sentence instead of silence."""
    refusals = ExceptionMiddleware()

    @refusals.add_handler(UnreadableMessage, publish=True)
    async def refuse(error: UnreadableMessage) -> PersonReply:
        return _refusal(f"This request cannot be read: {error}")

    @refusals.add_handler(TaskloreError, publish=True)
    async def explain(error: TaskloreError) -> PersonReply:
        return _refusal(str(error))

    @refusals.add_handler(Exception, publish=True)
    async def apologise(error: Exception) -> PersonReply:
        log.error("handler_failed", exc_info=error)
        return _refusal(_APOLOGY)

    return refusals


def _refusal(text: str) -> PersonReply:
    return PersonReply(
        request_id="unknown", conversation_id="unknown", kind="failed", text=text
    )
