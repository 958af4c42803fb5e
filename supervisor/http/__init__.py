"""The supervisor's HTTP API: its server, its keys and limits, and routes made of operations (`mount.py`).

Only a process that serves it imports it. Its answers come from the parts of the supervisor that answer over NATS, too:
only decisions about HTTP belong here.
"""
