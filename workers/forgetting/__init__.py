"""Forgetting a user: their tasks, words and pipelines, until nothing is left on disk.

Here belongs the removal over all stores; what a store removes of its own is its method.
"""
