"""What a person reads of the API in the words that they type, and where a command sends which key."""

import json

import pytest

from tasklore.client.calls import Call
from tasklore.commands.ask.command import AskCommand
from tasklore.commands.operations import exchange
from tasklore.commands.operations.commands import describe
from tasklore.commands.operations.entries import name_options, operations_of
from tasklore.commands.operations.nouns import make_command
from tasklore.commands.operations.problems import name_commands
from tasklore.commands.operations.target import Target, find_target, read_target
from tasklore.commands.operations.transport import HttpAnswer, Request
from tasklore.contracts.manifest import OperationEntry


def entry_of(noun: str, verb: str) -> OperationEntry:
    return next(one for one in operations_of(noun) if one["verb"] == verb)


@pytest.mark.parametrize(
    ("told", "typed"),
    [
        ("GET /v1/requests/r1", "`tasklore requests show r1`"),
        ("GET /v1/tasks/t1/trace", "`tasklore trace t1`"),
        (
            "see GET /v1/memory/ana%20b/turns/t1?scope=user now",
            "see `tasklore memory turn 'ana b' t1` now",
        ),
        ("POST /v1/schedules with that", "`tasklore schedules add` with that"),
        ("GET /v1/tasks/{task_id}", "`tasklore tasks show`"),
        ("GET /v1/nothing/x", "GET /v1/nothing/x"),
    ],
)
def test_a_route_is_the_command_with_its_ids(told: str, typed: str) -> None:
    assert name_commands(told) == typed


def test_a_field_is_spelled_as_its_option() -> None:
    """A field of an answer that is called as the one that is described is not, nor is a word that is none."""
    add = entry_of("schedules", "add")
    assert "with --dry-run only show" in describe(add)
    show = entry_of("memory", "show")
    assert name_options("with `resource`, of `user`", show) == (
        "with --resource, of USER"
    )
    assert name_options("The `at` of `it`.", show, "at") == "The `at` of `it`."


def test_what_caches_send_is_no_option() -> None:
    names = {field["name"] for field in entry_of("memory", "document")["fields"]}
    assert "format" in names
    assert "if-none-match" not in names


def test_asking_is_one_command_at_both_of_its_places() -> None:
    """With all that a person adds to the operation."""
    entry = entry_of("requests", "ask")
    for command in (make_command(entry), make_command(entry, "ask")):
        assert isinstance(command, AskCommand)
        spelled = {one for param in command.params for one in param.opts}
        assert spelled > {"--verbose", "-v", "--no-memory", "--request-id", "--after"}
        assert "--pending-reply" not in spelled


@pytest.mark.parametrize(
    ("variables", "supervisor", "operations"),
    [
        ({"TASKLORE_API_KEY": "a"}, "a", "a"),
        ({"TASKLORE_API_KEY": "a", "TASKLORE_OPERATIONS_KEY": "o"}, "a", "o"),
        ({"TASKLORE_OPERATIONS_KEY": "o"}, None, "o"),
    ],
)
def test_operations_may_have_a_key_of_their_own(
    variables: dict[str, str],
    supervisor: str | None,
    operations: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Which a supervisor is never shown."""
    for name in ("TASKLORE_API_KEY", "TASKLORE_OPERATIONS_KEY", "TASKLORE_DIRECT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TASKLORE_API_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("TASKLORE_OPERATIONS_URL", "http://127.0.0.1:2")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert find_target("supervisor").key == supervisor
    assert find_target("operations").key == operations


@pytest.mark.parametrize(
    ("noun", "verb", "is_patient"),
    [("results", "list", True), ("schedules", "list", False)],
)
def test_what_may_last_minutes_is_waited_for(
    noun: str, verb: str, is_patient: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each page of a list, and each call of the Python client."""
    waited = []

    def send(target: Target, request: Request, *, within_s: float) -> HttpAnswer:
        waited.append(within_s)
        body = json.dumps({noun: [], "after": None}).encode()
        headers = {"content-type": "application/json"}
        return HttpAnswer(status=200, headers=headers, body=body, url=target.url)

    monkeypatch.setattr(exchange, "send", send)
    entry = entry_of(noun, verb)
    target = read_target("http://127.0.0.1:1", None, "a test")
    asked = exchange.Exchange(target, entry, lambda _answer: None)
    asked.read_pages(Request("GET", entry["path"]), 5)
    assert [one > 600 for one in waited] == [is_patient]
    assert (Call("GET", entry["path"], waits=is_patient).wait_s > 600) is is_patient
