"""The story that tasks of a testing kit analyse."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tasklore.workers.testing.stores import PATIENCE_S

if TYPE_CHECKING:
    from pydantic import JsonValue

    from tasklore.contracts.analysis.stories import (
        StoryBase,
        StoryChange,
        StoryResponse,
    )
    from tasklore.workers.testing.fakes import KitServices


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

    async def put_into(self, services: "KitServices") -> None:
        """Make the stories of *services* know all of it."""
        stories = services.stories
        story_id = self.base.settings.story_id
        await stories.load(self.base)
        responses = (*self.earlier, self.response)
        for response in responses:
            await stories.put_response(story_id, response, keep=len(responses))
        for number in {*self.changes, self.response.number}:
            await self._fold(services, number)

    async def _fold(self, services: "KitServices", number: int) -> None:
        """Store the change of response *number*, and the findings in it."""
        from tasklore.memory.stories.analyses import AnalysisStore

        story_id = self.base.settings.story_id
        analyses = AnalysisStore(services.redis, deadline_s=PATIENCE_S)
        revision, _, _ = await analyses.record(story_id, number)
        found = json.dumps({"immediate": self.sections}).encode()
        await analyses.fold(
            story_id,
            number,
            revision,
            document=found if number == self.response.number else None,
            record=b"{}",
            changes=self.changes.get(number, {}),
            keep=len(self.changes) + 1,
        )
