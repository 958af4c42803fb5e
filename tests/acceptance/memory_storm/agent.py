"""The agent of the storms is the memory worker itself; what it would load later is loaded before workers are forked."""

import openai

from tasklore.workers.agents.memory_worker import agent

# The forge imports this once; each worker would need a second of a core for it, and mostly be killed over that.
__all__ = ["agent", "openai"]
