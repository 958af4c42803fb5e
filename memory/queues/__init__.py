"""Rows that wait for a user: appended once, claimed in order under a lease, closed or tried again.

Here belongs the queue itself; what works on its rows is `tasklore.workers.listening`.
"""
