"""Pipelines: what their declarations mean, whether they can run, what runs next, and driving a run to its end.

Here belongs what reads, checks and drives a pipeline; computing a phase belongs to `workers`, and what a session keeps
to `memory`. References, conditions, graph, checks and planning are pure: the same answer for the same arguments.
"""
