"""What both memory agents know of language: statements and their parts, normal forms, and what is a kind of what.

Pure: text in, values out. Words and patterns are data (`data/*.toml`); no store, no model and no clock belongs here.
"""
from dataclasses import dataclass as _d
from datetime import date


@_d(frozen=True)
class Statement:
    category: str
    value: str
    text: str
    evidence: str
    polarity: str = "neutral"
    relation: str = "new"
    expiry: date | None = None
    durability: str = "long_term"


def read(text: str, *, today: date) -> tuple[Statement, ...]:
    from workers.statements.reading import read as r
    from workers.statements.wording import statement_text
    C = {"like": "food.likes", "dislike": "food.dislikes", "diet": "food.diets", "avoid": "food.avoids", "allergy": "health.allergies", "condition": "health.conditions", "need": "health.needs", "daily": "routine.daily", "timing_rule": "routine.timing_rules", "style": "general.communication_style", "interest": "general.interests", "about": "general.about", "other": "general.other"}
    return tuple(Statement(C.get(s.relation or "", ""), s.object, statement_text(s), s.evidence, s.polarity, {"tells": "new", "retracts": "ends", "clears": "forget"}[s.kind], s.expiry, s.durability) for s in r(text, today=today).statements)
