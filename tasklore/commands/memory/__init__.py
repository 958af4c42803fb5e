"""`tasklore memory`: the memory of a person, its history, and undoing edits.

Here belongs what these commands print and their files; documents are edited by workers.
"""
