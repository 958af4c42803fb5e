"""The conversation of a task as messages of pydantic-ai."""

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    UserPromptPart,
)

from tasklore.workers.context.context import Context
from tasklore.workers.context.conversation import RECENT_TURNS


async def read_conversation(
    context: Context, count: int = RECENT_TURNS
) -> list[ModelMessage]:
    """Return the last *count* turns before the task, oldest first, as the history of a run.

    Take it in a step where the conversation may go on while the task runs.

    Raises:
        UndeclaredAccess: the task's answers are shared.
        MemoryUnavailable: the store did not answer in time; the task is run again.
    """
    messages: list[ModelMessage] = []
    for turn in await context.conversation.recent(count):
        if turn.speaker == "person":
            messages.append(
                ModelRequest(
                    [UserPromptPart(turn.text, timestamp=turn.at)], timestamp=turn.at
                )
            )
        else:
            messages.append(ModelResponse([TextPart(turn.text)], timestamp=turn.at))
    return messages
