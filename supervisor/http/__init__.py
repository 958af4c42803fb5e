"""The supervisor's HTTP API: its frame, its keys and limits, and one module of routes for each kind of resource.

It is imported only by a process that serves it. What is asked is answered by the parts of the supervisor that answer
it over NATS too: nothing is decided here that is not about HTTP.
"""
