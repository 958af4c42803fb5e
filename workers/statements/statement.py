"""What a sentence says about the person it is about, as a value."""

from dataclasses import dataclass
from datetime import date
from typing import Literal

Kind = Literal["tells", "retracts", "clears"]
Relation = Literal[
    "like", "dislike", "diet", "avoid", "allergy", "condition", "need", "daily", "timing_rule", "style", "interest",
    "about", "other",
]  # fmt: skip
Polarity = Literal["positive", "negative", "neutral"]
Durability = Literal["permanent", "long_term", "short_term", "momentary"]


@dataclass(frozen=True, slots=True)
class Statement:
    """One thing said about a person.

    `kind` is `tells` (it is so), `retracts` (this one is so no longer) or `clears` (whatever fits is to go).
    `object` is what `relation` holds of, as it was worded and without its article: a thing ("omelettes"), or for
    `daily`, `about` and `other` what one says of the user ("gets up at 6:30", "name is Ana").
    Of `clears`, `relation` None means all places, and `object` "" everything in them; `tags` then say of which
    documents, none meaning all. "All my preferences" are several: one for each relation that tells a taste (like,
    dislike, diet, avoid, style, interest), with `object` "", so that a name, an illness or a routine stays.
    `tags` are empty when no data file knows the topic. `expiry` is the last day on which it holds, None for no end.
    `evidence` is the part of the text that says it, letter by letter.
    """

    kind: Kind
    relation: Relation | None
    object: str
    evidence: str
    polarity: Polarity = "neutral"
    durability: Durability = "long_term"
    expiry: date | None = None
    tags: tuple[str, ...] = ()
