"""The editor: a model that is shown one fact and what was found for it, and proposes edits.

It gives an operation, a path and the words of an item; everything else of an item is made here, and whether anything of
it is done is decided by the arbiter.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path as Folder
from typing import Literal

from pydantic import JsonValue, field_validator

from contracts.edits import Decision
from contracts.messages import Fact
from memory.documents.paths import Path
from memory.rendering.quoting import plain, quoted
from workers.agents.memory_worker.finding import MAX_SAID, Finding, read_path
from workers.agents.memory_worker.prompting import Asked, ask
from workers.answers import Answer
from workers.listening.context import ListenContext

FOLDER = Folder(__file__).with_name("editor")

#: Characters of one item and of one fact that are shown: all that one can have.
_SHOWN = 2_000
#: Edits that the history keeps of an answer; the arbiter refuses answers with more than a plan may have.
_KEPT = 50

Operation = Literal["insert", "update", "delete", "no_change"]


class ProposedEdit(Answer):
    """One edit: `display` is the text of a new or changed item, empty for the others."""

    operation: Operation
    path: str = ""
    display: str = ""

    @field_validator("path", "display", mode="before")
    @classmethod
    def _read_none(cls, value: object) -> object:
        return "" if value is None else value


class Proposed(Answer):
    """What the editor answers."""

    reasoning: str
    decision: Decision
    edits: tuple[ProposedEdit, ...] = ()

    def dump(self) -> dict[str, JsonValue]:
        """Return it as the history keeps it."""
        return {
            "decision": self.decision,
            "edits": [
                {"operation": edit.operation, "path": edit.path[:MAX_SAID], "display": edit.display[:MAX_SAID]}
                for edit in self.edits[:_KEPT]
            ],
            "reasoning": self.reasoning[: 4 * MAX_SAID],
        }


@dataclass(frozen=True, slots=True)
class Target:
    """What the path of a proposed edit names; None where no document, or no place, is known by it."""

    resource_id: str | None
    path: Path | None


async def propose(context: ListenContext, fact: Fact, finding: Finding, note: str = "") -> Asked[Proposed]:
    """Return what the editor proposes for *fact*; *note* says what was wrong with its last proposal.

    Raises:
        LlmError: it did not answer.
    """
    return await ask(context, FOLDER, Proposed, question(fact, finding, note))


def question(fact: Fact, finding: Finding, note: str = "") -> str:
    """Return what the editor is asked: the fact, quoted, what was found with its present text, and where it could go.

    Paths of several documents begin with the document's id and a colon.
    """
    several = len(_documents(finding)) > 1
    lines = [f"fact: {quoted(fact.text, _SHOWN)}", "found" if finding.locations else "nothing found"]
    lines += [
        f"{_written(place.resource_id, place.path, several=several)}: {plain(place.text, _SHOWN)}"
        for place in finding.locations
    ]
    if finding.inserts:
        lines += ["insert at", *(_written(*insert, several=several) for insert in finding.inserts)]
    if note:
        lines += ["refused before", plain(note, _SHOWN)]
    return "\n".join(lines)


def target_of(text: str, finding: Finding) -> Target:
    """Return what the path in an answer names; without a document's id it is the one that was shown with that path."""
    documents = _documents(finding)
    name, colon, rest = text.strip().partition(":")
    if colon and name.removesuffix(".json") in documents:
        return Target(name.removesuffix(".json"), read_path(rest))
    path = read_path(text)
    shown = [(place.resource_id, place.path) for place in finding.locations] + list(finding.inserts)
    holding = dict.fromkeys(resource_id for resource_id, known in shown if known == path)
    if len(holding) == 1:
        return Target(next(iter(holding)), path)
    return Target(documents[0] if len(documents) == 1 else None, path)


def _documents(finding: Finding) -> Sequence[str]:
    ids = [place.resource_id for place in finding.locations] + [resource_id for resource_id, _ in finding.inserts]
    return tuple(dict.fromkeys(ids))


def _written(resource_id: str, path: Path, *, several: bool) -> str:
    return f"{resource_id}:{path}" if several else str(path)
