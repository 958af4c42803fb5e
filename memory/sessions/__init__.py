"""The session cache of a pipeline run, and how far the phases of each run are.

Stored sessions and their scripts belong here; the next phase is decided in `tasklore.supervisor.pipelines`.
"""
