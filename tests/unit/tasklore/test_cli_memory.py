"""What `tasklore memory` makes of words, outcomes and changes, without a server."""

from datetime import UTC, datetime

import pytest
from pydantic import JsonValue

from contracts.errors import InvalidInput
from memory.documents.changes import Change
from memory.documents.kinds import Kinds
from memory.documents.paths import ABSENT, Found, parse
from memory.queues.claims import KnownRow
from tasklore.exits import FAILED, OK
from tasklore.memory.app import app
from tasklore.memory.lines import change_lines, shorten
from tasklore.memory.stores import find_resource
from tasklore.memory.tell import Outcome, make_turn, print_outcome

KINDS = Kinds.load()
FOOD = "resource_user_food_prefs"


@pytest.mark.parametrize("word", [FOOD, f"{FOOD}.json", "food", "FOOD"])
def test_a_document_is_meant_by_its_id_its_file_its_tag_or_a_word_of_its_name(word: str) -> None:
    """In either case."""
    assert find_resource(word, KINDS) == FOOD


def test_a_document_of_no_kind_is_meant_when_it_is_stored() -> None:
    """By its whole id and by a word of it."""
    for word in ("resource_user_books", "books"):
        assert find_resource(word, KINDS, ["resource_user_books"]) == "resource_user_books"


@pytest.mark.parametrize(("word", "said"), [("foo", "none"), ("user", "several"), ("", "none"), ("books", "none")])
def test_a_word_that_means_no_one_document_is_refused_with_those_there_are(word: str, said: str) -> None:
    """A part of a word is none: a mistyped document is not another one."""
    with pytest.raises(InvalidInput, match=rf"--resource .*{said}.*{FOOD}"):
        find_resource(word, KINDS)


def _fact(state: str) -> KnownRow:
    return KnownRow("f-1", b"{}", state, at_ms=0, reason="because")


@pytest.mark.parametrize(
    ("outcome", "is_settled", "code"),
    [
        (Outcome(None), False, FAILED),
        (Outcome("waiting"), False, FAILED),
        (Outcome("needs_model"), True, OK),
        (Outcome("done", [_fact("waiting")]), False, FAILED),
        (Outcome("done", [_fact("done"), _fact("needs_model")]), True, OK),
        (Outcome("done", [_fact("done"), _fact("failed")]), True, FAILED),
    ],
)
def test_a_turn_is_settled_once_it_and_all_its_facts_are(outcome: Outcome, is_settled: bool, code: int) -> None:
    """The command fails when something failed, or when nothing was decided about it yet."""
    assert (outcome.is_settled, outcome.exit_code) == (is_settled, code)


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        (Outcome(None), "no worker has taken it yet"),
        (Outcome("done"), "Nothing to remember in that."),
        (Outcome("needs_model"), "TASKLORE_LLM_API_KEY"),
        (Outcome("done", [_fact("needs_model")]), "needs model f-1\n  because"),
        (Outcome("waiting"), "`tasklore memory facts --user 'ana b'` shows what comes of it"),
    ],
)
def test_people_are_told_what_became_of_what_they_said(
    outcome: Outcome, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever that is, and what to do next."""
    print_outcome(make_turn("I like eggs", "ana b"), outcome)
    assert said in capsys.readouterr().out


@pytest.mark.parametrize(
    ("said", "named"),
    [
        ({"text": " "}, "TEXT"),
        ({"text": "x" * 20_001}, "TEXT"),
        ({"user": ""}, "--user"),
        ({"user": "a\udcff"}, "--user"),
        ({"conversation": ""}, "--conversation"),
    ],
)
def test_what_cannot_be_told_is_refused_by_the_name_of_its_option(said: dict[str, str], named: str) -> None:
    """Before anything is sent."""
    with pytest.raises(InvalidInput, match=named):
        make_turn(**{"text": "I like eggs", "user": "ana"} | said)  # type: ignore[arg-type]  # conversation may be None


def test_a_turn_is_said_now_in_a_conversation_of_its_own() -> None:
    """Unless one is given; no two turns share an id."""
    turn, other = make_turn(" I like eggs ", "ana"), make_turn("I like eggs", "ana", "c1")
    assert (turn.text, turn.user_id, turn.speaker) == ("I like eggs", "ana", "person")
    assert turn.conversation_id == f"tell-{turn.turn_id}"
    assert other.conversation_id == "c1"
    assert turn.turn_id != other.turn_id
    assert abs((datetime.now(UTC) - turn.at).total_seconds()) < 3600


PASTA: JsonValue = {"item": "pasta", "display": "Pasta", "expiry": None}
EGGS: JsonValue = {"item": "eggs", "display": "Eggs"}


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        (ABSENT, PASTA, ["+ food.likes: Pasta"]),
        (EGGS, ABSENT, ["- food.likes: Eggs"]),
        (PASTA, EGGS, ["~ food.likes: Pasta -> Eggs"]),
        (PASTA, {**PASTA, "expiry": "2027-01-01"}, ["~ food.likes: Pasta, expiry null -> 2027-01-01"]),  # type: ignore[dict-item]
        ([PASTA], [EGGS, PASTA], ["+ food.likes[0]: Eggs"]),
        ([PASTA, EGGS], [], ["- food.likes[0]: Pasta", "- food.likes[1]: Eggs"]),
        ([PASTA], [{"item": "pasta", "display": "Noodles"}], ["~ food.likes[0]: Pasta -> Noodles (pasta)"]),
        ([PASTA, EGGS], [EGGS, PASTA], ["~ food.likes: in another order"]),
        (["a", "a"], ["a"], ["- food.likes[1]: a"]),
        ({"n": 1}, {"n": True}, ["~ food.likes.n: 1 -> true"]),
        ({"a": [1]}, PASTA, ["- food.likes.a[0]: 1", "+ food.likes: Pasta"]),
        (ABSENT, {"a": [], "b": {}}, ["+ food.likes: nothing"]),
        ("", "two\nlines \x1b[2J", ["~ food.likes: nothing -> two lines [2J"]),
    ],
)
def test_a_change_is_a_line_for_each_entry_that_came_went_or_became_another(
    before: Found, after: Found, lines: list[str]
) -> None:
    """Whatever shapes there are on both sides, and never more than one line each."""
    change = Change(parse("food.likes"), before, after)
    assert [str(line) for line in change_lines([change])] == lines


def test_ids_are_shortened_to_ends_that_tell_them_apart() -> None:
    """Eight characters, and more where two end alike."""
    assert shorten(["01a2-aaaabbbb-0", "x"]) == {"01a2-aaaabbbb-0": "aabbbb-0", "x": "x"}
    assert set(shorten(["1-23456789", "2-23456789"]).values()) == {"1-23456789", "2-23456789"}


@pytest.mark.parametrize("user", ["", "  ", "x" * 257, "a\udcff"])
def test_every_command_refuses_a_user_who_is_nobody(user: str) -> None:
    """Before a server is looked for, and by the name of the option."""
    names = [command.name or command.callback.__name__ for command in app.registered_commands if command.callback]
    for name in names:
        rest = {"tell": ["hi"], "explain": ["a"], "export": ["-"], "import": ["f"], "migrate": ["."]}.get(name, [])
        more = ["--resource", "food"] if name == "diff" else []
        with pytest.raises(InvalidInput, match="--user"):
            app([name, *rest, "--user", user, *more], standalone_mode=False)
    assert len(names) >= 14
