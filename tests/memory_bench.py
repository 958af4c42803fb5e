"""What tests of the memory worker share: a user's documents, a context over them, and a model with a script."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel, JsonValue

from tasklore.contracts.errors import LlmError
from tasklore.contracts.messages import Fact
from tasklore.memory.documents.draft import Draft
from tasklore.memory.documents.guard import LIMITS
from tasklore.memory.documents.items import Body, make_item
from tasklore.memory.documents.kinds import Kinds
from tasklore.memory.documents.plans import Document, Snapshot
from tasklore.runtime.models.answer_reader import T
from tasklore.runtime.models.llm import Expense, LlmRole, LlmSettings, Reply, Spent
from tasklore.workers.context.services import Services
from tasklore.workers.listening.context import ListenContext
from tasklore.workers.listening.values import FactBatch, PendingFact

USER = "u1"
NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
FOOD = "resource_user_food_prefs"
ROUTINE = "resource_user_routine"
HEALTH = "resource_user_health"
GENERAL = "resource_user_general_prefs"
KINDS = Kinds.load()

#: What an answer to a question is: of the role and what was asked.
Respond = Callable[[str, str], "Mapping[str, Any] | BaseModel | LlmError"]


def item(display: str, *, source: str = "stated:t0", **fields: Any) -> Body:
    """Return an item that was said on New Year's day."""
    made = make_item(
        display, added=fields.pop("added", date(2026, 1, 1)), source=source
    )
    return {**made, **fields}


def documents(**places: Sequence[str | JsonValue]) -> dict[str, Body]:
    """Return every kind's document; `food__likes=["Pasta"]` puts items, or values as they are, to `food.likes`."""
    bodies = {
        resource_id: kind.complete({}) for resource_id, kind in KINDS.by_id.items()
    }
    for name, values in places.items():
        top, _, inner = name.partition("__")
        body = next(body for body in bodies.values() if top in body)
        holder = cast("dict[str, JsonValue]", body[top])
        holder[inner] = [
            item(value) if isinstance(value, str) else value for value in values
        ]
    return bodies


def draft_of(bodies: Mapping[str, Body]) -> Draft:
    """Return a draft over *bodies*, each at its first revision."""
    stored = {
        resource_id: Document(resource_id=resource_id, revision=1, body=body)
        for resource_id, body in bodies.items()
    }
    return Draft(Snapshot(USER, stored), LIMITS, NOW)


@dataclass
class Model:
    """A language model that answers by a function and remembers what it was asked: role, system and user text."""

    respond: Respond | None = None
    asked: list[tuple[str, str, str]] = field(default_factory=list)
    settings: LlmSettings = field(default_factory=LlmSettings)

    @property
    def configured(self) -> bool:
        """Whether there is one."""
        return self.respond is not None

    def role(self, name: str) -> LlmRole:
        """Return who answers."""
        return self.settings.role(name)

    async def ask(
        self,
        role: str,
        answer: type[T],
        *,
        system: str,
        user: str,
        deadline_s: float | None = None,
        spent: Spent | None = None,
    ) -> Reply[T]:
        """Answer as scripted."""
        self.asked.append((role, system, user))
        assert self.respond is not None
        said = self.respond(role, user)
        if isinstance(said, LlmError):
            raise said
        value = said if isinstance(said, BaseModel) else answer.model_validate(said)
        return Reply(cast("T", value), Expense(), self.role(role).model, 1, 1.0)


@dataclass
class Lender:
    """What a host lends, as far as the memory worker borrows it."""

    llm: Any
    kinds: Kinds = KINDS
    documents: Any = None

    def now(self) -> datetime:
        """Return the one moment of these tests."""
        return NOW


class BenchContext(ListenContext):
    """A context that keeps what a host would count, and knows its model."""

    def __init__(
        self, model: Any, draft: Draft, agent_files: Path | None = None
    ) -> None:
        super().__init__(
            USER, cast("Services", Lender(model)), draft=draft, agent_files=agent_files
        )
        self.model = model
        self.refusals: list[str] = []

    def refused(self, reason: str) -> None:
        """Keep *reason*."""
        self.refusals.append(reason)


def context_over(
    bodies: Mapping[str, Body],
    respond: Respond | None = None,
    *,
    agent_files: Path | None = None,
) -> BenchContext:
    """Return a context over *bodies*; with *respond* a language model is configured."""
    return BenchContext(Model(respond), draft_of(bodies), agent_files)


def fact(
    text: str,
    fact_id: str = "f1",
    *,
    tags: Sequence[str] = ("food",),
    turn_id: str = "t1",
    **fields: Any,
) -> PendingFact:
    """Return a fact that was said now."""
    return PendingFact(
        fact=Fact(
            fact_id=fact_id, text=text, tags=tuple(tags), evidence=text, **fields
        ),
        turn_id=turn_id,
    )


def batch(*facts: PendingFact) -> FactBatch:
    """Return *facts* as one batch."""
    return FactBatch(USER, facts)


def shown(context: ListenContext, resource_id: str, path: str) -> list[str]:
    """Return the displays in one list of the draft."""
    value: Any = context.draft.documents[resource_id].body
    for step in path.split("."):
        value = value[step]
    return [entry["display"] if isinstance(entry, dict) else entry for entry in value]
