"""The kit that tests an agent without a system; `run_task`, `listen` and `AgentKit` are where to begin.

Here belongs what users test with; tests of Tasklore itself run real servers.
"""

from tasklore.workers.testing.fakes import Emitted
from tasklore.workers.testing.heard import Heard, listen
from tasklore.workers.testing.kit import (
    NOW,
    AgentKit,
    Asked,
    Called,
    KitHistory,
    KitServices,
    KitStory,
    ScriptedLlm,
    run_task,
)

__all__ = [
    "NOW",
    "AgentKit",
    "Asked",
    "Called",
    "Emitted",
    "Heard",
    "KitHistory",
    "KitServices",
    "KitStory",
    "ScriptedLlm",
    "listen",
    "run_task",
]
