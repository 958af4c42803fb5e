"""Agents that look after a repository: one for each phase of the pipeline in `health.toml`.

They read folders of the machine that the worker runs on. So they are no default agents: start them on purpose, with
`tasklore worker workers.agents.repository`. Nothing here writes a file, runs a program or follows a link out of its
folder.
"""

from workers.agents.repository.context_query import agent as context_query_agent
from workers.agents.repository.docstrings import agent as docstrings_agent
from workers.agents.repository.imports import agent as imports_agent
from workers.agents.repository.leftovers import agent as leftovers_agent
from workers.agents.repository.report import agent as report_agent
from workers.agents.repository.sizes import agent as sizes_agent
from workers.agents.repository.standards import agent as standards_agent

__all__ = [
    "context_query_agent",
    "docstrings_agent",
    "imports_agent",
    "leftovers_agent",
    "report_agent",
    "sizes_agent",
    "standards_agent",
]
