"""The one door to language models: settings, prices, retries, breakers and embeddings.

Here belongs asking and accounting; prompts belong to the callers.
"""
