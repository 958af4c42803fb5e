"""Asks each model that the settings name one small question, for `tasklore doctor --models`: who answers."""

from collections.abc import AsyncIterator
from pathlib import Path

from pydantic import BaseModel

from tasklore import workers
from tasklore.commands.doctor.rules import Diagnosis, ok
from tasklore.commands.render.words import join_names
from tasklore.contracts.errors import LlmError, LlmNotConfigured
from tasklore.runtime.models.dialects import address_of, dialect_of
from tasklore.runtime.models.llm import Llm, describe
from tasklore.runtime.models.settings import (
    OPENAI_URL,
    LlmRole,
    LlmSettings,
    is_extension,
)
from tasklore.runtime.servers.endpoints import masked_url
from tasklore.runtime.settings import Settings
from tasklore.workers.agent_files import CONFIG, llm_settings_of, load_agent_files

_CHECK = "models.answers"
_SYSTEM = "Repeat the word in quotes. Nothing else is asked."
_WORD = "lantern"
#: Roles that one line names.
_MOST_ROLES = 30


class Echo(BaseModel):
    """The answer to the question that tries a model."""

    reasoning: str
    word: str


def settings_of_roles(settings: Settings) -> LlmSettings:
    """Return the models of all roles that are shipped or named in *settings*, as a worker that serves them has them."""
    folders = sorted(
        file.parent for file in Path(workers.__file__).parent.rglob(CONFIG)
    )
    files = [load_agent_files(one, settings.agent_files) for one in folders]
    return llm_settings_of(settings, files)


async def ask_models(settings: Settings) -> AsyncIterator[Diagnosis]:
    """Yield a finding for each model of the *settings*: as which role it was asked and how, or its refusal."""
    llm_settings = settings_of_roles(settings)
    models: dict[tuple[str, str], list[str]] = {}
    for name, role in llm_settings.roles.items():
        models.setdefault((role.provider, role.model), []).append(name)
    async with Llm(llm_settings.model_copy(update={"max_attempts": 1})) as llm:
        for (_, model), roles in models.items():
            yield await _ask(llm, model, sorted(roles))


async def _ask(llm: Llm, model: str, roles: list[str]) -> Diagnosis:
    """Ask *model* as the first of *roles*; the settings of the others are not tried."""
    role = llm.role(roles[0])
    others = join_names(roles[1:], _MOST_ROLES)
    also = f"; also the model of {others}" if others else ""
    is_ours = not is_extension(role.provider)
    if is_ours and role.provider != "openai":
        names = join_names(roles, _MOST_ROLES)
        found = f"{model} of {role.provider} was not asked: it answers agents with tools alone ({names})"
        return Diagnosis(check=_CHECK, mark="note", found=found)
    address = llm.settings.base_url or OPENAI_URL
    try:
        reply = await llm.ask(roles[0], Echo, system=_SYSTEM, user=f'"{_WORD}"')
    except LlmNotConfigured as error:
        return Diagnosis(check=_CHECK, mark="note", found=f"no model is asked: {error}")
    except LlmError as error:
        place = masked_url(address) if is_ours else role.provider
        where = f"{model} at {place}"
        return Diagnosis(
            check=_CHECK,
            mark="problem",
            found=f"{where} does not answer (asked as {roles[0]}{also}): {describe(error)}",
            cure="see docs/guide/use-your-own-model.md; until it answers, these roles "
            "use rules, or wait",
        )
    said = _describe_form(address, role) if is_ours else f"provider {role.provider}"
    is_heard = _WORD in reply.value.word.lower()
    note = "" if is_heard else "; it failed the echo test, so expect poor results"
    return ok(_CHECK, f"{model} answers (asked as {roles[0]} with {said}{also}){note}")


def _describe_form(address: str, role: LlmRole) -> str:
    """Return how the model of *role* was asked."""
    return str(dialect_of(address_of(address), role.model)) or "json_schema"
