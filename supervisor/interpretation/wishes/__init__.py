"""Which tasks a text asks for, how many of each, and which of the agents is meant.

How words become a value is no business of this room; that two names in one place are two tasks is.
"""
