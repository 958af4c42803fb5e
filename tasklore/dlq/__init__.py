"""`tasklore dlq`: what was given up, why, and another try.

Here belongs what these commands print; dead letters are moved by `supervisor.dead_letters`.
"""
