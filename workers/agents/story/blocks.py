"""Blocks of a question: lines of data between marks that they cannot imitate, cut to a budget of tokens.

Each block is built once by name, however many sections share the question.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tasklore.contracts.analysis.stories import Entity, StoryMemory
from tasklore.memory.rendering.quoting import plain
from tasklore.memory.stories.arithmetic import countdowns, thread_status
from tasklore.memory.stories.view import ThreadState
from tasklore.workers.agents.story.markdown import lines_of
from tasklore.workers.agents.story.prose import clip, one_line, words
from tasklore.workers.agents.story.tokens import count_tokens
from tasklore.workers.agents.story.view import StoryView

#: Characters of one line: two long sentences.
_LINE = 300
#: Characters of the name between marks.
_MARK = 60
_ANGLES = str.maketrans("<>", "\u2039\u203a")
#: Letters by which two forms of a word are the same.
_STEM = 5
#: Lines of one block beyond which none is weighed: no question has room for more.
_MOST = 400
#: Keywords of a thread, and words of a trait, that are shown.
_KEYWORDS = 4
_CUES = 3
#: Characters of a summary, and of a title made from one.
LONGEST_SUMMARY = 140
_LONGEST_TITLE = 40


@dataclass(frozen=True, slots=True)
class PromptBlock:
    """Data that a model is shown: `lines` between marks that carry its `name`.

    The higher its `rank`, the sooner its last lines are left out where not all fits. `is_prose` marks the response
    itself: it is one text, and has a budget of its own.
    """

    name: str
    lines: Sequence[str]
    rank: int = 1
    is_prose: bool = False

    @property
    def text(self) -> str:
        """The block as it stands in a question, empty when no line is left."""
        if not self.lines:
            return ""
        lines = (
            self.lines if self.is_prose else [plain_line(line) for line in self.lines]
        )
        # Names of a story are data, too.
        mark = plain(self.name, _MARK)
        return "\n".join((f"<{mark}>", *lines, f"</{mark}>"))


@dataclass(frozen=True, slots=True)
class EarlierStatement:
    """A statement from before the response: its subject, its words, and its source."""

    subject: str
    text: str
    source: str

    @property
    def line(self) -> str:
        """The statement as a model is shown it: behind its subject, where it does not name it itself."""
        return (
            self.text
            if self.subject.casefold() in self.text.casefold()
            else f"{self.subject}: {self.text}"
        )


def plain_prose(text: str) -> str:
    """Return a response as it is shown: it cannot end the marks that it stands between."""
    return text.translate(_ANGLES)


def plain_line(line: str) -> str:
    """Return *line* as it is shown: one line of visible signs."""
    return plain(line, _LINE)


def fit(
    blocks: Sequence[PromptBlock], prose_tokens: int, tokens: int
) -> tuple[PromptBlock, ...]:
    """Return *blocks* with the response in at most *prose_tokens*, and all other lines in at most *tokens*.

    Of a longer response the beginning and the end are kept; last lines of the highest rank go first.
    """
    kept = list[PromptBlock]()
    left = tokens
    for block in blocks:
        mark = plain(block.name, _MARK)
        left -= count_tokens(f"<{mark}>\n\n</{mark}>\n")
        if block.is_prose:
            block = replace(
                block, lines=tuple(clip(line, prose_tokens) for line in block.lines)
            )
        else:
            left -= sum(map(_line_tokens, block.lines))
        kept.append(block)
    for place in sorted(range(len(kept)), key=lambda place: -kept[place].rank):
        if kept[place].is_prose:
            continue
        lines = list(kept[place].lines)
        while lines and left < 0:
            left += _line_tokens(lines.pop())
        kept[place] = replace(kept[place], lines=tuple(lines))
    return tuple(kept)


def _line_tokens(line: str) -> int:
    # One more for the end of the line.
    return count_tokens(plain_line(line)) + 1


def blocks_of(names: Iterable[str], view: StoryView) -> list[PromptBlock]:
    """Return the blocks *names*, each once: the response last, so that older texts are read first."""
    once = sorted(dict.fromkeys(names), key=list(BLOCKS).index)
    return [BLOCKS[name](view) for name in once]


def by_nearness(lines: Sequence[str], text: str) -> list[int]:
    """Return the places of *lines*, those first that share most with *text*; rare words count more."""
    stems_of_text = _stems(text)
    stems = [_stems(line) for line in lines[:_MOST]]
    often = Counter(stem for line in stems for stem in line)
    weights = [
        math.fsum(math.log1p(len(stems) / often[stem]) for stem in line & stems_of_text)
        for line in stems
    ]
    # Of a long line many words stand in any text.
    near = [
        weight / math.sqrt(1 + len(line))
        for weight, line in zip(weights, stems, strict=True)
    ]
    return sorted(range(len(near)), key=lambda place: -near[place])


def _stems(text: str) -> frozenset[str]:
    return frozenset(word.casefold()[:_STEM] for word in words(text))


def earlier_statements(view: StoryView) -> list[EarlierStatement]:
    """Return statements of files, knowledge and memories from before the response, the nearest to it first."""
    statements = [
        EarlierStatement(entity.name, line, entity.file or entity.name)
        for entity in view.entities
        for line in lines_of(entity.text)
    ]
    statements += [
        EarlierStatement(fact.subject, fact.fact, fact.source or "knowledge")
        for fact in view.knowledge
    ]
    statements += [
        EarlierStatement(
            view.owner_of(one.character),
            one_line(one.summary or one.text, LONGEST_SUMMARY),
            one.id,
        )
        for one in view.memories_before
    ]
    names = view.mentions.keys()
    here = [
        one
        for one in statements
        if one.subject in names or view.handles.count(one.text).keys() & names
    ]
    # A large story is mostly about others.
    ordered = (
        [*here, *(one for one in statements if one not in here)]
        if len(statements) <= _MOST
        else here
    )
    return [
        ordered[place]
        for place in by_nearness([one.line for one in ordered], view.response.text)
    ]


def files_to_condense(view: StoryView) -> list[Entity]:
    """Return the entities whose files are condensed: tier 2 where there is one, otherwise all that are mentioned."""
    names = view.tier2 if view.tier2 is not None else tuple(view.mentions)
    return [
        view.by_name[name]
        for name in names
        if name in view.by_name and view.by_name[name].text
    ]


def memories_of(view: StoryView) -> dict[str, list[StoryMemory]]:
    """Return the memories of each character that the response names, by full name, the latest and gravest first."""
    owned: dict[str, list[StoryMemory]] = {name: [] for name in view.characters}
    for memory in view.memories:
        owned.get(view.owner_of(memory.character), []).append(memory)
    now = view.response.number

    def rank(memory: StoryMemory) -> tuple[bool, int, int, str]:
        return (
            memory.response != now,
            -memory.significance,
            -(memory.response or 0),
            memory.id,
        )

    return {name: sorted(found, key=rank) for name, found in owned.items() if found}


def title_of(memory: StoryMemory) -> str:
    """Return the title of a memory, made from its summary when it has none."""
    return memory.title or one_line(summary_of(memory), _LONGEST_TITLE) or memory.id


def summary_of(memory: StoryMemory) -> str:
    """Return a memory in one line."""
    return one_line(memory.summary or memory.text, LONGEST_SUMMARY)


def status_of(state: ThreadState, view: StoryView) -> str:
    """Return the status of a thread after the response, such as "critical"."""
    return thread_status(
        state.thread, view.response.number, critical=view.settings.critical_countdown
    )


def _thread_line(state: ThreadState, view: StoryView) -> str:
    """Return a thread as a model is shown it: its id, its title, and its status."""
    thread = state.thread
    left, until = countdowns(thread, view.response.number)
    facts = [thread.priority, status_of(state, view)]
    facts += [] if left is None else [f"{left} left"]
    facts += [] if until is None else [f"due in {until}"]
    facts += (
        [f"ends when: {' or '.join(thread.resolved_by[:_KEYWORDS])}"]
        if thread.resolved_by
        else []
    )
    about = [*thread.characters[:_KEYWORDS], *thread.keywords[:_KEYWORDS]]
    return f"{thread.id}: {thread.title or thread.id} ({', '.join([*facts, *about])})"


def _nearest(
    name: str, lines: Sequence[str], view: StoryView, rank: int
) -> PromptBlock:
    return PromptBlock(
        name, [lines[place] for place in by_nearness(lines, view.response.text)], rank
    )


def _response(view: StoryView) -> PromptBlock:
    return PromptBlock(
        "response", (plain_prose(view.response.text),), rank=0, is_prose=True
    )


def _names(view: StoryView) -> PromptBlock:
    first = {name: place for place, name in enumerate(view.mentions)}
    ordered = sorted(
        view.entities,
        key=lambda one: (first.get(one.name, len(first)), one.kind != "character"),
    )
    return PromptBlock(
        "names",
        [f"{one.kind}: {', '.join((one.name, *one.aliases))}" for one in ordered],
    )


def _before(view: StoryView) -> PromptBlock:
    lines = [
        f"{one.scene}, tension {plain(f'{one.tension or 0:g}')}/10, {one.timestamp or 'no time told'}"
        for one in view.scenes[:1]
    ]
    return PromptBlock("before", lines)


def _tastes(view: StoryView) -> PromptBlock:
    tables = {
        view.owner_of(name): tastes for name, tastes in view.relations.tastes.items()
    }
    cues = {
        trait: f" ({', '.join(cues[:_CUES])})"
        for trait, cues in view.settings.traits.items()
    }

    def listed(table: Iterable[str]) -> str:
        return (
            ", ".join(f"{trait}{cues.get(trait, '')}" for trait in table) or "nothing"
        )

    here = [name for name in view.characters if name in tables]
    ordered = [*here, *(name for name in tables if name not in view.mentions)]
    lines = [
        f"{name} likes: {listed(tables[name].likes)}; dislikes: {listed(tables[name].dislikes)}"
        for name in ordered
    ]
    return PromptBlock("tastes", lines, rank=2)


def _threads(
    name: str, states: Callable[[StoryView], list[ThreadState]]
) -> Callable[[StoryView], PromptBlock]:
    def block(view: StoryView) -> PromptBlock:
        found = states(view)
        texts = [
            f"{state.thread.title} {' '.join(state.thread.keywords)} {state.thread.text}"
            for state in found
        ]
        critical = [
            place
            for place, state in enumerate(found)
            if status_of(state, view) == "critical"
        ]
        order = dict.fromkeys((*critical, *by_nearness(texts, view.response.text)))
        return PromptBlock(
            name, [_thread_line(found[place], view) for place in order], rank=2
        )

    return block


def _knowledge(view: StoryView) -> PromptBlock:
    return _nearest(
        "known",
        [f"{fact.subject}: {fact.fact}" for fact in view.knowledge],
        view,
        rank=3,
    )


def _statements(view: StoryView) -> PromptBlock:
    return PromptBlock(
        "told_before",
        list(dict.fromkeys(one.line for one in earlier_statements(view))),
        rank=4,
    )


def _memories(view: StoryView) -> PromptBlock:
    owned = memories_of(view)
    lines = [
        f"{one.id} ({name}): {title_of(one)}. {summary_of(one)}"
        for name, found in owned.items()
        for one in found
    ]
    return _nearest("memories", lines, view, rank=3)


def _files(view: StoryView) -> PromptBlock:
    lines = [
        f"{entity.name}: {line}"
        for entity in files_to_condense(view)
        for line in lines_of(entity.text)
    ]
    return _nearest("files", lines, view, rank=3)


#: The builder of each block, by its name, in the order in which a question has them.
BLOCKS: Mapping[str, Callable[[StoryView], PromptBlock]] = {
    "names": _names,
    "tastes": _tastes,
    "before": _before,
    "open_before": _threads("open_before", lambda view: view.open_before),
    "open_threads": _threads("open_threads", lambda view: view.open_threads),
    "memories": _memories,
    "known": _knowledge,
    "told_before": _statements,
    "files": _files,
    "response": _response,
}
