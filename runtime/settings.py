"""Settings: every variable with its default, its unit and the reason for it (see docs/reference/settings.md)."""

import os
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import structlog
from pydantic import Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from tasklore.contracts.errors import ConfigurationError, InvalidAmount
from tasklore.contracts.faults import complaint_of
from tasklore.contracts.identifiers import NAME_PATTERN
from tasklore.contracts.quantities.numerals.locales import mark_of
from tasklore.contracts.zones import TimeZone
from tasklore.runtime.models.prices import parse_prices
from tasklore.runtime.models.settings import (
    DEFAULT_ROLE,
    FINDER_TEMPERATURE,
    MEDIUM_MODEL,
    SMALL_MODEL,
    SUPERVISOR_TEMPERATURE,
    LlmRole,
    LlmSettings,
    is_extension,
    parse_roles,
)
from tasklore.runtime.networks import networks_in
from tasklore.runtime.origins import headers_in, methods_in, origins_in
from tasklore.runtime.secret_sources import read_secret
from tasklore.runtime.servers.endpoints import DEFAULT_DATA_DIR, masked_url
from tasklore.runtime.variables import (
    PREFIX,
    folders_in,
    removed_variables,
    unknown_variables,
    variable_of,
)

log = structlog.get_logger(__name__)

#: What each address may begin with, and an example for whoever mistyped it.
_SCHEMES = {
    "nats_url": ("nats://", "tls://"),
    "redis_url": ("redis://", "rediss://", "unix://"),
    **dict.fromkeys(("nats_monitor_url", "approval_url"), ("http://", "https://")),
    **dict.fromkeys(
        ("llm_base_url", "llm_anthropic_base_url", "llm_google_base_url"),
        ("http://", "https://"),
    ),
}
#: How each list in one text is read.
_LISTS: dict[str, Callable[[str], object]] = {
    **dict.fromkeys(("api_trusted_proxies", "webhook_networks"), networks_in),
    "llm_prices": parse_prices,
    "llm_roles": parse_roles,
    "pipeline_roots": folders_in,
    "api_cors_origins": origins_in,
    "api_cors_methods": methods_in,
    "api_cors_headers": headers_in,
}

Port = Annotated[int, Field(ge=0, le=65_535)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Temperature = Annotated[float | None, Field(ge=0, le=2)]
ModelName = Annotated[str, Field(min_length=1)]


class Settings(BaseSettings):
    """The configuration of a process; made by `load`, never changed afterwards."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_ignore_empty=True,
        env_parse_none_str="none",
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
    )

    nats_url: str | None = Field(default=None, repr=False)
    """Address of NATS, several joined by commas; without it `tasklore up` starts one of its own."""
    redis_url: str | None = Field(default=None, repr=False)
    """Address of Redis or Valkey; without it `tasklore up` starts one of its own."""
    nats_monitor_url: str | None = Field(default=None, repr=False)
    """Address of the HTTP monitoring of NATS, where `tasklore doctor` reads how often JetStream writes to disk."""
    role: str | None = Field(default=None, pattern=NAME_PATTERN)
    """The role of this process: its user at Redis unless the address names one, and the prefix of its NATS inboxes."""
    nats_seed_file: Path | None = None
    """File with the seed of the nkey that proves the role to NATS; without it NATS must accept any client."""
    nats_publishers_file: Path | None = None
    """File with the public keys of the roles that publish turns, facts and messages; for processes that read them."""
    nats_ca_file: Path | None = None
    """File with the certificates, in PEM, of the authority of the NATS servers; without it the system's authorities."""
    redis_ca_file: Path | None = None
    """The same for Redis or Valkey, whose address then begins with `rediss://`."""
    redis_password_file: Path | None = None
    """File with the password for Redis where its address has none; a file is not shown in a list of processes."""
    secrets_dir: Path | None = None
    """A directory with a file for each secret: `nats.nkey`, `ca.crt`, or a variable in small letters."""
    secrets_source: str | None = None
    """A source of your own for addresses and secrets: the name of an entry point of `tasklore.secrets`."""
    data_dir: Path = Path(DEFAULT_DATA_DIR)
    """Folder of the data of the servers of `tasklore up`, and of `endpoints.json` with their addresses."""
    durability: Literal["standard", "strict"] = "standard"
    """`standard`: a power failure loses at most a second; `strict`: no accepted task, but it is 20 times slower."""
    provision: Literal["auto", "never"] = "auto"
    """Whether this process may create streams and consumers; `never` if only a bootstrap job may."""
    replicas: int = Field(default=1, ge=1, le=5)
    """Copies of each stream in a NATS cluster; 3 survive the loss of one server."""
    tasks_max_bytes: int = Field(default=1024**3, ge=1024**2)
    """Maximum size of the task queue; beyond it new tasks are refused, so that a full disk never loses one."""
    dead_max_bytes: int = Field(default=256 * 1024**2, ge=1024**2)
    """Size of DEAD; beyond it the oldest dead letter is dropped, before its 30 days."""
    output_max_bytes: int = Field(default=512 * 1024**2, ge=1024**2)
    """Size of OUTPUT, where tasks emit; beyond it the oldest output is dropped, before its hour."""
    kept_max_bytes: int | None = Field(default=None, ge=1024**2)
    """Redis memory that owners' quotas (finished tasks, words, turns, runs) are part of; `none` is its `maxmemory`."""

    supervisor_id: str = Field(default="SupervisorAgent", pattern=NAME_PATTERN)
    """The id under which requests are answered and reports read; systems that share a NATS need different ones."""
    limits_file: Path | None = None
    """File of limits on models, in TOML, that a supervisor applies at its start when it differs from the last one."""

    slots: int = Field(default=128, ge=1, le=4096)
    """Concurrent tasks of each agent in a worker; more hide latency, fewer spread work evenly over workers."""
    ack_wait_s: float = Field(default=30.0, ge=1, le=3600)
    """Time after which the tasks of a silent worker go to another; a C call that blocks longer runs twice."""
    max_attempts: int = Field(default=5, ge=1, le=1000)
    """Maximum runs of a task without its own `max_attempts`, and of a turn or a fact, including the first."""
    task_deadline_s: float | None = Field(default=None, gt=0)
    """Deadline of a task that sets none, including its time in the queue; `none` is no limit."""
    retry_base_s: float = Field(default=1.0, gt=0, le=3600)
    """Base delay of retries: exponential backoff with full jitter, doubled with every run."""
    retry_cap_s: float = Field(default=300.0, gt=0, le=86_400)
    """Maximum delay between two runs."""
    retry_schedule_s: float = Field(default=5.0, ge=0, le=86_400)
    """Delay above which a task waits in the stream LATER instead of its queue, where it occupies no slot."""
    grace_s: float = Field(default=30.0, ge=0, le=86_400)
    """Time for running tasks to finish after SIGTERM; keep the termination grace period of the pod above it."""

    memory_budget_ms: int = Field(default=50, ge=1, le=10_000)
    """Timeout of a cache lookup; then the task is computed. Only for tasks that use no model."""
    memory_keep_days: float | None = Field(default=30.0, gt=0)
    """Time to live of results set or imported by a person; `none` is for ever. A task sets that of its own results."""
    ledger_deadline_ms: int = Field(default=1000, ge=10, le=60_000)
    """Timeout of the ledger; then a task runs unfenced, or is deferred with `idempotent=False`."""
    ledger_keep_days: float = Field(default=7.0, gt=0)
    """Time for which the ledger keeps a finished task: a repeat within it does not run."""
    ledger_report_hours: float = Field(default=24.0, gt=0)
    """Time for which layout 2 of the ledger keeps a report: a repeat gets it, and later that it has expired."""
    run_messages_hours: float = Field(default=0.0, ge=0, le=24 * 7)
    """Time for which what models saw in a run is kept, secrets masked; 0 keeps nothing. `tasklore up` keeps a day."""
    mask_file: Path | None = None
    """File with regular expressions, one a line: what matches is masked in the kept messages of runs as secrets are."""
    listen_items: int = Field(default=32, ge=1, le=500)
    """Turns or facts of one person that a listener gets at once, oldest first; more share one question to a model."""
    listen_users: int = Field(default=16, ge=1, le=1000)
    """People whose rows one listener of this process works on at once; each person's rows go in order."""
    listen_idle_s: float = Field(default=20.0, ge=0, le=3600)
    """Time for which turns wait for another one after the last, to be read together; without a model they do not."""
    facts_keep_days: float = Field(default=30.0, gt=0)
    """Time for which a fact that is done, refused or failed is kept with its reason; waiting facts are always kept."""
    episodes_keep_days: float | None = Field(default=730.0, ge=0)
    """Time for which turns are kept word for word, to be searched; 0 keeps none, `none` is for ever."""
    episodes_embedder: str = Field(default="none", min_length=1)
    """Search of turns by meaning: `minilm` in this process, the `endpoint` of the model, or one of your own by name."""
    episodes_embedding_model: str = "text-embedding-3-small"
    """Model of that endpoint."""
    say_learned: bool = True
    """Whether a reply lists new facts about the person since the last one: "Noted: you love sushi."."""
    erase_said: Literal["on_forget", "at_once"] = "on_forget"
    """When messages of people are overwritten in a stream's files; `at_once` takes up to 20 ms each, one by one."""
    forget_in_chat: Literal["by_sentence", "never"] = "by_sentence"
    """Whether a person may have all that is remembered of them forgotten from a chat, by a sentence that they type."""
    session_value_max_bytes: int = Field(
        default=16 * 1024**2, ge=1024, le=512 * 1024**2
    )
    """Largest value of a session, before compression; store a larger one elsewhere and a reference in the session."""
    pipeline_lease_s: float = Field(default=5.0, ge=0.5, le=3600)
    """Lease on a pipeline's run or an analysis; then another supervisor takes over. Renewed three times within it."""
    pipelines_dir: Path | None = None
    """Folder whose TOML files declare pipelines that can be asked for in words or as a task of agent `Pipeline`."""
    pipeline_roots: str = ""
    """Folders below which pipelines may read files, whole paths joined by `:`; without it none."""
    fingerprint_files: int = Field(default=20_000, ge=1, le=200_000)
    """Files that one phase may watch; a phase that needs more fails and says so."""
    fingerprint_max_bytes: int = Field(default=1024**3, ge=1024)
    """Bytes of them that one look may read; unchanged files are not read again."""
    fingerprint_s: float = Field(default=10.0, ge=0.1, le=600)
    """Time for one such look; looks of one user follow one another."""
    stall_s: float = Field(default=30.0, ge=1, le=3600)
    """Time after which a supervisor with a blocked event loop ends; a blocked worker, `ack_wait_s` later."""
    evidence_dir: Path = Path("evidence")
    """Folder in which a failed run leaves `SESSION-failed.json`: enough to resume it, with secrets masked."""
    analyses_kept: int = Field(default=100, ge=1, le=100_000)
    """Responses and analyses of a story that are kept, the last ones; the changes of all stay."""
    story_calls: Literal["ten", "grouped", "one"] = "ten"
    """Questions to models about a response: ten, one a group of agents, or one for all agents."""
    kinds_dir: Path | None = None
    """Folder with more kinds of documents, one TOML file each; a file with a shipped name replaces that kind."""
    agent_files: Path | None = None
    """Folder whose `AGENT/config.yaml` and `AGENT/prompts/` replace an agent's own."""

    http_host: str = Field(default="127.0.0.1", min_length=1)
    """Address of health and metrics; `0.0.0.0` in a container."""
    http_port: Port = 0
    """Port of health and metrics; 0 is a free one, which the `workers` bucket and `endpoints.json` name."""
    api_host: str = Field(default="127.0.0.1", min_length=1)
    """Address of a supervisor's HTTP API; one that other machines reach needs `api_keys_file`."""
    api_port: Port | None = 0
    """Port of the HTTP API; 0 is a free one, which `endpoints.json` names; `none` serves no API."""
    api_keys_file: Path | None = None
    """The API keys, as `tasklore api-key` writes them; without it programs of this machine need none."""
    approval_secret: Annotated[SecretStr | None, Field(min_length=32)] = None
    """Signs links to questions of tasks and to the console, and tokens of streams; 32 characters or more, else none."""
    approval_url: str | None = None
    """Public URL for these links, if behind a proxy or TLS; without it the IP address of the request."""
    webhook_secret: Annotated[SecretStr | None, Field(min_length=38)] = None
    """Signs webhooks: `whsec_` and base64; while one is replaced, both, joined by a comma. Without it no webhooks."""
    webhook_url: str | None = None
    """Webhook URL for the questions of all tasks; the `callback_url` of a task gets only its own."""
    webhook_tasks: bool = False
    """Whether that URL also gets the end of every task."""
    webhook_networks: str = ""
    """Networks that are not public and may be sent to, joined by commas; there alone addresses may be `http:`."""
    api_body_max_bytes: int = Field(default=1024**2, ge=1024, le=64 * 1024**2)
    """Largest body of a request; a task larger than 960 KiB fits into no message."""
    api_rate: Positive = 100.0
    """Requests per second of one API key to one supervisor; more are refused with 429 and `Retry-After`."""
    api_burst: int = Field(default=500, ge=1, le=100_000)
    """Burst of a key after a pause; it does not limit concurrent requests."""
    api_unknown_rate: Positive = 5.0
    """Requests per second without a valid key from one address, and ten times as many after a pause."""
    api_trusted_proxies: str = ""
    """Proxies before the API, as addresses or networks joined by commas: their `X-Forwarded-For` names the client."""
    api_cors_origins: str = ""
    """Origins whose pages may ask the API from a browser, joined by commas; `*` is any page that has a key."""
    api_cors_methods: str = "*"
    """Methods by which such pages may ask, joined by commas; `*` is all that the API has."""
    api_cors_headers: str = "*"
    """Headers that such pages may send, joined by commas; `*` is any."""
    api_tls_cert_file: Path | None = None
    """Certificate of the API, in PEM and with its intermediate ones; read once, at the start."""
    api_tls_key_file: Path | None = None
    """The private key of that certificate, in PEM and without a passphrase."""
    api_url: str | None = None
    """Address of the API that commands ask; without it the one of `endpoints.json`."""
    api_key: SecretStr | None = None
    """Key that commands show it; an address of `endpoints.json` gets it only when it is this machine's."""
    api_ca_file: Path | None = None
    """File with the certificates, in PEM, of its authority; without it the system's authorities."""
    operations_url: str | None = None
    """Address of the API for commands that need an operator's rights at the servers."""
    operations_key: SecretStr | None = None
    """Key that such commands show there; without it that of the other commands."""
    operations_host: str = Field(default="127.0.0.1", min_length=1)
    """Address of `tasklore supervisor --operations`; one that other machines reach needs `api_keys_file` there."""
    operations_port: int = Field(default=0, ge=0, le=65_535)
    """Its port; 0 is a free one, which `endpoints.json` names."""
    locale: str | None = None
    """Language and country of the people who ask, such as `de-DE`: is "1.500" 1.5 or 1500? Unset, they are asked."""
    time_zone: TimeZone = "UTC"
    """Time zone of the people who ask, by IANA's name (`Europe/Berlin`), for "tomorrow"; a request may differ."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Lowest level that is logged; texts of people are never logged at info."""
    log_format: Literal["auto", "console", "json"] = "auto"
    """`auto` is `console` on a terminal and `json` elsewhere."""
    tracing: Literal["off", "on", "content"] = "off"
    """Whether OpenTelemetry records and sends spans, with `content` also masked prompts (docs/reference/tracing.md)."""

    llm_base_url: str | None = None
    """Address of an OpenAI-compatible server; without it and a key the built-in rules answer."""
    llm_api_key: SecretStr | None = None
    """Key for the language model; a key alone means OpenAI's own server."""
    llm_model: ModelName = MEDIUM_MODEL
    """Model of every role that no other setting, and no `config.yaml` of yours, names a model for."""
    llm_temperature: Temperature = 0.2
    """Temperature of that model; `none` for reasoning models, which refuse any, as the shipped ones do."""
    llm_supervisor_model: ModelName | None = None
    """The model that finds agent, task and parameters in what a person says; without it `TASKLORE_LLM_MODEL`."""
    llm_finder_model: ModelName | None = None
    """The model that finds which place in a document a fact belongs to; without it as for any other role."""
    llm_roles: str = ""
    """Further roles for agents with tools, `ROLE=PROVIDER:MODEL` joined by commas: `writer=anthropic:claude-opus-5`."""
    llm_anthropic_base_url: str | None = None
    """Address of Anthropic's API for roles with the provider `anthropic`; without it Anthropic's own."""
    llm_anthropic_api_key: SecretStr | None = None
    """Key for Anthropic's API."""
    llm_google_base_url: str | None = None
    """Address of the Gemini API for roles with the provider `google`; without it Google's own."""
    llm_google_api_key: SecretStr | None = None
    """Key for the Gemini API."""
    llm_prices: str = ""
    """US dollars per million tokens, `MODEL=INPUT/OUTPUT/CACHED` joined by commas, before those that are shipped."""
    llm_max_output_tokens: int = Field(default=2048, ge=1)
    """The longest answer of a model; one that is cut off there is an error."""
    llm_attempt_deadline_s: Positive = 30.0
    """Time for one request to a model; the deadline of its task shortens it."""
    llm_max_attempts: int = Field(default=3, ge=1, le=20)
    """Attempts of one model call if the provider fails; as many failures in a row open its circuit breaker."""
    llm_max_concurrency: int = Field(default=8, ge=1, le=1000)
    """Concurrent model requests of one process, over all roles."""

    _arguments: frozenset[str] = frozenset()

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._arguments = frozenset(arguments)

    @classmethod
    def load(cls, **arguments: Any) -> Self:
        """Return the settings of this process: *arguments* that are not None, then the environment, then defaults.

        A variable with our prefix that names no setting is warned about in the log; one that did, with what it is now.

        Raises:
            ConfigurationError: values are unusable; the message names each variable and its cure, and no secret.
        """
        given = {name: value for name, value in arguments.items() if value is not None}
        for variable, nearest in unknown_variables(
            os.environ, cls.model_fields
        ).items():
            log.warning("unknown_setting", variable=variable, nearest=nearest)
        for variable, instead in removed_variables(os.environ).items():
            log.warning("removed_setting", variable=variable, instead=instead)
        try:
            settings = cls(**given)
            settings.llm()
        except ValidationError as error:
            sentences = [
                _sentence(details, given, is_of_llm=error.title != cls.__name__)
                for details in error.errors(include_url=False)
            ]
            raise ConfigurationError("; ".join(sentences)) from None
        return settings

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return where values come from: arguments, then the environment, then secrets."""
        del dotenv_settings, file_secret_settings
        return init_settings, env_settings, _Secrets(settings_cls)

    def source(self, name: str) -> Literal["argument", "environment", "default"]:
        """Say where the value of the setting *name* comes from."""
        if name in self._arguments:
            return "argument"
        return "environment" if name in self.model_fields_set else "default"

    @property
    def names_model(self) -> bool:
        """Whether `TASKLORE_LLM_MODEL` is set, which then serves every role that is not named otherwise."""
        return self.source("llm_model") != "default"

    @property
    def provider_of_all(self) -> tuple[str, str] | None:
        """Provider and model of each role that is not named otherwise, where an extension serves the default role."""
        listed = parse_roles(self.llm_roles).get(DEFAULT_ROLE)
        return listed if listed is not None and is_extension(listed[0]) else None

    @property
    def episodes_kept(self) -> timedelta | None:
        """How long turns are kept word for word, None without end."""
        days = self.episodes_keep_days
        return None if days is None else timedelta(days=days)

    def llm(self) -> LlmSettings:
        """Return the part for `tasklore.runtime.models.llm`."""
        provider, model = self.provider_of_all or ("openai", self.llm_model)
        # A server that refuses one for its model refuses any.
        takes_temperature = self.llm_temperature is not None
        small = SMALL_MODEL if provider == "openai" and not self.names_model else model
        named = {
            DEFAULT_ROLE: self._role(provider, model, self.llm_temperature),
            "supervisor": self._role(
                provider,
                self.llm_supervisor_model or model,
                SUPERVISOR_TEMPERATURE if takes_temperature else None,
            ),
            "finder": self._role(
                provider,
                self.llm_finder_model or small,
                FINDER_TEMPERATURE if takes_temperature else None,
            ),
        }
        named |= {
            name: self._role(provider, model, self.llm_temperature)
            for name, (provider, model) in parse_roles(self.llm_roles).items()
        }
        return LlmSettings(
            base_url=self.llm_base_url,
            api_key=self.llm_api_key,
            anthropic_base_url=self.llm_anthropic_base_url,
            anthropic_api_key=self.llm_anthropic_api_key,
            google_base_url=self.llm_google_base_url,
            google_api_key=self.llm_google_api_key,
            roles=named,
            prices=parse_prices(self.llm_prices),
            max_concurrency=self.llm_max_concurrency,
            max_attempts=self.llm_max_attempts,
        )

    def _role(self, provider: str, model: str, temperature: float | None) -> LlmRole:
        return LlmRole(
            provider=provider,
            model=model,
            temperature=temperature,
            max_output_tokens=self.llm_max_output_tokens,
            attempt_deadline_s=self.llm_attempt_deadline_s,
        )

    @field_validator(*_SCHEMES)
    @classmethod
    def _check_url(cls, url: str | None, info: Any) -> str | None:
        schemes = _SCHEMES[info.field_name]
        if url is not None and not url.startswith(schemes):
            raise ValueError(f"an address begins with {' or '.join(schemes)}")
        return url

    @field_validator("locale")
    @classmethod
    def _check_locale(cls, locale: str | None) -> str | None:
        if locale is not None:
            try:
                mark_of(locale)
            except InvalidAmount as error:
                raise ValueError(
                    "no language that is known here; write one such as 'en' or 'de-CH'"
                ) from error
        return locale

    @field_validator(*_LISTS)
    @classmethod
    def _check_list(cls, text: str, info: Any) -> str:
        _LISTS[info.field_name](text)
        return text

    @model_validator(mode="after")
    def _check_pairs(self) -> Self:
        if self.retry_base_s > self.retry_cap_s:
            raise ValueError(
                f"{PREFIX}RETRY_BASE_S must not exceed {PREFIX}RETRY_CAP_S ({self.retry_cap_s:g})"
            )
        if (self.api_tls_cert_file is None) != (self.api_tls_key_file is None):
            raise ValueError(
                f"{PREFIX}API_TLS_CERT_FILE and {PREFIX}API_TLS_KEY_FILE go together: set both or neither"
            )
        return self


class _Secrets(PydanticBaseSettingsSource):
    """The settings among the secrets that the environment names, by their variables in small letters."""

    def get_field_value(
        self, field: FieldInfo, field_name: str
    ) -> tuple[Any, str, bool]:
        """Return the secret of that name, None without one."""
        del field
        found = read_secret(os.environ, variable_of(field_name).lower())
        return found, field_name, False

    def __call__(self) -> dict[str, Any]:
        """Return what there is, but for values that the environment says already."""
        given = {name.upper() for name, value in os.environ.items() if value}
        found = {
            name: self.get_field_value(field, name)[0]
            for name, field in self.settings_cls.model_fields.items()
            if variable_of(name) not in given
        }
        return {
            name: None if value == "none" else value
            for name, value in found.items()
            if value is not None
        }


def format_setting(name: str, value: object) -> str:
    """Return *value* of the setting *name* for a person's eyes: secrets and passwords are `***`, None is `none`."""
    if value is None or name in _SCHEMES:
        return "none" if value is None else masked_url(str(value))
    if (
        isinstance(value, SecretStr)
        or Settings.model_fields[name].annotation == SecretStr | None
    ):
        return "***"
    return str(value)


def _sentence(
    details: ErrorDetails, arguments: Mapping[str, object], *, is_of_llm: bool
) -> str:
    cure = complaint_of(details)
    cure = f"it {cure}" if cure.startswith("must") else cure
    if not details["loc"]:
        return cure
    name = str(details["loc"][0])
    if is_of_llm and (nested := f"llm_{name}") in Settings.model_fields:
        # The settings of the LLM check its key and its address once more, under names without that prefix.
        name = nested
    if name not in Settings.model_fields:
        return f"there is no setting {name!r}"
    where = (
        f"{variable_of(name)} (given as an argument)"
        if name in arguments
        else variable_of(name)
    )
    default = format_setting(name, Settings.model_fields[name].default)
    return f"{where} cannot be {format_setting(name, details['input'])!r}: {cure} (default {default})"
