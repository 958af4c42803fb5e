"""From an utterance to tasks with exact parameters, by the cards' JSON schemas and never for one agent.

Here belongs what reads sentences and conversations; sending tasks, storing turns and wording reports do not.
"""
