"""Stand-ins for what a host lends, for tests without servers."""

from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import BaseModel

from tasklore.contracts.errors import InvalidInput, LlmError
from tasklore.contracts.messages import ChatTurn, Progress
from tasklore.memory.documents.kinds import Kinds
from tasklore.memory.documents.plans import Document, Snapshot
from tasklore.runtime.models.answer_reader import T
from tasklore.runtime.models.llm import (
    Expense,
    LlmRole,
    LlmSettings,
    Reply,
    SentRequest,
    Spent,
    check_answer_model,
)
from tasklore.workers.testing.children import KitChildren
from tasklore.workers.testing.waits import KitWaits

if TYPE_CHECKING:
    from pathlib import Path as FilePath

    from tasklore.memory.documents.items import Body
    from tasklore.memory.documents.paths import Path
    from tasklore.memory.documents.storage.history import PlanRecord
    from tasklore.memory.episodes.store import SearchResult
    from tasklore.memory.ledger.runs import RunName
    from tasklore.memory.long_term.single_flight import SingleFlight
    from tasklore.memory.sessions.once import Computed
    from tasklore.workers.forgetting.erasure import UserStore
    from tasklore.workers.testing.documents import FakeDocumentStore
    from tasklore.workers.testing.inbox import FakeInbox
    from tasklore.workers.testing.projects import FakeProject
    from tasklore.workers.testing.sessions import FakeSessions
    from tasklore.workers.testing.stories import FakeSharedAnswers, FakeStories


@cache
def shipped_kinds() -> Kinds:
    """Return the kinds of documents that come with the house."""
    return Kinds.load()


class FakeDocuments:
    """Stands for `documents.storage.reader.DocumentReader`: each user has *bodies*, by resource id, and no history.

    `read` keeps the places that were noted as shown, by user id.
    """

    def __init__(
        self, bodies: "Mapping[str, Body] | None" = None, kinds: Kinds | None = None
    ) -> None:
        self.bodies = dict(bodies or {})
        self.kinds = kinds or shipped_kinds()
        self.read: dict[str, list[tuple[str, str]]] = {}

    def of(self, user_id: str) -> "FakeOwnDocuments":
        """Return a reader of the documents of *user_id*."""
        if not user_id:
            raise InvalidInput("documents belong to one user each; say whose")
        return FakeOwnDocuments(self, user_id)


class FakeOwnDocuments:
    """Stands for `tasklore.memory.documents.storage.reader.OwnDocuments`."""

    def __init__(self, documents: FakeDocuments, user_id: str) -> None:
        self._documents = documents
        self._user_id = user_id

    async def snapshot(self, resources: Sequence[str] | None = None) -> Snapshot:
        """Return the given bodies as revision 1, and templates of the other kinds as 0."""
        kinds = self._documents.kinds
        bodies = self._documents.bodies
        wanted = [*kinds.ids, *bodies] if resources is None else resources
        found: dict[str, Document] = {}
        for resource_id in dict.fromkeys(wanted):
            kind = kinds.get(resource_id)
            if resource_id in bodies:
                found[resource_id] = Document(
                    resource_id=resource_id, revision=1, body=bodies[resource_id]
                )
            elif kind is not None:
                found[resource_id] = Document(
                    resource_id=resource_id, revision=0, body=kind.template
                )
        return Snapshot(self._user_id, found)

    async def history(
        self,
        resource: str | None = None,  # noqa: ARG002 - as in the class it stands for
        limit: int = 100,  # noqa: ARG002
    ) -> "tuple[PlanRecord, ...]":
        """Return nothing."""
        return ()

    async def explain(
        self,
        resource: str,  # noqa: ARG002 - as above
        path: "Path | str",  # noqa: ARG002 - as above
    ) -> "tuple[PlanRecord, ...]":
        """Return nothing."""
        return ()

    async def note_reads(self, places: Iterable[tuple[str, str]], at: datetime) -> None:  # noqa: ARG002 - as above
        """Keep the shown places for the test."""
        self._documents.read.setdefault(self._user_id, []).extend(places)


@dataclass(frozen=True)
class Asked:
    """One question that a task put to a model."""

    role: str
    answer: type[BaseModel]
    system: str
    user: str


class ScriptedLlm:
    """A model that gives prepared answers in order and notes questions; an LlmError in the script is raised."""

    def __init__(self, script: Iterable[BaseModel | LlmError] = ()) -> None:
        self._script = deque(script)
        self.asked: list[Asked] = []
        self.configured = bool(self._script)
        self.has_room = True
        self.settings = LlmSettings()

    def role(self, name: str) -> LlmRole:  # noqa: ARG002 - one script answers for all
        """Return a model of that name: scripted."""
        return LlmRole(model="scripted", temperature=None)

    @asynccontextmanager
    async def request(
        self,
        role: str,  # noqa: ARG002
        model: str,  # noqa: ARG002
        spent: Spent | None = None,
        *,
        text: str = "",  # noqa: ARG002
    ) -> AsyncIterator[SentRequest]:
        """Account for a request of another client, such as a test model of pydantic-ai; nothing costs anything."""
        sent = SentRequest()
        yield sent
        if spent is not None:
            spent.add(Expense(sent.tokens.input, sent.tokens.output))

    def fallback(self, model: str, error: LlmError) -> str | None:  # noqa: ARG002
        """Return None: the script answers for all models."""
        return None

    def pause_s(
        self,
        attempt: int,  # noqa: ARG002 - as above
        error: LlmError,  # noqa: ARG002 - as above
        left_s: float | None,  # noqa: ARG002 - as above
    ) -> float | None:
        """Return None: a request that failed is not sent again."""
        return None

    async def ask(
        self,
        role: str,
        answer: type[T],
        *,
        system: str,
        user: str,
        deadline_s: float | None = None,  # noqa: ARG002 - the script never waits
        spent: Spent | None = None,
    ) -> Reply[T]:
        """Return the next answer of the script.

        Raises:
            AssertionError: the script is at its end, or its next answer is of another class than asked for.
        """
        check_answer_model(answer)
        self.asked.append(Asked(role, answer, system, user))
        if not self._script:
            msg = f"the task asks {role!r} for a {answer.__name__}, but the script has no answer left; add one to llm="
            raise AssertionError(msg)
        said = self._script.popleft()
        if spent is not None:
            spent.add(Expense())
        if isinstance(said, LlmError):
            raise said
        if not isinstance(said, answer):
            msg = f"the task asks {role!r} for a {answer.__name__}, but the script holds {said!r}"
            raise AssertionError(msg)  # noqa: TRY004 - the test is wrong, not a type at run time
        return Reply(
            said, usage=Expense(), model="scripted", attempts=1, duration_ms=0.0
        )


class KitEpisodes:
    """Stands for `tasklore.memory.episodes.store.Episodes`: ranks the turns of the conversation for any user."""

    def __init__(self, turns: Sequence[ChatTurn]) -> None:
        self._turns = turns

    async def search(
        self,
        owner: str,  # noqa: ARG002 - the kit knows one person
        query: str,
        *,
        limit: int = 20,
        since: date | None = None,
        until: date | None = None,
        speaker: str | None = None,
        conversation_id: str | None = None,
        asked: str | None = None,
    ) -> "SearchResult":
        """Return the best of the turns that meet the conditions."""
        from tasklore.memory.episodes.episode import Episode
        from tasklore.memory.episodes.ranking import rank
        from tasklore.memory.episodes.store import Hit, SearchResult

        turns = [
            turn
            for turn in self._turns
            if (since is None or turn.at.date() >= since)
            and (until is None or turn.at.date() <= until)
            and speaker in (None, turn.speaker)
            and conversation_id in (None, turn.conversation_id)
            and (
                asked is None
                or turn.text.strip().casefold() != asked.strip().casefold()
            )
        ]
        scores = rank(query, [turn.text for turn in turns])
        hits = [
            Hit(Episode.model_validate(turn, from_attributes=True), score, 1.0)
            for turn, score in zip(turns, scores, strict=True)
            if score > 0
        ]
        return SearchResult(
            tuple(sorted(hits, key=lambda hit: -hit.score)[:limit]), len(turns)
        )

    async def settle(
        self, owner: str, *, is_on: bool = True, days: int | None = None
    ) -> None:
        """Keep nothing of it: the kit keeps no turns."""


class KitJournal:
    """Stands for `tasklore.memory.ledger.journal.Journal`: heads and results of steps, by task and position."""

    def __init__(self) -> None:
        self._tasks: dict[str, dict[int, tuple[str, bytes]]] = {}

    async def heads(self, task_id: str) -> dict[int, str]:
        """Return the head of each step, by position."""
        return {
            position: head
            for position, (head, _) in self._tasks.get(task_id, {}).items()
        }

    async def result(self, task_id: str, position: int) -> bytes | None:
        """Return the JSON that the step at *position* returned."""
        return self._tasks[task_id][position][1]

    async def write(
        self,
        run: "RunName",
        position: int,
        head: str,
        result: bytes,
        dropped: Iterable[int] = (),
    ) -> None:
        """Store *result* at *position*, in place of what stands there, and remove the steps at *dropped*."""
        steps = self._tasks.setdefault(run.task_id, {})
        for at in dropped:
            steps.pop(at, None)
        steps[position] = head, result

    async def remove(self, task_ids: Iterable[str]) -> None:
        """Remove the journals of *task_ids*."""
        for task_id in task_ids:
            self._tasks.pop(task_id, None)


class Emitted(NamedTuple):
    """An event that a task emitted in run *attempt*: a text, whose *kind* is None, or a value."""

    event: Any
    kind: str | None = None
    attempt: int = 1


class KitOutput:
    """The output of one run in the kit."""

    def __init__(self, emitted: list[Emitted], attempt: int) -> None:
        self._emitted = emitted
        self._attempt = attempt

    async def emit(self, event: Any, kind: str | None = None) -> None:
        """Keep *event*."""
        is_text = isinstance(event, str) and kind is None
        self._emitted.append(
            Emitted(event, None if is_text else kind or "value", self._attempt)
        )

    async def close(self) -> None:
        """Do nothing: all is kept."""


@dataclass
class KitServices:
    """What the kit lends to contexts; it stands for `tasklore.workers.context.services.Services`."""

    llm: ScriptedLlm
    at: datetime
    turns: tuple[ChatTurn, ...] = ()
    progress: list[Progress] = field(default_factory=list)
    emitted: list[Emitted] = field(default_factory=list)
    documents: FakeDocuments = field(default_factory=FakeDocuments)
    #: Entries of sessions that were read, and not computed.
    session_hits: int = 0
    agent_files: "FilePath | None" = None
    #: How agents of a story share questions: `ten`, `grouped` or `one`.
    story_calls: str = "ten"
    children: KitChildren = field(default_factory=lambda: KitChildren({}))
    waits: KitWaits = field(default_factory=KitWaits)

    @cached_property
    def journal(self) -> KitJournal:
        """Return the journal of the steps of tasks."""
        return KitJournal()

    @property
    def kinds(self) -> Kinds:
        """Return the kinds that its documents have."""
        return self.documents.kinds

    @property
    def episodes(self) -> KitEpisodes:
        """Return the turns of the conversation, to be searched."""
        return KitEpisodes(self.turns)

    @property
    def words(self) -> "Sequence[UserStore]":
        """Return where words lie: nowhere but in the kit."""
        return ()

    @cached_property
    def edits(self) -> "FakeDocumentStore":
        """Return a store without any edit to undo; a test adds its own."""
        from tasklore.workers.testing.documents import FakeDocumentStore

        return FakeDocumentStore(self.kinds)

    @cached_property
    def sessions(self) -> "FakeSessions":
        """Return the sessions that tasks work on; what stands for a store is loaded when one does."""
        from tasklore.workers.testing.sessions import FakeSessions

        return FakeSessions()

    @cached_property
    def session_flights(self) -> "SingleFlight[Computed]":
        """Return what lets one of many compute an entry."""
        from tasklore.workers.testing.sessions import FakeSingleFlight

        return FakeSingleFlight()

    @cached_property
    def projects(self) -> "FakeProject":
        """Return what projects remember."""
        from tasklore.workers.testing.projects import FakeProject

        return FakeProject()

    @cached_property
    def stories(self) -> "FakeStories":
        """Return the stories."""
        from tasklore.workers.testing.stories import FakeStories

        return FakeStories()

    @cached_property
    def story_answers(self) -> "FakeSharedAnswers":
        """Return what questions that agents of a story share were answered."""
        from tasklore.workers.testing.stories import FakeSharedAnswers

        return FakeSharedAnswers(self.story_calls)

    @cached_property
    def inbox(self) -> "FakeInbox":
        """Return conversations, which begin with the prepared turns, and the observations of agents."""
        from tasklore.workers.testing.inbox import FakeInbox

        inbox = FakeInbox()
        for turn in self.turns:
            inbox.turn(turn)
        return inbox

    def count_session_hits(self, number: int) -> None:
        """Count them."""
        self.session_hits += number

    def now(self) -> datetime:
        """Return the time that was set."""
        return self.at

    def open_output(
        self,
        supervisor_id: str,  # noqa: ARG002 - no subject here
        task_id: str,  # noqa: ARG002 - no subject here
        generation: int,  # noqa: ARG002 - no subject here
        attempt: int,
        *,
        has_waited: bool,  # noqa: ARG002 - nobody resumes here
        before: int,  # noqa: ARG002 - nobody resumes here
    ) -> "KitOutput":
        """Return the output of a run, whose events are kept for the test to look at."""
        return KitOutput(self.emitted, attempt)

    async def publish_progress(self, supervisor_id: str, progress: Progress) -> None:  # noqa: ARG002 - no subject here
        """Keep *progress* for the test to look at."""
        self.progress.append(progress)

    async def recent_turns(
        self, conversation_id: str, count: int
    ) -> Sequence[ChatTurn]:
        """Return the last *count* prepared turns of *conversation_id*."""
        return [turn for turn in self.turns if turn.conversation_id == conversation_id][
            -count:
        ]
