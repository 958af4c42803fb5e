"""What a conversation came to before the messages that an agent is still shown, in a model's words.

Here belongs the question for a summary, and when it is asked; what counts and keeps messages does not.
"""

from workers.summary.summarising import AT_ONCE, LONGEST, SUMMARISE_EVERY, Summary, role_files, summarising

__all__ = ["AT_ONCE", "LONGEST", "SUMMARISE_EVERY", "Summary", "role_files", "summarising"]
