"""Answers of persons and signals of programs to tasks that wait, and the desk that looks after these waits.

How a task comes to wait is `workers.context.waits.waits`; how a wait is kept is `memory.ledger.waits`.
"""
