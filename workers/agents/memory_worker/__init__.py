"""The agent that keeps users' documents: facts in, edits out; it reads facts with a finder, an arbiter and an editor.

Here belong deciding and asking; applying and storing edits is in `tasklore.memory.documents`.
"""

from tasklore import Agent
from tasklore.workers.agents.memory_worker.recall import about_me, recall
from tasklore.workers.agents.memory_worker.runner import edit
from tasklore.workers.agents.memory_worker.tasks import (
    bring_back,
    change_item,
    forget_me,
    keep_turns,
    undo,
)
from tasklore.workers.agents.memory_worker.whole_memory import (
    bring_my_memory_back,
    forget_all_about_me,
    returning_wordings,
    wordings,
)

agent = Agent(
    "MemoryAgent",
    description="Keeps what people tell about themselves in documents of their own.",
    # Version 0.2 serves the first one, with other tasks; a worker of each may live while one upgrades.
    version=2,
)
agent.listen("facts")(edit)
agent.task(remember=False, uses=("edits",), in_words=False)(undo)
agent.task(remember=False, uses=("llm", "clock"), in_words=False)(recall)
agent.task(
    remember=False,
    uses=("clock",),
    examples=(
        "what do you know about me?",
        "what do you remember about me?",
        "what else do you remember of me?",
        "tell me everything that you know about me",
    ),
)(about_me)
agent.task(remember=False, uses=("edits",), in_words=False)(change_item)
agent.task(remember=False, uses=("edits",), in_words=False)(keep_turns)
agent.task(remember=False, uses=("edits",), in_words=False)(forget_me)
agent.task(remember=False, uses=("edits",), in_words=False)(bring_back)
agent.task(remember=False, uses=("edits",), examples=wordings())(forget_all_about_me)
agent.task(remember=False, uses=("edits",), examples=returning_wordings())(
    bring_my_memory_back
)
