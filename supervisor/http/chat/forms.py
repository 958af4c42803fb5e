"""The bodies of chat completions, in the form of OpenAI's API.

Parameters of sampling (temperature, seed, max_tokens, stop ...) are ignored, as nothing is sampled. Those that a client
would wait for in vain (tools, several choices, audio ...) are refused.
"""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from tasklore.contracts.message_parts import is_none
from tasklore.contracts.zones import TimeZone
from tasklore.supervisor.operations.refusals import Fault, Refused

#: Messages of one request; more than any reference reaches back.
MOST_MESSAGES = 2_000
#: Characters of the message that is answered, as a request over NATS may have.
LONGEST_TEXT = 20_000
#: The supervisor, which chooses the agent by the words; agents, and their tasks, are models too.
MODEL = "tasklore"

#: A text as long as a body may be; pydantic refuses half of a surrogate pair only where a length is checked.
Words = Annotated[str, Field(max_length=64 * 1024**2)]


#: Why a field is refused.
_REASONS = {
    "n": "a question has one answer",
    "tools": "agents call tools of their own, which a stream shows as they are called",
    "functions": "agents call tools of their own, which a stream shows as they are called",
    "logprobs": "no token is sampled here",
    "modalities": "answers are text",
}


class _Form(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="ignore")


class TextPart(_Form):
    """A part of a message; only text is read."""

    type: str = Field(max_length=64)
    text: Words | None = None


class ChatMessage(_Form):
    """One message; those of `system` and `developer` are not read, as no model is instructed by them."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: Words | tuple[TextPart, ...] | None = None
    refusal: Words | None = Field(default=None, exclude_if=is_none)

    @property
    def text(self) -> str:
        """The text of its parts, or the words that stood in place of an answer as JSON."""
        if isinstance(self.content, str) or self.content is None:
            return self.content or self.refusal or ""
        return "\n".join(part.text for part in self.content if part.text)


class JsonSchema(_Form):
    """A schema of a client's own, which an answer is to fit as a whole."""

    name: str = Field(default="", max_length=64)
    body: dict[str, Any] = Field(alias="schema")


class ResponseFormat(_Form):
    """The form of an answer: words, an object, or JSON that fits a schema."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchema | None = None


class StreamOptions(_Form):
    """Options of a stream: with `include_usage` a last chunk has the usage."""

    include_usage: bool | None = None


class ChatRequest(_Form):
    """A conversation, the last message of which is to be answered.

    `model` is `tasklore`, which chooses the agent by the words, an agent, or `AGENT/TASK`, as `GET /v1/models` lists.
    `user` is whose memory is used. `metadata.conversation_id` names the conversation, as the header `X-Conversation-Id`
    does; without either it is found by its first message. `time_zone`, by IANA's name, is where the person is, so that
    "tomorrow" is their day; a client that cannot send it sends the header `X-Time-Zone`.
    """

    model: str = Field(max_length=256, examples=[MODEL])
    messages: Annotated[
        tuple[ChatMessage, ...], Field(min_length=1, max_length=MOST_MESSAGES)
    ]
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    user: str | None = Field(default=None, min_length=1, max_length=256)
    metadata: dict[str, Annotated[str, Field(max_length=512)]] | None = Field(
        default=None, examples=[{"conversation_id": "trip-to-rome"}]
    )
    time_zone: TimeZone | None = Field(default=None, exclude_if=is_none)
    n: int | None = Field(default=None, ge=1)
    tools: tuple[Any, ...] | None = None
    functions: tuple[Any, ...] | None = None
    logprobs: bool | None = None
    modalities: tuple[str, ...] | None = None
    response_format: ResponseFormat | None = None

    @property
    def unread_roles(self) -> str:
        """The roles of messages that are not read, by name and comma; "" when there are none."""
        return ", ".join(
            sorted({message.role for message in self.messages} - {"user", "assistant"})
        )


def demand_served(request: ChatRequest) -> str:
    """Return the text to be answered.

    Raises:
        Refused: 400 or 413, with the field and the cure.
    """
    unserved = {
        "n": (request.n or 1) > 1,
        "tools": bool(request.tools),
        "functions": bool(request.functions),
        "logprobs": bool(request.logprobs),
        "modalities": any(one != "text" for one in request.modalities or ()),
    }
    for field, is_asked_for in unserved.items():
        if is_asked_for:
            detail = f"{field} is not served here: {_REASONS[field]}; leave it out"
            raise refuse_field(400, "unsupported_parameter", field, detail)
    for number, message in enumerate(request.messages):
        if isinstance(message.content, tuple) and any(
            part.type != "text" for part in message.content
        ):
            where = f"messages.{number}.content"
            raise refuse_field(
                400,
                "unsupported_content",
                where,
                "only parts of type 'text' are read; leave out the others",
            )
    last = request.messages[-1]
    where = f"messages.{len(request.messages) - 1}"
    if last.role != "user":
        raise refuse_field(
            400,
            "invalid_value",
            f"{where}.role",
            "the last message must be one of the role 'user'",
        )
    if not last.text.strip():
        raise refuse_field(
            400,
            "invalid_value",
            f"{where}.content",
            "the last message is empty; say something",
        )
    if len(last.text) > LONGEST_TEXT:
        detail = f"the last message has {len(last.text):,} characters, at most {LONGEST_TEXT:,} are read"
        raise refuse_field(413, "string_above_max_length", f"{where}.content", detail)
    return last.text


def refuse_field(status: int, code: str, field: str, detail: str) -> Refused:
    """Return the refusal of one *field*."""
    return Refused(status, code, detail, faults=[Fault(where=field, message=detail)])


class ChatUsage(BaseModel):
    """Tokens of language models for this answer, for understanding and by the agent."""

    prompt_tokens: int = Field(default=0, ge=0)
    completion_tokens: int = Field(default=0, ge=0)
    total_tokens: int = Field(default=0, ge=0)


class AssistantMessage(BaseModel):
    """The answer; where JSON was asked for and there is none, `refusal` says why, or asks back."""

    role: Literal["assistant"] = "assistant"
    content: str | None
    refusal: str | None = None


class ChatChoice(BaseModel):
    """The one choice."""

    index: Literal[0] = 0
    message: AssistantMessage
    logprobs: None = None
    finish_reason: Literal["stop"] = "stop"


class About(BaseModel):
    """Tasklore's own fields of an answer: `kind` as in a reply over NATS, and the agent that answered, if one did.

    `memory` is whether the answer was remembered; `heading`, `origin`, `taken` and `read_by_rules` are as in a reply
    over NATS.
    """

    conversation_id: str
    request_id: str
    kind: str
    agent_id: str | None = None
    task: str | None = None
    memory: str | None = None
    heading: str | None = Field(default=None, exclude_if=is_none)
    origin: str | None = Field(default=None, exclude_if=is_none)
    taken: str | None = Field(default=None, exclude_if=is_none)
    read_by_rules: str | None = Field(default=None, exclude_if=is_none)


class Completion(BaseModel):
    """A whole answer."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: tuple[ChatChoice]
    usage: ChatUsage
    tasklore: About


class ChatModel(BaseModel):
    """A model that can be asked."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: Literal["tasklore"] = "tasklore"


class ModelList(BaseModel):
    """Every model."""

    object: Literal["list"] = "list"
    data: tuple[ChatModel, ...]


class OpenAiError(BaseModel):
    """One error, as OpenAI's clients read it: `param` is the field, `code` a word for programs."""

    message: str
    type: str
    param: str | None = None
    code: str | None = None


class OpenAiErrorBody(BaseModel):
    """The body of an error."""

    error: OpenAiError
