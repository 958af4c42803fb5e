"""What is said: the messages, parameters and amounts that cross the wire, and the errors of the domain.

Pure pydantic and standard library. Anything that opens a socket, awaits or remembers belongs elsewhere.
"""
