"""Stories: where each begins, and what its responses changed since, by response and by the agent that found it.

Views and arithmetic are pure; `store` is all that speaks to Redis. Analysis documents are `memory.analysis`'.
"""
