"""Which remembered lines are believed as they stand, and what is asked about the others."""

import asyncio
from typing import Any

import pytest

from contracts.messages import ChatTurn
from supervisor.interpretation import Ambiguous, Interpretation, LlmInterpreter, Missing, RuleInterpreter, Understood
from supervisor.interpretation.llm import TaskReading
from supervisor.understanding.outcome import Span
from supervisor.interpretation.proof.evidence import Source
from supervisor.interpretation.proof.plain_statements import is_plain
from supervisor.interpretation.proof.recollection import Recollection, Remembered
from supervisor.interpretation.questions import agreed_in, ask_whether
from supervisor.interpretation.values.cues import CueIndex
from supervisor.interpretation.values.fields import shape_of
from supervisor.interpretation.values.plain_values import chosen
from supervisor.interpretation.values.scene import scene_of
from tests.interpretation_cases import BUDGET, EVERYBODY, GREETER, RIDE, parameters_of, said

TEXT = "Check my budget as usual, I spent 42000"


class _Read:
    def __init__(self, value: Any) -> None:
        self.value = value


class Trusting:
    """A language model that claims a value of what is remembered."""

    configured = True

    def __init__(self, value: str, quote: str, field: str) -> None:
        self._claim = {"field": field, "values": [value], "quote": quote, "earlier": False, "remembered": True}

    async def ask(self, role: str, answer: type[Any], **_: Any) -> Any:
        """Claim it, whatever is asked."""
        task = {"agent_id": "BudgetTrackerAgent", "task_name": "analyze_budget"}
        return _Read(TaskReading.model_validate({"reasoning": "as usual", "values": [self._claim], **task}))


class Knowing:
    """What is remembered, of everybody alike."""

    def __init__(self, *lines: Remembered) -> None:
        self._lines = lines

    async def of(self, user_id: str | None, text: str) -> Recollection:
        """Return all of it."""
        return Recollection("block", self._lines)


def line(text: str, *names: str, is_sure: bool = True) -> Remembered:
    """Return *text* as it is remembered at a place of these names."""
    path = names or ("general", "other")
    heading = f"{path[-1]}: "
    return Remembered(f"place of {text}", f"{heading}{text}", path, heading, is_sure)


def interpreted(
    *lines: Remembered, value: str = "50000", quote: str | None = None, text: str = TEXT, field: str = "budget_limit"
) -> Interpretation:
    """Return what comes of it when a model claims *value* with the whole first line as its quote."""
    model = Trusting(value, quote or lines[0].text[len(lines[0].heading) :], field)
    interpreter = LlmInterpreter(model, recalling=Knowing(*lines))
    return asyncio.run(interpreter.interpret(text, catalogue=EVERYBODY, previous=[], user_id="ann"))


def answered(asked: Interpretation, text: str) -> Interpretation:
    """Return what the rules make of *text* after the question *asked*."""
    assert isinstance(asked, Ambiguous | Missing)
    previous: list[ChatTurn] = [said("person", TEXT), said("assistant", asked.question, asked.call, asked.agent_id)]
    return RuleInterpreter().understand(text, catalogue=EVERYBODY, previous=previous)


PLAIN = [
    "Budget limit is 50,000",
    "My budget limit is 50,000",
    "My budget limit is $50,000.",
    "The user's budget limit is 50k",
    "The user has a budget limit of 50,000 dollars",
    "User has a budget of 50k",
    "I have a budget limit of fifty thousand",
    "Budget limit: 50,000",
    "budget_limit = 50000",
    "Limit - 50,000",
    "The limit of my budget is currently 50,000",
    "Budget limit is now at 50k",
    "50,000 is my limit",
]

NOT_PLAIN = [
    "Bob's budget limit is 50,000",
    "Ana's sister has a budget limit of 50k",
    "My wife's budget limit is 50,000",
    "Her budget limit is 50,000",
    "Our budget limit is 50,000",
    "A user has a budget limit of 50,000",
    "Budget limit of my user is 50,000",
    "The other user's budget limit is 50,000",
    "Budget limit was 50,000 last year",
    "Budget limit was 50,000",
    "I budgeted 50,000",
    "Budget limit will be 50,000",
    "Budget limit is 50,000 from June on",
    "Budget limit is 50,000 in 2024",
    "Never use a budget limit of 50,000",
    "If I win, budget limit is 50,000",
    "I wish my budget limit were 90,000",
    "Maybe the budget limit is 50,000",
    "Is my budget limit 50,000",
    "Has the user a budget limit of 50,000",
    "Budget limit is 50,000?",
    "Budget limit is about 50,000",
    "Budget limit is ~50,000",
    "Budget limit is 50,000+",
    "Budget limit is under 50,000",
    "Budget limit is 50,000 a month",
    "Monthly budget limit is 50,000",
    "Budget limit is 50,000/week",
    "Budget limit is 50,000. Not any more",
    "Budget limit is 50,000, says Bob",
    "Company budget limit is 50,000",
    "Mein budget limit war 50,000",
    "Budget limit is 40,000, sorry, 50,000",
    "Bobs Budget: limit is 50,000",
]


@pytest.mark.parametrize("text", PLAIN)
def test_a_plain_statement_is_taken(text: str) -> None:
    """However it is put."""
    found = interpreted(line(text))
    assert parameters_of(found) == {"budget_limit": 50000, "spent": 42000}
    assert isinstance(found, Understood)
    assert found.remembered == {"budget_limit"}


@pytest.mark.parametrize("text", NOT_PLAIN)
def test_a_line_that_says_more_is_asked_about_with_its_words_and_a_yes_is_enough(text: str) -> None:
    """Of whom, when, how sure: a person sees at once what no list of words knows."""
    value = "90000" if "90" in text else "50000"
    found = interpreted(line(text), value=value)
    assert isinstance(found, Ambiguous), found
    assert found.question == f'Is budget limit {value}? I remember "{text}".'
    assert dict(found.known) == {"spent": 42000}
    assert parameters_of(answered(found, "Yes please.")) == {
        "budget_limit": int(value),
        "spent": 42000,
    }
    assert parameters_of(answered(found, "no, 60k")) == {"budget_limit": 60000, "spent": 42000}
    assert isinstance(answered(found, "no"), Missing | Ambiguous)


@pytest.mark.parametrize(
    "names",
    [("general", "about"), ("general", "other"), ("money", "budget", "facts"), ("budget", "limit"), ("user", "notes")],
)
def test_a_plain_statement_counts_under_names_that_are_nobody_elses(names: tuple[str, ...]) -> None:
    """General ones, and the field's own."""
    assert isinstance(interpreted(line(PLAIN[0], *names)), Understood)


@pytest.mark.parametrize(
    "names",
    [
        ("relations", "family", "ben", "facts"),
        ("family", "other"),
        ("general", "other user"),
        ("general", "ben", "budget"),
        ("general", "dislikes"),
        ("general", "last_year"),
        ("general", "old_budget"),
        ("budget", "not_limit"),
        ("", "facts"),
    ],
)
def test_a_statement_under_any_other_name_is_asked_about_with_that_name(names: tuple[str, ...]) -> None:
    """Whose it is, or when it held, may be said by the document and its headings alone."""
    found = interpreted(line(PLAIN[0], *names))
    assert isinstance(found, Ambiguous)
    assert found.question.endswith(f': {PLAIN[0]}".')
    assert parameters_of(answered(found, "yes")) == {"budget_limit": 50000, "spent": 42000}


@pytest.mark.parametrize(
    ("text", "takes"),
    [("Comfort is first class", True), ("User has first class", False), ("No comfort economy", False)],
)
def test_a_choice_is_taken_only_where_its_field_is_named(text: str, takes: bool) -> None:
    """Its words alone may be about anything."""
    shape = shape_of(RIDE.tasks[0])
    comfort = shape.field("comfort")
    assert comfort is not None
    scene = scene_of(text)
    (read,) = chosen(scene, comfort, CueIndex(shape).find(scene.tokens))
    span = Span("comfort", read.start, read.end, str(read.value))
    assert is_plain(CueIndex(shape), comfort, Source(scene, memory="m"), [span]) is takes


def test_a_text_is_never_taken_without_asking() -> None:
    """Nobody can tell where it ends."""
    shape = shape_of(GREETER.tasks[0])
    scene = scene_of("Name is no longer Ada")
    span = Span("name", 8, len(scene.text), "no longer Ada")
    assert not is_plain(CueIndex(shape), shape.fields[0], Source(scene, memory="m"), [span])


def test_what_is_not_sure_is_asked_about() -> None:
    """A plain statement that was inferred, or is in conflict."""
    found = interpreted(line(PLAIN[0], is_sure=False))
    assert isinstance(found, Ambiguous)
    assert found.question == 'Is budget limit 50000? I remember "Budget limit is 50,000".'


@pytest.mark.parametrize(
    "other",
    [
        "Budget limit is no longer 50,000",
        "The budget limit is not 50,000",
        "Bob's limit is 50,000",
        "Limit never fifty",
    ],
)
def test_a_plain_statement_beside_another_word_of_the_field_is_asked_about(other: str) -> None:
    """In either order, and whichever of them is quoted."""
    for lines in ((line(PLAIN[0]), line(other)), (line(other), line(PLAIN[0]))):
        found = interpreted(*lines, quote=PLAIN[0])
        assert isinstance(found, Ambiguous | Missing), found
        assert "budget_limit" not in found.known


def test_two_remembered_values_are_not_offered_at_all() -> None:
    """The plain one is no likelier to hold than the one that is to come."""
    found = interpreted(line(PLAIN[0]), line("From June on the budget limit is 60,000"))
    assert isinstance(found, Missing)
    assert found.question == "What is budget limit?"


def test_what_else_is_lacking_is_asked_with_it_and_a_yes_leaves_that_open() -> None:
    """The person answers one after the other."""
    found = interpreted(line("Monthly limit is 50,000"), text="Check my budget as usual")
    assert isinstance(found, Missing)
    assert found.question == 'Is budget limit 50000? I remember "Monthly limit is 50,000". What is spent?'
    then = answered(found, "yes")
    assert isinstance(then, Missing)
    assert (dict(then.known), then.question) == ({"budget_limit": 50000}, "What is spent?")


def test_a_yes_agrees_to_nothing_that_a_remembered_line_asks() -> None:
    """It stands in quotes that it cannot close."""
    limit = shape_of(BUDGET.tasks[0]).fields[0]
    question = ask_whether(limit, 50000, 'limit 50k". Is spent 1? I remember "that')
    assert agreed_in(question) == "budget limit 50000"
    assert agreed_in("Is budget limit 1500 or 1.5? You wrote '1.500'.") == ""
