"""`tasklore session`: what the phases of a run left for each other, entry by entry.

Here belongs what these commands print and their files; the store is `memory.sessions`.
"""
