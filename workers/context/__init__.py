"""What a running task may use: the context, and what it lends of documents, sessions, stories and models.

Here belongs what an agent sees; how a run is executed is `workers.execution`.
"""
