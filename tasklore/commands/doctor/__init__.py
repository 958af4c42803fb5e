"""`tasklore doctor`: facts are gathered from the servers, and pure checks turn them into findings with cures.

Nothing here changes anything: what heals by itself is the business of the processes, the rest that of a person.
"""
