"""The agents that ship with Tasklore, each written as a user would write one.

They know only the public names of `workers`; they do not know each other.
"""
