"""Schedules and how far each is: records, the times of their next ticks, and leases on those that are due.

`tasklore.supervisor.schedules` computes the ticks and begins their work.
"""
