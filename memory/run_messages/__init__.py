"""Messages of runs: prompts, answers, tools and steps, kept for a day beside their task; off without a setting.

Not here: which events are messages, as the worker that runs the task decides.
"""
