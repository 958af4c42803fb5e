"""Replies in words: results, failures, several tasks at once, and what was learned.

Here belongs the wording; what happened is told by reports.
"""
