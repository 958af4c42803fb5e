"""What is said to `/v1/chat/completions` and what it says, in the form that clients of OpenAI's API know.

What changes nothing here, as nothing is sampled (temperature, seed, max_tokens, stop ...), is ignored. What a client
would wait for in vain (tools, several choices, audio ...) is refused.
"""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from contracts.zones import TimeZone
from supervisor.http.problems import Fault, Refused
from supervisor.http.replies import is_none

#: Messages of one request; more than a conversation is ever looked back.
MOST_MESSAGES = 2_000
#: Characters of the message that is answered, as a request over NATS may have.
LONGEST_TEXT = 20_000
#: The one model there is: the supervisor, which chooses the agent by the words.
MODEL = "tasklore"


#: A text of any length that a body may have; only where a length is checked, half of a surrogate pair is refused, too.
Words = Annotated[str, Field(max_length=64 * 1024**2)]


class _Form(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="ignore")


class TextPart(_Form):
    """A part of a message; only texts are read."""

    type: str = Field(max_length=64)
    text: Words | None = None


class ChatMessage(_Form):
    """One message; those of `system` and `developer` are not read, as no model is instructed by them."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: Words | tuple[TextPart, ...] | None = None

    @property
    def text(self) -> str:
        """The words of it."""
        if isinstance(self.content, str) or self.content is None:
            return self.content or ""
        return "\n".join(part.text for part in self.content if part.text)


class StreamOptions(_Form):
    """What else a stream carries: with `include_usage` a last chunk tells the usage."""

    include_usage: bool | None = None


class ChatRequest(_Form):
    """A conversation, the last message of which is to be answered.

    `user` is whose memory is used. `metadata.conversation_id` names the conversation, as the header `X-Conversation-Id`
    does; without either it is found by how it begins. `time_zone`, by IANA's name, is where the person is, which the
    header `X-Time-Zone` says for a client that cannot send it: whose day "tomorrow" is.
    """

    model: str = Field(max_length=256, examples=[MODEL])
    messages: Annotated[tuple[ChatMessage, ...], Field(min_length=1, max_length=MOST_MESSAGES)]
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
    response_format: dict[str, Any] | None = None


def demand_served(request: ChatRequest) -> str:
    """Return the text to be answered.

    Raises:
        Refused: 400, 404 or 413, with the field and the cure.
    """
    if request.model != MODEL:
        raise refused(404, "model_not_found", "model", f"there is no such model; use {MODEL!r}, as GET /v1/models says")
    for field, is_wanted in _unserved(request).items():
        if is_wanted:
            raise refused(400, "unsupported_parameter", field, f"{field} is not served here; leave it out")
    for number, message in enumerate(request.messages):
        if isinstance(message.content, tuple) and any(part.type != "text" for part in message.content):
            where = f"messages.{number}.content"
            raise refused(400, "unsupported_content", where, "only parts of type 'text' are read; leave out the others")
    last, where = request.messages[-1], f"messages.{len(request.messages) - 1}"
    if last.role != "user":
        raise refused(400, "invalid_value", f"{where}.role", "the last message must be one of the role 'user'")
    if not last.text.strip():
        raise refused(400, "invalid_value", f"{where}.content", "the last message is empty; say something")
    if len(last.text) > LONGEST_TEXT:
        told = f"the last message has {len(last.text):,} characters, at most {LONGEST_TEXT:,} are read"
        raise refused(413, "string_above_max_length", f"{where}.content", told)
    return last.text


def _unserved(request: ChatRequest) -> dict[str, bool]:
    """Return which fields would be waited for in vain."""
    form = (request.response_format or {}).get("type", "text")
    return {
        "n": (request.n or 1) > 1,
        "tools": bool(request.tools),
        "functions": bool(request.functions),
        "logprobs": bool(request.logprobs),
        "modalities": any(one != "text" for one in request.modalities or ()),
        "response_format": form != "text",
    }


def refused(status: int, code: str, field: str, detail: str) -> Refused:
    """Return the refusal of one *field*."""
    return Refused(status, code, detail, faults=[Fault(where=field, message=detail)])


class Usage(BaseModel):
    """Tokens that language models really used for this answer, of understanding and of the agent; 0 without any."""

    prompt_tokens: int = Field(default=0, ge=0)
    completion_tokens: int = Field(default=0, ge=0)
    total_tokens: int = Field(default=0, ge=0)


class Said(BaseModel):
    """What was answered."""

    role: Literal["assistant"] = "assistant"
    content: str
    refusal: None = None


class Choice(BaseModel):
    """The one answer."""

    index: Literal[0] = 0
    message: Said
    logprobs: None = None
    finish_reason: Literal["stop"] = "stop"


class About(BaseModel):
    """What Tasklore says of an answer beside its words: `kind` as in a reply over NATS, and who answered, if anybody.

    `memory` tells whether the answer was remembered.
    """

    conversation_id: str
    request_id: str
    kind: str
    agent_id: str | None = None
    task: str | None = None
    memory: str | None = None


class Completion(BaseModel):
    """A whole answer."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: tuple[Choice]
    usage: Usage
    tasklore: About


class Model(BaseModel):
    """A model that can be asked."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: Literal["tasklore"] = "tasklore"


class ModelList(BaseModel):
    """Every model."""

    object: Literal["list"] = "list"
    data: tuple[Model, ...]


class OpenAiError(BaseModel):
    """One error, as OpenAI's clients read it: `param` is the field, `code` a word for programs."""

    message: str
    type: str
    param: str | None = None
    code: str | None = None


class OpenAiErrorBody(BaseModel):
    """The body of an error."""

    error: OpenAiError
