"""Operations as routes: values, bodies and answers of each shape, and the caller in front of all."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Annotated

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from pydantic import Field
from starlette.types import ASGIApp, Receive, Scope, Send
from structlog.testing import capture_logs

from tasklore.contracts.callers import Caller
from tasklore.contracts.errors import NotPermitted
from tasklore.supervisor.http import problems
from tasklore.supervisor.http.admission.keys import CALLER
from tasklore.supervisor.http.mount import mount
from tasklore.supervisor.operations.forms import (
    Form,
    Lines,
    Seconds,
    Tagged,
    Text,
    View,
)
from tasklore.supervisor.operations.table import Shows, Unfinished, operation


@dataclass(frozen=True, kw_only=True)
class Shelf:
    """What the operations of this test work with."""

    notes: dict[str, str] = field(default_factory=dict)


class NewNote(Form):
    """A note to keep, for so long."""

    text: str
    keep: Seconds | None = None


class NoteView(View):
    """A note."""

    name: str
    text: str
    keep_s: float | None = None
    key: str | None = None


class Shelves(View):
    """Notes of several shelves, in few words."""

    is_without_defaults = True

    shelf: str = "first"
    notes: tuple[NoteView, ...]


class Count(View):
    """How many."""

    kept: int


Limit = Annotated[int, Field(ge=1, le=5, description="At most so many.")]


@operation("notes", "list", "GET /v1/notes", roles=("read", "ask"))
async def list_notes(
    services: Shelf, caller: Caller, *, limit: Limit = 2
) -> tuple[NoteView, ...]:
    """List notes."""
    found = list(services.notes.items())[:limit]
    return tuple(NoteView(name=name, text=text) for name, text in found)


@operation(
    "notes",
    "put",
    "PUT /v1/notes/{name}",
    roles=("ask",),
    status=201,
    problems=(409,),
    shows=Shows(arguments=("text",), shortcut="note"),
)
async def put_note(
    services: Shelf,
    caller: Caller,
    name: Annotated[str, Field(pattern="^[a-z]+$", description="A note.")],
    new: NewNote,
    *,
    idempotency_key: str | None = None,
) -> NoteView:
    """Keep a note.

    It replaces one of its name.

    Raises:
        Refused: it cannot be kept.
    """
    services.notes[name] = new.text
    return NoteView(name=name, text=new.text, keep_s=new.keep, key=idempotency_key)


@operation("notes", "link", "GET /v1/notes/link", roles=("ask",))
async def link_notes(services: Shelf, caller: Caller, *, base_url: str) -> str:
    """Say where the notes are."""
    return f"{base_url}notes"


class NoteFilter(Form):
    """Which notes are meant, in a list and in a bulk action alike."""

    word: Annotated[str | None, Field(description="Only with this word.")] = None
    limit: Limit = 2


class Weight(View):
    """A measure under its own name outside."""

    grams: Annotated[float, Field(serialization_alias="g")]


@operation("notes", "weigh", "GET /v1/notes/weight", roles=("ask",))
async def weigh_notes(
    services: Shelf,
    caller: Caller,
    *,
    most: Annotated[
        int,
        Field(description="At most.", json_schema_extra={"x-cli": {"option": "--top"}}),
    ] = 5,
    idempotency_key: Annotated[str | None, Field(description="Once.")] = None,
) -> Weight:
    """Weigh all notes."""
    return Weight(grams=min(most, len(services.notes)) or float("nan"))


@operation("notes", "survey", "GET /v1/notes/shelves", roles=("ask",))
async def survey_notes(services: Shelf, caller: Caller) -> Shelves:
    """Show all shelves."""
    notes = (NoteView(name=name, text=text) for name, text in services.notes.items())
    return Shelves(notes=tuple(notes))


@operation("notes", "burn", "DELETE /v1/notes", roles=("ask",), status=204)
async def burn_notes(services: Shelf, caller: Caller) -> None:
    """Burn all notes."""
    services.notes.clear()


@operation("notes", "find", "GET /v1/notes/found", roles=("ask",))
async def find_notes(services: Shelf, caller: Caller, asked: NoteFilter) -> Count:
    """Count the notes with a word."""
    found = [one for one in services.notes.values() if asked.word in (None, one)]
    return Count(kept=len(found[: asked.limit]))


@operation("notes", "import", "POST /v1/notes/import", roles=("ask",))
async def import_notes(services: Shelf, caller: Caller, lines: Lines) -> Count:
    """Keep many notes."""
    services.notes.update({one["name"]: one["text"] for one in lines.values})
    return Count(kept=len(lines.values))


@operation("notes", "export", "GET /v1/notes/export", roles=("ask",))
async def export_notes(services: Shelf, caller: Caller) -> AsyncIterator[NoteView]:
    """Return every note, a line each."""

    async def views() -> AsyncIterator[NoteView]:
        for name, text in services.notes.items():
            yield NoteView(name=name, text=text)

    return views()


@operation("notes", "print", "GET /v1/notes/page", roles=("ask",))
async def print_notes(services: Shelf, caller: Caller) -> Text:
    """Return the notes as Markdown."""
    return Text(text="# Notes", media_type="text/markdown")


@operation("notes", "sort", "POST /v1/notes/sort", roles=("ask",), waits=True)
async def sort_notes(
    services: Shelf, caller: Caller
) -> NoteView | Unfinished[NoteView]:
    """Sort the notes, which takes a while."""
    for _ in range(10):
        await asyncio.sleep(0)
    return Unfinished(
        view=NoteView(name="sort", text=caller.name), location="/v1/notes/page"
    )


@operation("notes", "match", "GET /v1/notes/match", roles=("ask",))
async def find_note(services: Shelf, caller: Caller, *, text: str) -> NoteView:
    """Find a note by its text."""
    name = next(name for name, kept in services.notes.items() if kept == text)
    return NoteView(name=name, text=text)


@operation("notes", "show", "GET /v1/notes/{name}", roles=("ask",))
async def show_note(
    services: Shelf,
    caller: Caller,
    name: str,
    *,
    is_whole: Annotated[
        bool, Field(alias="all", description="With what is beside it.")
    ] = False,
    is_text: Annotated[bool, Field(alias="text", description="As text.")] = False,
) -> Tagged[NoteView] | Text:
    """Show a note."""
    text = services.notes[name]
    if is_text:
        return Text(text=text, media_type="text/plain")
    view = NoteView(name=name, text=f"{text}!" if is_whole else text)
    return Tagged(view=view, etag=f'"{len(text)}"')


OPERATIONS = (
    list_notes,
    link_notes,
    export_notes,
    print_notes,
    find_note,
    import_notes,
    find_notes,
    weigh_notes,
    survey_notes,
    burn_notes,
    sort_notes,
    put_note,
    show_note,
)
ANN = Caller(name="ann", roles=frozenset({"ask"}))


def client_of(shelf: Shelf, caller: Caller = ANN) -> TestClient:
    """Return a client of the operations with *caller*, as the admission leaves one in the scope."""
    app = FastAPI()
    problems.install(app)
    app.include_router(mount(shelf, OPERATIONS))

    def admit(inner: ASGIApp) -> ASGIApp:
        async def admitted(scope: Scope, receive: Receive, send: Send) -> None:
            scope[CALLER] = caller
            await inner(scope, receive, send)

        return admitted

    return TestClient(admit(app))


def test_values_come_from_their_places() -> None:
    """Path, body and header of a request are the values of an operation."""
    answer = client_of(Shelf()).put(
        "/v1/notes/milk",
        json={"text": "buy it", "keep": "2h"},
        headers={"Idempotency-Key": "once"},
    )
    assert answer.status_code == 201
    assert answer.json() == {
        "name": "milk",
        "text": "buy it",
        "keep_s": 7200.0,
        "key": "once",
    }


@pytest.mark.parametrize("limit", ["0", "6", "many"])
def test_a_value_beyond_its_bounds_is_named(limit: str) -> None:
    """The bounds of a signature hold in the query."""
    answer = client_of(Shelf()).get("/v1/notes", params={"limit": limit})
    assert answer.status_code == 422
    assert answer.json()["problems"][0]["where"] == "query.limit"


def test_an_answer_is_the_view_as_it_is_written() -> None:
    """By the names that it has outside, for its caller alone; what returns nothing has no body.

    One that says so leaves out what has its default, however deep.
    """
    client = client_of(Shelf(notes={"a": "milk"}))
    for path, told in (
        ("/v1/notes/weight", {"g": 1.0}),
        ("/v1/notes/shelves", {"notes": [{"name": "a", "text": "milk"}]}),
        ("/v1/notes", [{"name": "a", "text": "milk", "keep_s": None, "key": None}]),
    ):
        answer = client.get(path)
        assert answer.json() == told
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["content-type"] == "application/json"
    burnt = client.delete("/v1/notes")
    assert (burnt.status_code, burnt.content) == (204, b"")
    # A number that JSON has not is null, as the framework writes it.
    assert client.get("/v1/notes/weight").json() == {"g": None}


def test_the_document_says_what_a_parameter_is_for() -> None:
    """Its description and its option, also those of a header."""
    app = FastAPI()
    app.include_router(mount(Shelf(), OPERATIONS))
    weighing = app.openapi()["paths"]["/v1/notes/weight"]["get"]
    by_name = {one["name"]: one for one in weighing["parameters"]}
    assert by_name["most"]["description"] == "At most."
    assert by_name["most"]["schema"]["x-cli"] == {"option": "--top"}
    assert by_name["Idempotency-Key"]["description"] == "Once."


def test_an_operation_learns_under_which_address_it_was_asked() -> None:
    """The door knows it, and it is no parameter of the document."""
    client = client_of(Shelf())
    assert client.get("/v1/notes/link").json() == "http://testserver/notes"
    app = FastAPI()
    app.include_router(mount(Shelf(), OPERATIONS))
    linking = app.openapi()["paths"]["/v1/notes/link"]["get"]
    assert "parameters" not in linking


def test_a_form_is_the_query_of_what_is_read() -> None:
    """The filters of a list are those of the bulk action beside it, said once."""
    client = client_of(Shelf(notes={"a": "milk", "b": "tea", "c": "tea"}))
    found = client.get("/v1/notes/found", params={"word": "tea", "limit": 1})
    assert found.json() == {"kept": 1}
    for query, name in (({"limit": "6"}, "limit"), ({"wordy": "tea"}, "wordy")):
        answer = client.get("/v1/notes/found", params=query)
        assert answer.status_code == 422
        assert answer.json()["problems"][0]["where"] == f"query.{name}"
    app = FastAPI()
    app.include_router(mount(Shelf(), OPERATIONS))
    listing = app.openapi()["paths"]["/v1/notes/found"]["get"]
    assert [one["name"] for one in listing["parameters"]] == ["word", "limit"]
    assert "requestBody" not in listing


def test_what_is_not_in_the_path_and_has_no_default_must_be_in_the_query() -> None:
    """A question of a search, for example."""
    client = client_of(Shelf(notes={"milk": "buy it"}))
    found = client.get("/v1/notes/match", params={"text": "buy it"})
    assert found.json()["name"] == "milk"
    missing = client.get("/v1/notes/match")
    assert missing.status_code == 422
    assert missing.json()["problems"][0]["where"] == "query.text"


def test_a_wrong_role_is_told_before_a_wrong_body() -> None:
    """Who may not call an operation learns nothing of its values."""
    reader = Caller(name="bob", roles=frozenset({"read"}))
    answer = client_of(Shelf(), reader).put("/v1/notes/milk", json={"wrong": 1})
    assert answer.status_code == 403
    assert "'ask'" in answer.json()["detail"]


def test_one_request_is_one_line_of_the_audit() -> None:
    """Whether it is run, or its caller may not call it."""
    with capture_logs() as lines:
        for name, role in (("bob", "read"), ("ann", "ask")):
            caller = Caller(name=name, roles=frozenset({role}))
            client_of(Shelf(), caller).put("/v1/notes/milk", json={"text": "buy it"})
    noted = [one for one in lines if one["event"] == "operation"]
    assert [(one["operation"], one["caller"], one["status"]) for one in noted] == [
        ("notes_put", "bob", 403),
        ("notes_put", "ann", 201),
    ]


async def test_the_operation_itself_checks_its_caller() -> None:
    """A door of this process passes the same check."""
    shelf = Shelf()
    reader = Caller(name="bob", roles=frozenset({"read"}))
    with pytest.raises(NotPermitted, match="'ask'"):
        await put_note(shelf, reader, "milk", NewNote(text="buy it"))
    assert shelf.notes == {}
    every = Caller(name="root", roles=frozenset({"admin"}))
    await put_note(shelf, every, "milk", NewNote(text="buy it"))
    assert shelf.notes == {"milk": "buy it"}


def test_lines_go_in_and_out() -> None:
    """A file of JSON lines is a body, and an answer."""
    shelf = Shelf()
    client = client_of(shelf)
    body = b'{"name": "a", "text": "1"}\n\n{"name": "b", "text": "2"}\n'
    answer = client.post("/v1/notes/import", content=body)
    assert answer.json() == {"kept": 2}
    lines = client.get("/v1/notes/export")
    assert lines.headers["content-type"].startswith("application/x-ndjson")
    assert len(lines.text.splitlines()) == 2


def test_a_line_that_is_no_json_is_named() -> None:
    """Nothing of a part is taken then."""
    shelf = Shelf()
    answer = client_of(shelf).post("/v1/notes/import", content=b'{"name": 1}\n{oops\n')
    assert answer.status_code == 400
    assert "line 2" in answer.json()["detail"]
    assert shelf.notes == {}


def test_a_line_that_is_nested_too_deeply_is_named() -> None:
    shelf = Shelf()
    body = b'{"name": "a", "text": "1"}\n' + b"[" * 100_000 + b"\n"
    answer = client_of(shelf).post("/v1/notes/import", content=body)
    assert answer.status_code == 400
    assert "line 2" in answer.json()["detail"]
    assert shelf.notes == {}


def test_a_line_with_half_a_character_is_named() -> None:
    """Nothing could keep it, and nothing of a part is taken then."""
    shelf = Shelf()
    body = b'{"name": "a", "text": "1"}\n{"name": "b", "text": "\\ud800"}\n'
    answer = client_of(shelf).post("/v1/notes/import", content=body)
    assert answer.status_code == 422
    [fault] = answer.json()["problems"]
    assert fault["where"] == "line 2"
    assert fault["message"].startswith("text contains an unpaired surrogate")
    assert shelf.notes == {}


def test_a_text_is_sent_as_it_is() -> None:
    """Markdown is no JSON."""
    answer = client_of(Shelf()).get("/v1/notes/page")
    assert answer.headers["content-type"].startswith("text/markdown")
    assert answer.text == "# Notes"


def test_what_a_reader_has_already_is_not_sent_again() -> None:
    """By its `ETag`, until that is another one; a parameter may be called otherwise outside."""
    shelf = Shelf(notes={"milk": "buy it"})
    client = client_of(shelf)
    read = client.get("/v1/notes/milk")
    assert read.json()["text"] == "buy it"
    assert read.headers["etag"] == '"6"'
    assert read.headers["cache-control"] == "private, no-cache"
    known = {"If-None-Match": '"1", "6"'}
    again = client.get("/v1/notes/milk", headers=known)
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == '"6"'
    shelf.notes["milk"] = "buy more"
    assert client.get("/v1/notes/milk?all=1", headers=known).json()["text"] == (
        "buy more!"
    )
    assert client.get("/v1/notes/milk?text=1", headers=known).text == "buy more"


def test_the_document_says_what_may_be_kept_and_what_is_text() -> None:
    """The tag, the header that names one, and both media types."""
    app = FastAPI()
    app.include_router(mount(Shelf(), OPERATIONS))
    show = app.openapi()["paths"]["/v1/notes/{name}"]["get"]
    names = {(one["in"], one["name"].lower()) for one in show["parameters"]}
    assert names == {
        ("path", "name"),
        ("query", "all"),
        ("query", "text"),
        ("header", "if-none-match"),
    }
    assert "304" in show["responses"]
    done = show["responses"]["200"]
    assert "ETag" in done["headers"]
    assert set(done["content"]) == {"application/json", "text/*"}


def test_what_is_under_way_says_where_to_ask() -> None:
    """202, its view, and the place of its end."""
    answer = client_of(Shelf()).post("/v1/notes/sort")
    assert answer.status_code == 202
    assert answer.headers["location"] == "/v1/notes/page"
    assert answer.json()["text"] == "ann"


def test_the_document_says_what_readers_of_it_need() -> None:
    """Names, roles, the shape of a command, and a description without its errors."""
    app = FastAPI()
    app.include_router(mount(Shelf(), OPERATIONS))
    put = app.openapi()["paths"]["/v1/notes/{name}"]["put"]
    assert put["operationId"] == "notes_put"
    assert put["summary"] == "Keep a note"
    assert put["description"] == "It replaces one of its name."
    assert put["x-tasklore"] == {
        "noun": "notes",
        "verb": "put",
        "roles": ["ask"],
        "mounted": "supervisor",
        "arguments": ["text"],
        "shortcut": "note",
    }
    assert {one["name"]: one["in"] for one in put["parameters"]} == {
        "name": "path",
        "Idempotency-Key": "header",
    }
    assert "409" in put["responses"]
    sort = app.openapi()["paths"]["/v1/notes/sort"]["post"]
    assert set(sort["responses"]) >= {"200", "202"}
    body = app.openapi()["paths"]["/v1/notes/import"]["post"]["requestBody"]
    assert list(body["content"]) == ["application/x-ndjson"]
