"""Whatever JSON a card has for parameters, neither a sentence nor an import is lost on it."""

from contextlib import suppress
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.messages import AgentCard, TaskCall, TaskCard
from tasklore.memory.long_term.card_parameters import form_of, parameters_of
from tasklore.supervisor.cards import CardIndex
from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.understanding import RuleInterpreter, Understood
from tests.understanding_cases import BUDGET, said

#: Words that the reading of schemas looks for, and those of the sentences.
KEYWORDS = (
    *(
        "properties",
        "required",
        "$defs",
        "$ref",
        "anyOf",
        "oneOf",
        "allOf",
        "enum",
        "const",
        "items",
        "type",
        "format",
    ),
    *(
        "unit",
        "aliases",
        "cues",
        "description",
        "examples",
        "default",
        "title",
        "limit",
        "spent",
        "budget",
        "x",
    ),
)
WORDS = (
    "number",
    "integer",
    "string",
    "array",
    "object",
    "boolean",
    "null",
    "date",
    "USD",
    "km",
    "limit",
    "#/$defs/x",
)

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from([10**400, -1, 0, 1])
    | st.sampled_from(WORDS)
    | st.text(max_size=8)
)
names = st.sampled_from(KEYWORDS) | st.text(max_size=4)
anything = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=6)
    ),
    max_leaves=24,
)
#: Mostly schemas, so that the reading gets beyond the first keyword.
fields = (
    st.fixed_dictionaries({}, optional=dict.fromkeys(KEYWORDS, anything)) | anything
)
schemas = st.fixed_dictionaries(
    {},
    optional={
        "type": anything,
        "properties": st.dictionaries(names, fields, max_size=4) | anything,
        "required": st.lists(names, max_size=3) | anything,
        "$defs": st.dictionaries(names, fields, max_size=3) | anything,
    },
)
parameters = schemas | st.dictionaries(names, anything, max_size=6)

GOOD = "BudgetTrackerAgent: limit 50k, spent 42k"
EXPECTED = {"budget_limit": 50000, "spent": 42000}


def an_odd_card(schema: dict[str, Any]) -> AgentCard:
    """Return a card that competes for the same words."""
    task = TaskCard(name="check", description="Check a budget.", parameters=schema)
    return AgentCard(
        agent_id="OddAgent", keywords=("budget", "odd"), tasks=(task,), digest="0"
    )


def looped(depth: int) -> dict[str, Any]:
    """Return parameters that refer to themselves in *depth* ways."""
    return {
        "properties": {"limit": {"$ref": "#/$defs/x"}},
        "$defs": {"x": {"anyOf": [{"$ref": "#/$defs/x"}] * depth}},
    }


@given(parameters, st.sampled_from(["", " km", " USD", "%", " days"]))
@example({"type": "object", "properties": {}, "required": 5}, "")
@example({"required": [[1]]}, "")
@example({"required": [{}]}, "")
@example({"properties": "x"}, "")
@example({"properties": {"limit": {"type": "number", "unit": "\x00"}}}, " km")
@example(looped(1), "")
@example(looped(40), "")
def test_no_card_costs_anybody_an_answer(schema: dict[str, Any], unit: str) -> None:
    """Checked or not, asked for or not, and in the middle of a conversation about it."""
    odd = an_odd_card(schema)
    index = CardIndex()
    index.learn(odd)
    index.learn(BUDGET)
    rules = RuleInterpreter()
    call = TaskCall(name="check", parameters={})
    for catalogue in (index.catalogue, Catalogue([odd, BUDGET])):
        found = rules.understand(GOOD, catalogue=catalogue)
        assert isinstance(found, Understood)
        assert (found.agent_id, found.task.parameters) == (
            "BudgetTrackerAgent",
            EXPECTED,
        )
        for text in (
            f"OddAgent: limit 5{unit}, x 'seven', spent [1, 2]",
            "no limit on 2026-01-01",
            "Sing a song",
        ):
            assert rules.understand(text, catalogue=catalogue) is not None
            asked = [said("assistant", "What is limit?", call, "OddAgent")]
            assert (
                rules.understand(text, catalogue=catalogue, previous=asked) is not None
            )


@given(parameters)
@example({"properties": {"x": True}})
@example(
    {
        "properties": {
            "x": {"type": ["string", "null"]},
            "y": {"anyOf": [True, {"type": "null"}]},
        }
    }
)
@example(
    {
        "properties": {
            "x": {"type": "string", "format": ["percent"], "aliases": 5, "unit": 5}
        }
    }
)
@example(
    {
        "properties": {
            "x": {"type": "string", "format": "percent", "unit": "kg", "tolerance": "1"}
        }
    }
)
@example({"properties": {"x": {"$ref": "#/$defs/x"}}, "$defs": {"x": True}})
@example({"properties": {"_x": {"type": "string"}, "model_config": {"type": "string"}}})
@example(looped(3))
def test_a_card_of_any_program_is_read_or_refused(schema: dict[str, Any]) -> None:
    """The other tasks of the agent are imported all the same."""
    form = form_of(schema)
    with suppress(InvalidInput):
        parameters_of("task", schema).read(dict.fromkeys(form.fields, "1"))
