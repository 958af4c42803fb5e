"""What a process counts, a module a subject: tasks, what carries them, listening, plans, language models, the whole.

Each declares its series and has the methods that count; `tasklore.runtime.metrics.Metrics` is all of them on one
registry. Nothing here knows how it is served or who asks for it, and no label is an id, a user or a text.
"""
