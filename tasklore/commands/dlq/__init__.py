"""`tasklore dlq`: dead letters, their reasons, and another try.

Here belongs what these commands print; dead letters are moved by `tasklore.supervisor.dead_letters`.
"""
