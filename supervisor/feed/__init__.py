"""The feed: the typed events of a task, a request or a run of a pipeline, from any place on.

Streams of HTTP, the chat and the command line encode these events. How they are spelled belongs to each of them; which
there are, and where a client goes on that was cut off, is decided here alone.
"""
