"""The routes of webhooks that wait to be delivered or were given up: of the whole deployment, for administrators."""

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query

from tasklore.memory.webhooks.outbox import Kept, Undelivered, WebhookOutbox
from tasklore.supervisor.http.admission.keys import Caller, require_role
from tasklore.supervisor.http.parts import ApiParts
from tasklore.supervisor.http.problems import answers
from tasklore.supervisor.operations.refusals import Refused, not_found
from tasklore.supervisor.webhooks.overview import (
    WebhookList,
    WebhookView,
    list_webhooks,
)

WebhookId = Annotated[
    str,
    Path(
        max_length=80, description="An id of the list, which its receiver sees as well."
    ),
]


async def _demand_admin(
    caller: Annotated[Caller, Depends(require_role("admin"))],
) -> None:
    """Return when *caller* administers the whole deployment.

    Raises:
        Refused: 403, the key is for one user.
    """
    if caller.user is not None:
        raise Refused(
            403,
            "other-user",
            "webhooks are of all users, and this key is for one; use another",
        )


def routes(parts: ApiParts) -> APIRouter:
    """Return the routes below `/v1/webhooks`."""
    router = APIRouter(
        prefix="/v1/webhooks", tags=["webhooks"], dependencies=[Depends(_demand_admin)]
    )
    outbox = WebhookOutbox(parts.redis)

    async def demand(webhook_id: str) -> Kept:
        kept = (await outbox.read(webhook_id))[0]
        if kept is None:
            raise not_found(
                f"there is no webhook {webhook_id!r}: it was delivered, or removed"
            )
        return kept

    @router.get(
        "",
        operation_id="webhooks_list",
        summary="List webhooks that were given up, or wait",
        responses=answers(),
    )
    async def list_some(
        state: Annotated[
            Undelivered, Query(description="Given up, or waiting for another attempt.")
        ] = "failed",
        limit: Annotated[
            int, Query(ge=1, le=1000, description="Webhooks at most.")
        ] = 100,
    ) -> WebhookList:
        return await list_webhooks(outbox, state, limit)

    @router.post(
        "/{webhook_id}/retry",
        operation_id="webhooks_retry",
        summary="Send a webhook again, for a day",
        responses=answers(404),
    )
    async def retry(webhook_id: WebhookId) -> WebhookView:
        kept = await demand(webhook_id)
        await outbox.retry(kept, datetime.now(UTC))
        return WebhookView.of(await demand(webhook_id))

    @router.delete(
        "/{webhook_id}",
        operation_id="webhooks_remove",
        summary="Remove a webhook",
        responses=answers(404),
    )
    async def remove(webhook_id: WebhookId) -> WebhookView:
        kept = await demand(webhook_id)
        await outbox.remove(webhook_id)
        return WebhookView.of(kept)

    return router
