"""The agents of an analysis: for each section of the document its task, and the sections it waits for."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import get_args

from tasklore.contracts.analysis.background import Background
from tasklore.contracts.analysis.immediate import Immediate
from tasklore.contracts.analysis.pieces import Section
from tasklore.contracts.analysis.stories import AnalysisGroup, SeatSettings
from tasklore.contracts.errors import InvalidInput

_MODELS: Mapping[str, type[Section]] = {
    field.alias or name: next(
        one for one in get_args(field.annotation) if one is not type(None)
    )
    for group in (Background, Immediate)
    for name, field in group.model_fields.items()
}

#: The long name of each section in Python, by which the document is read, too.
_LONG_NAMES: Mapping[str, str] = {
    name: field.alias or name
    for group in (Background, Immediate)
    for name, field in group.model_fields.items()
}

#: Seconds from dispatch until a section is marked late: the next response waits for the immediate ones.
IMMEDIATE_S = 20.0
BACKGROUND_S = 60.0
#: The task of each of our agents.
TASK = "analyse"


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionAgent:
    """One section of the document, and which task of which agent finds it.

    `after` are sections whose findings it would use: it waits for them as long as the story's patience lasts, and then
    does without. `deadline_s` is seconds from its dispatch.
    """

    section: str
    group: AnalysisGroup
    agent_id: str
    task: str = TASK
    after: tuple[str, ...] = ()
    deadline_s: float = BACKGROUND_S
    enabled: bool = True


def _immediate(section: str, agent_id: str, *after: str) -> SectionAgent:
    return SectionAgent(
        section=section,
        group="immediate",
        agent_id=agent_id,
        after=after,
        deadline_s=IMMEDIATE_S,
    )


#: The ten, in the order of the document.
SECTION_AGENTS = (
    SectionAgent(
        section="resp_analyzer", group="background", agent_id="StoryResponseAgent"
    ),
    SectionAgent(
        section="memory_create", group="background", agent_id="StoryMemoryCreationAgent"
    ),
    SectionAgent(
        section="relationship", group="background", agent_id="StoryRelationshipAgent"
    ),
    SectionAgent(
        section="plot_threads", group="background", agent_id="StoryThreadAgent"
    ),
    SectionAgent(
        section="knowledge", group="background", agent_id="StoryKnowledgeAgent"
    ),
    # It asks most of a model, so a story switches it on.
    SectionAgent(
        section="contradiction",
        group="background",
        agent_id="StoryContradictionAgent",
        after=("knowledge",),
        enabled=False,
    ),
    _immediate("entity_analysis", "StoryEntityAgent"),
    _immediate("fact_extract", "StoryFactAgent", "entity_analysis"),
    _immediate(
        "memory_extract", "StoryMemoryRecallAgent", "memory_create", "plot_threads"
    ),
    _immediate(
        "thread_extract", "StoryThreadRecallAgent", "plot_threads", "memory_create"
    ),
)


def roster_of(agents: Mapping[str, SeatSettings]) -> tuple[SectionAgent, ...]:
    """Return the agents of a story's analyses: the ten as *agents* changes them, then its own.

    Raises:
        InvalidInput: an agent of its own lacks what it needs or finds a section under a name of ours, or one waits for
            a section that nobody finds, or for itself.
    """
    seats = [_changed(seat, agents.get(seat.section)) for seat in SECTION_AGENTS]
    known = {seat.section for seat in SECTION_AGENTS}
    seats += [
        _own(section, said) for section, said in agents.items() if section not in known
    ]
    by_section = {seat.section: seat for seat in seats}
    for seat in seats:
        for other in seat.after:
            if other not in by_section:
                raise InvalidInput(
                    f"agents.{seat.section}.after names {other!r}, which is not a section; sections are "
                    f"{', '.join(by_section)}"
                )
    _demand_no_circle(by_section)
    return tuple(seats)


def model_of(section: str) -> type[Section] | None:
    """Return the model of a section of ours, by its key; None for a section of another program."""
    return _MODELS.get(section)


def _changed(seat: SectionAgent, said: SeatSettings | None) -> SectionAgent:
    if said is None:
        return seat
    changes = {
        "group": said.group,
        "agent_id": said.agent,
        "task": said.task,
        "after": said.after,
        "deadline_s": said.deadline_s,
        "enabled": said.enabled,
    }
    given = {name: value for name, value in changes.items() if value is not None}
    return replace(seat, **given)  # type: ignore[arg-type]


def _own(section: str, said: SeatSettings) -> SectionAgent:
    if section in _LONG_NAMES:
        raise InvalidInput(
            f"agents.{section} would be read as our section {_LONG_NAMES[section]!r}; name it that if you mean it, or "
            "choose another name"
        )
    if said.agent is None or said.task is None:
        raise InvalidInput(
            f"agents.{section} is not a built-in section, so it needs 'agent' and 'task', the task that makes it"
        )
    group = said.group or "background"
    otherwise_s = IMMEDIATE_S if group == "immediate" else BACKGROUND_S
    deadline_s = said.deadline_s or otherwise_s
    return SectionAgent(
        section=section,
        group=group,
        agent_id=said.agent,
        task=said.task,
        after=said.after or (),
        deadline_s=deadline_s,
        enabled=said.enabled is not False,
    )


def _demand_no_circle(seats: Mapping[str, SectionAgent]) -> None:
    free: set[str] = set()
    waiting = set(seats)
    while ready := {
        section for section in waiting if free.issuperset(seats[section].after)
    }:
        free |= ready
        waiting -= ready
    if waiting:
        raise InvalidInput(
            f"agents wait for each other in a circle: {', '.join(sorted(waiting))}; change their 'after'"
        )
