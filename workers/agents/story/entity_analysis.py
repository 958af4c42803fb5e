"""Choose the entities that matter for the next response: whole files for the scene's focus, condensed ones for others.

A model chooses among entities with a file; those that the response names count whether it chooses them or not. Tiers
are relevance: the length of a file only decides between two that matter equally.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from tasklore import Agent
from tasklore.contracts.analysis.immediate import EntityAnalysis, EntityFile
from tasklore.contracts.analysis.stories import Entity
from tasklore.workers.agents.story.checks import FindingFault
from tasklore.workers.agents.story.parts import Finding, Part, Text, one_of
from tasklore.workers.agents.story.question import serve
from tasklore.workers.agents.story.tokens import file_tokens
from tasklore.workers.agents.story.view import StoryView
from tasklore.workers.answers import AnswerSchema

#: Names of each tier: whole files, condensed files, and names that the whole files mention.
MOST_WHOLE = 3
MOST_CONDENSED = 6
MOST_NAMED = 3


class ChosenEntity(Finding):
    """An entity that the next response needs."""

    name: Text = ""
    role: Text = one_of("focus", "relevant")


class EntityChoice(AnswerSchema):
    """All entities that a model chooses, the most relevant first."""

    reasoning: Text
    entities: tuple[ChosenEntity, ...] = ()


class EntityPart(Part[EntityChoice, EntityAnalysis]):
    """Find the tiers of the response, and the places it mentions."""

    section = "entity_analysis"
    answer = EntityChoice
    result = EntityAnalysis
    blocks = ("names", "response")
    limits = {"focus": MOST_WHOLE, "relevant": MOST_CONDENSED}  # noqa: RUF012 - a class constant

    def is_askable(self, view: StoryView) -> bool:
        """Return whether there are entities to choose."""
        return bool(view.entities)

    def faults(self, finding: Finding, view: StoryView) -> Iterator[FindingFault]:
        """Yield faults of names without a file, and of a focus that is no character."""
        if isinstance(finding, ChosenEntity):
            owner = view.handles.owner(finding.name)
            if owner is None:
                yield FindingFault(
                    "name", f"{finding.name[:40]!r} has no file; choose among names"
                )
            elif finding.role == "focus" and not view.is_character(owner):
                yield FindingFault("role", "focus is for characters; say relevant")

    def reduce(self, view: StoryView, answer: EntityChoice | None) -> EntityAnalysis:
        """Fill the tiers: chosen entities first, then the most mentioned."""
        chosen = answer.entities if answer is not None else ()
        focus, relevant = (
            [
                view.by_name[view.owner_of(one.name)]
                for one in chosen
                if one.role == role
            ]
            for role in ("focus", "relevant")
        )
        mentioned = [
            one
            for one in _by_count(view.entities, view.mentions)
            if one.file or one.text
        ]
        people = [one for one in mentioned if one.kind == "character"]
        whole = _once(focus)[:MOST_WHOLE] or tuple(people[:MOST_WHOLE])
        condensed = _once((*relevant, *mentioned), whole)[:MOST_CONDENSED]
        near = Counter(name for one in whole for name in view.handles.find(one.text))
        named = _once(_by_count(view.entities, near), (*whole, *condensed))[:MOST_NAMED]
        others = len(view.entities) - len(whole) - len(condensed) - len(named)
        return EntityAnalysis(
            tier1=tuple(map(_file, whole)),
            tier2=tuple(map(_file, condensed)),
            tier3=(
                *(one.name for one in named),
                *([f"[{others} other{'s' * (others > 1)}]"] if others else ()),
            ),
            locations=tuple(
                name for name in view.mentions if view.by_name[name].kind == "location"
            ),
        )


agent = serve(
    EntityPart(),
    Agent(
        "StoryEntityAgent",
        description="Tells whose files the next response needs, and how much of them.",
    ),
)


def _by_count(entities: Sequence[Entity], counts: Counter[str]) -> Iterator[Entity]:
    """Yield the mentioned entities: characters first, then the most mentioned."""

    def rank(one: Entity) -> tuple[bool, int, int, str]:
        return one.kind != "character", -counts[one.name], file_tokens(one), one.name

    yield from sorted((one for one in entities if counts[one.name]), key=rank)


def _once(
    entities: Iterable[Entity], without: Iterable[Entity] = ()
) -> tuple[Entity, ...]:
    """Return each of *entities* once, by name, and none of *without*."""
    names = {one.name for one in without}
    return tuple({one.name: one for one in entities if one.name not in names}.values())


def _file(entity: Entity) -> EntityFile:
    # An entity that was given as a document has no file to be named.
    file = {"file": entity.file} if entity.file else {}
    return EntityFile.model_validate(
        {"name": entity.name, **file, "tokens": file_tokens(entity)}
    )
