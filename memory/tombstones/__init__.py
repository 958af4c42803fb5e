"""Tombstones: the memory of a user that is hidden for a day before it is gone, and how it comes back.

Here belong hiding and bringing back whole keys by their names; what a store keeps in them is its own matter.
"""
