"""Forgetting a user over all stores, until no data of theirs is left on disk.

Here belong the table of stores and the order in which they are emptied; a store removes its own keys by its own method.
"""
