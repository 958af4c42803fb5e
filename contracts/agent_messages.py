"""Messages that any program sends to an agent, and the reply to one that cannot be accepted."""

from pydantic import Field, ValidationError

from tasklore.contracts.conversations import MessageId, Speech, Utterance
from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.faults import complaint_of
from tasklore.contracts.message_parts import Message
from tasklore.contracts.observations import LONGEST_UTTERANCE, Word, WorldTime

#: What each field takes, for whoever wrote something else there.
_WANTED = {
    "message_id": "1 to 128 printable ASCII characters without blanks, the same each time it is sent",
    "conversation_id": "the conversation of the receiving agent, 1 to 256 characters",
    "sender": "a name of 1 to 64 characters, that of whoever speaks",
    "message": f"text of 1 to {LONGEST_UTTERANCE:,} characters; say more in several messages",
    "time": "seconds of the world, a number from 0 to 1e12",
    "user_id": "null, or 1 to 256 characters",
    "schema_version": "1",
}


class AgentMessage(Message):
    """Something said to an agent; published to `messages.{partition}.{conversation_token}.{sender_token}`.

    It goes into the inbox of *conversation_id*, once: `message_id` is the same however often it is sent, and no other
    message of that sender there has it. `time` is in seconds of the world that it is said in. `user_id` is whose words
    they are when a known person's, so that they can be forgotten.
    """

    message_id: MessageId
    conversation_id: str = Field(min_length=1, max_length=256)
    sender: Word
    message: Speech
    time: WorldTime
    user_id: str | None = Field(default=None, min_length=1, max_length=256)

    @property
    def inbox_id(self) -> str:
        """Its id in its conversation, where two senders may choose one id.

        There is no blank in an id, so that the name begins behind the first one, and no other message has the same.
        """
        return f"{self.message_id} {self.sender}"

    def as_utterance(self) -> Utterance:
        """Return it as it enters the conversation."""
        return Utterance(
            message_id=self.message_id,
            speaker=self.sender,
            message=self.message,
            time=self.time,
            user_id=self.user_id,
        )


def read_agent_message(body: bytes) -> AgentMessage:
    """Parse *body* as a message.

    Raises:
        InvalidInput: it is none; names every field that is wrong and what it takes, and no word of what was said.
    """
    try:
        return AgentMessage.model_validate_json(body)
    except ValidationError as error:
        raise InvalidInput(_told(error)) from error


def agent_message(**fields: object) -> AgentMessage:
    """Return the message of these fields.

    Raises:
        InvalidInput: one cannot be in it; as `read_agent_message` says it.
    """
    try:
        return AgentMessage.model_validate(fields)
    except ValidationError as error:
        raise InvalidInput(_told(error)) from error


def _told(error: ValidationError) -> str:
    """Return a sentence for each field that is wrong, in the order of the message."""
    problems: dict[str, str] = {}
    for fault in error.errors(
        include_url=False, include_input=False, include_context=False
    ):
        field = str(fault["loc"][0]) if fault["loc"] else ""
        if not field:
            return "the body is not a JSON object; send the fields of an AgentMessage in UTF-8"
        if fault["type"] == "unusable":
            told = f"{field} {complaint_of(fault)}"
        else:
            is_missing = fault["type"] == "missing"
            told = f"{field} is {'missing' if is_missing else 'not usable'}; it takes {_WANTED[field]}"
        problems.setdefault(field, told)
    return "; ".join(problems.values())
