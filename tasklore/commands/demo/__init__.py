"""`tasklore demo`: questions, a chat, a pipeline and a story in a whole system that leaves nothing behind.

Here belong the parts of the play; the system itself is started by `tasklore.commands.up`.
"""
