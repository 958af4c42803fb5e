"""`tasklore memory`: files of documents and older memories, which are read and written where the command runs.

Everything else of the noun is an operation of the API.
"""
