"""Waits of a task: for a person, a signal or a time, as its context offers them.

A run ends at a wait and goes on from its journal.
"""
