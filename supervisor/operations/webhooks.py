"""Webhooks that wait to be delivered or were given up: of the whole deployment, for administrators."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

from pydantic import Field

from tasklore.contracts.callers import Caller
from tasklore.memory.webhooks.outbox import Kept, Undelivered, WebhookOutbox
from tasklore.supervisor.makers import HELD, RELEASED
from tasklore.supervisor.operations.dependencies import (
    OperatorDependencies,
    SupervisorDependencies,
)
from tasklore.supervisor.operations.forms import View
from tasklore.supervisor.operations.noun import NounDeclaration, serve
from tasklore.supervisor.operations.refusals import not_found
from tasklore.supervisor.operations.table import Shows, operation

WebhookId = Annotated[
    str,
    Field(
        max_length=80,
        description="Webhook id from the list; its receiver sees the same id.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class WebhookServices:
    """The store of webhooks, and the clock in UTC."""

    outbox: WebhookOutbox
    now: Callable[[], datetime] = lambda: datetime.now(UTC)


class WebhookView(View):
    """A webhook: `problem` is the result of its last attempt, or why it is paused; `due` is when it is sent next."""

    id: str
    type: str
    url: str
    created_at: datetime
    attempts: int
    problem: str
    due: datetime


class WholeWebhook(WebhookView):
    """A webhook with its body."""

    body: str


class WebhookList(View):
    """Webhooks, and how many there are of each kind."""

    webhooks: tuple[WebhookView, ...]
    waiting: int
    failed: int


@operation(
    "webhooks",
    "list",
    "GET /v1/webhooks",
    roles=("admin",),
    shows=Shows(
        rows="webhooks",
        columns=("id", "type", "created_at", "attempts", "problem", "url"),
        example="webhooks list --state waiting",
    ),
)
async def list_webhooks(
    services: WebhookServices,
    caller: Caller,
    *,
    state: Annotated[
        Undelivered,
        Field(
            description="Failed ones, the most recent first, or waiting ones, by host."
        ),
    ] = "failed",
    limit: Annotated[int, Field(ge=1, le=1000, description="Maximum number.")] = 100,
) -> WebhookList:
    """List webhooks that failed for good, or wait to be sent.

    Raises:
        MemoryUnavailable: the outbox cannot be read.
    """
    caller.demand_unbound()
    waiting, failed = await services.outbox.counts()
    found = await services.outbox.find(state, limit)
    return WebhookList(
        webhooks=tuple(_view(one) for one in found), waiting=waiting, failed=failed
    )


@operation(
    "webhooks",
    "show",
    "GET /v1/webhooks/{webhook_id}",
    roles=("admin",),
    problems=(404,),
    shows=Shows(example="webhooks show msg_0199c1d2"),
)
async def show_webhook(
    services: WebhookServices, caller: Caller, webhook_id: WebhookId
) -> WholeWebhook:
    """Show a webhook with its body: how often it was sent, the result of the last attempt, and when the next one is."""
    caller.demand_unbound()
    kept = await _demand(services, webhook_id)
    return WholeWebhook(**_view(kept).model_dump(), body=kept.webhook.body)


@operation(
    "webhooks",
    "retry",
    "POST /v1/webhooks/{webhook_id}/retry",
    roles=("admin",),
    problems=(404,),
    shows=Shows(example="webhooks retry msg_0199c1d2"),
)
async def retry_webhook(
    services: WebhookServices, caller: Caller, webhook_id: WebhookId
) -> WebhookView:
    """Send a webhook again at once; if that fails, it is retried for a day like a new one.

    A webhook that is paused because the API key of its creator was removed is sent as
    well.
    """
    caller.demand_unbound()
    kept = await _demand(services, webhook_id)
    is_held = kept.state.problem.startswith(HELD)
    released = f"{RELEASED}, by {caller.name}" if is_held else None
    await services.outbox.retry(kept, services.now(), released)
    return _view(await _demand(services, webhook_id))


@operation(
    "webhooks",
    "remove",
    "DELETE /v1/webhooks/{webhook_id}",
    roles=("admin",),
    problems=(404,),
    shows=Shows(example="webhooks remove msg_0199c1d2"),
)
async def remove_webhook(
    services: WebhookServices, caller: Caller, webhook_id: WebhookId
) -> WebhookView:
    """Remove a webhook; it is not sent again."""
    caller.demand_unbound()
    kept = await _demand(services, webhook_id)
    await services.outbox.remove(webhook_id)
    return _view(kept)


OPERATIONS = (list_webhooks, show_webhook, retry_webhook, remove_webhook)


async def _demand(services: WebhookServices, webhook_id: str) -> Kept:
    """Return a webhook.

    Raises:
        Refused: 404, there is none.
    """
    kept = (await services.outbox.read(webhook_id))[0]
    if kept is None:
        raise not_found(
            f"there is no webhook {webhook_id!r}: it was delivered, or removed"
        )
    return kept


def _view(kept: Kept) -> WebhookView:
    webhook, state = kept
    return WebhookView(
        id=webhook.id,
        type=webhook.type,
        url=webhook.url,
        created_at=webhook.created_at,
        attempts=state.attempts,
        problem=state.problem,
        due=state.due,
    )


def make_services(
    parts: SupervisorDependencies | OperatorDependencies,
) -> WebhookServices:
    """Return the services of operations of webhooks, in either process."""
    return WebhookServices(outbox=WebhookOutbox(parts.redis))


NOUN = NounDeclaration(
    operations=OPERATIONS,
    supervisor=serve(make_services, OPERATIONS),
    operator=serve(make_services, OPERATIONS),
)
