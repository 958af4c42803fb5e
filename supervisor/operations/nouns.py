"""The nouns of the table, each a line: every process and every door reads them here."""

from typing import Final

from tasklore.supervisor.operations import (
    agents,
    analyses,
    approvals,
    budget,
    console,
    conversations,
    dead_letters,
    limits,
    memories,
    pipelines,
    projects,
    requests,
    results,
    retirement,
    schedules,
    sessions,
    stories,
    stream_tokens,
    tasks,
    webhooks,
    worlds,
)
from tasklore.supervisor.operations.noun import NounDeclaration

NOUNS: Final[tuple[NounDeclaration, ...]] = (
    agents.NOUN,
    analyses.NOUN,
    approvals.NOUN,
    budget.NOUN,
    console.NOUN,
    conversations.NOUN,
    dead_letters.NOUN,
    limits.NOUN,
    memories.NOUN,
    pipelines.NOUN,
    projects.NOUN,
    requests.NOUN,
    results.NOUN,
    retirement.NOUN,
    schedules.NOUN,
    sessions.NOUN,
    stories.NOUN,
    stream_tokens.NOUN,
    tasks.NOUN,
    webhooks.NOUN,
    worlds.NOUN,
)
