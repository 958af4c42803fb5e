"""A request in words on its way in: its ids, its turn, and how it was read the first time.

Here belongs what makes a repeat harmless; how a sentence is understood is `supervisor.understanding`.
"""
