"""The front door: the `tasklore` command.

It wires the other rooms together and talks to people; behaviour worth a test of its own lives below.
"""
