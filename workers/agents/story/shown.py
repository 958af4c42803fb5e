"""Every block that some agent of a story shows to a model, by name: each is built once, whoever shares a question."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from contracts.analysis.stories import Entity, StoryMemory
from memory.rendering.quoting import plain
from memory.stories.arithmetic import countdowns, thread_status
from memory.stories.view import ThreadState
from workers.agents.story.blocks import Block, plain_prose
from workers.agents.story.file_lines import lines_of
from workers.agents.story.prose import one_line, words
from workers.agents.story.seen import Seen

#: Letters by which two forms of a word are the same.
_STEM = 5
#: Lines of one block beyond which nothing is weighed: no question has room for more.
_MOST = 400
#: Keywords of a thread, and words of a trait, that are shown.
_KEYWORDS, _CUES = 4, 3
#: Characters of a summary, and of a title that is made of one.
LONGEST_SUMMARY, _LONGEST_TITLE = 140, 40


@dataclass(frozen=True, slots=True)
class Told:
    """A statement that was told before: of whom, in which words, and where."""

    subject: str
    text: str
    source: str

    @property
    def line(self) -> str:
        """It as a model is shown it: behind its subject, where it does not name it itself."""
        return self.text if self.subject.casefold() in self.text.casefold() else f"{self.subject}: {self.text}"


def blocks_of(names: Iterable[str], seen: Seen) -> list[Block]:
    """Return the blocks *names*, each once: the response last, so that what comes before is read first."""
    once = sorted(dict.fromkeys(names), key=list(BLOCKS).index)
    return [BLOCKS[name](seen) for name in once]


def by_nearness(lines: Sequence[str], text: str) -> list[int]:
    """Return the places of *lines*, those first that share most with *text*; rare words count more."""
    told, stems = _stems(text), [_stems(line) for line in lines[:_MOST]]
    often = Counter(stem for line in stems for stem in line)
    weights = [math.fsum(math.log1p(len(stems) / often[stem]) for stem in line & told) for line in stems]
    # Of a long line many words stand in any text.
    near = [weight / math.sqrt(1 + len(line)) for weight, line in zip(weights, stems, strict=True)]
    return sorted(range(len(near)), key=lambda place: -near[place])


def told_before(seen: Seen) -> list[Told]:
    """Return what was told before the response: in files, as known, as remembered; what is nearest to it first."""
    told = [
        *(
            Told(entity.name, line, entity.file or entity.name)
            for entity in seen.entities
            for line in lines_of(entity.text)
        ),
        *(Told(fact.subject, fact.fact, fact.source or "knowledge") for fact in seen.knowledge),
        *(
            Told(seen.owner_of(one.character), sentence, one.id)
            for one in seen.memories_before
            for sentence in dict.fromkeys((one_line(one.summary or one.text, LONGEST_SUMMARY),))
        ),
    ]
    here = [one for one in told if one.subject in seen.named or seen.handles.count(one.text).keys() & seen.named.keys()]
    # A large story is mostly about others.
    ordered = [*here, *(one for one in told if one not in here)] if len(told) <= _MOST else here
    return [ordered[place] for place in by_nearness([one.line for one in ordered], seen.response.text)]


def files_to_condense(seen: Seen) -> list[Entity]:
    """Return whose files are condensed: tier 2 where it was found, otherwise all whom the response names."""
    names = seen.tier2 if seen.tier2 is not None else tuple(seen.named)
    return [seen.by_name[name] for name in names if name in seen.by_name and seen.by_name[name].text]


def memories_of(seen: Seen) -> dict[str, list[StoryMemory]]:
    """Return the memories of each character that the response names, by full name, the latest and gravest first."""
    owned: dict[str, list[StoryMemory]] = {name: [] for name in seen.characters}
    for memory in seen.memories:
        owned.get(seen.owner_of(memory.character), []).append(memory)
    now = seen.response.number

    def rank(memory: StoryMemory) -> tuple[bool, int, int, str]:
        return memory.response != now, -memory.significance, -(memory.response or 0), memory.id

    return {name: sorted(found, key=rank) for name, found in owned.items() if found}


def title_of(memory: StoryMemory) -> str:
    """Return what a memory is called, even if it was given no title."""
    return memory.title or one_line(summary_of(memory), _LONGEST_TITLE) or memory.id


def summary_of(memory: StoryMemory) -> str:
    """Return a memory in one line."""
    return one_line(memory.summary or memory.text, LONGEST_SUMMARY)


def thread_line(state: ThreadState, seen: Seen) -> str:
    """Return what a model is shown of a thread: its id, its title, and how it stands."""
    thread, number = state.thread, seen.response.number
    left, until = countdowns(thread, number)
    standing: list[str] = [thread.priority, thread_status(thread, number, critical=seen.settings.critical_countdown)]
    standing += [] if left is None else [f"{left} left"]
    standing += [] if until is None else [f"due in {until}"]
    about = [*thread.characters[:_KEYWORDS], *thread.keywords[:_KEYWORDS]]
    standing += [f"ends when: {' or '.join(thread.resolved_by[:_KEYWORDS])}"] if thread.resolved_by else []
    return f"{thread.id}: {thread.title or thread.id} ({', '.join([*standing, *about])})"


def _response(seen: Seen) -> Block:
    return Block("response", (plain_prose(seen.response.text),), rank=0, is_prose=True)


def _names(seen: Seen) -> Block:
    first = {name: place for place, name in enumerate(seen.named)}
    ordered = sorted(seen.entities, key=lambda one: (first.get(one.name, len(first)), one.kind != "character"))
    return Block("names", [f"{one.kind}: {', '.join((one.name, *one.aliases))}" for one in ordered])


def _before(seen: Seen) -> Block:
    told = [
        f"{one.scene}, tension {plain(f'{one.tension or 0:g}')}/10, {one.timestamp or 'no time told'}"
        for one in seen.scenes[:1]
    ]
    return Block("before", told)


def _tastes(seen: Seen) -> Block:
    tables = {seen.owner_of(name): tastes for name, tastes in seen.relations.tastes.items()}
    cues = {trait: f" ({', '.join(told[:_CUES])})" for trait, told in seen.settings.traits.items()}
    lines = []
    for name in (*(one for one in seen.characters if one in tables), *(one for one in tables if one not in seen.named)):
        likes, dislikes = (
            ", ".join(f"{trait}{cues.get(trait, '')}" for trait in table)
            for table in (tables[name].likes, tables[name].dislikes)
        )
        lines.append(f"{name} likes: {likes or 'nothing'}; dislikes: {dislikes or 'nothing'}")
    return Block("tastes", lines, rank=2)


def _threads(name: str, states: Callable[[Seen], list[ThreadState]]) -> Callable[[Seen], Block]:
    def block(seen: Seen) -> Block:
        found = states(seen)
        texts = [f"{state.thread.title} {' '.join(state.thread.keywords)} {state.thread.text}" for state in found]
        critical = [place for place, state in enumerate(found) if _is_critical(state, seen)]
        order = dict.fromkeys((*critical, *by_nearness(texts, seen.response.text)))
        return Block(name, [thread_line(found[place], seen) for place in order], rank=2)

    return block


def _is_critical(state: ThreadState, seen: Seen) -> bool:
    status = thread_status(state.thread, seen.response.number, critical=seen.settings.critical_countdown)
    return status == "critical"


def _known(seen: Seen) -> Block:
    lines = [f"{fact.subject}: {fact.fact}" for fact in seen.knowledge]
    return Block("known", [lines[place] for place in by_nearness(lines, seen.response.text)], rank=3)


def _told_before(seen: Seen) -> Block:
    return Block("told_before", list(dict.fromkeys(one.line for one in told_before(seen))), rank=4)


def _memories(seen: Seen) -> Block:
    owned = memories_of(seen)
    lines = [f"{one.id} ({name}): {title_of(one)}. {summary_of(one)}" for name, found in owned.items() for one in found]
    return Block("memories", [lines[place] for place in by_nearness(lines, seen.response.text)], rank=3)


def _files(seen: Seen) -> Block:
    lines = [f"{entity.name}: {line}" for entity in files_to_condense(seen) for line in lines_of(entity.text)]
    return Block("files", [lines[place] for place in by_nearness(lines, seen.response.text)], rank=3)


def _stems(text: str) -> frozenset[str]:
    return frozenset(word.casefold()[:_STEM] for word in words(text))


#: What each block is made of, by its name, in the order in which a question has them.
BLOCKS: Mapping[str, Callable[[Seen], Block]] = {
    "names": _names,
    "tastes": _tastes,
    "before": _before,
    "open_before": _threads("open_before", lambda seen: seen.open_before),
    "open_threads": _threads("open_threads", lambda seen: seen.open_threads),
    "memories": _memories,
    "known": _known,
    "told_before": _told_before,
    "files": _files,
    "response": _response,
}
