"""Replies in words: results, failures, several tasks at once, and learned facts.

The wording belongs here; the facts come from reports.
"""
