"""The ledger: the state of every task, so that each generation has exactly one terminal report.

Here belongs what is known of tasks and requests; remembered results lie in `memory.long_term`.
"""
