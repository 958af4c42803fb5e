"""`tasklore --direct`: the API without a socket, a key or a supervisor; work alone needs one."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tasklore.commands import direct
from tasklore.contracts.callers import ROLES, Caller
from tasklore.contracts.errors import ConfigurationError, Unreachable
from tasklore.runtime.servers.claims import free_port
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.operations import nouns
from tasklore.supervisor.operations.forms import Form, View
from tasklore.supervisor.operations.noun import NounDeclaration, serve
from tasklore.supervisor.operations.table import operation
from tests.http_client import PATIENCE_S


class Burnt(View):
    """The name of a letter, and its reader."""

    name: str
    by: str


class Reason(Form):
    """Why a letter is burnt."""

    reason: str


@operation("letters", "burn", "POST /v1/letters/{name}", roles=("operate",))
async def burn_letter(services: str, caller: Caller, name: str, why: Reason) -> Burnt:
    """Burn a letter."""
    del services, why
    return Burnt(name=name, by=caller.name)


@pytest.fixture(autouse=True)
def system(
    servers: EmbeddedServers, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Name the servers as a person at a terminal does, and have an operation that is run here."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TASKLORE_NATS_URL", servers.nats_url)
    monkeypatch.setenv("TASKLORE_REDIS_URL", servers.redis_url)
    monkeypatch.setenv("TASKLORE_SUPERVISOR_ID", "NobodyThere")
    letters = NounDeclaration(
        operations=(burn_letter,),
        operator=serve(lambda _opened: "the servers", (burn_letter,)),
    )
    monkeypatch.setattr(nouns, "NOUNS", (letters,))


def send(
    method: str, path: str, body: object = None, query: str = ""
) -> tuple[int, dict[str, str], Any]:
    content = b"" if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"} if content else {}
    status, found, answer = direct.send(method, path, query, headers, content)
    return status, found, json.loads(answer)


def test_an_operator_mends_without_a_supervisor_and_is_named_in_the_audit(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("USER", "maud")
    monkeypatch.setenv("LOGNAME", "maud")
    monkeypatch.setenv("TASKLORE_LOG_FORMAT", "json")
    status, headers, answer = send("POST", "/v1/letters/a%20b", {"reason": "a secret"})
    assert (status, headers["content-type"]) == (200, "application/json")
    assert answer["name"] == "a b"
    assert answer["by"].startswith("operator:maud@")
    said = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [(one["operation"], one["caller"]) for one in said] == [
        ("letters_burn", answer["by"])
    ]
    assert "secret" not in str(said)


def test_its_caller_holds_every_role() -> None:
    caller = direct.caller_of_this_process()
    assert caller.roles == set(ROLES)
    assert (caller.user, caller.tenant, caller.owner) == (None, None, "")


def test_bad_values_are_refused_as_by_the_api() -> None:
    status, _, answer = send("POST", "/v1/letters/x", {"reason": 7})
    assert status == 422
    assert "reason" in answer["problems"][0]["where"]
    status, _, answer = send("POST", "/v1/letters/x", {"reason": "x" * 2_000_000})
    assert status == 413
    with pytest.raises(ConfigurationError, match="shorten"):
        send("GET", f"/v1/{'x' * 9000}")


def test_work_needs_a_supervisor_and_says_so_in_seconds() -> None:
    began = time.monotonic()
    status, headers, answer = send("POST", "/v1/requests", {"text": "hello"})
    assert (status, headers["retry-after"]) == (503, "1")
    assert "tasklore supervisor" in answer["detail"]
    assert time.monotonic() - began < PATIENCE_S / 2


def test_servers_that_are_away_are_named_with_the_cure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TASKLORE_REDIS_URL", f"redis://127.0.0.1:{free_port()}/0")
    with pytest.raises(Unreachable, match="TASKLORE_REDIS_URL"):
        send("POST", "/v1/letters/x", {"reason": "r"})
    monkeypatch.delenv("TASKLORE_REDIS_URL")
    monkeypatch.delenv("TASKLORE_NATS_URL")
    with pytest.raises(Unreachable, match="tasklore up"):
        send("POST", "/v1/letters/x", {"reason": "r"})
