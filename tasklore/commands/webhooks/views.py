"""`tasklore webhooks list|show|retry|remove`: webhooks as tables and as JSON."""

from datetime import UTC, datetime
from typing import Literal

from tasklore.commands.places import open_redis
from tasklore.commands.render.columns import Column, print_facts, print_records
from tasklore.commands.render.screen import patience, print_json, printable, say
from tasklore.commands.render.words import age
from tasklore.contracts.errors import InvalidInput
from tasklore.memory.webhooks.outbox import Undelivered, WebhookOutbox
from tasklore.supervisor.webhooks.overview import WebhookView, list_webhooks

#: Seconds for one look: a person waits, and an answer late is better than none.
_DEADLINE_S = 5.0
_COLUMNS = (
    Column[WebhookView]("ID", lambda one: one.id, whole=True),
    Column[WebhookView]("EVENT", lambda one: one.type),
    Column[WebhookView](
        "AGE", lambda one: age(one.created_at.timestamp() * 1000), right=True
    ),
    Column[WebhookView]("ATTEMPTS", lambda one: str(one.attempts), right=True),
    Column[WebhookView]("PROBLEM", lambda one: printable(one.problem), optional=True),
    Column[WebhookView]("ADDRESS", lambda one: printable(one.url)),
)


async def print_webhooks(state: Undelivered, limit: int, *, as_json: bool) -> None:
    """Print a line for each webhook in *state*.

    Raises:
        Unreachable: no system runs here, or its Redis does not answer.
    """
    async with (
        open_redis("tasklore-webhooks", _DEADLINE_S) as client,
        patience("reading webhooks"),
    ):
        found = await list_webhooks(
            WebhookOutbox(client, deadline_s=_DEADLINE_S), state, limit
        )
    if as_json:
        print_json(found.model_dump(mode="json"))
        return
    if found.webhooks:
        print_records(_COLUMNS, found.webhooks)
    say(f"{found.waiting:,} wait to be sent, {found.failed:,} were given up.")


async def print_webhook(
    webhook_id: str, *, then: Literal["show", "retry", "remove"], as_json: bool
) -> None:
    """Print a webhook, with its body to show it, after it was sent again, or removed.

    Raises:
        InvalidInput: there is none.
        Unreachable: as `print_webhooks`.
    """
    async with open_redis("tasklore-webhooks", _DEADLINE_S) as client:
        outbox = WebhookOutbox(client, deadline_s=_DEADLINE_S)
        kept = (await outbox.read(webhook_id))[0]
        if kept is not None and then == "retry":
            await outbox.retry(kept, datetime.now(UTC))
            kept = (await outbox.read(webhook_id))[0]
        elif then == "remove":
            await outbox.remove(webhook_id)
    if kept is None:
        cure = "`tasklore webhooks list` shows those that were given up, with --waiting those that wait"
        raise InvalidInput(
            f"there is no webhook {webhook_id!r}: it was delivered, or removed; {cure}"
        )
    view = WebhookView.of(kept).model_dump(mode="json") | (
        {"body": kept.webhook.body} if then == "show" else {}
    )
    if as_json:
        print_json(view)
    else:
        print_facts(
            {
                name.replace("_", " "): str(value)
                for name, value in view.items()
                if value != ""
            }
        )
