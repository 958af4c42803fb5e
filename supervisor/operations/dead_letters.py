"""Dead letters: which tasks were given up and why, another try for them, and their end."""

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from pydantic import Field, JsonValue

from tasklore.contracts.callers import Caller
from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.identifiers import NAME_PATTERN, Name
from tasklore.contracts.messages import ErrorNote, Usage
from tasklore.supervisor.dead_letters.letters import Letter, LetterSelection
from tasklore.supervisor.dead_letters.queue import (
    MOST_NAMED,
    MOST_OF_TASK,
    Choice,
    DeadLetters,
    LetterOutcome,
    LetterPosition,
)
from tasklore.supervisor.dead_letters.redrive import Renewal
from tasklore.supervisor.dead_letters.summaries import (
    LetterCounts,
    LetterGroup,
    LetterSummary,
    summary_of,
)
from tasklore.supervisor.operations.dependencies import OperatorDependencies
from tasklore.supervisor.operations.forms import Form, Seconds, View, When, moment_of
from tasklore.supervisor.operations.kept_json import read_kept
from tasklore.supervisor.operations.noun import NounDeclaration, serve
from tasklore.supervisor.operations.refusals import Fault, not_found, unusable
from tasklore.supervisor.operations.table import Shows, operation

#: Seconds that one call works on letters before it answers where the next one goes on: clients wait for a minute.
TURN_S = 20.0
#: Characters of a traceback that are shown, its end.
_TRACEBACK = 20_000
#: The longest span that is told, in milliseconds: a thousand years.
_LONGEST_MS = 31_557_600_000_000

#: How a place among the letters is spelled: a sequence, "" for none.
_NUMBER = r"^[0-9]{0,18}$"
_WHICH = (
    "say which: sequences, or conditions (agent, task, error, reason, tenant, user, since, until), or everything; "
    "one of the three"
)


@dataclass(frozen=True, kw_only=True)
class DeadLetterServices:
    """What the operations of dead letters work with; one call works for `turn_s` seconds."""

    letters: DeadLetters
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    turn_s: float = TURN_S


class LetterFilter(Form):
    """Conditions that a letter fits; without any, each does."""

    agent: Annotated[Name | None, Field(description="Only of this agent.")] = None
    task: Annotated[
        str | None, Field(max_length=256, description="Only of this task.")
    ] = None
    reason: Annotated[
        str | None,
        Field(
            max_length=64,
            description=(
                "Only these: attempts, code_error, gave_up, crashes, deadline, unreadable, unproven or foreign."
            ),
        ),
    ] = None
    error: Annotated[
        str | None, Field(max_length=256, description="Only of this class of error.")
    ] = None
    tenant: Annotated[
        str | None,
        Field(min_length=1, max_length=200, description="Only of this tenant."),
    ] = None
    user: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=256,
            description="Only of this user, as named in the task.",
        ),
    ] = None
    since: Annotated[
        When | None,
        Field(description="Only dead letters created since then: 2h ago, or a time."),
    ] = None
    until: Annotated[
        When | None, Field(description="Only dead letters created before then.")
    ] = None

    def selection_for(self, caller: Caller, now: datetime) -> LetterSelection:
        """Return the letters that *caller* may see of those that fit.

        Raises:
            NotPermitted: its key is for another user or tenant.
        """
        return LetterSelection(
            agent_id=self.agent,
            task_name=self.task,
            reason=self.reason,
            error_type=self.error,
            tenant=caller.for_tenant(self.tenant).tenant,
            user_id=caller.demand_user(self.user),
            since=moment_of(self.since, now),
            until=moment_of(self.until, now),
        )


class LetterQuery(LetterFilter):
    """A page of letters."""

    oldest: Annotated[bool, Field(description="The oldest first.")] = False
    after: Annotated[
        str,
        Field(
            pattern=_NUMBER,
            description="Pagination cursor: the `after` of the previous page.",
        ),
    ] = ""
    limit: Annotated[int, Field(ge=1, le=200, description="Maximum number.")] = 50


class LetterRest(LetterFilter):
    """Letters that one call may be too short for: where it answers with an `after`, that and `bound` go on."""

    bound: Annotated[
        str,
        Field(
            pattern=_NUMBER,
            description="The `bound` of the previous call; newer dead letters are "
            "excluded.",
        ),
    ] = ""
    after: Annotated[
        str,
        Field(
            pattern=_NUMBER,
            description="Pagination cursor: the `after` of the previous call.",
        ),
    ] = ""


class LetterChoice(LetterRest):
    """Letters that something is done to: named ones, those that fit conditions, or every one.

    A dry run answers with a `bound`: with that, no letter is touched that it did not count. One call works for some
    20 s.
    """

    sequences: Annotated[
        tuple[Annotated[int, Field(ge=1)], ...],
        Field(max_length=MOST_NAMED, description="Dead letters by their numbers."),
    ] = ()
    everything: Annotated[
        bool,
        Field(
            description="All of them.", json_schema_extra={"x-cli": {"option": "--all"}}
        ),
    ] = False
    dry_run: Annotated[bool, Field(description="Only show what would be done.")] = False

    @property
    def has_condition(self) -> bool:
        """Whether it names any condition."""
        return any(
            getattr(self, name) is not None for name in LetterFilter.model_fields
        )


class LettersToRedrive(LetterChoice):
    """Letters to send again, and until when their tasks have time."""

    new_deadline: Annotated[
        Seconds | None,
        Field(gt=0, description="New deadline, counted from now: 90s, 15m, 2h."),
    ] = None
    no_deadline: Annotated[
        bool, Field(description="Drop the deadline that their sender had set.")
    ] = False
    force: Annotated[
        bool,
        Field(
            description=(
                "Include those whose task was completed or cancelled since, and those "
                "that contain no readable task."
            )
        ),
    ] = False


class LetterView(View):
    """A letter without its content. `tenant` and `user` are those that its task was assigned with."""

    sequence: int
    stored_at: datetime
    agent_id: str | None
    task: str | None
    task_id: str | None
    reason: str
    error: ErrorNote
    attempts: int
    generation: int
    tenant: str | None
    user: str | None
    created_at: datetime | None
    died_at: datetime
    queued_ms: int | None
    run_ms: int | None
    usage: Usage
    supervisor_id: str | None
    worker_id: str | None
    trace_id: str | None
    subject: str


class LetterDetails(LetterView):
    """A letter whole. `frames` are lines of the author's own code, the innermost first.

    `why_kept` says why it would not be sent again, None where it would. `payload` is the task that it carried, text
    where that is no JSON; `is_whole` says whether the letter has all of its `body_bytes`. `others` are the numbers of
    other letters of this task, where it was asked for by its task.
    """

    frames: tuple[str, ...]
    place: str | None
    traceback: str | None
    headers: dict[str, str]
    body_bytes: int
    is_whole: bool
    why_kept: str | None
    payload: JsonValue
    others: tuple[int, ...] = ()


class LetterPageView(View):
    """A page of letters; `after` is what to ask for the next one with, None at the end. It may be short, or empty.

    `total` is how many fit in all, None where only reading every one could tell.
    """

    letters: tuple[LetterView, ...]
    after: str | None
    total: int | None


class LetterGroupView(View):
    """The letters of one agent and one class of error, with the newest as an example."""

    agent_id: str | None
    error_type: str
    count: int
    oldest: datetime
    newest: datetime
    example: LetterView


class LetterGroups(View):
    """How many letters there are of each agent and error, the most first; `others` are those of further errors.

    `after` and `bound` are what to ask with for those that were not counted, `after` None where all were.
    """

    groups: tuple[LetterGroupView, ...]
    others: int
    total: int
    bound: str
    after: str | None


class StayedLetter(View):
    """A letter that stays where it is, and why."""

    sequence: int
    why: str


class LetterWork(View):
    """How many letters something concerns, or would where it is a `dry_run`: of which agents and errors.

    `bound` and `after` are what to ask with for the rest, `after` None where all is done.
    """

    dry_run: bool
    concerns: int
    groups: tuple[LetterGroupView, ...]
    bound: str
    after: str | None


class LettersPurged(LetterWork):
    """How many letters were deleted; without `groups` where that was done."""


class LettersRedriven(LetterWork):
    """How many letters were sent again.

    `kept` stay, the first of `kept_in_all`; `stopped` says why others were not tried.
    """

    kept: tuple[StayedLetter, ...]
    kept_in_all: int
    stopped: str | None


@operation(
    "dead-letters",
    "list",
    "GET /v1/dead-letters",
    roles=("operate",),
    mounted="operations",
    shows=Shows(
        rows="letters",
        columns=(
            "sequence",
            "stored_at",
            "agent_id",
            "task",
            "reason",
            "attempts",
            "generation",
            "error.type",
            "error.message",
        ),
        example="dead-letters list --agent BudgetTrackerAgent --since 2h",
    ),
)
async def list_dead_letters(
    services: DeadLetterServices, caller: Caller, asked: LetterQuery
) -> LetterPageView:
    """List the tasks that failed for good (dead letters), the newest first."""
    selection = asked.selection_for(caller, services.now())
    place = int(asked.after) if asked.after else None
    page = await services.letters.page(
        selection,
        asked.limit,
        before=None if asked.oldest else place,
        after=place if asked.oldest else None,
        oldest_first=asked.oldest,
    )
    return LetterPageView(
        letters=tuple(map(_view_summary, page.letters)),
        after=None if page.goes_on_at is None else str(page.goes_on_at),
        total=page.total,
    )


@operation(
    "dead-letters",
    "groups",
    "GET /v1/dead-letters/groups",
    roles=("operate",),
    mounted="operations",
    waits=True,
    shows=Shows(
        rows="groups",
        columns=(
            "agent_id",
            "error_type",
            "count",
            "oldest",
            "newest",
            "example.sequence",
            "example.error.message",
        ),
        example="dead-letters groups --since 1d",
    ),
)
async def group_dead_letters(
    services: DeadLetterServices, caller: Caller, asked: LetterRest
) -> LetterGroups:
    """Count the dead letters by agent and error, the most frequent first."""
    selection = asked.selection_for(caller, services.now())
    turn = await _Turn.begin(services, selection, asked.bound, asked.after)
    counts = await turn.count()
    return LetterGroups(
        groups=_view_groups(counts),
        others=counts.others,
        total=counts.total,
        bound=turn.bound,
        after=turn.after,
    )


@operation(
    "dead-letters",
    "show",
    "GET /v1/dead-letters/{letter}",
    roles=("operate",),
    mounted="operations",
    problems=(404,),
    shows=Shows(picture="dead_letter", example="dead-letters show 7"),
)
async def show_dead_letter(
    services: DeadLetterServices,
    caller: Caller,
    letter: Annotated[
        str,
        Field(
            pattern=NAME_PATTERN,
            description="A dead letter by its number, or the newest one of a task by "
            "the id of the task.",
        ),
    ],
) -> LetterDetails:
    """Show why and where a task failed, its cost and its content, and why it would not be sent again."""
    found = [
        one for one in await _find(services.letters, letter) if _may_see(caller, one)
    ]
    if not found:
        raise not_found(
            f"there is no dead letter {letter!r}, nor one of such a task; GET /v1/dead-letters lists them"
        )
    return _view_letter(
        found[0],
        why_kept=await services.letters.why_kept(found[0]),
        others=[one.sequence for one in found[1:]],
    )


@operation(
    "dead-letters",
    "redrive",
    "POST /v1/dead-letters/redrive",
    roles=("operate",),
    mounted="operations",
    waits=True,
    shows=Shows(
        arguments=("sequences",),
        confirm="Dead letters to send again: {concerns}. Continue?",
        picture="dead_letters_sent",
        example="dead-letters redrive --agent BudgetTrackerAgent\ndead-letters redrive 7 8",
    ),
)
async def redrive_dead_letters(
    services: DeadLetterServices, caller: Caller, wanted: LettersToRedrive
) -> LettersRedriven:
    """Send dead letters again, as new generations of the same tasks.

    Each is deleted once its task is queued; repeating an interrupted redrive runs
    nothing twice. A dead letter is kept if its deadline has passed (unless you set a
    new one), if its task has completed or was cancelled since, if it contains no
    readable task, or if its agent was retired.
    """
    if wanted.new_deadline is not None and wanted.no_deadline:
        raise unusable(
            [
                Fault(
                    where="no_deadline",
                    message="contradicts new_deadline; leave one out",
                )
            ]
        )
    span = wanted.new_deadline
    renewal = Renewal(
        None if span is None else timedelta(seconds=span), wanted.no_deadline
    )
    choice = await _choose(services, caller, wanted)
    turn = await _Turn.begin(services, choice, wanted.bound, wanted.after)
    outcome = await turn.redrive(
        renewal, is_trial=wanted.dry_run, is_forced=wanted.force
    )
    return LettersRedriven(
        dry_run=wanted.dry_run,
        concerns=outcome.redriven,
        groups=_view_groups(outcome.sent),
        bound=turn.bound,
        after=turn.after,
        kept=tuple(
            StayedLetter(sequence=one.sequence, why=one.why) for one in outcome.kept
        ),
        kept_in_all=outcome.kept_in_all,
        stopped=outcome.stopped,
    )


@operation(
    "dead-letters",
    "purge",
    "POST /v1/dead-letters/purge",
    roles=("operate",),
    mounted="operations",
    waits=True,
    shows=Shows(
        arguments=("sequences",),
        confirm="Dead letters to delete: {concerns}. Continue?",
        picture="dead_letters_sent",
        example="dead-letters purge --reason unreadable --since 7d\ndead-letters purge 7",
    ),
)
async def purge_dead_letters(
    services: DeadLetterServices, caller: Caller, wanted: LetterChoice
) -> LettersPurged:
    """Delete dead letters permanently, also from the server's files.

    Overwriting takes about 5 ms for each; deleting everything drops the files at once.
    """
    choice = await _choose(services, caller, wanted)
    turn = await _Turn.begin(services, choice, wanted.bound, wanted.after)
    if wanted.dry_run:
        counts = await turn.count()
        concerns = counts.total
    else:
        counts = LetterCounts()
        concerns = await turn.purge()
    return LettersPurged(
        dry_run=wanted.dry_run,
        concerns=concerns,
        groups=_view_groups(counts),
        bound=turn.bound,
        after=turn.after,
    )


OPERATIONS = (
    list_dead_letters,
    group_dead_letters,
    show_dead_letter,
    redrive_dead_letters,
    purge_dead_letters,
)


class _Turn:
    """The work of one call on the letters of *choice*: as many steps, each of which is bounded, as its time allows."""

    def __init__(
        self,
        services: DeadLetterServices,
        choice: Choice,
        position: LetterPosition | None,
        bound: str,
    ) -> None:
        self.bound = bound
        self._letters = services.letters
        self._choice = choice
        self._position = position
        self._clock = asyncio.get_running_loop().time
        self._ends_at = self._clock() + services.turn_s

    @classmethod
    async def begin(
        cls, services: DeadLetterServices, choice: Choice, bound: str, after: str
    ) -> "_Turn":
        """Begin at *after*, "" from the first letter on, with none above *bound*, "" those that are there now."""
        if not isinstance(choice, LetterSelection):
            return cls(services, choice, None, bound)
        last = int(bound) if bound else await services.letters.last_of(choice)
        position = LetterPosition(int(after), last) if after else None
        return cls(services, replace(choice, up_to=last), position, str(last))

    @property
    def after(self) -> str | None:
        """Where the next call goes on, None where all is done."""
        return None if self._position is None else str(self._position.after)

    async def count(self) -> LetterCounts:
        """Return how many letters of each agent and error there are."""
        counts = LetterCounts()
        if not isinstance(self._choice, LetterSelection):
            for sequence in self._choice:
                counts.add([summary_of(await self._letters.read(sequence))])
            return counts
        while True:
            page = await self._letters.groups(
                self._choice, position=self._position, into=counts
            )
            if self._is_over(page.position):
                return counts

    async def redrive(
        self, renewal: Renewal, *, is_trial: bool, is_forced: bool
    ) -> LetterOutcome:
        """Send letters again, or only look where *is_trial*."""
        outcome = LetterOutcome(position=self._position)
        while True:
            await self._letters.redrive(
                self._choice,
                renewal,
                is_trial=is_trial,
                is_forced=is_forced,
                into=outcome,
            )
            if self._is_over(outcome.position):
                return outcome

    async def purge(self) -> int:
        """Delete letters, and return how many."""
        purged = 0
        while True:
            outcome = await self._letters.purge(self._choice, position=self._position)
            purged += outcome.purged
            if self._is_over(outcome.position):
                return purged

    def _is_over(self, position: LetterPosition | None) -> bool:
        """Note how far it came, and return whether the work ends here."""
        self._position = position
        return position is None or self._clock() >= self._ends_at


async def _choose(
    services: DeadLetterServices, caller: Caller, wanted: LetterChoice
) -> Choice:
    """Return the letters that *caller* means.

    Raises:
        Refused: 422, none are named, or two kinds that contradict.
        InvalidInput: a number names no letter that the caller may see.
    """
    given = [bool(wanted.sequences), wanted.has_condition, wanted.everything]
    if given.count(True) != 1:
        raise unusable([Fault(where="sequences", message=_WHICH)])
    if not wanted.sequences:
        return wanted.selection_for(caller, services.now())
    if caller.user is not None or caller.own_tenant is not None:
        for sequence in wanted.sequences:
            if not _may_see(caller, await services.letters.read(sequence)):
                raise InvalidInput(f"there is no dead letter {sequence} of yours")
    return wanted.sequences


def _may_see(caller: Caller, letter: Letter) -> bool:
    """Return whether *letter* is of the user and the tenant that the key of *caller* is for."""
    fields = letter.assignment_fields
    return caller.may_see(fields.get("user_id"), fields.get("tenant"))


async def _find(letters: DeadLetters, which: str) -> list[Letter]:
    """Return the letter of that number, or the newest letters of the task of that id; none where there are none."""
    if which.isdecimal():
        with contextlib.suppress(InvalidInput):
            return [await letters.read(int(which))]
        return []
    page = await letters.of_task(which)
    found = page.letters
    while page.goes_on_at is not None and len(found) < MOST_OF_TASK:
        page = await letters.of_task(which, before=page.goes_on_at)
        found += page.letters
    return found[:MOST_OF_TASK]


def _view_letter(
    letter: Letter, *, why_kept: str | None, others: Iterable[int]
) -> LetterDetails:
    content = letter.content
    return LetterDetails(
        **_fields_of(summary_of(letter)),
        frames=tuple(letter.frames),
        place=content.place,
        traceback=None
        if content.traceback is None
        else content.traceback[-_TRACEBACK:],
        headers=dict(content.headers),
        body_bytes=content.body_bytes,
        is_whole=letter.is_whole,
        why_kept=why_kept,
        payload=_payload_of(letter),
        others=tuple(others),
    )


def _view_summary(letter: LetterSummary) -> LetterView:
    return LetterView(**_fields_of(letter))


def _fields_of(letter: LetterSummary) -> Mapping[str, Any]:
    same = (
        *("sequence", "agent_id", "task_id", "reason", "error", "attempts"),
        *("generation", "tenant", "usage", "supervisor_id", "worker_id", "trace_id"),
        "subject",
    )
    return {
        **{name: getattr(letter, name) for name in same},
        "task": letter.task_name,
        "user": letter.user_id,
        "stored_at": letter.stored_at,
        "created_at": _in_utc(letter.created_at),
        "died_at": _in_utc(letter.died_at),
        "queued_ms": _span(letter.queued_ms),
        "run_ms": _span(letter.run_ms),
    }


def _view_groups(counts: LetterCounts) -> tuple[LetterGroupView, ...]:
    return tuple(map(_view_group, counts.groups))


def _view_group(group: LetterGroup) -> LetterGroupView:
    return LetterGroupView(
        agent_id=group.agent_id,
        error_type=group.error_type,
        count=group.count,
        oldest=group.oldest,
        newest=group.newest,
        example=_view_summary(group.example),
    )


def _payload_of(letter: Letter) -> JsonValue:
    """Return the JSON that the letter carried, text where it is none, or why it cannot be read."""
    try:
        return read_kept(letter.body)
    except InvalidInput as error:
        return str(error)


def _in_utc(moment: datetime | None) -> datetime | None:
    """Return the time that a worker wrote, in UTC."""
    if moment is None:
        return None
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    # The first and the last day of all have times in other zones that UTC has none for.
    with contextlib.suppress(OverflowError):
        return aware.astimezone(UTC)
    return aware


def _span(milliseconds: int | None) -> int | None:
    """Return a span that a worker wrote, which may be any number."""
    return None if milliseconds is None else min(max(0, milliseconds), _LONGEST_MS)


def for_operator(parts: OperatorDependencies) -> DeadLetterServices:
    """Return the services of operations of dead letters."""
    return DeadLetterServices(letters=parts.letters)


NOUN = NounDeclaration(operations=OPERATIONS, operator=serve(for_operator, OPERATIONS))
