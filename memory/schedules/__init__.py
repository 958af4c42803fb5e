"""Schedules and how far each is: records, the times of their next ticks, and leases on those that are due.

When a tick is, and what becomes of it, is decided elsewhere.
"""
