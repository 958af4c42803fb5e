"""The agent of the storms is the memory worker itself; what it would load later is loaded before workers are forked."""

import openai

from workers.agents.memory_worker import agent
from workers.agents.memory_worker.runner import _language

__all__ = ["agent", "openai"]

# The forge imports this once; each worker would need two seconds of a core for it, and mostly be killed over that.
_language()
