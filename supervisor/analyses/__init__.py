"""Analyses of stories: agents are asked about one response, and what they find becomes one document and its changes.

What is written down is decided in pure modules (`records`, `findings`, `folding`, `sums`); the desk, the coordinator
and the seats wait and send. What an agent understands of a story is no business of this room.
"""
