"""`tasklore demo`: questions, a chat, a pipeline and a story in a whole system that leaves nothing behind.

Here belongs what is shown; the system itself is started by `tasklore.up`.
"""
