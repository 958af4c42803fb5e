"""What the questions of finder and editor have in common: a role's files, a small schema, and how long a text is."""

import asyncio
import re
from collections.abc import Coroutine, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import JsonValue

from contracts.errors import LlmNotConfigured
from workers.agent_files import AgentFiles, load_agent_files
from workers.answers import Answer
from workers.listening.context import ListenContext

_PIECES = re.compile(r"[^\W\d_]+|\d{1,3}|_+|\s+|[^\w\s]+")
#: Letters that one token holds: real prompts of ours have more, so that an estimate is above the bill.
_LETTERS = 6
#: Signs that one token holds, in JSON.
_SIGNS = 3


T = TypeVar("T", bound=Answer)
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Asked(Generic[T]):
    """What a model answered, and who it was: `model` and `temperature`, as they stand in the history."""

    value: T
    by: Mapping[str, JsonValue]

    @property
    def model(self) -> str:
        """The name of the model."""
        return str(self.by["model"])


async def ask(context: ListenContext, folder: Path, answer: type[T], user: str) -> Asked[T]:
    """Return what the model of the role in *folder* answers to *user*.

    Raises:
        LlmError: there is no model, or no answer of that shape.
        ConfigurationError: the role's files are wrong.
    """
    files = load_agent_files(folder, context.agent_files)
    if context.llm is None:
        raise LlmNotConfigured("no language model: set TASKLORE_LLM_API_KEY or TASKLORE_LLM_BASE_URL")
    value = await context.llm.ask(files.role, answer, system=files.render(), user=user)
    return Asked(value, _who(context, files))


def _who(context: ListenContext, files: AgentFiles) -> dict[str, JsonValue]:
    """Return model and temperature in force, which need not be those of the files: the operator may have set others."""
    if context.llm is None:
        return {"model": files.model, "temperature": files.temperature}
    role = context.llm.role(files.role)
    return {"model": role.model, "temperature": role.temperature}


def tokens_of(text: str) -> int:
    """Return about how many tokens *text* has, rather too many; letters beyond ASCII count one each."""
    return sum(_weight(piece) for piece in _PIECES.findall(text))


def _weight(piece: str) -> int:
    first = piece[0]
    if first.isspace():
        return 0 if piece == " " else max(1, piece.count("\n"))
    if first.isalpha():
        return -(-len(piece) // _LETTERS) if piece.isascii() else len(piece)
    return 1 if first.isdigit() else -(-len(piece) // _SIGNS)


async def together(questions: Iterable[Coroutine[Any, Any, R]]) -> list[R]:
    """Return the answers to *questions*, which are asked at the same time, in their order.

    Raises:
        LlmError: that of the first one that failed; the others are given up.
    """
    tasks: list[asyncio.Task[R]] = []
    try:
        async with asyncio.TaskGroup() as group:
            tasks += [group.create_task(question) for question in questions]
    except BaseExceptionGroup as failed:
        raise _first(failed) from failed
    return [task.result() for task in tasks]


def _first(failed: BaseException) -> BaseException:
    while isinstance(failed, BaseExceptionGroup):
        failed = failed.exceptions[0]
    return failed
