"""Older Markdown memories become documents, and nothing of them is lost."""

from datetime import date

import pytest
from pydantic import JsonValue

from examples.migrate_memories.older_markdown import OlderDocument, read
from tasklore.contracts.errors import ConfigurationError
from tasklore.memory.documents.items import METADATA, Body
from tasklore.memory.documents.kinds import Kinds
from tasklore.memory.documents.paths import lookup, parse

KINDS = Kinds.load()
DAY = date(2025, 1, 1)
FOOD = "resource_user_food_prefs"


def _read(text: str, name: str = f"{FOOD}.md") -> OlderDocument:
    return read(text, KINDS, name=name, added=DAY)


def _at(document: OlderDocument, path: str) -> list[Body]:
    items = lookup(document.body, parse(path))
    assert isinstance(items, list)
    return [item for item in items if isinstance(item, dict)]


def _displays(document: OlderDocument, path: str) -> list[JsonValue]:
    return [item["display"] for item in _at(document, path)]


def test_entries_under_a_known_heading_become_items_of_its_place() -> None:
    """With whatever bullet, with and without bold type, over several lines."""
    made = _read(
        "# Food Preferences\n\n## Likes\n- **Pasta** (especially `carbonara`)\n* Sushi\n  on Fridays\n1. Pho\n\n"
        "Dislikes:\n---------\n+ Cilantro\n"
    )

    assert _displays(made, "food.likes") == [
        "Pasta (especially carbonara)",
        "Sushi on Fridays",
        "Pho",
    ]
    assert _displays(made, "food.dislikes") == ["Cilantro"]
    assert _at(made, "food.likes")[0] == {
        "item": "pasta_especially_carbonara",
        "display": "Pasta (especially carbonara)",
        "added": "2025-01-01",
        "expiry": None,
        "confidence": 1.0,
        "durability": "long_term",
        "source": f"imported:{FOOD}.md",
    }
    assert made.unparsed == ()
    assert made.resource_id == FOOD


def test_headings_without_a_place_stay_with_their_items() -> None:
    """As `group`: below the place that they stand under, else in the list for anything else, and listed."""
    made = _read(
        "## Likes\n### Italian\n- pasta\n#### Soups\n- minestrone\n## Breakfast\n- eggs\n## Dislikes\n- liver\n"
    )

    assert [(item["display"], item["group"]) for item in _at(made, "food.likes")] == [
        ("pasta", "Italian"),
        ("minestrone", "Italian / Soups"),
    ]
    assert [(item["display"], item["group"]) for item in _at(made, "food.other")] == [
        ("eggs", "Breakfast")
    ]
    assert "group" not in _at(made, "food.dislikes")[0]
    assert [(one.line, one.text, one.kept_at) for one in made.unparsed] == [
        (7, "eggs", "food.other")
    ]


def test_entries_below_an_entry_are_its_details_or_its_list() -> None:
    """An entry that ends in a colon is a heading; one that names a place leads there."""
    made = _read(
        "## Likes\n- pasta\n  - with guanciale\n    - never bacon\n- Pizza:\n\t- Margherita\n- Dislikes:\n  - liver\n"
        "- **Avoid**: shellfish\n"
    )

    pasta, margherita = _at(made, "food.likes")
    assert pasta["details"] == ["with guanciale", "with guanciale: never bacon"]
    assert (margherita["display"], margherita["group"]) == ("Margherita", "Pizza")
    assert _displays(made, "food.dislikes") == ["liver"]
    assert _displays(made, "food.avoids") == ["shellfish"]


def test_notes_behind_an_entry_become_its_fields() -> None:
    """Of the brackets at its end those that say nothing else."""
    made = _read(
        "## Likes\n- a (added 2024-03-01, until 2026-12-31)\n- b [confidence: 80%; short-term]\n"
        "- c <!-- noted 2024-05-05 -->\n"
        "- d (with cheese)\n- e (until 2026-02-30)\n- f (until 2026-01-01, with cheese)\n- (until 2026-01-01)\n"
    )

    a, b, c, *others = _at(made, "food.likes")
    assert (a["display"], a["added"], a["expiry"]) == ("a", "2024-03-01", "2026-12-31")
    assert (b["display"], b["confidence"], b["durability"]) == ("b", 0.8, "short_term")
    assert (c["display"], c["added"]) == ("c", "2024-05-05")
    assert [item["display"] for item in others] == [
        "d (with cheese)",
        "e (until 2026-02-30)",
        "f (until 2026-01-01, with cheese)",
        "(until 2026-01-01)",
    ]
    assert {item["expiry"] for item in others} == {None}


def test_front_matter_becomes_metadata() -> None:
    """Its day is that of the items; a name of a place leads there; anything else is kept as text and listed."""
    made = _read(
        "---\nresource_id: resource_user_health\ntags: [health, Body]\nlast_updated: 2024-11-02\ncountry: no\n"
        "allergies:\n  - nuts\n  - {pollen: birch}\n---\n- tired\n",
        "notes.md",
    )

    assert made.resource_id == "resource_user_health"
    assert made.body[METADATA] == {
        "resource_id": "resource_user_health",
        "tags": ["health", "Body"],
        "last_updated": "2024-11-02",
        "revision": 0,
        "front_matter": {"country": "no"},
    }
    assert _displays(made, "health.allergies") == ["nuts", "pollen: birch"]
    assert _at(made, "health.allergies")[0]["added"] == "2024-11-02"
    assert [(one.line, one.text, one.kept_at) for one in made.unparsed] == [
        (5, "country: no", "_metadata.front_matter"),
        (10, "tired", "health.other"),
    ]


def test_a_file_of_no_kind_becomes_a_document_of_its_own() -> None:
    """Everything in one list; a name that can be no resource id is refused."""
    made = _read("- feed the cat\n", "resource_user_pets.md")

    assert made.resource_id == "resource_user_pets"
    assert _displays(made, "pets.other") == ["feed the cat"]
    with pytest.raises(ConfigurationError, match="resource_id"):
        _read("- x\n", "to do.md")


def test_a_text_that_no_document_takes_becomes_several_items() -> None:
    """Cut between words, and whole again when they are joined."""
    text = " ".join(f"word{number}" for number in range(600))
    made = _read(f"## Likes\n- {text}\n- {'x' * 5_000}\n")

    pieces = _displays(made, "food.likes")
    assert all(isinstance(piece, str) and len(piece) <= 2_000 for piece in pieces)
    joined = " ".join(str(piece) for piece in pieces)
    assert joined.replace(" ", "") == text.replace(" ", "") + "x" * 5_000
    assert joined.startswith(text[:1_500])
