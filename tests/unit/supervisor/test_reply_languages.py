"""A model says questions in the person's language, and nothing that was not asked."""

import json
from collections.abc import Sequence
from unittest.mock import Mock

import pytest

from tasklore.contracts.errors import LlmUnavailable
from tasklore.contracts.messages import ChatTurn, PersonRequest
from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.dispatch import Dispatch
from tasklore.supervisor.replies.languages import (
    Phraser,
    ReplyText,
    is_english,
    is_usable,
)
from tasklore.supervisor.requests.readings import read_turns
from tasklore.supervisor.service import Service
from tasklore.supervisor.understanding.rules import RuleInterpreter
from tests.fakes.stores import FakeConversations
from tests.understanding.recorded import CATALOGUE, Model
from tests.understanding.strangers import STRANGERS

SHALL_I = ReplyText(
    "same",
    "Shall I quote a price (origin: Antwerp; weight: 950 kg)? I cannot take 'back' into"
    " account.",
    ("Antwerp",),
)


def _model(*texts: str) -> Model:
    if not texts:
        return Model(LlmUnavailable("away"))
    return Model({"reasoning": "German", "texts": texts})


@pytest.mark.parametrize(
    ("words", "is_so"),
    [
        ("what is the price", True),
        ("I don\u2019t know", True),
        ("Buche einen Tisch f\u00fcr vier", False),
        ("quiero una mesa", False),
        ("check budget 50k", False),
    ],
)
def test_english_is_known_by_words_that_no_other_language_has(
    words: str,
    is_so: bool,
) -> None:
    assert is_english(words) is is_so


async def test_who_speaks_english_costs_no_call_for_a_question() -> None:
    model = _model("Soll ich?")
    said = [ReplyText("same", "How many days?")]
    assert await Phraser(model).phrase("a permit please", said) == ["How many days?"]
    assert model.users == []


async def test_a_refusal_is_a_models_in_any_language() -> None:
    refusal = "That I cannot do. I can quote freight."
    model = _model(refusal)
    said = [
        ReplyText("cannot", "I cannot tell what to do with that. I can: quote freight.")
    ]
    assert await Phraser(model).phrase("sing me the song", said) == [refusal]
    assert json.loads(model.users[0])["texts"][0]["kind"] == "cannot"


@pytest.mark.parametrize(
    "texts", [(), ("Wie viele Tage?", "Und?"), ("",), ("Wie viele Tage, 3?",)]
)
async def test_without_a_usable_wording_the_question_stays_english(
    texts: Sequence[str],
) -> None:
    said = [ReplyText("same", "How many days?")]
    found = await Phraser(_model(*texts)).phrase("eine Genehmigung bitte", said)
    assert found == ["How many days?"]


@pytest.mark.parametrize(
    ("text", "may_be_shown"),
    [
        (
            "Soll ich (Herkunft: Antwerp; Gewicht: 950 kg)? Ohne 'back'.",
            True,
        ),
        ("Soll ich einen Preis nennen (Antwerp; 950 kg)?", False),
        ("Soll ich einen Preis nennen (Antwerpen; 950 kg, 'back')?", False),
        ("Soll ich einen Preis nennen (Antwerp; 95 kg, 'back')?", False),
        ("Soll ich (Antwerp; 950 kg; 2 Paletten, 'back')?", False),
        ("Soll ich (Antwerp; 950 kg, 'back')? Siehe https://x.example", False),
    ],
)
def test_a_wording_keeps_every_value_and_adds_none(
    text: str,
    may_be_shown: bool,
) -> None:
    assert is_usable(SHALL_I, text, "") is may_be_shown


def test_choices_stay_as_an_answer_has_to_name_them() -> None:
    said = ReplyText("same", "Which flavour? One of: lemon, carrot.")
    assert is_usable(said, "Welche Sorte? Lemon oder carrot.", "")
    assert not is_usable(said, "Welche Sorte? Zitrone oder Karotte.", "")


def _service(
    model: Model, kept: FakeConversations, catalogue: Catalogue, sent: list[bytes]
) -> Service:
    return Service(
        "S",
        catalogue=lambda: catalogue,
        interpreter=RuleInterpreter(),
        dispatch=Mock(spec=Dispatch),
        reports=None,  # type: ignore[arg-type] # nothing is started
        conversations=kept,  # type: ignore[arg-type] # a double
        publish=lambda _subject, body, _message_id: sent.append(body),
        phraser=Phraser(model),
    )


async def test_what_was_shown_is_kept_beside_the_words_that_its_answer_is_read_by() -> (
    None
):
    kept = FakeConversations()
    sent: list[bytes] = []
    german = "F\u00fcr welchen Zweck, und wie viele Tage?"
    service = _service(_model(german), kept, STRANGERS.catalogue, sent)

    reply = await service.answer(
        PersonRequest(text="permit", request_id="r1", conversation_id="c")
    )

    assert (reply.kind, reply.text) == ("question", german)
    asked = (await read_turns(kept, "c", 5))[-1]  # type: ignore[arg-type] # a double
    assert asked.text == "What are the purpose and the number of days?"
    assert asked.shown == german
    body = (await kept.recent("c"))[-1]
    assert ChatTurn.model_validate_json(body).text == german
    assert b"asked_as" not in b"".join(sent)
    assert ChatTurn.model_validate_json(sent[-1]).text == german

    answer = await service.answer(
        PersonRequest(text="3 days", request_id="r2", conversation_id="c")
    )
    assert answer.task is not None
    assert answer.task.parameters == {"days": 3}
    assert answer.missing == ("purpose",)


async def test_a_yes_that_has_effects_is_asked_for_in_english_as_well() -> None:
    """Nobody agrees to another thing than what a model made of the question."""
    kept = FakeConversations()
    german = "Soll ich den Transport buchen (Q-415; 2026-12-01)?"
    service = _service(_model(german), kept, CATALOGUE, [])
    words = "book freight quote number Q-415 pickup 2026-12-01"
    reply = await service.answer(PersonRequest(text=words, request_id="r1"))
    english = (
        "Shall I book a quoted transport (quote number: Q-415; pickup: 2026-12-01)?"
    )
    assert reply.text == f"{german}\n({english})"


async def test_a_repeat_costs_no_model() -> None:
    kept = FakeConversations()
    model = _model("Wie viele Tage?")
    service = _service(model, kept, STRANGERS.catalogue, [])
    request = PersonRequest(text="permit", request_id="r1")
    await service.answer(request)
    again = await service.answer(request.model_copy(update={"conversation_id": "r1"}))
    assert again.kind == "question"
    assert len(model.users) == 1
