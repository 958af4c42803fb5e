"""What each agent of an analysis found, in a few words: whether to look closer, and where."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue, ValidationError

from contracts.analysis.background import (
    Contradictions,
    Interaction,
    Knowledge,
    MemoryCreation,
    PlotThreads,
    Relationships,
    ResponseAnalysis,
)
from contracts.analysis.document import SKIPPED, AnalysisDocument
from contracts.analysis.immediate import EntityAnalysis, FactExtraction, MemoryExtraction, ThreadExtraction
from contracts.analysis.pieces import UNJUDGED, Reduction
from contracts.analysis.roster import model_of
from memory.rendering.prompt_lines import CRITICAL
from tasklore.memory.lines import one_line
from tasklore.render.words import count_of

#: The statuses of a section that was not found in time, or not at all.
FAILED, LATE = "failed", "late"
#: Its status as long as nothing is there.
WAITING = "waiting"
DONE = "ok"

#: Characters of what is said of a section, of an error, and of a name in it.
_SAID, _ERROR, _NAME = 130, 240, 32
#: What is said of a section in which nothing was found.
_NOTHING = frozenset({"", "none", "unchanged", "none touched", "nothing new"})
#: Names and pairs that are listed.
_NAMED, _PAIRS = 3, 2


@dataclass(frozen=True, slots=True)
class Finding:
    """One section for people: who found it (`rules` or a model), how long that took, how it went, and what it says.

    `status` is `ok`, `waiting`, `failed`, `late` or `skipped`, or a word that its agent chose.
    """

    section: str
    status: str
    by: str = ""
    took_ms: int | None = None
    said: str = ""

    @property
    def is_there(self) -> bool:
        """Whether its agent is through with it, one way or another."""
        return self.status != WAITING

    @property
    def is_missed(self) -> bool:
        """Whether its agent was asked, and nothing came of it."""
        return self.status in (FAILED, LATE)

    @property
    def told(self) -> str:
        """What it says, behind how it went when that needs saying."""
        if self.status == WAITING:
            return "at work"
        if self.status == DONE:
            return self.said
        return f"{self.status}: {self.said}" if self.said else self.status


def findings(document: AnalysisDocument | None, seats: Sequence[str] = ()) -> list[Finding]:
    """Return what is found of each section: those of *seats* in their order, there or not, then any other."""
    there = dict(document.sections()) if document is not None else {}
    return [finding_of(section, there.get(section)) for section in dict.fromkeys((*seats, *there))]


def finding_of(section: str, body: JsonValue) -> Finding:
    """Return what *body* says, the *section* of a document; None is waited for."""
    if not isinstance(body, dict):
        return Finding(section, WAITING)
    by, took, status = body.get("by"), body.get("dur"), one_line(str(body.get("status") or DONE), _NAME)
    return Finding(
        section,
        status,
        one_line(str(by), _NAME) if by else "",
        took if isinstance(took, int) else None,
        _said(section, status, body),
    )


def _said(section: str, status: str, body: dict[str, JsonValue]) -> str:
    if status in (FAILED, LATE, SKIPPED):
        return one_line(str(body.get("error") or _unsaid(status, body)), _ERROR)
    found = _found(section, body)
    if body.get("note") != UNJUDGED:
        return found
    # That nothing was found was not looked for.
    return UNJUDGED if found in _NOTHING else f"{found} ({UNJUDGED})"


def _found(section: str, body: dict[str, JsonValue]) -> str:
    model, tell = model_of(section), _TOLD.get(section)
    if model is None or tell is None:
        return _held(body)
    try:
        return one_line("; ".join(tell(model.model_validate(body))), _SAID)
    except ValidationError:
        return _held(body)


def _unsaid(status: str, body: Mapping[str, JsonValue]) -> str:
    if status == LATE:
        return "it did not answer in time"
    if status == FAILED:
        return "it did not say why"
    return "switched off" if body.get("enabled") is False else ""


def _held(body: Mapping[str, JsonValue]) -> str:
    """Return how much is in a section of an agent that is not ours."""
    held = (f"{key}: {len(value)}" for key, value in body.items() if isinstance(value, list | dict) and value)
    return one_line(", ".join(held), _SAID)


def _response(found: ResponseAnalysis) -> Iterator[str]:
    scene, people, alerts = found.scene, found.characters, found.alerts
    if scene is not None:
        tension = f"tension {scene.tension:g}/10" if scene.tension is not None else ""
        yield ", ".join(filter(None, (scene.type, tension)))
    if people is not None and people.in_scene:
        yield _names(people.in_scene)
    yield from filter(None, (alerts.variety, alerts.pacing) if alerts is not None else ())


def _memories(found: MemoryCreation) -> Iterator[str]:
    if not found.memories:
        yield "none"
        return
    top = max(found.memories, key=lambda memory: memory.significance)
    yield count_of(len(found.memories), "memory")
    yield f"{_name(top.character or top.id)}: {top.summary or top.id}"


def _relationships(found: Relationships) -> Iterator[str]:
    shown = found.interactions[:_PAIRS]
    yield from map(_interaction, shown)
    if not shown:
        yield "unchanged"
    if more := len(found.interactions) - len(shown):
        yield f"{more} more"


def _interaction(one: Interaction) -> str:
    pair = " \u2194 ".join(map(_name, one.characters))
    now = ", ".join(filter(None, (f"now {one.score:g}" if one.score is not None else "", one.tier)))
    return f"{pair} {one.change:+g}" + (f" ({now})" if now else "")


def _threads(found: PlotThreads) -> Iterator[str]:
    critical = sum(thread.status == CRITICAL for thread in found.mentioned)
    told = [f"{len(found.new)} new"] if found.new else []
    if found.mentioned:
        told.append(f"{len(found.mentioned)} mentioned" + (f" ({critical} critical)" if critical else ""))
    told += [f"{len(found.resolved)} resolved"] if found.resolved else []
    yield ", ".join(told) or "none touched"
    titles = [thread.title or thread.id for thread in (*found.new, *found.resolved)]
    if titles:
        yield _names(titles)


def _knowledge(found: Knowledge) -> Iterator[str]:
    yield count_of(len(found.facts), "fact") if found.facts else "nothing new"
    if found.facts:
        yield _names(list(dict.fromkeys(fact.subject for fact in found.facts)))


def _contradictions(found: Contradictions) -> Iterator[str]:
    if not found.found:
        yield "none"
        return
    counts = Counter(conflict.severity or "" for conflict in found.found)
    yield count_of(len(found.found), "contradiction")
    yield ", ".join(f"{count} {severity}" for severity, count in counts.items() if severity)
    yield _names(list(dict.fromkeys(conflict.subject for conflict in found.found)))


def _entities(found: EntityAnalysis) -> Iterator[str]:
    yield f"{len(found.tier1)} in full, {len(found.tier2)} condensed, {_counted_names(found.tier3)} by name"
    yield _names([one.name for one in found.tier1])


def _facts(found: FactExtraction) -> Iterator[str]:
    count = sum(map(len, found.facts.values()))
    yield f"{count_of(count, 'fact')} of {count_of(len(found.facts), 'name')}" if count else "none"
    yield from _reduced(found.reduction)


def _recalled(found: MemoryExtraction) -> Iterator[str]:
    count = sum(map(len, found.memories.values()))
    yield f"{count_of(count, 'memory')} of {count_of(len(found.memories), 'character')}" if count else "none"
    yield from _reduced(found.reduction)


def _loaded(found: ThreadExtraction) -> Iterator[str]:
    critical = sum(thread.status == CRITICAL for thread in found.loaded)
    yield f"{len(found.loaded)} loaded" + (f" ({critical} critical)" if critical else "")
    if found.monitored is not None:
        yield f"{found.monitored} monitored"
    yield from _reduced(found.reduction)


def _reduced(reduction: Reduction | None) -> Iterator[str]:
    if reduction is not None and reduction.before:
        yield f"{reduction.before:,} -> {reduction.after:,} tokens"


def _names(names: Sequence[str]) -> str:
    """Return the first of *names*, and how many more there are."""
    listed = ", ".join(_name(name) for name in names[:_NAMED])
    return f"{listed} and {len(names) - _NAMED} more" if len(names) > _NAMED else listed


def _name(text: str) -> str:
    return one_line(text, _NAME)


def _counted_names(names: Sequence[str]) -> int:
    """Return how many *names* there are, those of an entry "[12 others]" count_of."""
    others = [one[1:].split(" ")[0] for one in names if one.startswith("[") and one.endswith(" others]")]
    return len(names) - len(others) + sum(int(one) for one in others if one.isdigit())


#: What a section of each of ours is said to hold.
_TOLD: Mapping[str, Callable[[Any], Iterator[str]]] = {
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
