"""Analyses of stories: a pipeline that comes with Tasklore, whose phases are folded into a document.

Declaration, records, reducer and document are pure; fold, run, driver and requests wait and send. What a section agent
understands of a story belongs to `tasklore.workers.agents.story`.
"""
