"""`tasklore init`: a small project of a user's own.

Here belong its template files and writing them; what an agent can do is described in docs/reference/agents.md.
"""
