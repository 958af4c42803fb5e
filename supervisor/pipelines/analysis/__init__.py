"""Analyses of stories: a pipeline that comes with Tasklore, with a store of its own and a reducer for its document.

Declaration, records, reducer and document are pure; run, driver and requests wait and send. What a section agent
understands of a story belongs to `tasklore.workers.agents.story`.
"""
