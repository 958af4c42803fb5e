"""The outbox of webhooks: what waits to be delivered, by host, and the addresses of tasks that have not ended.

`tasklore.supervisor.webhooks` makes, signs and sends them.
"""
