"""What an agent does that listens: to turns, to learn from them, and to facts, to write them down.

Here belong its declaration, its context and the loops that claim, work and close; what waits lies in `queues.queue`.
"""
