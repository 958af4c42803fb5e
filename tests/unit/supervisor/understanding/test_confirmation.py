"""Tasks with effects are shown for a yes first, and the yes starts what was shown."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import pytest

from tasklore.contracts.messages import ChatTurn, TaskCall
from tasklore.contracts.parameters.model import Parameters
from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.understanding.model import LlmInterpreter
from tasklore.supervisor.understanding.outcome import (
    Clarification,
    Interpretation,
    Several,
    Understood,
    Unfitting,
)
from tasklore.supervisor.understanding.rules import RuleInterpreter
from tasklore.workers.agent import Agent
from tasklore.workers.agents.budget import agent as budget_agent
from tasklore.workers.agents.memory_worker import agent as memory_agent
from tasklore.workers.card import card_of
from tests.understanding.recorded import CATALOGUE, NOW, Model, answers, cases


class Nothing(Parameters):
    """No parameters."""


class Door(Parameters):
    """One door."""

    name: str


SHOWN = {"quote_number": "Q-415", "pickup": "2026-12-01"}
QUESTION = "Shall I book a quoted transport (quote number: Q-415; pickup: 2026-12-01)?"


def asked(
    text: str,
    values: Mapping[str, Any],
    place: int = 1,
    task: str = "FreightDesk.book_freight",
) -> ChatTurn:
    """Return the assistant's turn that shows *values*."""
    agent_id, name = task.split(".")
    return ChatTurn(
        turn_id=f"a-{place}",
        conversation_id="c",
        speaker="assistant",
        text=text,
        at=NOW,
        request_id="r",
        agent_id=agent_id,
        task=TaskCall(name=name, parameters=dict(values)),
    )


def understand(text: str, previous: Sequence[ChatTurn] = ()) -> Interpretation:
    return RuleInterpreter().understand(
        text, catalogue=CATALOGUE, previous=previous, now=NOW
    )


def test_a_task_with_effects_is_shown_first() -> None:
    found = understand('book freight: quote number "Q-415", pickup 2026-12-01')
    assert isinstance(found, Clarification)
    assert found.question == QUESTION
    assert found.call == TaskCall(name="book_freight", parameters=SHOWN)


@pytest.mark.parametrize(
    "yes",
    [
        "yes",
        "Yes, please!",
        "ok",
        "that's right",
        "ja",
        "Oui",
        "sí",
        "好的",
        "はい",
        "نعم",
        "да",
    ],
)
def test_a_yes_starts_exactly_what_was_shown(yes: str) -> None:
    found = understand(yes, [asked(QUESTION, SHOWN)])
    assert isinstance(found, Understood)
    assert (found.agent_id, found.task.name, found.task.parameters) == (
        "FreightDesk",
        "book_freight",
        SHOWN,
    )


@pytest.mark.parametrize(
    "no", ["no", "nein", "no thanks", "never mind", "いいえ", "leave it"]
)
def test_a_no_leaves_it(no: str) -> None:
    found = understand(no, [asked(QUESTION, SHOWN)])
    assert isinstance(found, Unfitting)
    assert found.text.startswith("OK, I will not start it")


def test_a_changed_proposal_is_shown_again() -> None:
    found = understand("pickup 2026-12-03 instead", [asked(QUESTION, SHOWN)])
    assert isinstance(found, Clarification)
    assert found.call is not None
    assert found.call.parameters == {**SHOWN, "pickup": "2026-12-03"}


def test_a_yes_to_a_report_starts_nothing() -> None:
    turn = asked(QUESTION, SHOWN)
    assert isinstance(
        understand("yes", [turn.model_copy(update={"kind": "question"})]), Understood
    )
    assert not isinstance(
        understand("yes", [turn.model_copy(update={"kind": "answer"})]), Understood
    )


def test_one_yes_answers_several_proposals() -> None:
    other = {"quote_number": "Q-20", "pickup": "2026-12-04"}
    turns = [
        asked(QUESTION, SHOWN),
        asked("Shall I book a quoted transport (quote number: Q-20)?", other, 2),
    ]
    found = understand("yes", turns)
    assert isinstance(found, Several)
    assert [
        part.task.parameters for part in found.parts if isinstance(part, Understood)
    ] == [SHOWN, other]
    assert isinstance(understand("no", turns), Unfitting)


def test_a_yes_to_leaving_words_out_does_not_confirm() -> None:
    turn = asked("I cannot take '12' into account. Shall I leave it out?", SHOWN)
    found = understand("yes", [turn])
    assert isinstance(found, Clarification)
    assert found.question == QUESTION


def test_a_late_yes_is_shown_the_task_again() -> None:
    """Whoever comes back an hour later may mean something else."""
    turn = asked(QUESTION, SHOWN)
    for age, outcome in ((29, Understood), (31, Clarification)):
        found = RuleInterpreter().understand(
            "yes",
            catalogue=CATALOGUE,
            previous=[turn],
            now=NOW + timedelta(minutes=age),
        )
        assert isinstance(found, outcome)


def test_a_yes_after_something_else_starts_nothing() -> None:
    """Only what was asked last is open."""
    shown = asked(QUESTION, SHOWN)
    other = shown.model_copy(
        update={
            "turn_id": "a-2",
            "request_id": "r2",
            "text": "Hello.",
            "task": None,
            "agent_id": None,
        }
    )
    assert not isinstance(understand("yes", [shown, other]), Understood)


async def test_a_yes_needs_no_model() -> None:
    case = next(one for one in cases() if one.id == "en24")
    model = Model(answers()["en24"])
    interpreter = LlmInterpreter(model)
    shown = await interpreter.interpret(
        case.say, catalogue=CATALOGUE, previous=[], now=NOW
    )
    assert isinstance(shown, Clarification)
    assert shown.call is not None
    turn = asked(shown.question, shown.call.parameters)
    found = await interpreter.interpret(
        "yes", catalogue=CATALOGUE, previous=[turn], now=NOW
    )
    assert isinstance(found, Understood)
    assert found.task == shown.call
    assert len(model.users) == 1


def test_the_card_of_a_task_says_that_it_is_confirmed() -> None:
    agent = Agent("DoorAgent")

    @agent.task(confirm=True)
    def unlock(door: Door) -> str:
        """Unlock the door."""
        return "open"

    @agent.task
    def look(door: Door) -> str:
        """Look at the door."""
        return "shut"

    cards = {task.name: task for task in card_of(agent).tasks}
    assert cards["unlock"].confirm
    assert "confirm" not in cards["look"].model_dump(mode="json")


class TestErasing:
    """Who says something else than that all of them is to be erased is not asked whether they mean it."""

    CARDS = Catalogue([card_of(memory_agent), card_of(budget_agent)])

    @pytest.mark.parametrize(
        "text",
        [
            "delete my last order",
            "delete my account",
            "forget about the pizza",
            "forget it",
            "delete it",
            "delete everything",
            "forget what I said about me",
            "forget everything about my last order",
            "erase everything about me and Mia from the slides",
            "delete my cart",
            "erase all my data from the app",
            "never mind",
            "do not forget me",
            "please don't ever forget me",
            "forget me not",
            "can you not forget me",
            "did you forget me?",
            "did you delete all my data?",
            "why did you forget me",
            "they forget me",
            "what if I forget me",
            "forget all you know about my boss",
            "don't delete everything about me",
            "everything about me",
            "all my data",
            "lösche meine letzte Bestellung",
            "vergiss es",
            "lösche mein Konto",
            "vergiss die Pizza",
            "vergiss nicht alles über mich",
            "vergiss alles über meinen Chef",
            "borra mi último pedido",
            "olvídalo",
            "borra mi cuenta",
            "olvida lo de la pizza",
            "no olvides todo sobre mí",
            "supprime ma dernière commande",
            "oublie ça",
            "supprime mon compte",
            "oublie la pizza",
            "n'oublie pas tout sur moi",
            "最後の注文を削除して",
            "忘れて",
            "アカウントを削除して",
            "ピザのことは忘れて",
            "私のことを忘れないで",
            "上司のことをすべて忘れて",
        ],
    )
    def test_it_has_to_be_named_whole(self, text: str) -> None:
        """Nothing that a yes would start."""
        found = RuleInterpreter().understand(text, catalogue=self.CARDS)
        assert isinstance(found, Unfitting)

    @pytest.mark.parametrize(
        "text",
        [
            "forget me",
            "please forget everything you know about me",
            "Erase all my data!",
            "could you delete everything about me please",
            "ok, I want you to forget me now",
            "Vergiss bitte alles über mich!",
            "lösche alle meine Daten",
            "Olvida todo sobre mí, por favor",
            "efface toutes mes données s'il te plaît",
            "Je veux que toute ma mémoire soit effacée.",
            "私のことをすべて忘れてください。",
            "私のデータをすべて削除して",
            "私の記憶をすべて消去したい",
        ],
    )
    def test_the_whole_person_is_read_in_five_languages(self, text: str) -> None:
        """The task that is asked for says what would be lost, and erases nothing by being called."""
        found = RuleInterpreter().understand(text, catalogue=self.CARDS)
        assert isinstance(found, Understood)
        assert (found.task.name, found.task.parameters) == ("forget_all_about_me", {})

    @pytest.mark.parametrize(
        "text",
        [
            "bring my memory back",
            "please bring back my memory!",
            "Bring mein Gedächtnis zurück",
            "devuélveme mi memoria, por favor",
            "rends-moi ma mémoire s'il te plaît",
            "私の記憶を元に戻して",
        ],
    )
    def test_what_was_forgotten_is_asked_back_in_five_languages(
        self, text: str
    ) -> None:
        """Whole as well: a pizza that is to come back is no memory."""
        found = RuleInterpreter().understand(text, catalogue=self.CARDS)
        assert isinstance(found, Understood)
        assert found.task.name == "bring_my_memory_back"

    @pytest.mark.parametrize(
        "text",
        [
            "bring my order back",
            "bring back the pizza",
            "don't bring my memory back",
            "what if I bring my memory back",
            "hol den Hund zurück",
            "devuélveme mi dinero",
            "注文を元に戻して",
        ],
    )
    def test_what_else_is_to_come_back_is_no_memory(self, text: str) -> None:
        found = RuleInterpreter().understand(text, catalogue=self.CARDS)
        assert isinstance(found, Unfitting)

    @pytest.mark.parametrize("yes", ["yes", "ja", "sí", "oui", "again", "sure"])
    def test_a_yes_asks_for_nothing(self, yes: str) -> None:
        """What the task answered is a report and no question: only the sentence in it asks for more."""
        shown = asked(
            "All that I remember of you would be forgotten.",
            {},
            task="MemoryAgent.forget_all_about_me",
        ).model_copy(update={"kind": "answer"})
        found = RuleInterpreter().understand(
            yes, catalogue=self.CARDS, previous=[shown], now=NOW
        )
        if yes == "again":
            # The task itself looks at the words, and says again what would be lost.
            assert isinstance(found, Understood)
        else:
            assert isinstance(found, Unfitting)

    def test_a_rival_of_the_same_words_is_asked_about(self) -> None:
        """Another agent may be who deletes an account's data."""
        other = Agent("AccountAgent")

        @other.task(remember=False, examples=("delete all my data",))
        def delete_all_my_data(_nothing: Nothing) -> str:
            """Delete all my data."""
            return "deleted"

        cards = Catalogue([card_of(memory_agent), card_of(other)])
        found = RuleInterpreter().understand("delete all my data", catalogue=cards)
        assert isinstance(found, Clarification)
        assert "forget all about me (MemoryAgent)" in found.question
