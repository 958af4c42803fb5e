"""Places of tasks that bound their runs: who holds one, and who waits for one, for each key.

A place belongs to a run and lapses with its lease. Running tasks, and offering them again, is left to workers.
"""
