"""Who matters for the next response: whole files for the scene's focus, condensed ones for who is mentioned.

A model chooses among entities with a file; those that the response names count whether it chooses them or not. Tiers
are relevance: how long a file is only decides between two that matter equally.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from contracts.analysis.immediate import EntityAnalysis, EntityFile
from contracts.analysis.stories import Entity
from workers import Agent, Context
from workers.agents.story.parts import Fault, Finding, Part, Text, enroll, one_of
from workers.agents.story.seen import Seen, Turn
from workers.agents.story.sharing import analyse as analyse_part
from workers.agents.story.sizes import file_tokens
from workers.answers import Answer

#: Names of each tier: files that are given whole, condensed ones, and names of those whom the first know.
MOST_WHOLE, MOST_CONDENSED, MOST_NAMED = 3, 6, 3

agent = Agent("StoryEntityAgent", description="Tells whose files the next response needs, and how much of them.")


class ChosenEntity(Finding):
    """Somebody or something that the next response needs."""

    name: Text = ""
    role: Text = one_of("focus", "relevant")


class EntityChoice(Answer):
    """On whom the scene centres, and who else matters, the most relevant first."""

    reasoning: Text
    entities: tuple[ChosenEntity, ...] = ()


class EntityPart(Part[EntityChoice, EntityAnalysis]):
    """The tiers."""

    section = "entity_analysis"
    answer = EntityChoice
    blocks = ("names", "response")
    limits = {"focus": MOST_WHOLE, "relevant": MOST_CONDENSED}  # noqa: RUF012 - a class constant

    def is_askable(self, seen: Seen) -> bool:
        """Return whether there is anybody to choose."""
        return bool(seen.entities)

    def faults(self, finding: Finding, seen: Seen) -> Iterator[Fault]:
        """Yield names without a file, and places on which a scene is to centre."""
        if isinstance(finding, ChosenEntity):
            owner = seen.handles.owner(finding.name)
            if owner is None:
                yield Fault("name", f"{finding.name[:40]!r} has no file; choose among names")
            elif finding.role == "focus" and not seen.is_character(owner):
                yield Fault("role", "focus is for characters; say relevant")

    def reduce(self, seen: Seen, answer: EntityChoice | None) -> EntityAnalysis:
        """Fill the tiers: what was chosen first, then who is named most often."""
        chosen = answer.entities if answer is not None else ()
        focus, relevant = (
            [seen.by_name[seen.owner_of(one.name)] for one in chosen if one.role == role]
            for role in ("focus", "relevant")
        )
        mentioned = [one for one in _by_count(seen.entities, seen.named) if one.file or one.text]
        people = [one for one in mentioned if one.kind == "character"]
        whole = _once(focus)[:MOST_WHOLE] or tuple(people[:MOST_WHOLE])
        condensed = _once((*relevant, *mentioned), whole)[:MOST_CONDENSED]
        near = Counter(name for one in whole for name in seen.handles.find(one.text))
        named = _once(_by_count(seen.entities, near), (*whole, *condensed))[:MOST_NAMED]
        others = len(seen.entities) - len(whole) - len(condensed) - len(named)
        return EntityAnalysis(
            tier1=tuple(map(_file, whole)),
            tier2=tuple(map(_file, condensed)),
            tier3=(*(one.name for one in named), *([f"[{others} other{'s' * (others > 1)}]"] if others else ())),
            locations=tuple(name for name in seen.named if seen.by_name[name].kind == "location"),
        )


PART = enroll(EntityPart())


@agent.task(remember=False, uses=("llm", "clock"), in_words=False)
async def analyse(_turn: Turn, context: Context) -> EntityAnalysis:
    """Return the tiers of the response, and the places it names."""
    return await analyse_part(PART, context)


def _by_count(entities: Sequence[Entity], counts: Counter[str]) -> Iterator[Entity]:
    """Yield those that are named at all: characters first, then the most named."""

    def rank(one: Entity) -> tuple[bool, int, int, str]:
        return one.kind != "character", -counts[one.name], file_tokens(one), one.name

    yield from sorted((one for one in entities if counts[one.name]), key=rank)


def _once(entities: Iterable[Entity], without: Iterable[Entity] = ()) -> tuple[Entity, ...]:
    """Return each of *entities* once, by name, and none of *without*."""
    names = {one.name for one in without}
    return tuple({one.name: one for one in entities if one.name not in names}.values())


def _file(entity: Entity) -> EntityFile:
    # An entity that was given as a document has no file to be named.
    file = {"file": entity.file} if entity.file else {}
    return EntityFile.model_validate({"name": entity.name, **file, "tokens": file_tokens(entity)})
