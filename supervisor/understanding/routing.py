"""Which task an utterance asks for."""

from dataclasses import dataclass

from supervisor.catalogue import Catalogue, Offer
from supervisor.understanding.schema import TaskSchema
from supervisor.understanding.utterance import Utterance


@dataclass(frozen=True, slots=True)
class Task:
    """One task ready to be chosen and filled."""

    offer: Offer
    schema: TaskSchema


@dataclass(frozen=True, slots=True)
class Choice:
    """*task* and the evidence for it; *rivals* are nearly as likely."""

    task: Task
    score: float
    rivals: tuple[Task, ...] = ()


class Router:
    """The tasks of one catalogue; *catalogue* is without the cards that cannot be read."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue
        self.tasks: tuple[Task, ...] = ()

    def find(self, agent_id: str, task_name: str) -> Task | None:
        """Return the task, or None when the catalogue has no such."""
        raise NotImplementedError

    def rank(self, utterance: Utterance, most: int) -> list[Task]:
        """Return the *most* likely tasks for *utterance*, likeliest first, with or without evidence (for a model)."""
        raise NotImplementedError

    def choose(self, utterance: Utterance) -> Choice | None:
        """Return the likeliest task with its rivals, or None when nothing fits."""
        raise NotImplementedError
