"""Conversations, the inboxes of agents, their observations, and notices for the next reply.

Here belongs what was said and not yet answered; what is searched for years lies in `memory.episodes`.
"""
