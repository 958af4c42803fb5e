"""Summaries, by a model, of the part of a conversation that an agent is no longer shown.

Here belongs the question for a summary, and when it is asked; what counts and keeps messages does not.
"""

from tasklore.workers.summary.question import (
    AT_ONCE,
    LONGEST,
    SUMMARISE_EVERY,
    Summary,
    role_files,
    summarising,
)

__all__ = [
    "AT_ONCE",
    "LONGEST",
    "SUMMARISE_EVERY",
    "Summary",
    "role_files",
    "summarising",
]
