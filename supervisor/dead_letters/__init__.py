"""Dead letters: read, filtered, sent again or deleted.

Here belongs the stream DEAD; how a task is given up is decided in `workers.execution`.
"""
