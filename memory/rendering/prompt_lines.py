"""What the context of a response says, line by line, each made of parts that can be left out one by one."""

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeGuard, TypeVar

from tasklore.contracts.analysis.background import Background, Conflict, Thread
from tasklore.contracts.analysis.document import SKIPPED, AnalysisDocument
from tasklore.contracts.analysis.immediate import Immediate, LoadedThread
from tasklore.contracts.analysis.pieces import Section
from tasklore.memory.rendering.quoting import plain

#: How many are shown: threads that are not critical, names with their facts and characters with their memories, facts
#: of a name, memories of a character, subjects of new knowledge.
THREADS = 3
NAMES = 2
FACTS = 3
MEMORIES = 2
SUBJECTS = 2
#: Characters of a name or an id, of an alert or a title, and of the summary of the top memory.
_NAME = 60
_SENTENCE = 160
_SUMMARY = 40
#: Responses until the consequences of a thread, from which on it is critical when nobody said whether it is.
_SOON = 5
CRITICAL = "critical"

# What goes first when not all fits: the higher rank.
MUST = 0
SCENE = 1
NEAR = 2
RECALLED = 3
FACT = 4
ASIDE = 7

#: A section with one of these was left empty by its agent; nothing can be said of it.
_UNKNOWN = frozenset({"failed", "late", SKIPPED})
_BOLD = re.compile(r"\*{2,}")

AnySection = TypeVar("AnySection", bound=Section)


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A piece of a line; `rank` is the higher the sooner it goes."""

    text: str
    rank: int


@dataclass(frozen=True, slots=True)
class Group:
    """Parts of a line in a row, behind what leads them in."""

    parts: tuple[Excerpt, ...]
    lead: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """A line: its label, groups of parts, and what stands between parts and between groups."""

    label: str
    groups: tuple[Group, ...]
    comma: str = ", "
    between: str = ", "

    @property
    def parts(self) -> tuple[Excerpt, ...]:
        """Every part, in order."""
        return tuple(part for group in self.groups for part in group.parts)

    def text(self, numbers: range, kept: Collection[int]) -> str:
        """Return the line with those parts whose number is *kept*, empty when there are none.

        *numbers* are those of its parts.
        """
        number = iter(numbers)
        shown = []
        for group in self.groups:
            texts = [part.text for part in group.parts if next(number) in kept]
            if texts:
                shown.append(group.lead + self.comma.join(texts))
        return self.label + self.between.join(shown) if shown else ""


def scene_lines(document: AnalysisDocument) -> list[Line]:
    """Return what the response itself is about."""
    background = document.background
    immediate = document.immediate
    return [
        Line("**Scene**: ", (Group(tuple(_scene(background))),)),
        Line("**Characters**: ", tuple(_characters(background)), between=" | "),
        Line("**Memories**: ", (Group(tuple(_memories(background))),)),
        Line(
            "**Relationships**: ",
            (Group(tuple(_relationships(background))),),
            comma="; ",
        ),
        Line("**Threads**: ", tuple(_threads(background, immediate))),
        Line("**Knowledge**: ", (Group(tuple(_knowledge(background))),)),
        Line(
            "**Contradictions**: ",
            (Group(tuple(_contradictions(background))),),
            comma="; ",
        ),
    ]


def context_lines(document: AnalysisDocument) -> list[Line]:
    """Return what the next response can rest on."""
    found = document.immediate
    lines = []
    if found.fact_extraction is not None:
        for name, facts in list(found.fact_extraction.facts.items())[:NAMES]:
            shown = (
                Excerpt(_whole(fact), FACT + at)
                for at, fact in enumerate(facts[:FACTS])
            )
            lines.append(Line(f"- {_name(name)}: ", (Group(tuple(_show_said(shown))),)))
    if found.memory_extraction is not None:
        for name, memories in list(found.memory_extraction.memories.items())[:NAMES]:
            recalled = (
                Excerpt(_name(memory.id), RECALLED) for memory in memories[:MEMORIES]
            )
            lines.append(
                Line(
                    f"- {_name(name)} Memories: ", (Group(tuple(_show_said(recalled))),)
                )
            )
    if found.thread_extraction is not None:
        loaded = found.thread_extraction.loaded
        first = _critical_first(loaded)[: max(THREADS, sum(map(_is_critical, loaded)))]
        threads = (Excerpt(_name(thread.id), RECALLED) for thread in first)
        lines.append(Line("- Active Threads: ", (Group(tuple(_show_said(threads))),)))
    return lines


def _scene(background: Background) -> Iterator[Excerpt]:
    found = background.response_analysis
    scene = found.scene if found is not None else None
    if scene is not None and scene.type:
        yield from _show_said([Excerpt(_name(scene.type), SCENE)])
    if scene is not None and scene.tension is not None:
        yield Excerpt(f"Tension {scene.tension}/10", SCENE)
    alerts = found.alerts if found is not None else None
    for alert in (alerts.variety, alerts.pacing) if alerts is not None else ():
        if alert and _plain(alert, _SENTENCE):
            yield Excerpt(f"\u26a0\ufe0f {_plain(alert, _SENTENCE)}", MUST)


def _characters(background: Background) -> Iterator[Group]:
    found = background.response_analysis
    characters = found.characters if found is not None else None
    if characters is not None:
        for lead, names, rank in (
            ("In Scene: ", characters.in_scene, MUST),
            ("Mentioned: ", characters.mentioned, ASIDE),
        ):
            yield Group(
                tuple(_show_said(Excerpt(_name(name), rank) for name in names)), lead
            )


def _memories(background: Background) -> Iterator[Excerpt]:
    found = background.memory_creation
    if not _has_come(found):
        return
    made = f"Memories Created: {len(found.memories)}"
    top = max(found.memories, key=lambda memory: memory.significance, default=None)
    if top is not None:
        summary = _whole(top.summary)
        short = (
            summary if len(summary) <= _SUMMARY else f"{summary[:_SUMMARY].rstrip()}..."
        )
        said = " - ".join(
            text for text in (_name(top.character or ""), short) if text
        ) or _name(top.id)
        made += f" (Top: {said}{' ' if said else ''}sig:{top.significance})"
    yield Excerpt(made, ASIDE)


def _relationships(background: Background) -> Iterator[Excerpt]:
    found = background.relationships
    for interaction in found.interactions if found is not None else ():
        who = " \u2194 ".join(_name(name) for name in interaction.characters)
        score = "" if interaction.score is None else str(interaction.score)
        now = ", ".join(filter(None, [score, _name(interaction.tier or "")]))
        yield Excerpt(
            f"{who}: {interaction.change:+}{f' (now {now})' if now else ''}", SCENE
        )


def _threads(background: Background, immediate: Immediate) -> Iterator[Group]:
    found = background.plot_threads
    extracted = immediate.thread_extraction
    new = found.new if found is not None else ()
    yield Group(
        tuple(
            _show_said(
                Excerpt(_name(thread.id), MUST if _is_critical(thread) else RECALLED)
                for thread in new
            )
        ),
        "NEW: ",
    )
    touched: list[Thread | LoadedThread] = (
        list(found.mentioned) if found is not None else []
    )
    known = {thread.id for thread in (*new, *touched)}
    loaded = extracted.loaded if extracted is not None else ()
    touched += (
        thread for thread in loaded if _is_critical(thread) and thread.id not in known
    )
    shown = _critical_first(touched)[: max(THREADS, sum(map(_is_critical, touched)))]
    yield Group(tuple(_thread(thread) for thread in shown))


def _thread(thread: Thread | LoadedThread) -> Excerpt:
    sign, rank = (
        ("\u26a0\ufe0f", MUST) if _is_critical(thread) else ("\U0001f4cd", NEAR)
    )
    title = _plain(thread.title, _SENTENCE)
    return Excerpt(f"{sign} {_name(thread.id)}{': ' if title else ''}{title}", rank)


def _is_critical(thread: Thread | LoadedThread) -> bool:
    if thread.status is not None:
        return thread.status == CRITICAL
    left = (
        thread.consequence_countdown if isinstance(thread, Thread) else thread.countdown
    )
    return left is not None and left <= _SOON


def _critical_first(
    threads: Iterable[Thread | LoadedThread],
) -> list[Thread | LoadedThread]:
    return sorted(threads, key=lambda thread: not _is_critical(thread))


def _knowledge(background: Background) -> Iterator[Excerpt]:
    found = background.knowledge
    if not _has_come(found):
        return
    count = len(found.facts)
    subjects = ", ".join(_name(fact.subject) for fact in found.facts[:SUBJECTS])
    listed = f" ({subjects}{'...' if count > SUBJECTS else ''})" if count else ""
    yield Excerpt(
        f"Knowledge Added: {count} fact{'' if count == 1 else 's'}{listed}", ASIDE
    )


def _contradictions(background: Background) -> Iterator[Excerpt]:
    found = background.contradictions
    for conflict in found.found if found is not None else ():
        yield Excerpt(
            f"{_name(conflict.subject)}: {_side(conflict, new=True)} against {_side(conflict, new=False)}",
            NEAR,
        )


def _side(conflict: Conflict, *, new: bool) -> str:
    text, source = (
        (conflict.new, conflict.new_source)
        if new
        else (conflict.old, conflict.old_source)
    )
    return f"{_plain(text, _SENTENCE)}{f' ({_name(source)})' if source else ''}"


def _has_come(section: AnySection | None) -> TypeGuard[AnySection]:
    """Return whether an agent did its work, so that nothing found means that there is nothing."""
    return section is not None and section.status not in _UNKNOWN


def _show_said(parts: Iterable[Excerpt]) -> Iterator[Excerpt]:
    """Yield the parts of which anything is left to see."""
    return (part for part in parts if part.text)


def _name(text: str) -> str:
    return _plain(text, _NAME)


def _whole(text: str) -> str:
    """Return all of *text*; plain text is hardly ever longer, and never twice as long."""
    return _plain(text, 2 * len(text) + 1)


def _plain(text: str, limit: int) -> str:
    # Two stars would be a label, as ours are.
    return _BOLD.sub("*", plain(text, limit))
