"""What the ways of asking cost: `python -m tests.story_reading.calls` prints questions and tokens a response.

The example story is told to the ten agents; a double finds two things for every list, so that answers have the size of
ordinary ones. What is asked to mend them is not counted. Tokens are those of o200k_base.
"""

import asyncio
import json
import sys
from typing import Any

from tasklore.commands.stories.example import FOLDER
from tasklore.commands.stories.files import read_response, read_story, responses_in
from tasklore.contracts.analysis.stories import StoryResponse
from tasklore.memory.rendering.tokens import counter
from tasklore.runtime.models.client import _response_format
from tasklore.runtime.models.llm import Expense, LlmRole, Reply
from tasklore.workers.agents.story.prose import sentences
from tests.story_reading.stage import Telling

#: Findings of each list, and words of its texts.
_FINDINGS = 2
_WORDS = 12
_REASONING = (
    "The scene is set, two people talk, and one of them gives something away. " * 2
)


class Double:
    """A model that answers with findings of ordinary size, and counts."""

    configured = True

    def __init__(self, response: StoryResponse) -> None:
        self.calls = self.asked = self.answered = 0
        self._sentences = [one.text for one in sentences(response.text)]

    def role(self, name: str) -> LlmRole:
        """Return a model of that name."""
        return LlmRole(model=name, temperature=None)

    async def ask(
        self, role: str, answer: Any, *, system: str, user: str, **_options: object
    ) -> Reply[Any]:
        """Answer, unless it is asked to mend what it said: then it leaves all of it out."""
        is_mending = "\nRefused." in user
        count = counter()
        body = self._fill(answer.model_json_schema(), is_mending=is_mending)
        if not is_mending:
            self.calls += 1
            self.asked += (
                count(system)
                + count(json.dumps(_response_format(answer)))
                + count(user)
            )
            self.answered += count(json.dumps(body, ensure_ascii=False))
        return Reply(answer.model_validate(body), Expense(), role, 1, 0.0)

    def _fill(
        self, schema: Any, name: str = "", place: int = 0, *, is_mending: bool = False
    ) -> Any:
        match schema["type"]:
            case "object":
                fields = schema["properties"].items()
                return {
                    key: self._fill(one, key, place, is_mending=is_mending)
                    for key, one in fields
                }
            case "array" if schema["items"]["type"] == "object":
                count = 0 if is_mending else _FINDINGS
                return [
                    self._fill(schema["items"], name, number) for number in range(count)
                ]
            case "array":
                return ["word", "other"]
            case "string" if "enum" in schema:
                return schema["enum"][0]
            case "string":
                words = self._sentences[place % len(self._sentences)].split()[:_WORDS]
                return _REASONING if name == "reasoning" else " ".join(words)
            case "boolean":
                return False
        return 5


async def measure(calls: str, most: int | None = None) -> tuple[float, float, float]:
    """Return questions, tokens asked and tokens answered of a response, on average of *most*; repairs left out."""
    telling = Telling(read_story(FOLDER), calls)
    doubles = []
    for path in responses_in(FOLDER)[:most]:
        response = read_response(path)
        doubles.append(Double(response))
        await telling.tell(response, doubles[-1])
    count = len(doubles)
    return (
        sum(one.calls for one in doubles) / count,
        sum(one.asked for one in doubles) / count,
        sum(one.answered for one in doubles) / count,
    )


if __name__ == "__main__":
    for way in ("ten", "grouped", "one"):
        questions, asked, answered = asyncio.run(measure(way))
        sys.stdout.write(
            f"| `{way}` | {questions:.1f} | {asked:,.0f} | {answered:,.0f} |\n"
        )
