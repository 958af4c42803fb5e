"""The example story contradicts itself nowhere; what is planted in it is found, by rules and by a model."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from contracts.analysis_background import Knowledge
from contracts.errors import LlmRefused
from contracts.stories import StoryBase, StoryChange, StoryResponse
from tasklore.story_files import read_response, read_story, responses_in
from tests.architecture.tree import ROOT
from tests.unit.story.stage import analysed
from workers.agents.story.contradiction import ProposedConflict, ProposedConflicts
from workers.agents.story.contradiction import agent as contradiction
from workers.agents.story.knowledge import agent as knowledge
from workers.testing import KitStory

FOLDER = ROOT / "tasklore" / "example_story"
HELD_OUT = tomllib.loads(Path(__file__).with_name("held_out.toml").read_text("utf-8"))["planted"]


@dataclass(frozen=True)
class Planted:
    """A sentence that one response of the example story says in addition, and what it speaks against."""

    number: int
    sentence: str
    subject: str
    old: str
    old_source: str
    severity: str


PLANTED = {
    "a number, against what an earlier response told": Planted(
        27,
        "Dorrit Hale was the eldest of four sisters, and she carried soup like one.",
        "Dorrit Hale",
        "Was the eldest of seven sisters",
        "Ch3-R17",
        "major",
    ),
    "a negation, against a file": Planted(
        6,
        "Ingrid Vael never wrote the station log in pencil.",
        "Ingrid Vael",
        "Ingrid Vael writes the station log in pencil, because ink freezes in the watch room.",
        "entities/ingrid-vael.md",
        "major",
    ),
    "an exclusive word, against a memory": Planted(
        12,
        "Callum Dreyer stood in the rain in his green smock.",
        "Callum Dreyer",
        "When she turned, Callum Dreyer was standing in Tar Lane in his blue smock.",
        "MEM-000-order-on-the-door",
        "minor",
    ),
    "a relation, against a file": Planted(
        18,
        "Osric Thane was the uncle of Maren Thane, and the only family she had.",
        "Maren Thane",
        "Maren Thane is the only child of Osric Thane.",
        "entities/maren-thane.md",
        "critical",
    ),
    "a place, against a file": Planted(
        9,
        "Hanne Sorley lived at the Herring Bell, in the room with the best light.",
        "Hanne Sorley",
        "Hanne Sorley lives over the surgery in Salt Street with a one-eyed cat.",
        "entities/hanne-sorley.md",
        "major",
    ),
}

#: Sentences that sound like those and contradict nothing.
HARMLESS = (
    "Ingrid Vael climbed the first forty steps of the tower and waited for him.",
    "Dorrit Hale was sixty-three years old, and had never said so.",
    "Pia pushed her red hair under the yellow scarf.",
    "Callum Dreyer put on a black coat of the mate's, since his smock was wet.",
    "Tobias Renn raised his right hand to the lamp.",
    "The Saltwife carried four passengers that night, and one of them was not born yet.",
    "Maren Thane no longer lived at the back of the office.",
    "Mina Brask was not seventy yet when Henrik's chair broke, and would not hear of a new one.",
    "Joss Kettle had two hands, and both were full.",
    "Osric Thane did not carry the lantern.",
    "Gideon Pask looked like a doctor who had been called too late.",
    "Lucan Fairweather had become a careful man since the strike.",
    "Was Ruth Ansell thirty years old, or forty?",
    "Hanne Sorley spoke three sentences, and they were short.",
    "The Herring Bell served soup to the ferrymen on Friday night.",
)


@cache
def base() -> StoryBase:
    """Return where the example story begins."""
    return read_story(FOLDER)


@cache
def responses() -> Mapping[int, StoryResponse]:
    """Return its responses by number."""
    return {one.number: one for one in map(read_response, responses_in(FOLDER))}


async def looked_at(
    response: StoryResponse, changes: Mapping[int, Mapping[str, StoryChange]], *llm: Any
) -> tuple[dict[str, Any], Knowledge, Any]:
    """Return the contradictions of *response*, what it told, and the kit in which a model was asked; facts by rules."""
    left, _ = await analysed(knowledge, told=KitStory(base(), response, changes=changes))
    told = KitStory(base(), response, changes=changes, sections={"knowledge": left})
    found, kit = await analysed(contradiction, *llm, told=told)
    return found, Knowledge.model_validate(left), kit


@cache
def _read_so_far() -> dict[int, Mapping[str, StoryChange]]:
    return {}


async def changes_before(number: int) -> Mapping[int, Mapping[str, StoryChange]]:
    """Return what the responses before *number* told about the world, by rules; each is read once."""
    known = _read_so_far()
    for earlier in sorted(one for one in responses() if one < number and one not in known):
        before = {one: change for one, change in known.items() if one < earlier}
        left, _ = await analysed(knowledge, told=KitStory(base(), responses()[earlier], changes=before))
        known[earlier] = {"knowledge": StoryChange(facts=Knowledge.model_validate(left).facts)}
    return {one: change for one, change in known.items() if one < number}


def with_sentence(number: int, sentence: str) -> StoryResponse:
    """Return response *number* with *sentence* as its second paragraph."""
    first, blank, rest = responses()[number].text.partition("\n\n")
    return responses()[number].model_copy(update={"text": f"{first}{blank}{sentence}\n\n{rest}"})


async def test_the_clean_story_contradicts_itself_nowhere() -> None:
    """All thirty responses in order, each held to files, memories and everything that was told before it."""
    assert len(responses()) == 30
    told = 0
    for number in sorted(responses()):
        found, facts, _ = await looked_at(responses()[number], await changes_before(number))
        assert found == {"enabled": True, "by": "rules", "found": []}
        told += len(facts.facts)
    assert told > 0, "without a fact nothing was put to the test"


@pytest.mark.parametrize("kind", PLANTED)
async def test_rules_find_what_is_planted(kind: str) -> None:
    """With the right subject, source and severity, and nothing besides."""
    planted = PLANTED[kind]
    response = with_sentence(planted.number, planted.sentence)
    found, _, _ = await looked_at(response, await changes_before(planted.number))
    assert found["by"] == "rules"
    assert found["found"] == [
        {
            "subj": planted.subject,
            "old": planted.old,
            "old_src": planted.old_source,
            "new": planted.sentence,
            "new_src": response.source,
            "sev": planted.severity,
        }
    ]


@pytest.mark.parametrize("kind", PLANTED)
async def test_a_model_that_sees_it_can_point_at_it(kind: str) -> None:
    """The older statement is among those that it is shown; the section says that the model found it."""
    planted = PLANTED[kind]
    response, before = with_sentence(planted.number, planted.sentence), await changes_before(planted.number)
    _, _, kit = await looked_at(response, before, LlmRefused("only looking"))
    shown = re.search(rf"^(\d+)\. (?:{planted.subject}: )?{re.escape(planted.old)}$", kit.asked[0].user, re.MULTILINE)
    assert shown is not None
    said = ProposedConflict(
        number=int(shown[1]), quote=planted.sentence, severity=planted.severity, reason="Both cannot hold."
    )
    found, _, _ = await looked_at(response, before, ProposedConflicts(reasoning="", contradictions=(said,)))
    assert found["by"] == "scripted"
    assert [(one["subj"], one["old_src"], one["new"], one["sev"]) for one in found["found"]] == [
        (planted.subject, planted.old_source, planted.sentence, planted.severity)
    ]


@pytest.mark.parametrize("sentence", HARMLESS)
async def test_what_only_sounds_like_it_is_left_alone(sentence: str) -> None:
    """Parts, likenesses, questions, changes and other things of the same kind."""
    found, _, _ = await looked_at(with_sentence(20, sentence), {})
    assert found["found"] == []


@pytest.mark.parametrize("planted", HELD_OUT, ids=lambda one: one["sentence"][:40])
async def test_how_far_rules_reach(planted: dict[str, Any]) -> None:
    """What rules find of sentences that were not written for them, and what they are known to miss."""
    found, _, _ = await looked_at(with_sentence(20, planted["sentence"]), {})
    assert (found["found"] == []) == planted.get("missed", False)
