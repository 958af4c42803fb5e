"""The answer of a model: facts, after the reasoning that led to them.

Closed words stand in the schema; an answer with another one is read all the same, so that one slip costs one fact.
"""

from typing import Annotated, Literal, get_args

from pydantic import BeforeValidator, Field

from tasklore.workers.answers import AnswerSchema

#: How the person says it. Only what is stated, or follows from what they say, is learned.
Said = Literal["stated", "implied", "hearsay", "hypothetical", "joke"]
#: Its relation to a kept item.
Relation = Literal["new", "same", "updates", "ends", "adds_to", "contradicts", "forget"]
Durability = Literal["permanent", "long_term", "short_term", "momentary"]

SAID: tuple[Said, ...] = get_args(Said)
RELATIONS: tuple[Relation, ...] = get_args(Relation)
DURABILITIES: tuple[Durability, ...] = get_args(Durability)


def _read_text(value: object) -> object:
    """Take null for no text, and a number for its digits: small models do not tell them apart.

    Half of a surrogate pair is no text that could be passed on.
    """
    text = (
        "" if value is None else str(value) if isinstance(value, int | float) else value
    )
    return text.encode("utf-8", "replace").decode() if isinstance(text, str) else text


def _read_number(value: object) -> object:
    return value if isinstance(value, int) else -1


def _read_texts(value: object) -> object:
    return [] if value is None else [value] if isinstance(value, str) else value


_Text = Annotated[str, BeforeValidator(_read_text)]


def _word(words: tuple[str, ...]) -> dict[str, object]:
    return {"enum": list(words)}


class HeardFact(AnswerSchema):
    """One fact as a model words it."""

    subject: _Text = ""
    statement: _Text = ""
    category: _Text = ""
    value: _Text = ""
    quotation: _Text = ""
    turn: Annotated[int, BeforeValidator(_read_number)] = -1
    valid_from: _Text = ""
    until: _Text = ""
    durability: Annotated[_Text, Field(json_schema_extra=_word(DURABILITIES))] = (
        "long_term"
    )
    said: Annotated[_Text, Field(json_schema_extra=_word(SAID))] = "stated"
    relation: Annotated[_Text, Field(json_schema_extra=_word(RELATIONS))] = "new"
    items: Annotated[tuple[_Text, ...], BeforeValidator(_read_texts)] = ()


class Heard(AnswerSchema):
    """The facts of a batch of turns as a model words them."""

    reasoning: str
    facts: tuple[HeardFact, ...] = ()
