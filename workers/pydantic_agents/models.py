"""Models by role: a pydantic-ai model for the provider, name, key and limits that the settings give a role."""

import asyncio
import importlib
import json
from collections.abc import Mapping
from contextvars import ContextVar
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

from pydantic_ai.exceptions import (
    ContentFilterError,
    ModelAPIError,
    ModelConnectionError,
    ModelHTTPError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelRequestTimeout,
    ModelTimeoutError,
    UnexpectedModelBehavior,
)
from pydantic_ai.models import Model
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings

from tasklore.contracts.errors import (
    ConfigurationError,
    LlmError,
    LlmMalformed,
    LlmNotConfigured,
    LlmRefused,
    LlmRejected,
    LlmTimeout,
    LlmUnavailable,
)
from tasklore.runtime.models.client import build_client, build_http_client
from tasklore.runtime.models.settings import (
    DEFAULT_ROLE,
    LlmRole,
    LlmSettings,
    is_extension,
)
from tasklore.runtime.models.wire import (
    code_in,
    demand_finished,
    of_status,
    words_in,
)

#: Settings of the models of the running task; without a task those of the environment count.
settings_in_use: ContextVar[LlmSettings | None] = ContextVar(
    "llm_settings", default=None
)

#: The model that answers in place of the role's own, while that has no room or is away.
fallback_in_use: ContextVar[str | None] = ContextVar("llm_fallback", default=None)

#: A client belongs to the event loop that opened its connections.
_models: "WeakKeyDictionary[asyncio.AbstractEventLoop, list[tuple[str, LlmSettings, Model]]]" = WeakKeyDictionary()

#: By provider: the module and class of its models, and of its provider.
_CLASSES: dict[str, tuple[str, str, str]] = {
    "openai": ("openai", "OpenAIChatModel", "OpenAIProvider"),
    "openai-responses": ("openai", "OpenAIResponsesModel", "OpenAIProvider"),
    "anthropic": ("anthropic", "AnthropicModel", "AnthropicProvider"),
    "google": ("google", "GoogleModel", "GoogleProvider"),
}


class RoleModel(WrapperModel):
    """The model that the settings name for *role*, looked up when it is asked.

    Give it to an agent that is declared before any settings are read: `Agent(RoleModel("writer"))`. An unknown role is
    served by `default`.
    """

    def __init__(self, role: str = DEFAULT_ROLE) -> None:
        Model.__init__(self)
        self.role = role

    @property
    def wrapped(self) -> Model:  # type: ignore[override] # looked up anew instead of kept
        """The model itself, one for each event loop.

        Raises:
            LlmNotConfigured: neither a key nor a base URL is set for its provider.
            ConfigurationError: the package of its provider is not installed.
        """
        settings = settings_in_use.get() or _settings_of_environment()
        models = _models.setdefault(asyncio.get_running_loop(), [])
        fallback = fallback_in_use.get()
        name = self.role if fallback is None else f"{self.role}>{fallback}"
        for role, of, model in models:
            if role == name and of is settings:
                return model
        models.append((name, settings, build_model(settings, self.role, fallback)))
        return models[-1][2]


def build_model(
    settings: LlmSettings, role_name: str, fallback: str | None = None
) -> Model:
    """Return a model of pydantic-ai for the role *role_name*, or its *fallback*; its HTTP client opens nothing yet.

    Raises:
        LlmNotConfigured: neither a key nor a base URL is set for its provider.
        ConfigurationError: the package of its provider is not installed, or it is an extension.
    """
    role = settings.role(role_name)
    if is_extension(role.provider):
        raise ConfigurationError(
            f"role {role_name!r} is served by {role.provider!r}, which answers no agents with tools; "
            "name another role"
        )
    if fallback is not None:
        role = LlmRole.model_validate({**role.model_dump(), "model": fallback})
    base_url, key = settings.access(role.provider)
    if base_url is None and key is None:
        name = "" if role.provider.startswith("openai") else f"{role.provider.upper()}_"
        msg = f"no model for role {role_name!r}: set TASKLORE_LLM_{name}API_KEY or TASKLORE_LLM_{name}BASE_URL"
        raise LlmNotConfigured(msg)
    module, model_class, provider_class = _CLASSES[role.provider]
    try:
        models = importlib.import_module(f"pydantic_ai.models.{module}")
        providers = importlib.import_module(f"pydantic_ai.providers.{module}")
    except ImportError as error:
        msg = (
            f"role {role_name!r} is served by {role.provider!r}, whose package is not installed: "
            f'pip install "pydantic-ai-slim[{module}]"'
        )
        raise ConfigurationError(msg) from error
    if module == "openai":
        provider = providers.OpenAIProvider(
            openai_client=build_client(settings, is_bare=True)
        )
    else:
        provider = getattr(providers, provider_class)(
            # One that is not given would be looked for in the environment.
            api_key=key.get_secret_value() if key else "none",
            base_url=base_url,
            http_client=_http_client(role),
        )
        if module == "anthropic":
            # Retries are ours.
            provider.client.max_retries = 0
    built: Model = getattr(models, model_class)(
        role.model, provider=provider, settings=_settings_of(role)
    )
    return built


def _http_client(role: LlmRole) -> Any:
    """Return the client below a provider's own library, with the time of an attempt for each read."""
    client = build_http_client()
    client.timeout = role.attempt_deadline_s
    return client


def _settings_of(role: LlmRole) -> ModelSettings:
    settings = ModelSettings(
        max_tokens=role.max_output_tokens, timeout=role.attempt_deadline_s
    )
    if role.temperature is not None:
        settings["temperature"] = role.temperature
    if role.reasons:
        settings["thinking"] = False
    return settings


def demand_whole(
    payload: Mapping[str, Any], *, is_stream: bool, may_be_empty: bool = False
) -> None:
    """Refuse the response of a model, as pydantic-ai dumps it, that is not whole: it would be kept as its answer.

    A reply that is no stream and names no finish reason is whole: some servers never name one. With *may_be_empty* a
    response without a word is an answer, too.

    Raises:
        LlmRefused: the model or a filter withheld it.
        LlmCutOff: it ended at the token limit.
        LlmUnavailable: the provider failed meanwhile, or its stream broke off.
        LlmMalformed: it ended for a reason that is not known, or says nothing.
    """
    details = payload.get("provider_details") or {}
    if details.get("refusal"):
        raise LlmRefused(str(details["refusal"])[:300])
    demand_finished(payload.get("finish_reason"))
    raw = details.get("finish_reason")
    demand_finished(raw)
    if payload.get("provider_name") == "openai":
        _demand_end(payload.get("finish_reason"), raw, is_stream=is_stream)
    if not may_be_empty and not any(map(_is_said, payload.get("parts", ()))):
        # Kept as the answer of its step, it would be read again by each run of the task.
        raise LlmMalformed("the model wrote no answer and called no tool")


def _demand_end(end: object, raw: object, *, is_stream: bool) -> None:
    """Refuse what ended for no known reason; *end* is pydantic-ai's word for it, *raw* the server's."""
    if raw is None:
        if end is not None and is_stream:
            raise LlmUnavailable(
                "the stream ended without a finish reason: it broke off"
            )
    elif end is None:
        raise LlmMalformed(f"the answer ended for a reason that is not known: {raw!r}")


def _is_said(part: Mapping[str, Any]) -> bool:
    """Return whether *part* of a response is something that its model said or did: no thought, and no blank text."""
    if part["part_kind"] == "thinking":
        return False
    return part["part_kind"] != "text" or bool(part["content"].strip())


def classify(error: ModelAPIError | UnexpectedModelBehavior) -> LlmError:
    """Return the error of ours for one of pydantic-ai; raise it `from`."""
    if isinstance(error, UnexpectedModelBehavior):
        kind = LlmRefused if isinstance(error, ContentFilterError) else LlmMalformed
        return kind(str(error)[:300])
    status = None
    words = str(error)
    code = ""
    if isinstance(error, ModelHTTPError):
        status = error.status_code
        body = error.body
        words = body if isinstance(body, str) else words_in(json.dumps(body))
        code = code_in(body) if isinstance(body, Mapping) else ""
    # A provider quotes a key that it refuses.
    quoted = "" if status in (401, 403) else f": {words[:300]}"
    message = (
        f"{error.model_name!r}: status {status}{quoted}"
        if status
        else f"{error.model_name!r}{quoted}"
    )
    if isinstance(error, ModelTimeoutError | ModelRequestTimeout):
        return LlmTimeout(message)
    if isinstance(error, ModelQuotaExceededError):
        return LlmRejected(message)
    if isinstance(error, ModelRateLimitError):
        return of_status(429, message, code=code, pause_s=error.retry_after)
    if isinstance(error, ModelConnectionError) or status is None:
        return LlmUnavailable(message)
    return of_status(status, message, code=code)


@cache
def _settings_of_environment() -> LlmSettings:
    from tasklore.runtime.settings import Settings

    return Settings.load().llm()
