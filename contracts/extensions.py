"""The three extension points: a provider of models, an embedder, a source of secrets.

Their protocols are here; `tasklore.extensions` exports it, and `tasklore.testing.contracts` has the suite of
each. All else (retries, deadlines, limits, accounts, what is kept) stays with the caller.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

from pydantic import BaseModel


@dataclass(frozen=True, kw_only=True)
class ModelMessage:
    """One message to a model: *speaker* says whose words *text* is."""

    speaker: Literal["system", "user", "assistant"]
    text: str


@dataclass(frozen=True, kw_only=True)
class ModelRequest:
    """One question to a model.

    The answer is to be one JSON object that fits `form`, of which `form.model_json_schema()` is the schema; a service
    that takes no schema is shown it in a message. `temperature` None leaves it to the service, `reasons` false asks a
    model that thinks before it answers not to.
    """

    model: str
    messages: tuple[ModelMessage, ...]
    form: type[BaseModel]
    max_output_tokens: int
    temperature: float | None = None
    reasons: bool = True


@dataclass(frozen=True, kw_only=True)
class ModelAnswer:
    """The answer of a service, whatever it is worth: the caller reads it, accounts for it and may ask again.

    `text` is all that the model wrote. `finish_reason` is "stop" for an answer that is whole, "length" for one that was
    cut off at its limit, "content_filter" for one that was withheld, "error" where the service failed meanwhile;
    another, or None, is no fault. `refusal` are the words of a model that declined. Tokens are None where the service
    does not count them: they are then estimated. `fault` says what came in place of an answer.
    """

    text: str
    finish_reason: str | None = "stop"
    refusal: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int = 0
    #: As the service calls the model that answered; "" where it does not say.
    model: str = ""
    #: Headers of the response in lower case: what is left of a rate is read from `x-ratelimit-...`.
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    fault: str = ""


@runtime_checkable
class ModelProvider(Protocol):
    """A way to ask models of one service; selected as `ROLE=NAME:MODEL` in `TASKLORE_LLM_ROLES`.

    One instance serves a process, many requests at once. Deadlines, retries, limits and accounts are the caller's:
    `answer` asks once, and leaves when it is cancelled.
    """

    async def answer(self, request: ModelRequest) -> ModelAnswer:
        """Return what the service answers.

        Raises:
            LlmUnavailable: it cannot be reached, or failed; it is asked again.
            LlmRateLimited: it wants to be asked later, after `retry_after_s`.
            LlmRejected: it refuses the request itself: key, name of the model, schema; it is not asked again.
        """

    async def aclose(self) -> None:
        """Close connections; called once, at the end of the process."""


@runtime_checkable
class Embedder(Protocol):
    """Makes texts into vectors whose directions are the nearer, the more alike the texts are.

    Selected by `TASKLORE_EPISODES_EMBEDDER`. `width` and `embed` may take long and are called in threads, also in
    several at once; whatever they raise, the chat goes on, and it is tried again.
    """

    @property
    def name(self) -> str:
        """The model: vectors of another one are not compared with its own."""

    def width(self) -> int:
        """Return how many numbers a vector has."""

    def embed(self, texts: Sequence[str], /) -> Sequence[Sequence[float]]:
        """Return one vector of length one for each of *texts*, in their order."""


@runtime_checkable
class SecretSource(Protocol):
    """Knows secrets by name; selected by `TASKLORE_SECRETS_SOURCE`, and read once, at the start of a process."""

    def read(self, name: str, /) -> str | None:
        """Return the secret *name*, None where there is none.

        A name is that of a variable in small letters, such as `tasklore_llm_api_key`.

        Raises:
            Exception: the source cannot be asked: the process does not start, and names it.
        """
