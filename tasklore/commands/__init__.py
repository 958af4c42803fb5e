"""The front door: the `tasklore` command, one folder or module a noun.

They wire the rooms together and talk to people; behaviour worth a test of its own lies in the rooms.
"""
