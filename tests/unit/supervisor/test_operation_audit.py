"""The audit: each operation that is run, or refused, is one line with its caller, and with no value."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
from starlette.requests import ClientDisconnect
from starlette.types import Message
from structlog.testing import capture_logs

from tasklore.contracts.callers import Caller, Role
from tasklore.contracts.errors import InvalidInput, MemoryUnavailable, NotPermitted
from tasklore.supervisor.http.mount import respond_to
from tasklore.supervisor.http.task_paths import run_by_path
from tasklore.supervisor.operations.forms import View
from tasklore.supervisor.operations.refusals import not_found
from tasklore.supervisor.operations.table import Operation, operation


@dataclass(frozen=True)
class Shelf:
    """Raises *error* on each letter, where there is one."""

    error: BaseException | None = None


class Letter(View):
    """The text of a letter."""

    text: str


def caller(*roles: Role) -> Caller:
    return Caller(name="desk", roles=frozenset(roles), user="ana", tenant="acme")


def an_operation(http: str, *roles: Role) -> Operation[Shelf, ..., Letter]:
    @operation("letters", "burn", http, roles=roles, status=201)
    async def burn(services: Shelf, caller: Caller, text: str) -> Letter:
        """Burn a letter."""
        del caller
        if services.error is not None:
            raise services.error
        return Letter(text=text)

    return burn


async def test_what_is_run_is_one_line_with_its_caller_and_without_a_value() -> None:
    burn = an_operation("DELETE /v1/letters/{text}", "operate")
    with capture_logs() as lines:
        await burn(Shelf(), caller("operate"), text="a secret")
    (line,) = lines
    assert line.pop("ms") >= 0
    assert line == {
        "event": "operation",
        "log_level": "info",
        "operation": "letters_burn",
        "caller": "desk",
        "status": 201,
    }
    assert "secret" not in str(lines)
    assert "ana" not in str(lines)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (not_found("no such letter"), 404),
        (InvalidInput("a secret"), 422),
        (MemoryUnavailable("away"), 503),
        (RuntimeError("a secret"), 500),
    ],
)
async def test_what_fails_is_noted_with_its_status(
    error: Exception, status: int
) -> None:
    burn = an_operation("DELETE /v1/letters/{text}", "operate")
    with capture_logs() as lines, pytest.raises(type(error)):
        await burn(Shelf(error), caller("admin"), text="a secret")
    assert [line["status"] for line in lines] == [status]
    assert "secret" not in str(lines)


async def test_who_lacks_the_role_is_noted_too() -> None:
    burn = an_operation("DELETE /v1/letters/{text}", "operate")
    with capture_logs() as lines, pytest.raises(NotPermitted):
        await burn(Shelf(), caller("read"), text="a secret")
    assert [(line["caller"], line["status"]) for line in lines] == [("desk", 403)]


async def test_a_client_that_leaves_is_noted_as_gone() -> None:
    burn = an_operation("DELETE /v1/letters/{text}", "operate")
    with capture_logs() as lines, pytest.raises(asyncio.CancelledError):
        await burn(Shelf(asyncio.CancelledError()), caller("admin"), text="x")
    assert [line["status"] for line in lines] == [499]


@pytest.mark.parametrize(
    ("http", "roles", "held", "level"),
    [
        ("GET /v1/letters", ("ask",), "ask", "debug"),
        ("GET /v1/letters", ("ask", "read"), "ask", "debug"),
        # Whoever administers looks at everybody's.
        ("GET /v1/letters", ("ask",), "admin", "info"),
        ("GET /v1/letters", ("read",), "read", "info"),
        ("GET /v1/letters", ("operate",), "operate", "info"),
        ("POST /v1/letters", ("ask",), "ask", "info"),
    ],
)
async def test_only_looks_at_what_one_asked_for_are_left_out(
    http: str, roles: Any, held: Role, level: str
) -> None:
    with capture_logs() as lines:
        await an_operation(http, *roles)(Shelf(), caller(held), text="x")
    assert [line["log_level"] for line in lines] == [level]


def a_stream(error: BaseException | None = None) -> Operation[Shelf, ..., Any]:
    @operation("letters", "export", "GET /v1/letters", roles=("operate",))
    async def export(services: Shelf, caller: Caller) -> AsyncIterator[Letter]:
        """Yield two letters."""
        del services, caller

        async def letters() -> AsyncIterator[Letter]:
            yield Letter(text="one")
            if error is not None:
                raise error
            yield Letter(text="two")

        return letters()

    return export


async def test_a_stream_is_noted_at_its_end() -> None:
    with capture_logs() as lines:
        views = await a_stream()(Shelf(), caller("operate"))
        assert lines == []
        assert [view.text async for view in views] == ["one", "two"]
    assert [line["status"] for line in lines] == [200]


async def test_a_stream_that_breaks_off_is_noted_with_what_broke_it() -> None:
    with capture_logs() as lines, pytest.raises(MemoryUnavailable):
        async for _ in await a_stream(MemoryUnavailable("away"))(
            Shelf(), caller("operate")
        ):
            pass
    assert [line["status"] for line in lines] == [503]


async def test_a_stream_whose_client_leaves_is_noted_as_gone() -> None:
    """Once, when the response is given up."""

    async def leave(message: Message) -> None:
        if message["type"] == "http.response.body":
            raise OSError("the client is gone")

    async def receive() -> Message:
        raise AssertionError("nothing more is read")

    with capture_logs() as lines:
        response = respond_to(await a_stream()(Shelf(), caller("operate")))
        scope = {"type": "http", "asgi": {"spec_version": "2.4"}}
        with pytest.raises(ClientDisconnect):
            await response(scope, receive, leave)
        assert [line["status"] for line in lines] == [499]


async def test_a_task_by_its_own_path_is_noted() -> None:
    with capture_logs() as lines, pytest.raises(NotPermitted):
        run_by_path.demand_role(caller("read"))
    assert [(line["operation"], line["status"]) for line in lines] == [
        ("agents_run", 403)
    ]
