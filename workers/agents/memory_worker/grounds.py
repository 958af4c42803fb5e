"""What a fact entitles anybody to: read from its statements, or from single words where no pattern reads it."""

from collections.abc import Sequence
from dataclasses import dataclass

from contracts.messages import Fact
from workers.agents.memory_worker.clearing import Reach, reach_of
from workers.agents.memory_worker.cues import cue_words
from workers.agents.memory_worker.wording import words_of
from workers.statements.statement import Statement
from workers.statements.taxonomy import Taxonomy

#: Relations that say what somebody does not want.
_UNWANTED = frozenset(("dislike", "avoid", "allergy"))
#: Relations that say what somebody wants.
_WANTED = frozenset(("like", "interest"))


@dataclass(frozen=True, slots=True)
class Grounds:
    """What a fact says.

    `takes_back`: something is so no longer; `clears`: whatever fits is to go. `likes` and `dislikes`: it says so of
    something, `only_likes` and `only_dislikes` of nothing else. `diets` are those that it tells of, `objects` the other
    things it is about, and `tags` those of what it clears, none for all documents; `reaches` say what of these.
    """

    takes_back: bool = False
    clears: bool = False
    likes: bool = False
    dislikes: bool = False
    only_likes: bool = False
    only_dislikes: bool = False
    diets: tuple[str, ...] = ()
    objects: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    reaches: tuple[Reach, ...] = ()


def grounds_of(fact: Fact, statements: Sequence[Statement], taxonomy: Taxonomy) -> Grounds:
    """Return what *fact* entitles to; *statements* are what the patterns read in it."""
    if not statements:
        return _by_words(fact, taxonomy)
    told = [one for one in statements if one.kind == "tells"]
    takes_back = len(told) < len(statements)
    likes, dislikes = (any(one.relation in which for one in told) for which in (_WANTED, _UNWANTED))
    return Grounds(
        takes_back=takes_back,
        clears=any(one.kind == "clears" for one in statements),
        likes=likes,
        dislikes=dislikes,
        only_likes=likes and not (dislikes or takes_back),
        only_dislikes=not likes and (dislikes or takes_back),
        diets=tuple(one.object for one in told if one.relation == "diet"),
        objects=tuple(one.object for one in statements if one.object and one.relation != "diet"),
        tags=tuple(tag for one in statements if one.kind == "clears" for tag in one.tags),
        reaches=tuple(reach_of(one, fact) for one in statements if one.kind == "clears"),
    )


def _by_words(fact: Fact, taxonomy: Taxonomy) -> Grounds:
    """Return what single words and the extractor's own judgement say; they never say that whole lists are to go."""
    is_negative, is_positive = fact.polarity == "negative", fact.polarity == "positive"
    takes_back = bool(words_of(fact.text) & cue_words("taken_back"))
    return Grounds(
        takes_back=takes_back,
        likes=is_positive,
        dislikes=is_negative,
        only_likes=is_positive and not takes_back,
        only_dislikes=is_negative,
        objects=tuple(" ".join(match.phrase) for match in taxonomy.read(fact.text).present),
    )
