"""What is remembered: one mechanical store per kind, each given a Redis client and its limits as arguments.

No LLM client, no broker and no settings: whoever decides what to store lives in `workers` or `supervisor`.
"""
