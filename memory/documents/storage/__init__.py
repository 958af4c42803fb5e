"""Documents in Redis: read at one moment, written whole or not at all, with their history.

Here belongs what speaks to the server; paths, edits and drafts are pure and lie one room up.
"""
