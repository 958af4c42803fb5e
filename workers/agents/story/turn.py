"""What every agent of a story is asked with: nothing but the story that its context lends."""

from workers import Parameters


class Turn(Parameters):
    """One response of a story; which one, the assignment says, and `context.story` has it."""
