"""`tasklore webhooks`: webhooks that wait to be delivered, or were given up.

Here belongs what the commands print; webhooks are kept by `tasklore.memory.webhooks`, and sent by
`tasklore.supervisor.webhooks`.
"""
