"""What a provider's answer means: a value of the asked model, or one of our typed errors.

Nothing here does I/O. `openai` is imported only to look at an exception that it raised.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pydantic import BaseModel, Field, ValidationError
from pydantic_core import from_json

from tasklore.contracts.errors import (
    ConfigurationError,
    LlmCutOff,
    LlmError,
    LlmMalformed,
    LlmRateLimited,
    LlmRefused,
    LlmRejected,
    LlmTimeout,
    LlmUnavailable,
)
from tasklore.contracts.faults import fault_of
from tasklore.runtime.models.prices import Tokens
from tasklore.runtime.models.settings import LlmRole

if TYPE_CHECKING:
    from openai import APIStatusError, OpenAIError

T = TypeVar("T", bound=BaseModel)

#: Characters of a provider's own words that an error repeats.
_QUOTE = 300
#: Characters of a malformed answer that goes back to its model; a longer one would cost more than a new one.
_LONGEST_ANSWER = 20_000
#: More tokens than any context window: a larger count is noise, not a bill.
_MOST_TOKENS = 1_000_000_000
#: Shorter "keys" (local servers take "none") are no secrets, and cutting them out would garble messages.
_SHORTEST_SECRET = 4


@dataclass(frozen=True)
class ModelQuestion(Generic[T]):
    """One question as every attempt sends it.

    `ends_at` is a reading of the clock, None without a deadline; `malformed` the answer that the model has to correct.
    """

    role_name: str
    role: LlmRole
    answer: type[T]
    system: str
    user: str
    ends_at: float | None
    malformed: LlmMalformed | None = None
    #: Until when it waits for room where it is.
    waits_until: float = 0.0


class _Message(BaseModel):
    content: str | None = None
    refusal: str | None = None


class _Choice(BaseModel):
    finish_reason: str | None = None
    message: _Message


class _Completion(BaseModel):
    choices: list[_Choice] = Field(min_length=1)


class _CachedTokens(BaseModel):
    cached_tokens: int | None = Field(default=None, ge=0, le=_MOST_TOKENS)


class _TokenCounts(BaseModel):
    prompt_tokens: int = Field(default=0, ge=0, le=_MOST_TOKENS)
    completion_tokens: int = Field(default=0, ge=0, le=_MOST_TOKENS)
    prompt_tokens_details: _CachedTokens | None = None


@lru_cache(maxsize=256)
def check_answer_model(answer: type[BaseModel]) -> None:
    """Refuse an answer model whose first field is not `reasoning`.

    A model writes its fields in order: reasoning that comes after the verdict only excuses it.

    Raises:
        ConfigurationError: *answer* has no fields, or another one first.
    """
    first = next(iter(answer.model_json_schema().get("properties", ())), None)
    if first != "reasoning":
        raise ConfigurationError(
            f"{answer.__name__} begins with {first!r}; declare `reasoning: str` as the first field of an answer model"
        )


@lru_cache(maxsize=256)
def spell_schema(answer: type[BaseModel]) -> str:
    """Return the schema of *answer* as a request holds it: making it takes a millisecond."""
    return json.dumps(answer.model_json_schema())


def read_body(raw: bytes) -> dict[str, Any]:
    """Return the JSON object in *raw*, whatever its fields.

    Raises:
        LlmMalformed: it is no JSON, or no object (a proxy's HTML page, a cut body).
    """
    try:
        body = from_json(raw)
    except ValueError as error:
        raise LlmMalformed(
            f"the provider's reply of {len(raw)} bytes is no JSON: {error}"
        ) from error
    if not isinstance(body, dict):
        raise LlmMalformed(
            f"the provider's reply is a JSON {type(body).__name__}, no object"
        )
    return body


def read_tokens(body: Mapping[str, Any]) -> Tokens:
    """Return the tokens counted in *body*; zero for a provider that does not count, or counts nonsense."""
    try:
        counts = _TokenCounts.model_validate(body.get("usage"))
    except ValidationError:
        return Tokens()
    cached = (
        counts.prompt_tokens_details.cached_tokens
        if counts.prompt_tokens_details
        else 0
    )
    return Tokens(counts.prompt_tokens, counts.completion_tokens, cached or 0)


def read_tokens_of(raw: bytes) -> Tokens | None:
    """Return the tokens counted in the reply *raw*; None for one that counts none."""
    try:
        tokens = read_tokens(read_body(raw))
    except LlmMalformed:
        return None
    return tokens if tokens.input or tokens.output else None


def read_answer(body: Mapping[str, Any], answer: type[T]) -> T:
    """Return the answer in *body* as an instance of *answer*.

    Raises:
        LlmRefused: the model or its content filter declined.
        LlmCutOff: it ended at the token limit.
        LlmMalformed: there is no answer, or one that does not fit *answer*.
    """
    try:
        choice = _Completion.model_validate(body).choices[0]
    except ValidationError as error:
        raise LlmMalformed(
            f"the reply is no chat completion: {_problems(error)}"
        ) from error
    if choice.message.refusal:
        raise LlmRefused(choice.message.refusal[:_QUOTE])
    if choice.finish_reason == "content_filter":
        raise LlmRefused("the provider's content filter withheld the answer")
    if choice.finish_reason == "length":
        raise LlmCutOff(
            f"the {answer.__name__} ended at the token limit; raise max_output_tokens or ask for less"
        )
    if not choice.message.content:
        raise LlmMalformed(
            f"the reply holds no {answer.__name__} (finish reason {choice.finish_reason!r})"
        )
    said = choice.message.content
    try:
        return answer.model_validate_json(said)
    except ValidationError as error:
        shown = said if len(said) <= _LONGEST_ANSWER else None
        raise LlmMalformed(
            f"the answer is no {answer.__name__}: {_problems(error)}", shown
        ) from error


def classify(error: "OpenAIError", model: str, host: str) -> LlmError:
    """Return the error of ours for one that the client raised while *host* was asked for *model*; raise it `from`."""
    import openai

    if isinstance(error, openai.APITimeoutError):
        return LlmTimeout(f"{host} did not answer in time")
    if isinstance(error, openai.APIConnectionError):
        return LlmUnavailable(
            f"the connection to {host} failed: {error.__cause__ or error}"
        )
    if isinstance(error, openai.APIStatusError):
        return _classify_status(error, model)
    return LlmRejected(f"{model!r} cannot be asked: {str(error)[:_QUOTE]}")


def _classify_status(error: "APIStatusError", model: str) -> LlmError:
    message = f"{model!r}: {error.message[:_QUOTE]}"
    status = error.status_code
    # An empty account is answered 429 too, and no pause fills it.
    if status == 429 and error.code != "insufficient_quota":
        return LlmRateLimited(message, retry_after_s(error))
    if status == 408:
        return LlmTimeout(message)
    if status >= 500:
        return LlmUnavailable(message)
    if error.code == "content_filter":
        return LlmRefused(message)
    return LlmRejected(message)


def retry_after_s(error: BaseException | None) -> float | None:
    """Return the pause in seconds that the provider asked for in the response behind *error*, None without one."""
    headers: Mapping[str, str] | None = getattr(
        getattr(error, "response", None), "headers", None
    )
    if headers is None:
        return None
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            pause_s = float(headers[name]) * scale
        except (KeyError, ValueError):
            continue
        if math.isfinite(pause_s) and pause_s >= 0:
            return pause_s
    return _seconds_until(headers.get("retry-after"), headers.get("date"))


def _seconds_until(then: str | None, now: str | None) -> float | None:
    """Return the seconds between two HTTP dates, both by the provider's own clock."""
    try:
        return max(
            0.0,
            (
                parsedate_to_datetime(then or "") - parsedate_to_datetime(now or "")
            ).total_seconds(),
        )
    except (ValueError, TypeError):
        return None


def redact(error: BaseException | None, secret: str) -> None:
    """Remove *secret* from the message of *error* and of its causes: providers quote rejected keys."""
    if len(secret) < _SHORTEST_SECRET:
        return
    while error is not None:
        error.args = tuple(
            arg.replace(secret, "***") if isinstance(arg, str) else arg
            for arg in error.args
        )
        message = getattr(error, "message", None)
        if isinstance(message, str) and secret in message:
            error.message = message.replace(secret, "***")  # type: ignore[attr-defined] # the client's own attribute
        error = error.__cause__ or error.__context__


def _problems(error: ValidationError) -> str:
    """Name each field and its fault, without the value, which may be private."""
    faults = error.errors(include_url=False, include_input=False, include_context=False)
    return "; ".join(map(fault_of, faults))[:_QUOTE]
