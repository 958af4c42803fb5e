"""The Redis keys of webhooks."""

from tasklore.memory import key_parts

#: The keys of the outbox of webhooks.
WEBHOOKS = key_parts.WebhookKeys(
    *(f"tl:webhooks:{{all}}:{part}" for part in key_parts.WebhookKeys._fields)
)
