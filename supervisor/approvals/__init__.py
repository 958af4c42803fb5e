"""Answers of persons and signals of programs to tasks that wait, and the notifier that looks after these waits.

How a task comes to wait is `tasklore.workers.context.waits.waits`; how a wait is kept is
`tasklore.memory.ledger.waits`.
"""
