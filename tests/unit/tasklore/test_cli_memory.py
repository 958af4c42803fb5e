"""What `tasklore memory` makes of words, outcomes and changes."""

from datetime import UTC, datetime

import pytest

from tasklore.commands.exits import FAILED, OK
from tasklore.commands.memory.app import app
from tasklore.commands.memory.lines import shorten
from tasklore.commands.memory.stores import find_resource
from tasklore.commands.memory.tell import Outcome, make_turn, print_outcome
from tasklore.contracts.errors import InvalidInput
from tasklore.memory.documents.kinds import Kinds
from tasklore.memory.queues.claims import KnownRow

KINDS = Kinds.load()
FOOD = "resource_user_food_prefs"


@pytest.mark.parametrize("word", [FOOD, f"{FOOD}.json", "food", "FOOD"])
def test_a_document_is_found_by_id_file_tag_or_word(word: str) -> None:
    assert find_resource(word, KINDS) == FOOD


def test_a_stored_document_of_no_kind_is_found() -> None:
    for word in ("resource_user_books", "books"):
        assert (
            find_resource(word, KINDS, ["resource_user_books"]) == "resource_user_books"
        )


@pytest.mark.parametrize(
    ("word", "said"),
    [("foo", "none"), ("user", "several"), ("", "none"), ("books", "none")],
)
def test_an_ambiguous_or_unknown_document_is_refused(word: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=rf"--resource .*{said}.*{FOOD}"):
        find_resource(word, KINDS)


def _fact(state: str) -> KnownRow:
    return KnownRow(row_id="f-1", body=b"{}", state=state, at_ms=0, reason="because")


@pytest.mark.parametrize(
    ("outcome", "is_settled", "code"),
    [
        (Outcome(None), False, FAILED),
        (Outcome("needs_model"), True, OK),
        (Outcome("done", [_fact("waiting")]), False, FAILED),
        (Outcome("done", [_fact("done"), _fact("needs_model")]), True, OK),
        (Outcome("done", [_fact("done"), _fact("failed")]), True, FAILED),
    ],
)
def test_a_turn_is_settled_once_all_its_facts_are(
    outcome: Outcome, is_settled: bool, code: int
) -> None:
    assert (outcome.is_settled, outcome.exit_code) == (is_settled, code)


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        (Outcome(None), "no worker has taken it yet"),
        (Outcome("needs_model"), "TASKLORE_LLM_API_KEY"),
        (Outcome("done", [_fact("needs_model")]), "needs model f-1\n  because"),
        (
            Outcome("waiting"),
            "`tasklore memory facts --user 'ana b'` shows what comes of it",
        ),
    ],
)
def test_the_outcome_of_a_turn_is_printed(
    outcome: Outcome, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    print_outcome(make_turn("I like eggs", "ana b"), outcome)
    assert said in capsys.readouterr().out


@pytest.mark.parametrize(
    ("said", "named"),
    [
        ({"text": " "}, "TEXT"),
        ({"user": ""}, "--user"),
        ({"user": "a\udcff"}, "--user"),
    ],
)
def test_an_invalid_turn_is_refused_by_option(said: dict[str, str], named: str) -> None:
    with pytest.raises(InvalidInput, match=named):
        make_turn(**{"text": "I like eggs", "user": "ana"} | said)  # type: ignore[arg-type]  # conversation may be None


def test_a_turn_has_a_conversation_and_id_of_its_own() -> None:
    turn = make_turn(" I like eggs ", "ana")
    other = make_turn("I like eggs", "ana", "c1")
    assert (turn.text, turn.user_id, turn.speaker) == ("I like eggs", "ana", "person")
    assert turn.conversation_id == f"tell-{turn.turn_id}"
    assert other.conversation_id == "c1"
    assert turn.turn_id != other.turn_id
    assert abs((datetime.now(UTC) - turn.at).total_seconds()) < 3600


def test_ids_are_shortened_to_distinct_ends() -> None:
    assert shorten(["01a2-aaaabbbb-0", "x"]) == {
        "01a2-aaaabbbb-0": "aabbbb-0",
        "x": "x",
    }
    assert set(shorten(["1-23456789", "2-23456789"]).values()) == {
        "1-23456789",
        "2-23456789",
    }


@pytest.mark.parametrize("user", ["", "x" * 257, "a\udcff"])
def test_every_command_refuses_an_invalid_user(user: str) -> None:
    names = [
        command.name or command.callback.__name__
        for command in app.registered_commands
        if command.callback
    ]
    for name in names:
        rest = {
            "tell": ["hi"],
            "explain": ["a"],
            "export": ["-"],
            "import": ["f"],
            "migrate": ["."],
        }.get(name, [])
        more = ["--resource", "food"] if name == "diff" else []
        with pytest.raises(InvalidInput, match="--user"):
            app([name, *rest, "--user", user, *more], standalone_mode=False)
    assert len(names) >= 14
