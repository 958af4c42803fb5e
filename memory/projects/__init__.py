"""Project memory: decisions, standards and the history of runs, appended and never deleted.

Here belongs the store and its search; what commands show is `tasklore.supervisor.operations.projects`.
"""
