"""What the commands on analyses share: stories and what was found in them, open, and how a document is looked up."""

import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from contracts.analysis.document import AnalysisDocument
from contracts.errors import InvalidInput, UnknownStory
from contracts.identifiers import checked_name
from memory.stories.analyses import AnalysisStore
from memory.stories.store import StoryStore
from runtime.servers import valkey
from tasklore.places import current_endpoints, demand_listener

#: Seconds for one look: a person waits, and an answer late is better than none.
_DEADLINE_S = 5.0


@dataclass(frozen=True, slots=True)
class StoryStores:
    """Where stories and their analyses are kept, open."""

    stories: StoryStore
    analyses: AnalysisStore

    async def found(self, story_id: str, number: int | None = None) -> AnalysisDocument:
        """Return the analysis of response *number*, None is the latest one that was analysed.

        Raises:
            InvalidInput: *story_id* is none, or nothing is kept of it; the message names what is.
            MemoryUnavailable: Redis did not answer.
        """
        try:
            numbers = await self.analyses.numbers(checked_name(story_id, "STORY"))
        except UnknownStory as error:
            raise UnknownStory(f"{error} (a file would be named with a slash or a dot: ./{story_id})") from error
        if not numbers:
            raise InvalidInput(f"nothing of story {story_id!r} was analysed; `tasklore analysis run STORY_DIR` does")
        wanted = numbers[-1] if number is None else number
        document = await self.analyses.read(story_id, wanted)
        if document is None:
            raise InvalidInput(
                f"no analysis of response {wanted} of {story_id!r} is kept; there are {_ranges(numbers)}"
            )
        return document


@contextlib.asynccontextmanager
async def open_stores(redis_url: str | None = None) -> AsyncIterator[StoryStores]:
    """Open stories and analyses at *redis_url*; None: of the system that runs here.

    Raises:
        Unreachable: there is none, or its Redis does not answer.
    """
    url = redis_url or current_endpoints().redis_url
    await demand_listener(url)
    async with valkey.connect(url, name="tasklore-analysis", deadline_s=2 * _DEADLINE_S) as client:
        await client.check()
        yield stores_on(client)


def stores_on(client: valkey.Valkey) -> StoryStores:
    """Return stories and analyses over a connection that is open."""
    return StoryStores(StoryStore(client, deadline_s=_DEADLINE_S), AnalysisStore(client, deadline_s=_DEADLINE_S))


def _ranges(numbers: Sequence[int]) -> str:
    """Return sorted *numbers* as people write them: "3, 7 to 12"."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1] = [runs[-1][0], number]
        else:
            runs.append([number, number])
    return ", ".join(str(first) if first == last else f"{first} to {last}" for first, last in runs)
