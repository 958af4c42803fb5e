"""`tasklore session`: the entries that the phases of a run left for each other.

Here belong the printing of these commands and their files; the store is `tasklore.memory.sessions`.
"""
