"""The analysis of one response: begun by one request, and looked at until nothing of it is waited for."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tasklore.commands.analyses.documents import document_in
from tasklore.commands.analyses.findings import section_steps
from tasklore.commands.exits import UNREACHABLE
from tasklore.commands.operations.local import LocalApi
from tasklore.commands.operations.problems import ApiRefused
from tasklore.commands.operations.transport import AnswerCut
from tasklore.commands.render.screen import say
from tasklore.contracts.analysis.document import AnalysisDocument
from tasklore.contracts.analysis.section_agents import SECTION_AGENTS
from tasklore.contracts.analysis.stories import StoryResponse
from tasklore.contracts.errors import TaskloreError, Unreachable

#: Seconds between two looks.
LOOK_S = 0.3
#: Seconds that the API may be away meanwhile: a supervisor that died is replaced.
AWAY_S = 30.0
#: The module of our ten agents.
AGENTS = "tasklore.workers.agents.story"

#: Looks after which workers are missed, and ids of agents that are listed.
_LOOKS_ALONE = 4
_MOST_LISTED = 3
#: States of a section that is at work.
_AT_WORK = ("waiting", "asked")

View = Mapping[str, Any]
OnLook = Callable[[View], None]
#: Returns the view of an operation of analyses, by its verb and its values.
Ask = Callable[[str, Mapping[str, Any]], View]


def ask_api(verb: str, values: Mapping[str, Any]) -> View:
    """Return the view of the operation *verb*, where the environment says that it is served.

    Raises:
        ApiRefused, Unreachable, TaskloreError: as `LocalApi.ask`.
    """
    return LocalApi("analyses").ask(verb, **values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysed:
    """The analysis of one response: `document` is None without a section, `is_done` False when the time is over."""

    response: StoryResponse
    view: View
    document: AnalysisDocument | None
    is_done: bool
    took_ms: int

    @property
    def is_served(self) -> bool:
        """Whether no agent was asked."""
        return bool(self.view["served"])

    @property
    def sections(self) -> tuple[str, ...]:
        """The sections of all agents that take part."""
        return sections_of(self.view)

    @property
    def awaited(self) -> tuple[str, ...]:
        """The sections whose agents are at work."""
        return awaited_in(self.view)

    @property
    def has_findings(self) -> bool:
        """Whether any agent is through."""
        return len(self.awaited) < len(self.sections)

    @property
    def is_whole(self) -> bool:
        """Whether it is done, and no agent failed or was late."""
        steps = section_steps(self.document, awaited=self.awaited)
        return self.is_done and not any(one.is_missing for one in steps)


def analyse(
    story_id: str,
    response: StoryResponse,
    on_look: OnLook,
    *,
    until: Literal["immediate", "all"] = "all",
    wait_s: float = 60.0,
    refresh: bool = False,
    ask: Ask = ask_api,
) -> Analysed:
    """Have *response* analysed, and return the analysis; *on_look* is called at every look, *ask* asks the API.

    Raises:
        ApiRefused: the API refuses.
        Unreachable: it was away for too long.
    """
    began = time.monotonic()
    new = {
        "response": response.number,
        "chapter": response.chapter,
        "text": response.text,
        "until": until,
        "refresh": refresh,
        "wait_seconds": 0,
    }
    first = _ask(ask, "run", {"story_id": story_id, **new})
    place = {"story_id": story_id, "response": response.number}
    view = first
    looks = 0
    while True:
        on_look(view)
        left_s = began + wait_s - time.monotonic()
        is_done = not awaited_in(view, until)
        if is_done or left_s <= 0:
            break
        time.sleep(min(LOOK_S, left_s))
        looks += 1
        view = _ask(ask, "show", place)
        if looks == _LOOKS_ALONE and view["without_worker"]:
            say(absent_text(view["without_worker"]))
    return Analysed(
        response=response,
        view={**view, "served": first["served"]},
        document=document_in(view),
        is_done=is_done,
        took_ms=int((time.monotonic() - began) * 1000),
    )


def sections_of(view: View) -> tuple[str, ...]:
    """Return the sections of *view* whose agents take part."""
    return tuple(
        one["section"] for one in view["sections"] if one["state"] != "skipped"
    )


def awaited_in(
    view: View, until: Literal["immediate", "all"] = "all"
) -> tuple[str, ...]:
    """Return the sections of *view* whose agents are at work, of those that *until* waits for."""
    return tuple(
        one["section"]
        for one in view["sections"]
        if one["state"] in _AT_WORK and until in ("all", one["group"])
    )


def absent_text(agents: Sequence[str]) -> str:
    """Return the line about *agents* without a live worker, with its cure."""
    more = (
        f" and {len(agents) - _MOST_LISTED} more" if len(agents) > _MOST_LISTED else ""
    )
    ours = {seat.agent_id for seat in SECTION_AGENTS}
    cure = (
        f"`tasklore worker {AGENTS}`"
        if ours.issuperset(agents)
        else "`tasklore worker`"
    )
    waits = "what it finds waits" if len(agents) == 1 else "what they find waits"
    return f"no worker of {', '.join(agents[:_MOST_LISTED])}{more} is alive; {waits} until one is: {cure}"


def _ask(ask: Ask, verb: str, values: Mapping[str, Any]) -> View:
    """Return the view of an operation, which may be asked for again while the API is away."""
    gives_up_at = time.monotonic() + AWAY_S
    while True:
        try:
            return ask(verb, values)
        except TaskloreError as error:
            if not _is_away(error) or time.monotonic() >= gives_up_at:
                raise
        time.sleep(LOOK_S)


def _is_away(error: TaskloreError) -> bool:
    """Return whether the API may answer again."""
    if isinstance(error, ApiRefused):
        return error.code == UNREACHABLE
    return isinstance(error, Unreachable | AnswerCut)
