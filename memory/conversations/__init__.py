"""Conversations, the inboxes of agents, their observations, and notices for the next reply.

Messages until they are answered belong here; turns that are searched for years lie in `tasklore.memory.episodes`.
"""
