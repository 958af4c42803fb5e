"""The agents that analyse a response of a story, one for each section of the analysis document.

Each asks a model for its findings, and answers by names and counts without one. Here belong reading and judging;
computing lies in `tasklore.memory.stories`, and the order of sections in `tasklore.supervisor.pipelines.analysis`.
Start the agents with `tasklore worker tasklore.workers.agents.story`.
"""

from tasklore.workers.agents.story.contradiction import agent as contradiction_agent
from tasklore.workers.agents.story.entity_analysis import agent as entity_agent
from tasklore.workers.agents.story.fact_extract import agent as fact_agent
from tasklore.workers.agents.story.knowledge import agent as knowledge_agent
from tasklore.workers.agents.story.memory_create import agent as memory_creation_agent
from tasklore.workers.agents.story.memory_extract import agent as memory_recall_agent
from tasklore.workers.agents.story.plot_threads import agent as thread_agent
from tasklore.workers.agents.story.relationship import agent as relationship_agent
from tasklore.workers.agents.story.response_analyzer import agent as response_agent
from tasklore.workers.agents.story.thread_extract import agent as thread_recall_agent

__all__ = [
    "contradiction_agent",
    "entity_agent",
    "fact_agent",
    "knowledge_agent",
    "memory_creation_agent",
    "memory_recall_agent",
    "relationship_agent",
    "response_agent",
    "thread_agent",
    "thread_recall_agent",
]
