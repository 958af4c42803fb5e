"""Doors for people who are asked by a task: routes for programs, and a page behind a signed link.

Answers go to `tasklore.supervisor.approvals`.
"""
