"""What a host lends to tasks, for tests: its stores on a server of the kit, and stand-ins for all else."""

from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import BaseModel

from tasklore.contracts.errors import LlmError
from tasklore.contracts.messages import ChatTurn, Progress
from tasklore.memory.documents.kinds import Kinds
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
from tasklore.runtime.models.prices import Tokens
from tasklore.runtime.models.usage import spell_question, watched
from tasklore.workers.testing.children import KitChildren
from tasklore.workers.testing.stores import PATIENCE_S, OnServer
from tasklore.workers.testing.waits import KitWaits

if TYPE_CHECKING:
    from pathlib import Path as FilePath

    from tasklore.memory.conversations.conversation import Conversations
    from tasklore.memory.conversations.inbox import Inbox
    from tasklore.memory.documents.items import Body
    from tasklore.memory.documents.storage.store import DocumentStore
    from tasklore.memory.episodes.episode import Episode
    from tasklore.memory.episodes.store import EpisodePeriod, SearchResult
    from tasklore.memory.ledger.runs import RunName
    from tasklore.memory.long_term.single_flight import SingleFlight
    from tasklore.memory.long_term.store import LongTermMemory
    from tasklore.memory.projects.project import ProjectMemory
    from tasklore.memory.sessions.once import Computed
    from tasklore.memory.sessions.session import SessionCache
    from tasklore.memory.stories.shared_answers import SharedAnswers
    from tasklore.memory.stories.store import StoryStore
    from tasklore.runtime.servers.valkey import Valkey
    from tasklore.workers.context.recorder import Recording
    from tasklore.workers.forgetting.erasure import UserStore
    from tasklore.workers.forgetting.hidden_memory import HiddenMemory
    from tasklore.workers.testing.server import KitDatabase


@cache
def shipped_kinds() -> Kinds:
    """Return the kinds of documents that come with the house."""
    return Kinds.load()


@dataclass(frozen=True)
class Asked:
    """One question that a task put to a model."""

    role: str
    answer: type[BaseModel]
    system: str
    user: str


class ScriptedLlm:
    """A model that gives prepared answers in order and notes questions; an LlmError in the script is raised.

    Of questions that are under way at once each gets the next answer of its class, whichever is asked first.
    """

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
        role: str,
        model: str,
        spent: Spent | None = None,
        *,
        text: str = "",
        prompt: Callable[[], str] | None = None,
    ) -> AsyncIterator[SentRequest]:
        """Account for a request of another client, such as a test model of pydantic-ai; nothing costs anything."""
        sent = SentRequest()
        shown = (lambda: text) if prompt is None else prompt
        spent = spent or Spent()
        with watched(spent, sent, role, model, prompt=shown):
            yield sent
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
        said = self._next(answer)
        spent = spent or Spent()
        spent.note_prompt(role, "scripted", lambda: spell_question(system, user))
        spent.add(Expense())
        if isinstance(said, LlmError):
            spent.note_failure("scripted", said)
            raise said
        spent.note_answer("scripted", said.model_dump_json(), Tokens())
        if not isinstance(said, answer):
            msg = f"the task asks {role!r} for a {answer.__name__}, but the script holds {said!r}"
            raise AssertionError(msg)  # noqa: TRY004 - the test is wrong, not a type at run time
        return Reply(
            said, usage=Expense(), model="scripted", attempts=1, duration_ms=0.0
        )

    def _next(self, answer: type[BaseModel]) -> BaseModel | LlmError:
        """Take the first answer of that class, or the first error; without one the first of all."""
        fitting = (
            number
            for number, said in enumerate(self._script)
            if isinstance(said, answer | LlmError)
        )
        number = next(fitting, 0)
        said = self._script[number]
        del self._script[number]
        return said


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
        period: "EpisodePeriod | None" = None,
    ) -> "SearchResult":
        """Return the best of the turns that meet the conditions, those of *period* raised."""
        from tasklore.memory.episodes.episode import Episode
        from tasklore.memory.episodes.ranking import rank
        from tasklore.memory.episodes.store import RAISE, Hit, SearchResult

        said = [
            Episode.model_validate(turn, from_attributes=True) for turn in self._turns
        ]
        turns = [
            turn
            for turn in said
            if (since is None or turn.at.date() >= since)
            and (until is None or turn.at.date() <= until)
            and speaker in (None, turn.speaker)
            and conversation_id in (None, turn.conversation_id)
            and (
                asked is None
                or turn.text.strip().casefold() != asked.strip().casefold()
            )
            and not turn.is_asking
        ]
        scores = rank(query, [turn.text for turn in turns])
        raised = RAISE * (max(scores, default=0.0) or 1.0)
        for number, turn in enumerate(turns):
            if period is not None and period.first <= turn.at.date() <= period.last:
                scores[number] += raised
        hits = [
            Hit(turn, score, 1.0)
            for turn, score in zip(turns, scores, strict=True)
            if score > 0
        ]
        return SearchResult(
            tuple(sorted(hits, key=lambda hit: -hit.score)[:limit]), len(turns)
        )

    async def recent(self, owner: str, count: int) -> "tuple[Episode, ...]":  # noqa: ARG002 - the kit knows one person
        """Return the last *count* turns, oldest first."""
        from tasklore.memory.episodes.episode import Episode

        return tuple(
            Episode.model_validate(turn, from_attributes=True)
            for turn in self._turns[-count:]
        )

    async def settle(
        self, owner: str, *, is_on: bool = True, days: int | None = None
    ) -> None:
        """Keep nothing of it: the kit keeps no turns."""

    async def append(self, owner: str, episodes: "Sequence[Episode]") -> int:  # noqa: ARG002 - as above
        """Keep nothing of them, and return that none was new."""
        return 0

    async def count(self, owner: str) -> int:  # noqa: ARG002 - the kit knows one person
        """Return how many turns there are."""
        return len(self._turns)

    async def first(self, owner: str) -> "Episode | None":  # noqa: ARG002 - the kit knows one person
        """Return the oldest turn."""
        from tasklore.memory.episodes.episode import Episode

        return next(
            (Episode.model_validate(one, from_attributes=True) for one in self._turns),
            None,
        )


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
    """What the kit lends to contexts; it stands for `tasklore.workers.context.services.Services`.

    Its stores are those of a worker, on a database of the kit's own (`workers.testing.server`).
    """

    llm: ScriptedLlm
    at: datetime
    turns: tuple[ChatTurn, ...] = ()
    progress: list[Progress] = field(default_factory=list)
    emitted: list[Emitted] = field(default_factory=list)
    #: What documents each user begins with, bodies by resource id.
    bodies: "Mapping[str, Body]" = field(default_factory=dict)
    #: Entries of sessions that were read, and not computed.
    session_hits: int = 0
    agent_files: "FilePath | None" = None
    forgets_in_chat: bool = True
    #: How agents of a story share questions: `ten`, `grouped` or `one`.
    story_calls: str = "ten"
    #: How messages of runs are kept; None: none are.
    recording: "Recording | None" = None
    children: KitChildren = field(default_factory=lambda: KitChildren({}))
    waits: KitWaits = field(default_factory=KitWaits)
    _owners: set[str] = field(default_factory=set, init=False)

    @cached_property
    def database(self) -> "KitDatabase":
        """Return the kit's database; the first one starts the server."""
        from tasklore.workers.testing.server import KitDatabase

        return KitDatabase()

    @property
    def redis(self) -> "Valkey":
        """Return a client of the kit's database for the running event loop."""
        return self.database.client()

    @cached_property
    def journal(self) -> KitJournal:
        """Return the journal of the steps of tasks."""
        return KitJournal()

    @property
    def kinds(self) -> Kinds:
        """Return the kinds that its documents have."""
        return shipped_kinds()

    @property
    def episodes(self) -> KitEpisodes:
        """Return the turns of the conversation, to be searched."""
        return KitEpisodes(self.turns)

    @property
    def words(self) -> "Sequence[UserStore]":
        """Return where words of users lie."""
        from tasklore.workers.forgetting.stores import stores_in_redis

        return stores_in_redis(self.redis, self.documents, deadline_s=PATIENCE_S)

    @property
    def hiding(self) -> "HiddenMemory":
        """Return what hides the memory of users."""
        from tasklore.workers.forgetting.hidden_memory import HiddenMemory

        return HiddenMemory(
            redis=self.redis,
            kinds=self.kinds,
            episodes=self.episodes,
            deadline_s=PATIENCE_S,
        )

    @OnServer
    def documents(self) -> "DocumentStore":
        """Return the documents of users, which begin as `bodies` says."""
        from tasklore.workers.testing.documents import GivenDocuments

        return GivenDocuments(
            self.redis,
            self.kinds,
            bodies=self.bodies,
            known=self._owners,
            deadline_s=PATIENCE_S,
        )

    @property
    def edits(self) -> "DocumentStore":
        """Return the documents, to be changed."""
        return self.documents

    @OnServer
    def long_term(self) -> "LongTermMemory":
        """Return the answers that are remembered."""
        from tasklore.memory.long_term.store import LongTermMemory

        return LongTermMemory(self.redis, budget_s=PATIENCE_S)

    @OnServer
    def sessions(self) -> "SessionCache":
        """Return the sessions that tasks work on."""
        from tasklore.memory.sessions.session import SessionCache

        return SessionCache(self.redis, deadline_s=PATIENCE_S)

    @OnServer
    def session_flights(self) -> "SingleFlight[Computed]":
        """Return what lets one of many compute an entry."""
        from tasklore.workers.testing.flights import KitFlights

        return KitFlights()

    @OnServer
    def projects(self) -> "ProjectMemory":
        """Return what projects remember."""
        from tasklore.memory.projects.project import ProjectMemory

        return ProjectMemory(self.redis, deadline_s=PATIENCE_S)

    @OnServer
    def stories(self) -> "StoryStore":
        """Return the stories."""
        from tasklore.memory.stories.store import StoryStore

        return StoryStore(self.redis, deadline_s=PATIENCE_S)

    @OnServer
    def story_answers(self) -> "SharedAnswers":
        """Return what questions that agents of a story share were answered."""
        from tasklore.memory.stories.shared_answers import SharedAnswers
        from tasklore.workers.testing.flights import KitFlights

        return SharedAnswers(
            self.redis, KitFlights(), self.story_calls, deadline_s=PATIENCE_S
        )

    @OnServer
    def conversations(self) -> "Conversations":
        """Return conversations as a supervisor keeps them."""
        from tasklore.memory.conversations.conversation import Conversations

        return Conversations(self.redis, deadline_s=PATIENCE_S)

    @OnServer
    def inbox(self) -> "Inbox":
        """Return conversations as agents hear them, and the observations of agents."""
        from tasklore.memory.conversations.inbox import Inbox

        return Inbox(self.redis, PATIENCE_S)

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
