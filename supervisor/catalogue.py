"""The catalogue: an immutable map from agent id to card, learned by message, never by import."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tasklore.contracts.messages import AgentCard, TaskCard

#: Tasks named one by one before "and 3 more": a person reads a sentence, not a list.
_NAMED = 12
#: Characters of a sentence that says what a task does, and words that it does not begin with.
_LONGEST_ACTION = 100
_NO_VERBS = frozenset(
    {"a", "an", "the", "this", "that", "my", "your", "our", "no", "all"}
)
#: Characters of a description in that sentence.
_LONGEST_DESCRIPTION = 200


@dataclass(frozen=True, slots=True)
class Offer:
    """One task of one agent, as it can be asked for."""

    agent: AgentCard
    task: TaskCard

    @property
    def label(self) -> str:
        """The task's name in words: `analyze_budget` is "analyze budget"."""
        return self.task.name.replace("_", " ").replace("-", " ")

    @property
    def action(self) -> str:
        """What the task does, as it stands behind "I can": "reserve a table"; "" where its description does not say it.

        That is the first sentence of a short description which begins with a verb, as those of functions do.
        """
        first = _first_sentence(self.task.description)
        verb = first.partition(" ")[0].lower()
        is_verb = verb.isalpha() and verb not in _NO_VERBS and verb[-1:] != "s"
        is_short = " " in first and len(first) <= _LONGEST_ACTION
        return f"{first[:1].lower()}{first[1:]}" if is_verb and is_short else ""


class Catalogue:
    """The tasks of all agents; a change returns a new catalogue, so that readers keep a consistent view.

    `part` is "" for all of them; else it is a part of the catalogue `whole`, made by `narrow`: what was chosen there.
    """

    __slots__ = ("_cards", "_narrowed", "_offers", "part", "whole")

    _offers: tuple[Offer, ...] | None

    def __init__(
        self,
        cards: Iterable[AgentCard] = (),
        part: str = "",
        whole: "Catalogue | None" = None,
    ) -> None:
        known: dict[str, AgentCard] = {}
        for card in cards:
            held = known.get(card.agent_id)
            if held is None or card.version >= held.version:
                known[card.agent_id] = card
        self._cards: Mapping[str, AgentCard] = MappingProxyType(
            dict(sorted(known.items()))
        )
        # Made when they are first asked for: a thousand cards that arrive one by one are a thousand catalogues.
        self._offers = None
        self._narrowed: dict[str, Catalogue] = {}
        self.part = part
        self.whole = whole or self

    @property
    def cards(self) -> Mapping[str, AgentCard]:
        """Every card by agent id, sorted by id."""
        return self._cards

    def with_card(self, card: AgentCard) -> "Catalogue":
        """Return this catalogue with *card*; a card of a lower version than the one held changes nothing."""
        held = self._cards.get(card.agent_id)
        if held is not None and (card.version < held.version or card == held):
            return self
        return Catalogue([*self._cards.values(), card])

    def without(self, agent_id: str) -> "Catalogue":
        """Return this catalogue without *agent_id*, known or not."""
        if agent_id not in self._cards:
            return self
        return Catalogue(
            card for card in self._cards.values() if card.agent_id != agent_id
        )

    def find(self, agent_id: str, task_name: str) -> Offer | None:
        """Return the task *task_name* of *agent_id*, or None."""
        card = self._cards.get(agent_id)
        return (
            next(
                (Offer(card, task) for task in card.tasks if task.name == task_name),
                None,
            )
            if card
            else None
        )

    def card_of(self, agent_id: str, task_name: str) -> TaskCard | None:
        """Return the card of one task, or None."""
        offer = self.find(agent_id, task_name)
        return offer.task if offer is not None else None

    def tasks(self) -> tuple[Offer, ...]:
        """Return every task that may be asked for in words, sorted by agent id, then as its agent lists them."""
        if self._offers is None:
            self._offers = tuple(
                Offer(card, task)
                for card in self._cards.values()
                for task in card.tasks
                if task.in_words
            )
        return self._offers

    def narrow(self, agent_id: str, task_name: str | None = None) -> "Catalogue | None":
        """Return the part with the tasks of one agent, or one of them; None where none may be asked for in words.

        The same part is the same catalogue while this one is, so that it is learned once.
        """
        card = self._cards.get(agent_id)
        tasks = tuple(
            task
            for task in (card.tasks if card is not None else ())
            if task.in_words and task_name in (None, task.name)
        )
        if card is None or not tasks:
            return None
        part = agent_id if task_name is None else f"{agent_id}/{task_name}"
        if part not in self._narrowed:
            narrow = card.model_copy(update={"tasks": tasks})
            self._narrowed[part] = Catalogue([narrow], part, self)
        return self._narrowed[part]

    def abilities(self) -> str:
        """Return the tasks in a sentence or two for a person."""
        offers = self.tasks()
        if not offers and any(card.tasks for card in self._cards.values()):
            return "No agent at work takes questions in words; start one that does with `tasklore worker`."
        if not offers:
            return "No agent has reported yet, so I cannot do anything; start one with `tasklore worker`."
        said = [_ability(offer) for offer in offers[:_NAMED]]
        more = len(offers) - len(said)
        if more:
            said.append(f"{more} more")
        return f"I can: {'; '.join(said)}."


def _ability(offer: Offer) -> str:
    """Return what the task does, or the first sentence of its description with its name, or its name alone."""
    if offer.action:
        return offer.action
    first = _first_sentence(offer.task.description)
    first = (
        first
        if len(first) <= _LONGEST_DESCRIPTION
        else f"{first[:_LONGEST_DESCRIPTION]}..."
    )
    return f"{first[0].lower()}{first[1:]} ({offer.label})" if first else offer.label


def _first_sentence(description: str) -> str:
    paragraph = " ".join(description.strip().partition("\n\n")[0].split())
    return paragraph.partition(". ")[0].rstrip(".")
