"""`tasklore memory`: what is remembered of people, how it came there, and taking it back.

Here belongs what these commands print and their files; documents are edited by workers.
"""
