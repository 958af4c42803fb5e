"""Webhooks: what happened to tasks and questions, signed and sent to the addresses that are to hear of it.

What waits to be sent is kept by `tasklore.memory.webhooks.outbox`.
"""
