"""Which language model answers for which role, within which limits."""

import re
from typing import Any, Final, Literal, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationInfo,
    field_validator,
)

from tasklore.runtime.extensions import MODEL_GROUP, absence_of, installed_names
from tasklore.runtime.models.prices import ModelPrice

#: Asked when neither a base URL nor another provider is set; the client's own environment variables are not read.
OPENAI_URL = "https://api.openai.com/v1"
#: The models that answer unless another is set: the least and the next dearer one of OpenAI's present generation.
SMALL_MODEL = "gpt-6-luna"
MEDIUM_MODEL = "gpt-6.1-terra"
#: The role whose settings serve every role that has none of its own.
DEFAULT_ROLE = "default"

#: The ways of ours to speak to a model: the first two at `base_url`, the others at the provider's own address.
Provider = Literal["openai", "openai-responses", "anthropic", "google"]
#: The one that a role has unless it names another, and those at the same address.
DEFAULT_PROVIDER: Final = "openai"
_AT_BASE_URL: Final = (DEFAULT_PROVIDER, "openai-responses")


def is_shipped(model: str) -> bool:
    """Return whether *model* is one that answers unless another is set, or a dated name of one."""
    return model.startswith((SMALL_MODEL, MEDIUM_MODEL))


class LlmRole(BaseModel):
    """One kind of question: the model that answers it and how far it may go.

    The models that are shipped refuse a temperature, and would think out of the tokens of their answer, which begins
    with its reasoning anyway: they have none, and are asked not to.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str = Field(default=MEDIUM_MODEL, min_length=1)
    #: The others of ours serve agents with tools (`tasklore.workers.pydantic_agents`) and no `Llm.ask`; a further name
    #: is that of an extension (`tasklore.extensions.ModelProvider`), which serves `Llm.ask` alone.
    provider: str = DEFAULT_PROVIDER
    #: None leaves it to the provider.
    temperature: float | None = Field(default=0.2, ge=0, le=2, validate_default=True)
    max_output_tokens: int = Field(default=2_048, ge=1)
    #: Seconds for one attempt; the task's own deadline shortens it.
    attempt_deadline_s: float = Field(default=30.0, gt=0)

    @property
    def reasons(self) -> bool:
        """Whether it is one of the shipped models, or a dated name of one."""
        return is_shipped(self.model)

    @field_validator("temperature", mode="after")
    @classmethod
    def _drop_temperature(
        cls, temperature: float | None, info: ValidationInfo
    ) -> float | None:
        return None if is_shipped(str(info.data.get("model", ""))) else temperature


#: The same sentence should give the same task.
SUPERVISOR_TEMPERATURE = 0.0
#: The same fact should find the same place; where a first answer is refused, another one may be written.
FINDER_TEMPERATURE = 0.1

_ROLES = {
    "finder": LlmRole(model=SMALL_MODEL, temperature=FINDER_TEMPERATURE),
    "supervisor": LlmRole(model=MEDIUM_MODEL, temperature=SUPERVISOR_TEMPERATURE),
    DEFAULT_ROLE: LlmRole(),
}


class LlmSettings(BaseModel):
    """Configuration of `Llm`; without a key and a base URL it is not configured and the rules answer."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    base_url: str | None = None
    api_key: SecretStr | None = None
    #: Address and key of the providers that have their own; without an address it is the client's.
    anthropic_base_url: str | None = None
    anthropic_api_key: SecretStr | None = None
    google_base_url: str | None = None
    google_api_key: SecretStr | None = None
    #: Roles given here are added to the shipped ones or replace them by name.
    roles: dict[str, LlmRole] = Field(default_factory=lambda: dict(_ROLES))
    #: Prices that the shipped list lacks or has otherwise, by model name.
    prices: dict[str, ModelPrice] = Field(default_factory=dict)
    #: Requests under way at once in this process, over all roles.
    max_concurrency: int = Field(default=8, ge=1)
    #: Requests for one question, the first included.
    max_attempts: int = Field(default=3, ge=1)
    #: The pause before attempt n + 1 is drawn from 0 to min(cap, base * 2 ** (n - 1)) seconds.
    backoff_base_s: float = Field(default=0.5, ge=0)
    backoff_cap_s: float = Field(default=8.0, ge=0)
    #: A provider that asks for a longer pause (Retry-After) is not waited for: the error goes to the caller at once.
    patience_s: float = Field(default=30.0, ge=0)

    @property
    def configured(self) -> bool:
        """Say whether there is anybody to ask for what no role of its own serves."""
        return self.reaches_openai or is_extension(self.roles[DEFAULT_ROLE].provider)

    @property
    def reaches_openai(self) -> bool:
        """Say whether key or address of an OpenAI-compatible server are set."""
        return self.api_key is not None or self.base_url is not None

    def role(self, name: str) -> LlmRole:
        """Return the settings of role *name*; a role without settings is served by `default`."""
        return self.roles.get(name) or self.roles[DEFAULT_ROLE]

    def place_of(self, provider: str) -> str:
        """Return the provider that is away whenever *provider* is: two of ours speak to the same address."""
        return DEFAULT_PROVIDER if provider in _AT_BASE_URL else provider

    def shown_model(self, provider: str, model: str) -> str:
        """Return *model* as persons are shown it: with its *provider*, unless that is the usual one.

        There, too, where the name alone reads as that of another provider that a role names.
        """
        first, colon, _ = model.partition(":")
        others = {self.place_of(role.provider) for role in self.roles.values()}
        is_plain = provider == DEFAULT_PROVIDER and not (colon and first in others)
        return model if is_plain else f"{provider}:{model}"

    def access(self, provider: str) -> tuple[str | None, SecretStr | None]:
        """Return address and key of *provider*, each None where it is not set."""
        if provider == "anthropic":
            return self.anthropic_base_url, self.anthropic_api_key
        if provider == "google":
            return self.google_base_url, self.google_api_key
        return self.base_url, self.api_key

    @field_validator("roles", mode="after")
    @classmethod
    def _add_shipped_roles(cls, roles: dict[str, LlmRole]) -> dict[str, LlmRole]:
        return {**_ROLES, **roles}

    @field_validator("base_url", "anthropic_base_url", "google_base_url", mode="after")
    @classmethod
    def _check_url(cls, url: str | None) -> str | None:
        url = (url or "").strip()
        if url and not url.startswith(("http://", "https://")):
            raise ValueError(
                "begins with http:// or https://, for example http://127.0.0.1:8080/v1"
            )
        return url or None

    @field_validator("api_key", "anthropic_api_key", "google_api_key", mode="before")
    @classmethod
    def _check_key(cls, key: Any) -> Any:
        """Drop the newline that secret files end with, and refuse what no header can carry without quoting it."""
        text = key.get_secret_value() if isinstance(key, SecretStr) else key
        if not isinstance(text, str):
            return text
        text = text.strip()
        if not (text.isascii() and text.isprintable()):
            raise ValueError(
                "holds characters that no HTTP header carries; copy the key again"
            )
        return SecretStr(text) if text else None


def is_extension(provider: str) -> bool:
    """Return whether *provider* is none of ours."""
    return provider not in get_args(Provider)


def parse_roles(text: str) -> dict[str, tuple[str, str]]:
    """Return provider and model of each role in `ROLE=PROVIDER:MODEL`, joined by commas.

    Raises:
        ValueError: one cannot be read, or its provider is neither ours nor installed; the message says what is.
    """
    roles: dict[str, tuple[str, str]] = {}
    for entry in filter(None, map(str.strip, text.split(","))):
        found = _ROLE.fullmatch(entry)
        if found is None or not _is_known(found[2]):
            ours = ", ".join(get_args(Provider))
            form = f"ROLE=PROVIDER:MODEL with a provider of {ours}"
            absent = f"; {absence_of(MODEL_GROUP, found[2])}" if found else ""
            raise ValueError(
                f"{entry!r} is not a valid role; write {form}, such as "
                f"'writer=anthropic:claude-sonnet-5'{absent}"
            )
        role, provider, model = found.groups()
        roles[role] = (provider, model)
    return roles


def _is_known(provider: str) -> bool:
    return not is_extension(provider) or provider in installed_names(MODEL_GROUP)


_ROLE = re.compile(r"([\w-]{1,64})=([\w-]{1,64}):(\S+)")
