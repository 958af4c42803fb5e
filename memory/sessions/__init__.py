"""The session cache of a pipeline run, and how far the phases of each run are.

Here belongs what is stored and its scripts; what runs next is decided in `supervisor.pipelines`.
"""
