"""Webhooks for tests."""

from datetime import UTC, datetime
from typing import Any

from tasklore.memory.webhooks.outbox import Webhook
from tasklore.supervisor.webhooks.addresses import Addresses


def a_webhook(
    url: str, number: int = 1, addresses: Addresses | None = None, **fields: Any
) -> Webhook:
    """Return a webhook for *url*."""
    made: dict[str, Any] = {
        "id": f"msg_{number}",
        "url": url,
        "host": (addresses or Addresses()).read(url).place,
        "type": "task.completed",
        "body": '{"type":"task.completed"}',
        "created_at": datetime.now(UTC),
    }
    return Webhook(**(made | fields))
