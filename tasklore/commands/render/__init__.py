"""How results are shown in a terminal: tables, colours, durations.

Here belongs what every command shares; what a command says of its own stays with it.
"""
