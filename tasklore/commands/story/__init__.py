"""`tasklore story`: stories loaded and printed.

How their folders are read is in `tasklore.commands.stories`.
"""
