"""The kit that tests a listener without a system: its facts of a turn, or its edits for facts."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

from pydantic import BaseModel

from tasklore.contracts.errors import ConfigurationError, LlmError
from tasklore.contracts.messages import ChatTurn, Fact
from tasklore.memory.documents.draft import Draft
from tasklore.memory.documents.guard import LIMITS
from tasklore.workers.agent import Agent
from tasklore.workers.listening.context import ListenContext
from tasklore.workers.listening.declaration import Listener
from tasklore.workers.listening.rulings import closings_of
from tasklore.workers.listening.values import FactBatch, PendingFact, Ruling, TurnBatch
from tasklore.workers.testing.fakes import (
    Asked,
    KitServices,
    ScriptedLlm,
)
from tasklore.workers.testing.kit import NOW, turn_of

if TYPE_CHECKING:
    from tasklore.memory.documents.items import Body
    from tasklore.workers.context.services import Services


@dataclass(frozen=True)
class Heard:
    """The results of a listener: `facts` of a turn, or `rulings` on facts and `documents` after them."""

    facts: tuple[Fact, ...] = ()
    rulings: tuple[Ruling, ...] = ()
    documents: "Mapping[str, Body]" = field(default_factory=dict)
    draft: Draft | None = None
    asked: Sequence[Asked] = ()

    def ruling_on(self, number: int) -> Ruling:
        """Return the ruling on fact *number*, 0 for the first, in whatever order they were returned."""
        return next(
            ruling for ruling in self.rulings if ruling.fact_id == f"fact-{number + 1}"
        )


async def listen(
    agent: Agent,
    said: ChatTurn | str | Sequence[Fact | str],
    *,
    llm: Iterable[BaseModel | LlmError] = (),
    now: datetime = NOW,
    documents: "Mapping[str, Body] | None" = None,
    user_id: str = "user-1",
    settings: Mapping[str, Any] | None = None,
) -> Heard:
    """Return what the listener of *agent* makes of *said*: of a turn, or of facts in the order in which they came.

    Arguments are as in `AgentKit`; a text among facts is what one says, and they are called `fact-1` and on. What the
    host would not store is refused here too.

    Raises:
        ConfigurationError: *agent* has no such listener, or *settings* do not fit it.
        TaskloreError: the rulings do not fit the facts or the draft.
        Exception: whatever the listener raises.
    """
    agent = agent.configured(settings) if settings is not None else agent
    services = KitServices(ScriptedLlm(llm), now, bodies=documents or {})
    if isinstance(said, str | ChatTurn):
        turn = turn_of(1, said, now, user_id)
        context = ListenContext(
            user_id, cast("Services", services), settings=agent.settings
        )
        (*learned,) = await _listener(agent, "turns").learn(
            TurnBatch(user_id, (turn,)), context
        )
        return Heard(
            tuple(fact for one in learned for fact in one.facts),
            asked=services.llm.asked,
        )
    draft = Draft(await services.documents.of(user_id).snapshot(), LIMITS, now)
    context = ListenContext(
        user_id, cast("Services", services), draft=draft, settings=agent.settings
    )
    facts = [
        fact
        if isinstance(fact, Fact)
        else Fact(fact_id=f"fact-{number}", text=fact, evidence=fact)
        for number, fact in enumerate(said, start=1)
    ]
    pending = tuple(
        PendingFact(fact=fact, turn_id=f"turn-{number}")
        for number, fact in enumerate(facts, start=1)
    )
    batch = FactBatch(user_id, pending)
    listener = _listener(agent, "facts")
    rulings = await listener.rule(batch, context)
    closings_of(listener.label, batch, rulings, draft.applied)
    bodies = {name: document.body for name, document in draft.documents.items()}
    return Heard(
        rulings=rulings, documents=bodies, draft=draft, asked=services.llm.asked
    )


def _listener(agent: Agent, queue: str) -> Listener:
    if queue not in agent.listeners:
        msg = f"{agent.agent_id} does not listen to {queue!r}; decorate a function with @agent.listen({queue!r})"
        raise ConfigurationError(msg)
    return agent.listeners[queue]
