"""Which tasks a text asks for, and which of the agents is meant. What a task is given is no business of this room."""
