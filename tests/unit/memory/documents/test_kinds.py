"""Resource kinds are data: ours, and those of a folder; tags lead to their documents."""

from dataclasses import dataclass, field
from pathlib import Path as File

import pytest

from tasklore.contracts.errors import ConfigurationError
from tasklore.memory.documents.items import METADATA, Body
from tasklore.memory.documents.kinds import Kinds
from tasklore.memory.documents.tags import tag_form, targets

FOOD = "resource_user_food_prefs"
ROUTINE = "resource_user_routine"


HEALTH = "resource_user_health"
GENERAL = "resource_user_general_prefs"


MUSIC = """
resource_id = "resource_user_music"
title = "Music"
tags = ["music"]
[[places]]
path = "music.bands"
relation = "like"
meaning = "bands that the user likes"
"""


def _folder(tmp_path: File, **texts: str) -> File:
    for name, text in texts.items():
        (tmp_path / f"{name}.toml").write_text(text, "utf-8")
    return tmp_path


def test_what_must_not_be_lost_is_protected_and_what_is_protected_is_pinned() -> None:
    """Allergies, conditions, needs, diets and who the person is."""
    places = [place for kind in Kinds.load().by_id.values() for place in kind.places]

    assert {str(place.path) for place in places if place.protected} == {
        "food.diets",
        "general.birthday",
        "general.name",
        "health.allergies",
        "health.conditions",
        "health.needs",
    }
    assert {
        str(place.path) for place in places if place.pinned and not place.protected
    } == {
        "general.communication_style",
        "general.language",
    }


def test_headings_of_one_kind_mean_one_place_each() -> None:
    """Else an older file could be read in two ways."""
    for kind in Kinds.load().by_id.values():
        names = [
            name
            for place in kind.places
            for name in {str(place.path.last).replace("_", " "), *place.headings}
        ]
        assert len(names) == len(set(names)), kind.resource_id


def test_a_place_is_found_by_relation_in_one_document_or_in_all() -> None:
    """A place that takes a relation for want of another comes second; a kind may have none."""
    kinds = Kinds.load()

    def where(relation: str, resource_id: str | None = None) -> str | None:
        place = kinds.place_for(relation, resource_id)
        return None if place is None else str(place.path)

    assert where("like") == "food.likes"
    assert where("like", GENERAL) == "general.interests"
    assert where("dislike", GENERAL) == "general.other"
    assert where("like", ROUTINE) is None
    assert where("like", "resource_unknown") is None
    assert where("allergy", f"{HEALTH}.json") == "health.allergies"
    assert where("nonsense") is None


def test_a_folder_adds_a_kind_whose_template_follows_from_its_places(
    tmp_path: File,
) -> None:
    """Shipped ones stay."""
    kinds = Kinds.load(_folder(tmp_path, music=MUSIC))

    assert kinds.ids[-1] == "resource_user_music"
    assert len(kinds.ids) == len(Kinds.load().ids) + 1
    music = kinds.by_id["resource_user_music"]
    assert music.template["music"] == {"bands": []}
    assert not music.places[0].single


def test_a_folder_replaces_a_kind_of_the_same_id(tmp_path: File) -> None:
    """The later one counts, in the place of the earlier."""
    mine = MUSIC.replace("resource_user_music", FOOD).replace(
        "meaning", "single = true\nmeaning"
    )
    kinds = Kinds.load(_folder(tmp_path, mine=mine))

    assert len(kinds.ids) == len(Kinds.load().ids)
    assert kinds.by_id[FOOD].title == "Music"
    assert kinds.by_id[FOOD].places[0].single


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("title = ", "music.toml is not valid TOML"),
        (MUSIC.replace("title", "titel"), "title: add it; titel: no such field"),
        (MUSIC.replace("music.bands", "music.*"), "places.0.path.*character 7"),
        (
            MUSIC.replace("music.bands", "_metadata.bands"),
            "places.0.path.*cannot hold items",
        ),
        (f'{MUSIC}opposite = "dislike"', "places.0.opposite.*'dislike'.*add one"),
        (
            f"{MUSIC}[template.music]\nsongs = []",
            r"places.0.path: 'music.bands' is not in the template; add `bands = \[\]`",
        ),
        (f"{MUSIC}[template._metadata]\nx = 1", "template._metadata"),
        (
            MUSIC.replace("title", "catch_all = true\ntitle"),
            "exactly one kind must say `catch_all",
        ),
    ],
)
def test_a_wrong_file_is_refused_with_its_name_the_field_and_the_cure(
    tmp_path: File, text: str, named: str
) -> None:
    """A process does not start with it."""
    with pytest.raises(ConfigurationError, match=named) as raised:
        Kinds.load(_folder(tmp_path, music=text))
    assert "music.toml" in str(raised.value) or "catch_all" in named


def test_a_folder_that_is_not_there_or_not_text_is_refused(tmp_path: File) -> None:
    """The message names it."""
    with pytest.raises(ConfigurationError, match="nowhere"):
        Kinds.load(tmp_path / "nowhere")
    (tmp_path / "x.toml").write_bytes(b"\xff")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        Kinds.load(tmp_path)


def test_an_imported_document_gets_the_places_it_lacks_and_keeps_what_it_has() -> None:
    """At reading: nothing is replaced, the body itself is left as it is, and its parts are shared."""
    likes = ["tea"]
    body: Body = {"food": {"likes": likes, "diets": "none"}, "extra": 1}

    whole = Kinds.load().by_id[FOOD].complete(body)

    assert whole["food"] == {
        "likes": ["tea"],
        "diets": "none",
        "dislikes": [],
        "avoids": [],
    }
    assert next(iter(whole)) == METADATA
    assert whole["extra"] == 1
    assert body == {"food": {"likes": ["tea"], "diets": "none"}, "extra": 1}
    assert isinstance(whole["food"], dict)
    assert whole["food"]["likes"] is likes


def test_completing_gives_every_user_a_template_of_their_own() -> None:
    """Nothing of one can show up with another."""
    kind = Kinds.load().by_id[FOOD]
    one = kind.complete({})
    other = kind.complete({})

    assert one == other == kind.template
    assert one["food"] is not other["food"]
    assert one["food"] is not kind.template["food"]


KINDS = Kinds.load()


@dataclass
class _Stored:
    body: Body


@dataclass
class _Snapshot:
    documents: dict[str, _Stored] = field(default_factory=dict)


def _of(**tags: object) -> _Snapshot:
    return _Snapshot(
        {name: _Stored({"_metadata": {"tags": own}}) for name, own in tags.items()}
    )  # type: ignore[dict-item]  # any JSON


def test_a_tag_leads_to_the_document_of_its_kind() -> None:
    """Also when nothing is stored yet."""
    assert targets(["food"], _Snapshot(), KINDS) == (FOOD,)
    assert targets(["health", "food", "food"], _Snapshot(), KINDS) == (FOOD, HEALTH)


def test_a_tag_leads_to_what_a_stored_document_says_of_itself() -> None:
    """A document of no kind is known by that alone; one of ours has its kind's tags too."""
    snapshot = _of(
        resource_user_music=["Music", "loud songs"],
        resource_user_food_prefs=["cooking"],
    )

    assert targets(["music"], snapshot, KINDS) == ("resource_user_music",)
    assert targets(["loud-songs"], snapshot, KINDS) == ("resource_user_music",)
    assert (
        targets(["cooking"], snapshot, KINDS)
        == targets(["food"], snapshot, KINDS)
        == (FOOD,)
    )


def test_unknown_tags_and_none_at_all_lead_to_the_general_document() -> None:
    """No fact is lost for want of a tag."""
    assert targets(["astronomy"], _Snapshot(), KINDS) == (GENERAL,)
    assert targets([], _Snapshot(), KINDS) == (GENERAL,)
    assert targets([""], _of(resource_x=[""]), KINDS) == (GENERAL,)


def test_metadata_of_any_shape_is_read() -> None:
    """An imported file may say anything, or nothing."""
    for own in (None, "food", 5, {}, [None, 5, ["food"]]):
        assert FOOD in targets(["food"], _of(resource_user_food_prefs=own), KINDS)
    assert targets(["songs"], _of(resource_user_music="songs"), KINDS) == (
        "resource_user_music",
    )
    assert targets(["food"], _Snapshot({FOOD: _Stored({})}), KINDS) == (FOOD,)
    assert targets(["food"], _Snapshot({FOOD: _Stored({"_metadata": "x"})}), KINDS) == (
        FOOD,
    )


def test_tags_are_compared_by_their_words() -> None:
    """Case, blanks and dashes are spelling."""
    assert {
        tag_form(tag) for tag in ("Daily Routine", "daily_routine", " daily-routine ")
    } == {"daily_routine"}
