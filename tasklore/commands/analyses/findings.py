"""The sections of an analysis as steps of a board, each summed up in a few words."""

import contextlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue, ValidationError

from tasklore.commands.render.board import BoardRow
from tasklore.commands.render.words import count_of, one_line
from tasklore.contracts.analysis.background import (
    Contradictions,
    Knowledge,
    MemoryCreation,
    PlotThreads,
    Relationships,
    ResponseAnalysis,
)
from tasklore.contracts.analysis.document import SKIPPED, AnalysisDocument
from tasklore.contracts.analysis.immediate import (
    EntityAnalysis,
    FactExtraction,
    MemoryExtraction,
    ThreadExtraction,
)
from tasklore.contracts.analysis.pieces import UNJUDGED, Reduction
from tasklore.contracts.analysis.section_agents import model_of
from tasklore.memory.rendering.prompt_lines import CRITICAL

#: The statuses of a section: absent in time, not found, at work, found.
FAILED = "failed"
LATE = "late"
WAITING = "waiting"
DONE = "ok"

#: Characters of the summary of a section, of an error, and of a name in it.
_LONGEST = 130
_LONGEST_ERROR = 240
_LONGEST_NAME = 32
#: Summaries of a section without findings.
_EMPTY = frozenset({"", "none", "unchanged", "none touched", "nothing new"})
#: Names and pairs that are listed.
_MOST_NAMES = 3
_MOST_PAIRS = 2


@dataclass(frozen=True, slots=True)
class SectionStep(BoardRow):
    """One section: `by` is `rules` or a model, `note` its summary.

    `status` is `ok`, `waiting`, `failed`, `late` or `skipped`, or a word that its agent chose.
    """

    by: str = ""

    @property
    def is_found(self) -> bool:
        """Whether its agent is through, with findings or without."""
        return self.status != WAITING

    @property
    def is_missing(self) -> bool:
        """Whether its agent was asked and left no findings."""
        return self.status in (FAILED, LATE)

    @property
    def text(self) -> str:
        """The summary, behind a status other than `ok`."""
        if self.status == WAITING:
            return "at work"
        if self.status == DONE:
            return self.note
        return f"{self.status}: {self.note}" if self.note else self.status


def section_steps(
    document: AnalysisDocument | None,
    sections: Sequence[str] = (),
    *,
    awaited: Collection[str] = (),
) -> list[SectionStep]:
    """Return a step for each of *sections* in their order, found or not, then for any other of *document*.

    Those *awaited* are at work, whatever they left before.
    """
    found = dict(document.sections()) if document is not None else {}
    return [
        step_of(section, None if section in awaited else found.get(section))
        for section in dict.fromkeys((*sections, *found))
    ]


def step_of(section: str, body: JsonValue) -> SectionStep:
    """Return the step of one *section* with *body*; None is at work."""
    if not isinstance(body, dict):
        return SectionStep(section, WAITING)
    status = one_line(str(body.get("status") or DONE), _LONGEST_NAME)
    took = body.get("dur")
    if status in (FAILED, LATE, SKIPPED):
        default = {LATE: "it did not answer in time", FAILED: "it did not say why"}.get(
            status, ""
        )
        if status == SKIPPED and body.get("enabled") is False:
            default = "switched off"
        note = one_line(str(body.get("error") or default), _LONGEST_ERROR)
    else:
        note = _summary(section, body)
        said = one_line(str(body.get("note") or ""), _LONGEST_ERROR)
        if said.startswith(UNJUDGED):
            # An empty section of rules was not judged.
            note = said if note in _EMPTY else f"{note} ({said})"
    by = one_line(str(body.get("by") or ""), _LONGEST_NAME)
    return SectionStep(
        section, status, took if isinstance(took, int) else None, note, by=by
    )


def _summary(section: str, body: Mapping[str, JsonValue]) -> str:
    model = model_of(section)
    summarise = _SUMMARIES.get(section)
    if model is not None and summarise is not None:
        with contextlib.suppress(ValidationError):
            return one_line("; ".join(summarise(model.model_validate(body))), _LONGEST)
    # A section of another agent: the size of each list.
    sizes = (
        f"{key}: {len(value)}"
        for key, value in body.items()
        if isinstance(value, list | dict) and value
    )
    return one_line(", ".join(sizes), _LONGEST)


def _response(found: ResponseAnalysis) -> Iterator[str]:
    scene = found.scene
    people = found.characters
    alerts = found.alerts
    if scene is not None:
        tension = f"tension {scene.tension:g}/10" if scene.tension is not None else ""
        yield ", ".join(filter(None, (scene.type, tension)))
    if people is not None and people.in_scene:
        yield _names(people.in_scene)
    yield from filter(
        None, (alerts.variety, alerts.pacing) if alerts is not None else ()
    )


def _memories(found: MemoryCreation) -> Iterator[str]:
    if not found.memories:
        yield "none"
        return
    top = max(found.memories, key=lambda memory: memory.significance)
    yield count_of(len(found.memories), "memory")
    yield f"{_name(top.character or top.id)}: {top.summary or top.id}"


def _relationships(found: Relationships) -> Iterator[str]:
    for one in found.interactions[:_MOST_PAIRS]:
        pair = " \u2194 ".join(map(_name, one.characters))
        now = ", ".join(
            filter(
                None, (f"now {one.score:g}" if one.score is not None else "", one.tier)
            )
        )
        yield f"{pair} {one.change:+g}" + (f" ({now})" if now else "")
    if not found.interactions:
        yield "unchanged"
    if (more := len(found.interactions) - _MOST_PAIRS) > 0:
        yield f"{more} more"


def _threads(found: PlotThreads) -> Iterator[str]:
    critical = sum(thread.status == CRITICAL for thread in found.mentioned)
    counts = {
        "new": len(found.new),
        "mentioned": len(found.mentioned),
        "resolved": len(found.resolved),
    }
    marks = {"mentioned": f" ({critical} critical)"} if critical else {}
    yield (
        ", ".join(
            f"{count} {word}{marks.get(word, '')}"
            for word, count in counts.items()
            if count
        )
        or "none touched"
    )
    titles = [thread.title or thread.id for thread in (*found.new, *found.resolved)]
    if titles:
        yield _names(titles)


def _knowledge(found: Knowledge) -> Iterator[str]:
    yield count_of(len(found.facts), "fact") if found.facts else "nothing new"
    if found.facts:
        yield _names(fact.subject for fact in found.facts)


def _contradictions(found: Contradictions) -> Iterator[str]:
    if not found.found:
        yield "none"
        return
    counts = Counter(conflict.severity or "" for conflict in found.found)
    yield count_of(len(found.found), "contradiction")
    yield ", ".join(
        f"{count} {severity}" for severity, count in counts.items() if severity
    )
    yield _names(conflict.subject for conflict in found.found)


def _entities(found: EntityAnalysis) -> Iterator[str]:
    yield f"{len(found.tier1)} in full, {len(found.tier2)} condensed, {_count_names(found.tier3)} by name"
    yield _names([one.name for one in found.tier1])


def _facts(found: FactExtraction) -> Iterator[str]:
    count = sum(map(len, found.facts.values()))
    yield (
        f"{count_of(count, 'fact')} of {count_of(len(found.facts), 'name')}"
        if count
        else "none"
    )
    yield from _reduction(found.reduction)


def _recalled(found: MemoryExtraction) -> Iterator[str]:
    count = sum(map(len, found.memories.values()))
    yield (
        f"{count_of(count, 'memory')} of {count_of(len(found.memories), 'character')}"
        if count
        else "none"
    )
    yield from _reduction(found.reduction)


def _loaded(found: ThreadExtraction) -> Iterator[str]:
    critical = sum(thread.status == CRITICAL for thread in found.loaded)
    yield f"{len(found.loaded)} loaded" + (
        f" ({critical} critical)" if critical else ""
    )
    if found.monitored is not None:
        yield f"{found.monitored} monitored"
    yield from _reduction(found.reduction)


def _reduction(reduction: Reduction | None) -> Iterator[str]:
    if reduction is not None and reduction.before:
        yield f"{reduction.before:,} -> {reduction.after:,} tokens"


def _names(names: Iterable[str]) -> str:
    """Return the first of *names*, each once, and a count of the others."""
    once = list(dict.fromkeys(names))
    listed = ", ".join(_name(name) for name in once[:_MOST_NAMES])
    return (
        f"{listed} and {len(once) - _MOST_NAMES} more"
        if len(once) > _MOST_NAMES
        else listed
    )


def _name(text: str) -> str:
    return one_line(text, _LONGEST_NAME)


#: The summary of each section of our agents.
_SUMMARIES: Mapping[str, Callable[[Any], Iterator[str]]] = {
    "resp_analyzer": _response,
    "memory_create": _memories,
    "relationship": _relationships,
    "plot_threads": _threads,
    "knowledge": _knowledge,
    "contradiction": _contradictions,
    "entity_analysis": _entities,
    "fact_extract": _facts,
    "memory_extract": _recalled,
    "thread_extract": _loaded,
}


def _count_names(names: Sequence[str]) -> int:
    """Return how many *names* there are, those of an entry "[12 others]" counted."""
    others = [
        one[1:].split(" ")[0]
        for one in names
        if one.startswith("[") and one.endswith(" others]")
    ]
    return len(names) - len(others) + sum(int(one) for one in others if one.isdigit())
