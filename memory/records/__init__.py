"""Records of owners, which any store of such keeps alike: how far each is, when to look at it, and whose it is.

A store says its keys and what a record is; no kind of record is known here.
"""
