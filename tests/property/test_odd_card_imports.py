"""Whatever JSON a card has for parameters: an import by it ends in a class that reads, or in a refusal in words."""

from contextlib import suppress
from typing import Any

from hypothesis import example, given, settings

from contracts.errors import InvalidInput
from tasklore.agents.card_parameters import form_of, parameters_of
from tests.property.test_odd_cards import looped, parameters


@settings(max_examples=100, deadline=None)
@given(parameters)
@example({"properties": {"x": True}})
@example({"properties": {"x": {"type": ["string", "null"]}, "y": {"anyOf": [True, {"type": "null"}]}}})
@example({"properties": {"x": {"type": "string", "format": ["percent"], "aliases": 5, "unit": 5}}})
@example({"properties": {"x": {"type": "string", "format": "percent", "unit": "kg", "tolerance": "1"}}})
@example({"properties": {"x": {"$ref": "#/$defs/x"}}, "$defs": {"x": True}})
@example({"properties": {"_x": {"type": "string"}, "model_config": {"type": "string"}}})
@example(looped(3))
def test_a_card_of_any_program_is_read_or_refused(schema: dict[str, Any]) -> None:
    """The other tasks of the agent are imported all the same."""
    form = form_of(schema)
    with suppress(InvalidInput):
        parameters_of("task", schema).read(dict.fromkeys(form.fields, "1"))
