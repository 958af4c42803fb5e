"""The endpoints of OpenAI's API: chat completions and models.

Their forms and errors belong here; the answers come from the service that serves every other endpoint.
"""
