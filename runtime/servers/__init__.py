"""The servers a process talks to: clients with deadlines, addresses, and the embedded servers.

Here belongs starting and reaching them; their content is `memory`'s business.
"""
