"""`tasklore up`, `worker` and `supervisor`: processes that serve until they are stopped.

Here belongs starting and ending them; what each does is its own room's business.
"""

from tasklore.commands.extras import without

with without("rich"):
    import structlog  # noqa: F401  # before any other module of ours imports it
