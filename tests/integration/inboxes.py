"""Messages and observations for tests of conversations between agents."""

from tasklore.contracts.conversations import Utterance
from tasklore.contracts.observations import Action, Observation, Position, SensoryData
from tasklore.memory.conversations.inbox import Inbox
from tests.fakes.inbox import FakeInbox


def said(
    message_id: str, speaker: str = "Bob", time: float = 1.0, message: str = ""
) -> Utterance:
    return Utterance(
        message_id=message_id,
        speaker=speaker,
        message=message or f"I am {message_id}",
        time=time,
    )


def seen(time: float = 1.0, action: str = "wait") -> Observation:
    return Observation(
        time=time,
        sensed=SensoryData(position=Position(x=time, z=0)),
        did=Action(action=action),
    )


def ids(messages: tuple[Utterance, ...]) -> list[str]:
    return [message.message_id for message in messages]


async def whole(store: Inbox | FakeInbox, owner: str, count: int = 100) -> list[str]:
    page = await store.page(owner, None, count)
    found = ids(page.messages)
    while page.before is not None:
        page = await store.page(owner, page.before, count)
        found = ids(page.messages) + found
    return found
