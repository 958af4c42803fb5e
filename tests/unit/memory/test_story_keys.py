"""Keys of stories: one tag each, none twice, and no part that can pass for another."""

import pytest

from contracts.errors import InvalidInput
from memory import keys
from memory.stories.view import CHANGING


def every_key(story_id: str) -> list[str]:
    """Return all keys of a story."""
    return [*keys.story(story_id), *(keys.story_changes(story_id, section) for section in CHANGING)]


def test_all_of_a_story_is_of_one_tag() -> None:
    """One script may touch all of it, on a cluster, too."""
    found = every_key("lighthouse")

    assert len(set(found)) == len(found)
    assert all(key.count("{") == key.count("}") == 1 and "{lighthouse}" in key for key in found)
    assert not set(found) & set(every_key("lighthouse-changes"))


@pytest.mark.parametrize("word", ["", "a}b", "a:b", "a b", "ä", "x" * 65, "a\n"])
def test_what_could_pass_for_another_key_is_refused(word: str) -> None:
    """As the id of a story, as a section and as a supervisor."""
    for make in (
        lambda: keys.story(word),
        lambda: keys.story_changes(word, "knowledge"),
        lambda: keys.story_changes("lighthouse", word),
        lambda: keys.analysing(word),
    ):
        with pytest.raises(InvalidInput, match="must be 1 to 64 letters, digits, '_' or '-'"):
            make()
