"""NATS: connections, streams, the pull engine, the outbox, leases and ordered partitions.

Here belongs delivery; what a message means is for `contracts`, `workers` and `supervisor`.
"""
