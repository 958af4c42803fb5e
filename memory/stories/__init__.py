"""Stories: where each begins, and what its responses changed since, by response and by the agent that found it.

Views, arithmetic and settling are pure; only `store`, and `reader` for it, speak to Redis. Analysis documents are
`tasklore.memory.stories.analyses`'.
"""
