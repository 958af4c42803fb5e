"""The ledger: the state of every task, so that each generation has exactly one terminal report.

State of tasks and requests belongs here; remembered results lie in `tasklore.memory.long_term`.
"""
