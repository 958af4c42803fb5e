"""The supervisor's HTTP API: its server, its keys and limits, and one module of routes for each kind of resource.

Only a process that serves it imports it. Its answers come from the parts of the supervisor that answer over NATS, too:
only decisions about HTTP belong here.
"""
