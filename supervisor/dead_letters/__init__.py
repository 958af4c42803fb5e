"""Dead letters: read, filtered, sent again or deleted.

The stream DEAD belongs here; giving up a task is decided in `tasklore.workers.execution`.
"""
