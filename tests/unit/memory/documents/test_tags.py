"""Tags lead to documents: those of their kinds and those they say of themselves."""

from dataclasses import dataclass, field

from memory.documents.items import Body
from memory.documents.kinds import Kinds
from memory.documents.tags import tag_form, targets

KINDS = Kinds.load()
FOOD, HEALTH, GENERAL = "resource_user_food_prefs", "resource_user_health", "resource_user_general_prefs"


@dataclass
class _Stored:
    body: Body


@dataclass
class _Snapshot:
    documents: dict[str, _Stored] = field(default_factory=dict)


def _of(**tags: object) -> _Snapshot:
    return _Snapshot({name: _Stored({"_metadata": {"tags": own}}) for name, own in tags.items()})  # type: ignore[dict-item]  # any JSON


def test_a_tag_leads_to_the_document_of_its_kind() -> None:
    """Also when nothing is stored yet."""
    assert targets(["food"], _Snapshot(), KINDS) == (FOOD,)
    assert targets(["health", "food", "food"], _Snapshot(), KINDS) == (FOOD, HEALTH)


def test_a_tag_leads_to_what_a_stored_document_says_of_itself() -> None:
    """A document of no kind is known by that alone; one of ours has its kind's tags too."""
    snapshot = _of(resource_user_music=["Music", "loud songs"], resource_user_food_prefs=["cooking"])

    assert targets(["music"], snapshot, KINDS) == ("resource_user_music",)
    assert targets(["loud-songs"], snapshot, KINDS) == ("resource_user_music",)
    assert targets(["cooking"], snapshot, KINDS) == targets(["food"], snapshot, KINDS) == (FOOD,)


def test_unknown_tags_and_none_at_all_lead_to_the_general_document() -> None:
    """No fact is lost for want of a tag."""
    assert targets(["astronomy"], _Snapshot(), KINDS) == (GENERAL,)
    assert targets([], _Snapshot(), KINDS) == (GENERAL,)
    assert targets([""], _of(resource_x=[""]), KINDS) == (GENERAL,)


def test_metadata_of_any_shape_is_read() -> None:
    """An imported file may say anything, or nothing."""
    for own in (None, "food", 5, {}, [None, 5, ["food"]]):
        assert FOOD in targets(["food"], _of(resource_user_food_prefs=own), KINDS)
    assert targets(["songs"], _of(resource_user_music="songs"), KINDS) == ("resource_user_music",)
    assert targets(["food"], _Snapshot({FOOD: _Stored({})}), KINDS) == (FOOD,)
    assert targets(["food"], _Snapshot({FOOD: _Stored({"_metadata": "x"})}), KINDS) == (FOOD,)


def test_tags_are_compared_by_their_words() -> None:
    """Case, blanks and dashes are spelling."""
    assert {tag_form(tag) for tag in ("Daily Routine", "daily_routine", " daily-routine ")} == {"daily_routine"}
