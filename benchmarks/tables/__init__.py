"""Public test tables for words: how each is read from its file, and what counts as right.

The tables are not part of Tasklore: a folder with them is an argument. Nothing here decides how words are understood.
"""
