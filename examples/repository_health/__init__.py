"""Agents that look after a repository: one for each phase of the pipeline in `health.toml`.

They read folders of the machine that the worker runs on. So they are no default agents: start them on purpose, with
`tasklore worker examples.repository_health`. Nothing here writes a file, runs a program or follows a
link out of its folder.
"""

from examples.repository_health.context_query import (
    agent as context_query_agent,
)
from examples.repository_health.docstrings import (
    agent as docstrings_agent,
)
from examples.repository_health.imports import agent as imports_agent
from examples.repository_health.leftovers import agent as leftovers_agent
from examples.repository_health.report import agent as report_agent
from examples.repository_health.sizes import agent as sizes_agent
from examples.repository_health.standards import agent as standards_agent

__all__ = [
    "context_query_agent",
    "docstrings_agent",
    "imports_agent",
    "leftovers_agent",
    "report_agent",
    "sizes_agent",
    "standards_agent",
]
