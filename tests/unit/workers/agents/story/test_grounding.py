"""A finding that does not hold: it goes back once with field and cure, and then it alone is left out."""

from typing import Any

import pytest

from tasklore.contracts.errors import LlmTimeout
from tasklore.workers.agents.story.parts import lists_of
from tasklore.workers.agents.story.question import PARTS
from tasklore.workers.answers import AnswerSchema
from tests.unit.workers.agents.story.right_answers import RIGHT
from tests.unit.workers.agents.story.sample_story import RESPONSE, analysed, story
from tests.unit.workers.agents.story.test_sections import AGENTS, TIERS

#: For each section a finding of some list that does not hold: its list, what is wrong with it, and the field told of.
WRONG = (
    ("resp_analyzer", "characters", {"name": "Gandalf"}, "name"),
    ("resp_analyzer", "characters", {"presence": "hidden"}, "presence"),
    ("resp_analyzer", "moments", {"words": "Tuesday 9:15 PM"}, "words"),
    ("memory_create", "memories", {"character": "The Devil"}, "character"),
    ("memory_create", "memories", {"summary": "Mara paid 70 crowns."}, "summary"),
    ("memory_create", "memories", {"summary": "long " * 60}, "summary"),
    ("relationship", "shows", {"giver": "Mara", "receiver": "the keeper"}, "receiver"),
    ("relationship", "shows", {"direction": "sideways"}, "direction"),
    ("plot_threads", "touched", {"id": "THREAD-009"}, "id"),
    ("plot_threads", "new", {"title": "The 70 boats"}, "title"),
    ("knowledge", "facts", {"subject": "Atlantis"}, "subject"),
    ("knowledge", "facts", {"known_by": ("Gandalf",)}, "known_by"),
    (
        "contradiction",
        "contradictions",
        {"old_quotation": "Mara swam ashore"},
        "old_quotation",
    ),
    ("entity_analysis", "entities", {"name": "Gandalf"}, "name"),
    ("entity_analysis", "entities", {"name": "Lantern House", "role": "focus"}, "role"),
    ("fact_extract", "facts", {"fact": "Has 70 ships"}, "fact"),
    (
        "fact_extract",
        "facts",
        {"quotation": "I was in the boat that night"},
        "quotation",
    ),
    ("memory_extract", "memories", {"id": "MEM-999"}, "id"),
    ("thread_extract", "threads", {"id": "THREAD-999"}, "id"),
)
SECTIONS = sorted(RIGHT)


def spoilt(section: str, field: str, wrong: dict[str, Any]) -> AnswerSchema:
    """Return the right answer of *section* with the first finding of *field* changed to *wrong*."""
    answer = RIGHT[section]
    first, *others = getattr(answer, field)
    return answer.model_copy(update={field: (first.model_copy(update=wrong), *others)})


def mended(section: str, field: str) -> AnswerSchema:
    """Return the first finding of *field* alone, as it is right."""
    answer = RIGHT[section]
    empty: dict[str, object] = dict.fromkeys(lists_of(answer), ())
    return answer.model_copy(update={**empty, field: getattr(answer, field)[:1]})


@pytest.mark.parametrize(("section", "field", "wrong", "told"), WRONG)
async def test_a_finding_that_does_not_hold_goes_back_once_and_is_then_left_out(
    section: str, field: str, wrong: dict[str, Any], told: str
) -> None:
    """With the field and the cure; it is counted, and the others stand."""
    answer = spoilt(section, field, wrong)

    found, kit = await analysed(
        AGENTS[section], answer, answer, told=story(sections=TIERS)
    )

    assert (found["by"], found["left_out"], len(kit.asked)) == ("scripted", 1, 2)
    complaint = kit.asked[1].user.removeprefix(kit.asked[0].user)
    assert f"\n{field}: {{" in complaint
    assert f"\n- {told}: " in complaint
    others = RIGHT[section].model_copy(
        update={field: getattr(RIGHT[section], field)[1:]}
    )
    without, _ = await analysed(AGENTS[section], others, told=story(sections=TIERS))
    assert {**found, "left_out": None} == {**without, "left_out": None}


@pytest.mark.parametrize("section", SECTIONS)
async def test_a_quotation_that_stands_nowhere_is_no_finding(section: str) -> None:
    """Invented, of two places, half a word, nothing but signs, or the whole text."""
    field = next(
        field for field in lists_of(RIGHT[section]) if getattr(RIGHT[section], field)
    )
    for quotation in (
        "She flew away",
        "rope boat",
        "he ledge",
        "...",
        RESPONSE.text,
        "",
    ):
        answer = spoilt(section, field, {"quotation": quotation})
        found, kit = await analysed(
            AGENTS[section], answer, answer, told=story(sections=TIERS)
        )
        assert found["left_out"] == 1, quotation
        assert "- quotation: " in kit.asked[1].user


@pytest.mark.parametrize(("section", "field", "wrong", "told"), WRONG[::5])
async def test_a_finding_that_is_mended_counts_as_if_it_had_been_right(
    section: str, field: str, wrong: dict[str, Any], told: str
) -> None:
    """Also by a model that says everything once more, or something new beside it."""
    for second in (mended(section, field), RIGHT[section]):
        answers = spoilt(section, field, wrong), second
        found, _ = await analysed(AGENTS[section], *answers, told=story(sections=TIERS))
        right, _ = await analysed(
            AGENTS[section], RIGHT[section], told=story(sections=TIERS)
        )
        assert "left_out" not in found, told
        assert sorted(map(str, _leaves(found))) == sorted(map(str, _leaves(right)))


def _leaves(body: Any) -> list[Any]:
    if isinstance(body, dict):
        return [leaf for value in body.values() for leaf in _leaves(value)]
    if isinstance(body, str):
        # Of what was shown to a pair, the last comes last.
        return body.split("; ")
    return (
        [leaf for value in body for leaf in _leaves(value)]
        if isinstance(body, list)
        else [body]
    )


async def test_a_repair_that_gets_no_answer_costs_the_faulty_finding_alone() -> None:
    """What held stays."""
    answer = spoilt("knowledge", "facts", {"subject": "Atlantis"})

    found, _ = await analysed(
        AGENTS["knowledge"], answer, LlmTimeout("late"), told=story(sections=TIERS)
    )

    assert (
        found["by"],
        found["left_out"],
        [one["subj"] for one in found["facts"]],
    ) == ("scripted", 1, ["crowns"])


@pytest.mark.parametrize(
    ("quotation", "holds"),
    [
        ("let GO of the  rope", True),
        ("\u201cI let go of the rope.\u201d", True),
        ("I have never told anyone...", True),
        ("let go of the ropes", False),
    ],
)
async def test_a_quotation_may_be_typed_otherwise(quotation: str, holds: bool) -> None:
    """Its case, marks and blanks count for nothing, its words do."""
    answer = spoilt("memory_create", "memories", {"quotation": quotation})

    found, _ = await analysed(AGENTS["memory_create"], answer, answer, told=story())

    assert ("left_out" not in found) is holds


def test_what_is_no_number_or_no_text_costs_its_finding_and_not_the_answer() -> None:
    body = RIGHT["knowledge"].model_dump(mode="json")
    body["facts"][0] |= {"subject": None, "fact": 7, "known_by": "Mara"}
    read = PARTS["knowledge"].answer.model_validate(body)
    assert (read.facts[0].subject, read.facts[0].fact, read.facts[0].known_by) == (
        "",
        "7",
        ("Mara",),
    )
    body = RIGHT["memory_create"].model_dump(mode="json")
    body["memories"][0]["significance"] = "grave"
    assert (
        PARTS["memory_create"].answer.model_validate(body).memories[0].significance
        == -1
    )


async def test_fifty_findings_are_no_more_than_a_section_holds() -> None:
    """And nothing fails for it."""
    for section, answer in RIGHT.items():
        many = answer.model_copy(
            update={
                field: getattr(answer, field)[:1] * 50 for field in lists_of(answer)
            }
        )
        found, _ = await analysed(AGENTS[section], many, told=story(sections=TIERS))
        for name in (
            "memories",
            "new",
            "mentioned",
            "found",
            "tier1",
            "loaded",
            "interactions",
            "facts",
        ):
            assert len(found.get(name, ())) <= 8, (section, name)
