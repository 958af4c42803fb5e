"""One small application a peer, run only by the interpreter of the peers' own venv; nothing of Tasklore is imported.

Each is tuned as its documentation recommends for short tasks, and says how. All exchange JSON and keep results.
"""
