"""What a provider's answer means: a value of the asked model, or one of our typed errors.

Nothing here does I/O. `openai` is imported only to look at an exception that it raised.
"""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from functools import lru_cache
from math import ceil
from typing import TYPE_CHECKING, Any, Generic

from pydantic import BaseModel, Field, ValidationError

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
from tasklore.contracts.extensions import ModelAnswer, ModelMessage, ModelRequest
from tasklore.runtime.models.answer_reader import T, answer_in, problems_of, text_of
from tasklore.runtime.models.completions import first_choice, usage_of
from tasklore.runtime.models.prices import Tokens
from tasklore.runtime.models.settings import LlmRole

if TYPE_CHECKING:
    from openai import APIStatusError, OpenAIError

#: Characters of a provider's own words that an error repeats.
_QUOTE = 300
#: The status of a reply that is no completion: that of a gateway whose server failed.
NO_COMPLETION = 502
#: Bytes of text to a token, rather few.
_BYTES = 4
#: Words in the code of an error, and the status that goes with them.
_STATUSES = {
    "rate_limit": 429,
    "insufficient_quota": 429,
    "resource_exhausted": 429,
    "too_many_requests": 429,
    "overloaded": 503,
    "unavailable": 503,
    "api_key": 401,
    "unauthorized": 401,
    "authentication": 401,
    "not_authenticated": 401,
    "permission": 403,
    "not_found": 404,
    "notfound": 404,
    "does_not_exist": 404,
    "unexpected_endpoint": 404,
    "context_length": 400,
    "content_filter": 400,
    "invalid": 400,
    "badrequest": 400,
    "timeout": 408,
}
#: Words by which providers say that the account is empty, which they call a rate limit too.
_NO_MONEY = (
    "insufficient_quota",
    "insufficient balance",
    "insufficient_balance",
    "insufficient credit",
    "insufficient_credit",
    "insufficient fund",
    "billing",
    "exceeded your current quota",
    "out of credit",
    "credit balance",
)
#: How deep the messages of an error are looked for, and how many of a list are shown.
_DEEPEST = 4
_MOST_SAYINGS = 3
_NOT_THERE = (
    "name a model that this server has in TASKLORE_LLM_MODEL, or for the role, and the address of its API up to and "
    "with /v1 in TASKLORE_LLM_BASE_URL"
)
#: How servers say that they do not know a part of a request.
_UNKNOWN = ("not support", "unsupported", "unknown", "unrecognized", "not permitted")
_NO_TOOLS = (
    "an agent with tools, and an answer by a schema as a tool, needs a model and a server that know tools: name "
    "another one for the role, or ask for the answer by NativeOutput or PromptedOutput"
)
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
    content: Any = None
    refusal: str | None = None
    #: Where some servers put all that a thinking model wrote.
    reasoning_content: Any = None
    reasoning: Any = None

    @property
    def written(self) -> str:
        """The text of the message; where it has none, that of the model's reasoning."""
        texts = map(text_of, (self.content, self.reasoning_content, self.reasoning))
        return next((text for text in texts if text.strip()), "")


class _Choice(BaseModel):
    finish_reason: str | None = None
    message: _Message


class _Completion(BaseModel):
    choices: list[_Choice] = Field(min_length=1)


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


def status_in(body: Mapping[str, Any]) -> int:
    """Return the HTTP status that a reply of status 200, or an event, should have had: 200 without a fault."""
    first = first_choice(body) or {}
    error = body.get("error") or first.get("error")
    if error or body.get("object") == "error":
        return _status_of(error if isinstance(error, dict) else body)
    if isinstance(first.get("message"), Mapping):
        return 200
    if "choices" not in body:
        return _status_of(body)
    return NO_COMPLETION


def _status_of(error: Mapping[str, Any]) -> int:
    """Return the HTTP status that *error* names by its code or type, or else speaks of."""
    for name in ("code", "status", "status_code", "type"):
        said = error.get(name)
        if isinstance(said, str) and said.isdecimal():
            said = int(said[:4])
        if isinstance(said, int) and 400 <= said < 600:
            return said
        if isinstance(said, str) and (status := _status_by_words(said)):
            return status
    return _status_by_words(words_in(json.dumps(error))) or NO_COMPLETION


def _status_by_words(said: str) -> int | None:
    words = said.lower().replace(" ", "_").replace("-", "_")
    return next((_STATUSES[word] for word in _STATUSES if word in words), None)


def code_in(body: Mapping[str, Any]) -> str:
    """Return what a provider calls the error in *body*: its code and type, as far as they are words."""
    error = body.get("error") or (first_choice(body) or {}).get("error") or body
    said = error if isinstance(error, Mapping) else {}
    named = (said.get(name) for name in ("code", "type", "status"))
    return " ".join(str(name) for name in named if isinstance(name, str | int))


def words_in(raw: str) -> str:
    """Return what a provider says of an error: its messages, or all of a reply that has none."""
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        return raw
    # A gateway repeats what the server behind it said.
    said = dict.fromkeys(one.strip() for one in _sayings(body) if one.strip())
    return ": ".join(said) or raw


def _sayings(said: object, depth: int = 0) -> Iterator[str]:
    """Yield the messages in an error that was sent as JSON, the outermost first."""
    if isinstance(said, str):
        yield said
    elif depth > _DEEPEST:
        return
    elif isinstance(said, list):
        for one in said[:_MOST_SAYINGS]:
            yield from _sayings(one, depth + 1)
    elif isinstance(said, Mapping):
        place = ".".join(map(str, _list_of(said.get("loc"))))
        told = said.get("msg")
        if place and isinstance(told, str):
            yield f"{place}: {told}"
        for name in ("error", "message", "detail", "errors", "choices", "metadata"):
            inner = said.get(name)
            if name == "choices" or not isinstance(inner, str):
                yield from _sayings(inner, depth + 1)
            else:
                yield inner
        if isinstance(said.get("raw"), str):
            yield words_in(said["raw"])


def _list_of(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def request_of(question: "ModelQuestion[T]") -> ModelRequest:
    """Return *question* as a provider is asked it; of an answer to correct the model is shown the faults."""
    role = question.role
    messages = [
        ModelMessage(speaker="system", text=question.system),
        ModelMessage(speaker="user", text=question.user),
    ]
    if question.malformed is not None:
        # A server may take a schema and not show it to its model.
        fault = (
            f"That cannot be used: {question.malformed}. Answer again, in full, with one JSON object "
            f"alone that fits this schema: {spell_schema(question.answer)}"
        )
        messages += [
            ModelMessage(speaker="assistant", text=question.malformed.answer or ""),
            ModelMessage(speaker="user", text=fault),
        ]
    return ModelRequest(
        model=role.model,
        messages=tuple(messages),
        form=question.answer,
        max_output_tokens=role.max_output_tokens,
        temperature=role.temperature,
        reasons=not role.reasons,
    )


def answer_of(body: Mapping[str, Any], headers: Mapping[str, str]) -> ModelAnswer:
    """Return the answer in *body*, a chat completion; one without a message has a fault."""
    counted = usage_of(body.get("usage")) or {}
    model = body.get("model")
    answer = ModelAnswer(
        text="",
        input_tokens=counted.get("prompt_tokens"),
        output_tokens=counted.get("completion_tokens"),
        cached_tokens=counted.get("prompt_tokens_details", {}).get("cached_tokens", 0),
        model=model if isinstance(model, str) else "",
        headers=headers,
    )
    try:
        choice = _Completion.model_validate(body).choices[0]
    except ValidationError as error:
        fault = f"the reply is not a chat completion: {problems_of(error)}"
        return replace(answer, fault=fault)
    return replace(
        answer,
        text=choice.message.written,
        finish_reason=choice.finish_reason,
        refusal=choice.message.refusal,
    )


def read_tokens(answer: ModelAnswer) -> Tokens | None:
    """Return the tokens counted of *answer*; None for a service that does not count, or counts nonsense."""
    if answer.input_tokens is None or answer.output_tokens is None:
        return None
    if not answer.output_tokens and answer.text:
        return None
    return Tokens(answer.input_tokens, answer.output_tokens, answer.cached_tokens)


def estimate_tokens(asked: str, written: str) -> Tokens:
    """Return about how many tokens a question and its answer have, for a provider that does not count them."""
    read, wrote = (
        ceil(len(text.encode(errors="replace")) / _BYTES) for text in (asked, written)
    )
    return Tokens(read, wrote, estimated=True)


def demand_finished(finish_reason: str | None, words: str = "") -> None:
    """Refuse an answer that its model did not finish.

    Raises:
        LlmRefused: the content filter of the provider withheld it.
        LlmCutOff: it ended at the token limit.
        LlmUnavailable: the provider failed meanwhile; *words* are its own.
    """
    reason = (finish_reason or "").lower()
    if reason == "content_filter":
        raise LlmRefused("the provider's content filter withheld the answer")
    if reason in ("length", "max_tokens"):
        raise LlmCutOff(
            "the answer ended at the token limit; raise max_output_tokens or ask for less"
        )
    if reason == "error":
        raise LlmUnavailable(
            f"the provider failed within its answer{words and ': '}{words[:_QUOTE]}"
        )


def read_answer(found: ModelAnswer, answer: type[T]) -> T:
    """Return what a service answered as an instance of *answer*.

    An answer that is whole is taken whatever its finish reason is called, or if there is none.

    Raises:
        LlmRefused: the model or its content filter declined.
        LlmCutOff: it ended at the token limit.
        LlmUnavailable: the provider failed meanwhile.
        LlmMalformed: there is no answer, or one that does not fit *answer*.
    """
    if found.fault:
        raise LlmMalformed(found.fault)
    if found.refusal:
        raise LlmRefused(found.refusal[:_QUOTE])
    demand_finished(found.finish_reason)
    if not found.text:
        raise LlmMalformed(
            f"the reply holds no {answer.__name__} (finish reason {found.finish_reason!r})"
        )
    return answer_in(found.text, answer)


def classify(error: "OpenAIError", model: str, host: str, secret: str = "") -> LlmError:
    """Return the error of ours for one that the client raised while *host* was asked for *model*; raise it `from`.

    *secret* does not stand in its words.
    """
    import openai

    if isinstance(error, openai.APITimeoutError):
        return LlmTimeout(f"{host} did not answer in time")
    if isinstance(error, openai.APIConnectionError):
        return LlmUnavailable(
            f"the connection to {host} failed: {error.__cause__ or error}"
        )
    if isinstance(error, openai.APIStatusError):
        return _classify_status(error, model, secret)
    return LlmRejected(f"{model!r} cannot be asked: {str(error)[:_QUOTE]}")


def _classify_status(error: "APIStatusError", model: str, secret: str) -> LlmError:
    said = redacted(words_in(error.response.text), secret)
    shown = error.message if said in error.message else f"{error.message}: {said}"
    return of_status(
        error.status_code,
        f"{model!r}: {shown[:_QUOTE]}",
        code=f"{error.code or ''} {error.type or ''}",
        pause_s=retry_after_s(error),
    )


def of_status(
    status: int, message: str, *, code: str = "", pause_s: float | None = None
) -> LlmError:
    """Return the error of ours for an HTTP *status*; *code* is what the provider calls it, and stays with it."""
    error = _of_status(status, message, code, pause_s)
    error.code = code.strip()
    return error


def _of_status(status: int, message: str, code: str, pause_s: float | None) -> LlmError:
    # An empty account is answered 429 too, and no pause fills it.
    if status == 402 or (status == 429 and _is_out_of_money(code, message)):
        return LlmRejected(
            f"{message}; the account at the provider has no credit left: fill it, or name another model"
        )
    if status == 429:
        return LlmRateLimited(message, pause_s)
    if status == 408:
        return LlmTimeout(message)
    if status >= 500:
        return LlmUnavailable(message)
    if "content_filter" in code:
        return LlmRefused(message)
    if status == 404:
        message = f"{message}; {_NOT_THERE}"
    if "tool" in message.lower() and any(word in message.lower() for word in _UNKNOWN):
        message = f"{message}; {_NO_TOOLS}"
    return LlmRejected(message)


def _is_out_of_money(code: str, message: str) -> bool:
    said = f"{code} {message}".lower()
    return any(word in said for word in _NO_MONEY)


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
            redacted(arg, secret) if isinstance(arg, str) else arg for arg in error.args
        )
        message = getattr(error, "message", None)
        if isinstance(message, str) and secret in message:
            error.message = redacted(message, secret)  # type: ignore[attr-defined] # the client's own attribute
        error = error.__cause__ or error.__context__


def redacted(text: str, secret: str) -> str:
    """Return *text* without *secret*."""
    return text.replace(secret, "***") if len(secret) >= _SHORTEST_SECRET else text
