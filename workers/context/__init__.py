"""The context of a running task, with the documents, sessions, stories and models that it lends.

Here belongs what an agent sees; how a run is executed is `tasklore.workers.execution`.
"""
