"""`tasklore project`: decisions, standards and the history of runs.

Here belongs what these commands print and their files; the store is `tasklore.memory.projects`.
"""
