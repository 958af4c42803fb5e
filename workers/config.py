"""The configuration file of one agent: who it is, and its settings."""

import json
import re
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tasklore.contracts.errors import ConfigurationError
from tasklore.contracts.faults import fault_of
from tasklore.contracts.identifiers import Name
from tasklore.workers.agent import Agent

#: Fields of 0.2, and what to do instead.
_GONE = {
    "ltm_path": "take it out, and import its file once by `tasklore results import` (docs/reference/memory.md, Files)",
}
#: A string, which is kept, or a comment to the end of its line, which is not.
_STRING_OR_COMMENT = re.compile(r'("(?:[^"\\\n]|\\.)*")|//[^\n]*')


class HostConfig(BaseModel):
    """One agent's configuration.

    `enable_ltm_cache` switches remembering. `settings` holds every other field of the file.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    agent_id: Name
    supervisor_id: Name | None = None
    enable_ltm_cache: bool = Field(default=True, strict=True)
    settings: Mapping[str, Any] = Field(default_factory=dict)

    def applied_to(self, agent: Agent) -> Agent:
        """Return *agent* with these settings.

        Raises:
            ConfigurationError: the file is for another agent, or holds a field that is no setting of this one.
        """
        if agent.agent_id != self.agent_id:
            msg = f"the configuration is for {self.agent_id!r}, not for {agent.agent_id!r}; correct its agent_id"
            raise ConfigurationError(msg)
        return agent.configured(self.settings)


def load_config(path: Path | str) -> HostConfig:
    """Return the configuration in the JSON file *path*, in which `//` starts a comment.

    Raises:
        ConfigurationError: the file cannot be read, is no JSON object, or a field has an unusable value.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"the configuration {str(path)!r} cannot be read: {error}"
        ) from error
    try:
        raw = json.loads(
            _without_comments(text), parse_float=Decimal, object_pairs_hook=_each_once
        )
    except ValueError as error:
        raise ConfigurationError(
            f"the configuration {str(path)!r} is not valid JSON: {error}"
        ) from error
    if not isinstance(raw, dict):
        raise ConfigurationError(
            f"the configuration {str(path)!r} must be one JSON object"
        )
    gone = [
        f"{name} is no field any more: {cure}"
        for name, cure in _GONE.items()
        if name in raw
    ]
    if gone:
        raise ConfigurationError(f"the configuration {str(path)!r}: {'; '.join(gone)}")
    own = {name: raw.pop(name) for name in _OWN if name in raw}
    try:
        return HostConfig(**own, settings=raw)
    except ValidationError as error:
        problems = error.errors(
            include_url=False, include_context=False, include_input=False
        )
        told = "; ".join(map(fault_of, problems))
        raise ConfigurationError(f"the configuration {str(path)!r}: {told}") from error


_OWN = tuple(name for name in HostConfig.model_fields if name != "settings")


def _without_comments(text: str) -> str:
    return _STRING_OR_COMMENT.sub(lambda found: found.group(1) or "", text)


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        names = [name for name, _ in pairs]
        twice = sorted({name for name in names if names.count(name) > 1})
        raise ValueError(f"{', '.join(twice)} is given twice; keep one")
    return members
