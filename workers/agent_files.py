"""The files of an agent's roles: which model answers, how freely, and the prompt it is given.

A role is a folder with `config.yaml` and `prompts/system.j2`: the agent's own folder, or one below it
(`memory_worker/finder`). Whoever runs the worker may lay a folder of their own over it, file by file and field by
field: `{folder}/memory_worker/finder/config.yaml`. Prompts are rendered in a sandbox: it reads no file, runs no code.
"""

import inspect
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tasklore.contracts.errors import ConfigurationError
from tasklore.contracts.faults import fault_of
from tasklore.runtime.models.settings import (
    DEFAULT_ROLE,
    LlmRole,
    LlmSettings,
    is_shipped,
    parse_roles,
)

if TYPE_CHECKING:
    from jinja2 import Template

    from tasklore.runtime.settings import Settings
    from tasklore.workers.agent import Agent

CONFIG = "config.yaml"
PROMPT = "prompts/system.j2"

#: Bytes of one file: a hundred times a long prompt; more was put there by mistake.
_MOST_BYTES = 256 * 1024

#: Roles of the house itself, set by the environment alone.
_RESERVED = (DEFAULT_ROLE, "supervisor")


class RoleConfig(BaseModel):
    """What `config.yaml` may say; a field that is left out comes from the file below it.

    `temperature` null leaves it to the provider. `max_output_tokens` null is the worker's own limit.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, extra="forbid", strict=True
    )

    model: str = Field(min_length=1, max_length=200)
    temperature: float | None = Field(default=None, ge=0, le=2)
    max_output_tokens: int | None = Field(default=None, ge=1)


@dataclass(frozen=True, kw_only=True)
class AgentFiles:
    """One role as its files describe it; `max_output_tokens` None is the worker's own limit."""

    role: str
    model: str
    temperature: float | None
    max_output_tokens: int | None
    #: Whether somebody chose the model: in a folder laid over the agent's own, or by a name that is not shipped.
    names_model: bool = True
    #: Where the prompt was read, for whoever has to mend it.
    prompt: Path
    template: "Template" = field(repr=False)

    def render(self, **values: object) -> str:
        """Return the system prompt with *values* in it.

        Raises:
            ConfigurationError: the prompt cannot be rendered with them; the message names file and cure.
        """
        try:
            return self.template.render(**values).strip()
        # A template runs expressions of whoever wrote it: any of them may fail in any way.
        except Exception as error:
            given = ", ".join(sorted(values)) or "nothing"
            raise ConfigurationError(
                f"{self.prompt} cannot be rendered: {error}; it is given {given}"
            ) from error


def files_of(agent: "Agent", override: Path | None = None) -> tuple[AgentFiles, ...]:
    """Return every role of *agent*, for the start of a process: what is wrong in a file shows there.

    Raises:
        ConfigurationError: as in `load_agent_files`; or *override* has a role that the agent does not have.
    """
    functions = [task.handler.function for task in agent.tasks.values()]
    functions += [listener.function for listener in agent.listeners.values()]
    folders = {
        Path(inspect.getfile(inspect.unwrap(function))).resolve().parent
        for function in functions
    }
    roles = tuple(role for folder in sorted(folders) for role in find_roles(folder))
    if override is not None:
        for folder in folders:
            _refuse_strangers(folder, override, [role.name for role in roles])
    return tuple(load_agent_files(role, override) for role in roles)


def find_roles(folder: Path) -> tuple[Path, ...]:
    """Return the role folders of the agent in *folder*: itself, and those below that are no package.

    A role folder has both a `config.yaml` and a folder `prompts`.
    """
    below = sorted(
        path
        for path in folder.iterdir()
        if path.is_dir() and not (path / "__init__.py").exists()
    )
    return tuple(
        path
        for path in (folder, *below)
        if (path / CONFIG).is_file() and (path / "prompts").is_dir()
    )


@cache
def load_agent_files(folder: Path, override: Path | None = None) -> AgentFiles:
    """Return the role described in *folder*, with what lies in *override*`/<agent>/<role>` in its place; read once.

    The role is called like its folder, the agent like the folder of its package.

    Raises:
        ConfigurationError: a file is missing or wrong; the message names it, the field and the cure.
    """
    mine = None if override is None else _overlaid(folder, override)
    config = _read_config(folder / CONFIG)
    names_model = False
    if mine is not None and (mine / CONFIG).is_file():
        over = _read_config(mine / CONFIG)
        names_model = "model" in over
        config = {**config, **over}
        described = _checked(config, mine / CONFIG)
    else:
        described = _checked(config, folder / CONFIG)
    shipped, names = _read_prompt(folder / PROMPT, None)
    prompt = folder / PROMPT
    if mine is not None and (mine / PROMPT).is_file():
        prompt = mine / PROMPT
        # A prompt is given what the shipped one uses, so that a slip shows at the start and not in the night.
        shipped, _ = _read_prompt(prompt, names)
    return AgentFiles(
        role=folder.name,
        model=described.model,
        temperature=described.temperature,
        max_output_tokens=described.max_output_tokens,
        names_model=names_model or not is_shipped(described.model),
        prompt=prompt,
        template=shipped,
    )


def llm_settings_of(settings: "Settings", files: Iterable[AgentFiles]) -> LlmSettings:
    """Return what `runtime.models.llm` is told: the *settings* of this process, and the roles that *files* describe.

    See `roles_of`.
    """
    told = settings.llm()
    return told.model_copy(
        update={"roles": {**told.roles, **roles_of(settings, files)}}
    )


def roles_of(settings: "Settings", files: Iterable[AgentFiles]) -> dict[str, LlmRole]:
    """Return the role that each of *files* describes, by name.

    What is set for a role by name (`TASKLORE_LLM_FINDER_MODEL`, `TASKLORE_LLM_ROLES`) wins over its file. A model that
    the file names wins over `TASKLORE_LLM_MODEL`, unless it is only the one that is shipped.

    Raises:
        ConfigurationError: two agents describe one role differently, or one of the house's own.
    """
    roles: dict[str, LlmRole] = {}
    listed = parse_roles(settings.llm_roles)
    for file in files:
        serves_all = settings.names_model and not file.names_model
        model = settings.llm_model if serves_all else file.model
        provider, model = (
            listed.get(file.role) or settings.provider_of_all or ("openai", model)
        )
        role = LlmRole(
            model=_set_or(settings, f"llm_{file.role}_model", model),
            provider=provider,
            temperature=_set_or(
                settings, f"llm_{file.role}_temperature", file.temperature
            ),
            max_output_tokens=file.max_output_tokens or settings.llm_max_output_tokens,
            attempt_deadline_s=settings.llm_attempt_deadline_s,
        )
        if file.role in _RESERVED or roles.setdefault(file.role, role) != role:
            whose = (
                "the house's own"
                if file.role in _RESERVED
                else "described differently by another agent"
            )
            raise ConfigurationError(
                f"the role {file.role!r} of {file.prompt} is {whose}; rename its folder"
            )
    return roles


def _set_or(settings: "Settings", name: str, otherwise: Any) -> Any:
    """Return the setting *name* when it was set, else *otherwise*."""
    if name not in type(settings).model_fields or settings.source(name) == "default":
        return otherwise
    return getattr(settings, name)


def _refuse_strangers(folder: Path, override: Path, roles: Collection[str]) -> None:
    """Refuse a folder in *override* that lies over none of *roles* of the agent in *folder*: a slip, never read."""
    mine = override / folder.name
    if folder.name in roles or not mine.is_dir():
        return
    for stranger in sorted(
        path.name for path in mine.iterdir() if path.is_dir() and path.name not in roles
    ):
        near = get_close_matches(stranger, roles, 1)
        cure = (
            f"did you mean {near[0]!r}?"
            if near
            else f"its roles are {', '.join(roles) or 'none'}"
        )
        raise ConfigurationError(
            f"{mine / stranger} is not a role of {folder.name!r}; {cure}"
        )


def _overlaid(folder: Path, override: Path) -> Path:
    """Return the place in *override* that lies over the role *folder*."""
    if not override.is_dir():
        raise ConfigurationError(
            f"{override} is not a folder; name one with <agent>/<role>/{CONFIG}, or "
            "none"
        )
    if (folder / "__init__.py").exists():
        return override / folder.name
    return override / folder.parent.name / folder.name


def _text_of(file: Path) -> str:
    try:
        if file.stat().st_size > _MOST_BYTES:
            raise ConfigurationError(
                f"{file} is larger than {_MOST_BYTES} bytes; shorten it"
            )
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"{file} cannot be read: {error}; write it as UTF-8 text"
        ) from error


def _read_config(file: Path) -> dict[str, Any]:
    try:
        said = yaml.safe_load(_text_of(file))
    except (yaml.YAMLError, RecursionError) as error:
        raise ConfigurationError(
            f"{file} is not valid YAML: {error}; write `model: gpt-6.1-terra` and the "
            "like"
        ) from error
    if not isinstance(said, dict):
        raise ConfigurationError(
            f"{file} holds no fields; write `model: gpt-6.1-terra` and the like"
        )
    return {str(name): value for name, value in said.items()}


def _checked(config: dict[str, Any], file: Path) -> RoleConfig:
    try:
        return RoleConfig.model_validate(config)
    except ValidationError as error:
        known = ", ".join(RoleConfig.model_fields)
        wrong = "; ".join(map(fault_of, error.errors()))
        raise ConfigurationError(f"{file}: {wrong}; the fields are {known}") from error


def _read_prompt(
    file: Path, known: Collection[str] | None
) -> tuple["Template", frozenset[str]]:
    """Return the template in *file* and the names it uses; with *known*, others than those are refused."""
    # Only a worker with prompts pays for it.
    from jinja2 import StrictUndefined, TemplateError, meta
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    text = _text_of(file)
    # Plain text for a model, so nothing is escaped; without a loader no other file is reached.
    environment = ImmutableSandboxedEnvironment(
        autoescape=False, undefined=StrictUndefined, trim_blocks=True
    )
    try:
        syntax = environment.parse(text)
        names = frozenset(meta.find_undeclared_variables(syntax)) - frozenset(
            environment.globals
        )
        template = environment.from_string(text)
    except TemplateError as error:
        line = getattr(error, "lineno", None)
        where = f"{file}, line {line}" if line else str(file)
        raise ConfigurationError(f"{where}: {error}; fix the Jinja in it") from error
    if not text.strip():
        raise ConfigurationError(
            f"{file} is empty; write what the model is to do, or remove the file"
        )
    if any(True for _ in meta.find_referenced_templates(syntax)):
        raise ConfigurationError(
            f"{file} refers to another template; put everything into this file"
        )
    unknown = sorted(names - frozenset(known)) if known is not None else []
    if unknown:
        may = ", ".join(sorted(known or ())) or "none"
        raise ConfigurationError(
            f"{file} uses {', '.join(map(repr, unknown))}; the names it is given are {may}"
        )
    return template, names
