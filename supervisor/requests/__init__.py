"""A request in words on its way in: its ids, its turn, and its first reading.

Code that makes a repeat harmless belongs here; understanding a sentence is `tasklore.supervisor.understanding`.
"""
