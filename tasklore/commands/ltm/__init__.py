"""`tasklore ltm`: remembered results, the time they save, and forgetting them.

Here belongs what these commands print and their files; the store is `tasklore.memory.long_term`.
"""
