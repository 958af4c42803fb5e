"""The story that tasks of a testing kit analyse, on a fake."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import JsonValue

    from tasklore.contracts.analysis.stories import (
        StoryBase,
        StoryChange,
        StoryResponse,
    )
    from tasklore.workers.testing.stories import FakeStories


@dataclass(frozen=True)
class KitStory:
    """Where a story begins, and the response of it that is analysed.

    `earlier` are responses before that one, `changes` what responses changed, by number and section, and `sections`
    what other agents have found in this response already.
    """

    base: "StoryBase"
    response: "StoryResponse"
    earlier: "tuple[StoryResponse, ...]" = ()
    changes: "Mapping[int, Mapping[str, StoryChange]]" = field(default_factory=dict)
    sections: "Mapping[str, JsonValue]" = field(default_factory=dict)

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of an assignment that name the response."""
        return {
            "story_id": self.base.settings.story_id,
            "response_number": self.response.number,
        }

    def put_into(self, stories: "FakeStories") -> None:
        """Make *stories* know all of it."""
        story_id = self.base.settings.story_id
        stories.put(self.base)
        for response in (*self.earlier, self.response):
            stories.add_response(story_id, response)
        for number, by_section in self.changes.items():
            for section, change in by_section.items():
                stories.note(story_id, number, section, change)
        stories.leave(story_id, self.response.number, self.sections)
