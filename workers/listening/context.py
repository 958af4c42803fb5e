"""The context of one run of a listener: the user's documents, models, settings and draft."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel

from tasklore.contracts.admission.limits import Payer
from tasklore.contracts.errors import UndeclaredAccess
from tasklore.contracts.identifiers import user_token
from tasklore.contracts.messages import Fact, Usage
from tasklore.runtime.models.llm import Spent
from tasklore.workers.context.documents import UserDocuments
from tasklore.workers.context.llm import TaskLlm
from tasklore.workers.context.services import Services
from tasklore.workers.context.user_memory import UserMemory

if TYPE_CHECKING:
    from tasklore.memory.documents.draft import Draft
    from tasklore.memory.documents.kinds import Kinds


class ListenContext:
    """The context that a listener may take as an argument; a new one for every run.

    Everything in it is of one user. What the handler wants changed it applies to `draft`; the host stores the draft and
    closes the facts in one step, or calls the handler again when the documents have moved meanwhile.
    """

    def __init__(
        self,
        user_id: str,
        services: Services,
        *,
        draft: "Draft | None" = None,
        settings: BaseModel | None = None,
        attempt: int = 1,
        deadline: datetime | None = None,
        agent_files: Path | None = None,
        count_refused: Callable[[str], None] = lambda _reason: None,
        known_facts: Sequence[Fact] = (),
        agent_id: str = "",
        tenant: str | None = None,
    ) -> None:
        self._user_id = user_id
        self._services = services
        self._draft = draft
        self._settings = settings
        self._attempt = attempt
        self._deadline = deadline
        self._agent_files = agent_files
        self._count_refused = count_refused
        self._known_facts = tuple(known_facts)
        self._waits_for: str | None = None
        user = user_token(user_id) if user_id else ""
        self._spent = Spent(payer=Payer(tenant=tenant or "", user=user, agent=agent_id))
        #: For what is found out once and serves several facts of this run, such as where in a document to look.
        self.finder_cache: dict[str, object] = {}

    @property
    def user_id(self) -> str:
        """Whose turn or facts these are."""
        return self._user_id

    @property
    def settings(self) -> BaseModel | None:
        """The agent's settings, None when it has none; a handler that takes its settings class gets them typed."""
        return self._settings

    @property
    def attempt(self) -> int:
        """Which run this is, 1 for the first."""
        return self._attempt

    @property
    def documents(self) -> UserDocuments:
        """The user's documents as they are stored, to be read."""
        return UserDocuments(
            self._user_id, self._services.documents, self.kinds, self.now()
        )

    @property
    def memory(self) -> UserMemory:
        """The user's memory, items and turns, to be searched and shown in a prompt."""
        return UserMemory(self.documents, self._services.episodes)

    @property
    def draft(self) -> "Draft":
        """The user's documents as they will be, to be edited by `apply`.

        Raises:
            UndeclaredAccess: the listener is one of turns, which edits nothing.
        """
        if self._draft is None:
            msg = 'only a listener of facts edits documents; declare @agent.listen("facts"), or return a Fact from here'
            raise UndeclaredAccess(msg)
        return self._draft

    @property
    def agent_files(self) -> Path | None:
        """The folder that the operator laid over the agents' own files, for `workers.agent_files`; None without one."""
        return self._agent_files

    @property
    def kinds(self) -> "Kinds":
        """Which documents there are, and where in them each sort of statement is kept."""
        return self._services.kinds

    @property
    def llm(self) -> TaskLlm | None:
        """The language models, None when none is configured: then the rules have to do."""
        model = self._services.llm
        return (
            TaskLlm(model, self._spent, self._deadline, self._services.now)
            if model.configured
            else None
        )

    @property
    def known_facts(self) -> tuple[Fact, ...]:
        """Facts that an earlier run learned from this turn before it waited for a model; they are published, once."""
        return self._known_facts

    @property
    def waits_for(self) -> str | None:
        """Why the turn waits for a model, None when it does not."""
        return self._waits_for

    def wait_for_model(self, reason: str) -> None:
        """Keep the turn pending until a model answers; *reason* is shown to people.

        The facts that the handler returns are published at once. When a model may be there the handler is called again,
        with these as `known_facts`; facts with other ids that it returns then are new.

        Raises:
            UndeclaredAccess: the listener is one of facts; it rules "needs_model".
        """
        if self._draft is not None:
            raise UndeclaredAccess(
                'only a listener of turns waits so; return a Ruling with "needs_model" from here'
            )
        self._waits_for = reason

    @property
    def usage(self) -> Usage:
        """Tokens and cost of this run's questions to language models so far."""
        return self._spent.usage.as_usage()

    def refused(self, reason: str) -> None:
        """Count a proposal that was refused before it became a plan; *reason* is a word of a short list.

        Refusals of the draft are counted without this.
        """
        self._count_refused(reason)

    def now(self) -> datetime:
        """Return the current time in UTC."""
        return self._services.now().astimezone(UTC)
