"""The client's flows: what is sent again, under which id, and when it is given up."""

import inspect
import json
from collections.abc import Callable
from functools import partial
from typing import Any

import httpx2
import pytest

from tasklore.client import (
    ApiError,
    AsyncClient,
    Client,
    NotDone,
    ServerUnreachable,
    TaskFailed,
    UnknownAnswer,
)
from tasklore.client.calls import Answer, Call, Events, Flow, JsonLines, Pages, Pause
from tasklore.client.models import MemoryDocument, MemoryFile, ResultLine
from tasklore.client.nouns import (
    MemoryFlows,
    ResultsFlows,
    SchedulesFlows,
    TasksFlows,
    WebhooksFlows,
)
from tasklore.client.streams import StreamReader
from tasklore.client.whole_tasks import WholeTasks

AWAY = Answer(0, {"detail": "http://127.0.0.1:1 does not answer"})
UNFINISHED = {"state": "running", "report": None, "task": None}
BUSY = Answer(
    503, {"type": "urn:tasklore:problem:busy", "detail": "busy"}, retry_after_s=7.0
)


def done(call: Call) -> Answer:
    if call.path.startswith("/v1/requests"):
        reply = {
            "request_id": "r",
            "conversation_id": "c",
            "kind": "answer",
            "text": "yes",
        }
        asked = {"request_id": "r", "conversation_id": "c", "state": "done"}
        return Answer(200, asked | {"reply": reply})
    if call.path.startswith("/v1/memory"):
        return Answer(200, {"task_id": "t", "state": "done", "revisions": {}})
    return Answer(200, task_as("completed"))


def task_as(status: str, **error: str) -> dict[str, Any]:
    """Return a task that ended with *status*."""
    report = {
        "task_id": "t",
        "supervisor_id": "s",
        "worker_id": "w",
        "agent_id": "Budget",
        "task_name": "analyze",
        "status": status,
        "memory": {"outcome": "miss"},
        "finished_at": "2026-11-29T12:00:00Z",
        "result": 7 if status == "completed" else None,
        "error": error or None,
    }
    return {
        "task_id": "t",
        "agent_id": "Budget",
        "task": "analyze",
        "state": "done",
        "status": status,
        "report": report,
    }


class Drive:
    """Drives a flow by *answers*, and by `done` once these are used up; keeps the calls and pauses."""

    def __init__(self, flow: Flow[Any], *answers: Answer) -> None:
        self.calls: list[Call] = []
        self.pauses: list[float] = []
        self.result: Any = None
        left = list(answers)
        answer = None
        while True:
            try:
                step = flow.send(answer)
            except StopIteration as end:
                self.result = end.value
                return
            if isinstance(step, Pause):
                self.pauses.append(step.seconds)
                answer = None
            else:
                self.calls.append(step)
                answer = left.pop(0) if left else done(step)


@pytest.mark.parametrize(
    "flow",
    [
        WholeTasks().ask("how is my budget?"),
        WholeTasks().run("Budget", "analyze", {}),
        WholeTasks().call("Budget.analyze", {}),
        MemoryFlows().add_item("ana", category="food.likes", value="tea"),
        MemoryFlows().change_item("ana", "food.likes/1", value="tea"),
        MemoryFlows().delete_item("ana", "food.likes/1"),
        MemoryFlows().undo("ana", plan_id="p1"),
    ],
    ids=lambda flow: flow.__qualname__.rpartition(".")[2],
)
def test_an_unanswered_change_is_sent_again_under_one_id(flow: Flow[Any]) -> None:
    drive = Drive(flow, AWAY, BUSY)
    assert len(drive.calls) == 3
    assert len({call.key for call in drive.calls}) == 1
    assert drive.calls[0].key
    assert drive.pauses == [0.25, 7.0]


def test_two_calls_have_two_ids() -> None:
    keys = [
        Drive(WholeTasks().run("Budget", "analyze", {})).calls[0].key for _ in range(2)
    ]
    assert keys[0] != keys[1]


def test_an_absent_server_is_given_up_after_four_calls() -> None:
    with pytest.raises(ServerUnreachable, match="does not answer"):
        Drive(WholeTasks().run("Budget", "analyze", {}), *[AWAY] * 4)
    pauses = Drive(WholeTasks().run("Budget", "analyze", {}), *[AWAY] * 3).pauses
    assert pauses == [0.25, 0.5, 1.0]


def test_a_refusal_is_final() -> None:
    body = {
        "type": "urn:tasklore:problem:fields",
        "detail": "wrong",
        "problems": [{"where": "limit", "message": "no number"}],
    }
    with pytest.raises(ApiError, match="wrong; limit: no number") as refused:
        Drive(WholeTasks().run("Budget", "analyze", {}), Answer(422, body))
    assert (refused.value.status, refused.value.kind) == (422, "fields")


def test_a_field_that_the_refusal_names_is_said_once() -> None:
    body = {
        "type": "urn:tasklore:problem:fields",
        "detail": "limit: no number",
        "problems": [{"where": "limit", "message": "no number"}],
    }
    with pytest.raises(ApiError) as refused:
        Drive(WholeTasks().run("Budget", "analyze", {}), Answer(422, body))
    assert str(refused.value) == "limit: no number"
    assert refused.value.problems == ("limit: no number",)


@pytest.mark.parametrize(
    "flow",
    [
        WholeTasks().ask("how is my budget?", within_s=0.0),
        WholeTasks().run("Budget", "analyze", {}, within_s=0.001),
    ],
    ids=["ask", "run"],
)
def test_waiting_ends_with_its_time(flow: Flow[Any]) -> None:
    asked = {"request_id": "r", "conversation_id": "c", "reply": None, "parts": ()}
    going = Answer(202, task_as("completed") | asked | UNFINISHED)
    with pytest.raises(NotDone, match="it continues"):
        Drive(flow, *[going] * 1_000)


def test_what_would_be_done_twice_is_sent_once() -> None:
    """A call without an id that changes something is not repeated."""
    with pytest.raises(ServerUnreachable):
        Drive(SchedulesFlows().run("nightly"), AWAY)


@pytest.mark.parametrize(
    "flow",
    [
        lambda: WebhooksFlows().remove("msg_1"),
        lambda: SchedulesFlows().remove("nightly"),
        lambda: ResultsFlows().set("analyze:1", result=7),
    ],
    ids=["webhook", "schedule", "result"],
)
@pytest.mark.parametrize("lost", [0, 502, 504])
def test_what_may_have_been_set_or_removed_is_not_done_again(
    flow: Callable[[], Flow[Any]], lost: int
) -> None:
    """Somebody may have made it anew since, and what is gone already would be said not to be there."""
    with pytest.raises((ServerUnreachable, ApiError)):
        Drive(flow(), Answer(lost, {"detail": "cut"}))
    for undone in (Answer(0, was_sent=False), Answer(429), Answer(503)):
        with pytest.raises(ApiError, match="gone"):
            Drive(flow(), undone, Answer(404, {"detail": "gone"}))


def test_lines_whose_answer_was_lost_are_sent_again() -> None:
    """To what takes lines, the same again do no harm."""
    view = {"stored": 1, "known": 0, "quarantined": (), "refused": ()}
    line = ResultLine(key="analyze:1", result=7)
    drive = Drive(
        ResultsFlows().import_("Budget", lines=[line]), AWAY, Answer(200, view)
    )
    assert len({call.content for call in drive.calls}) == 1
    assert len(drive.calls) == 2
    assert drive.calls[0].spell_headers() == {}


def test_a_task_that_failed_raises_its_error() -> None:
    """Nobody reads a result of None for one."""
    failed = Answer(200, task_as("failed", type="ValueError", message="no limit"))
    with pytest.raises(TaskFailed, match="t is failed: no limit") as caught:
        Drive(WholeTasks().run("Budget", "analyze", {}), failed)
    assert (caught.value.status, caught.value.kind) == ("failed", "ValueError")
    assert Drive(WholeTasks().call("Budget.analyze", {})).result == 7


def test_an_answer_that_cannot_be_read_is_said_so() -> None:
    """A server of another version, or another program at its address."""
    with pytest.raises(UnknownAnswer, match="client of the server's version"):
        Drive(WholeTasks().run("Budget", "analyze", {}), Answer(200, "<html>"))


def test_a_name_is_one_part_of_a_path() -> None:
    [call] = Drive(
        MemoryFlows().undo("../ana/items?x#", scope="agent", plan_id="p1")
    ).calls
    assert call.path == "/v1/memory/..%2Fana%2Fitems%3Fx%23/undo"
    assert call.spell_query() == {"scope": "agent"}
    [call] = Drive(MemoryFlows().delete_item("ana", "food/likes")).calls
    assert call.path == "/v1/memory/ana/items/food%2Flikes"


def test_only_what_was_given_is_sent() -> None:
    """None is the server's default; times and spans are spelled for it."""
    [call] = Drive(
        TasksFlows().send(task="analyze", parameters={"limit": 5}, after="2h")
    ).calls
    assert call.spell_body() == {
        "task": "analyze",
        "parameters": {"limit": 5},
        "after": "2h",
    }
    assert set(call.spell_headers()) == {"Idempotency-Key"}


def test_a_list_of_tasks_goes_on_behind_pages_that_are_short() -> None:
    """Until there is no page behind the last."""
    pages = TasksFlows().each(state="failed")
    assert isinstance(pages, Pages)
    page: dict[str, Any] = {"tasks": [], "after": None}
    first = Drive(pages.page(None), Answer(200, page | {"after": "9.1.A"}))
    second = Drive(pages.page("9.1.A"), Answer(200, page))
    assert [call.calls[0].spell_query() for call in (first, second)] == [
        {"state": "failed"},
        {"state": "failed", "after": "9.1.A"},
    ]
    assert (first.result.after, second.result.after) == ("9.1.A", None)


class Door:
    """A server in this process, of which both clients are: answers in turn, and keeps what it was asked."""

    def __init__(self) -> None:
        self.answers: list[httpx2.Response] = []
        self.asked: list[httpx2.Request] = []

    def answer(self, request: httpx2.Request) -> httpx2.Response:
        """Return the next answer."""
        self.asked.append(request)
        return self.answers.pop(0)


@pytest.fixture
def door(monkeypatch: pytest.MonkeyPatch) -> Door:
    """Return what every client of this test asks."""
    door = Door()
    transport = httpx2.MockTransport(door.answer)
    for name in ("Client", "AsyncClient"):
        made = partial(getattr(httpx2, name), transport=transport)
        monkeypatch.setattr(httpx2, name, made)
    return door


Taking = Callable[[Client | AsyncClient], Any]


async def take_all(kind: type[Client | AsyncClient], take: Taking) -> list[Any]:
    """Return all that *take* yields of a client of *kind*."""
    client = kind("http://here")
    found = take(client)
    if isinstance(client, Client):
        with client:
            return list(found)
    async with client:
        return [one async for one in found]


both = pytest.mark.parametrize("kind", [Client, AsyncClient])


@both
async def test_each_begins_without_a_place(
    door: Door, kind: type[Client | AsyncClient]
) -> None:
    """Not every list takes an empty one for its beginning."""
    pages: tuple[dict[str, Any], ...] = (
        {"agents": [], "after": "Budget"},
        {"agents": [], "after": None},
    )
    door.answers = [httpx2.Response(200, json=page) for page in pages]
    assert await take_all(kind, lambda client: client.agents.each()) == []
    assert [dict(one.url.params) for one in door.asked] == [{}, {"after": "Budget"}]


def reader_of_events() -> StreamReader[Any]:
    return StreamReader(TasksFlows().follow("t1"))


def test_a_cut_stream_is_taken_up_behind_its_last_event() -> None:
    """Half an event before the cut is forgotten: it comes again, whole."""
    reader = reader_of_events()
    assert reader.begin(200)
    lines = ["id: 1.1.3", "event: text", 'data: "Hello"', "", "event: text", "data: 1"]
    found = [one for line in lines if (one := reader.take(line)) is not None]
    assert [(one.event, one.data, one.id) for one in found] == [
        ("text", "Hello", "1.1.3")
    ]
    assert reader.pause_after_cut("cut") == 0.5
    assert reader.headers == {"Last-Event-ID": "1.1.3"}
    assert reader.begin(200)
    assert reader.take("") is None
    assert reader.begin(204) is False
    assert reader.pause_after_end() is None


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_stream_that_is_refused_for_now_is_taken_up_later(status: int) -> None:
    """As often as one that is cut; with the server's own pause, where it says one."""
    reader = reader_of_events()
    assert reader.begin(status, '{"detail": "busy"}', retry_after_s=7.0) is False
    assert reader.pause_after_end() == 7.0
    assert reader.begin(status) is False
    assert reader.pause_after_end() == 1.0
    assert reader.pause_after_cut("nobody there") == 2.0
    assert reader.begin(status, '{"detail": "still busy"}') is False
    with pytest.raises(ApiError, match="still busy") as refused:
        reader.pause_after_end()
    assert refused.value.status == status


def test_a_stream_that_ends_without_an_event_was_cut() -> None:
    """It is not asked for again and again without a pause; an event makes good for all before it."""
    reader = reader_of_events()
    assert reader.begin(200)
    assert reader.pause_after_end() == 0.5
    assert reader.begin(200)
    assert len(list(reader.read("event: text\ndata: 1\n\n"))) == 1
    assert reader.pause_after_end() == 0.0
    for pause in (0.5, 1.0, 2.0):
        assert reader.begin(200)
        assert list(reader.read(": here\n\n")) == []
        assert reader.pause_after_end() == pause
    assert reader.begin(200)
    with pytest.raises(ServerUnreachable, match="ended without an event"):
        reader.pause_after_end()


@both
async def test_both_clients_take_up_a_stream_of_a_busy_server(
    door: Door, kind: type[Client | AsyncClient]
) -> None:
    event = 'id: 1.1.3\nevent: text\ndata: "Hello"\n\n'
    door.answers = [
        httpx2.Response(200, text=event),
        httpx2.Response(503, headers={"Retry-After": "0"}, json={"detail": "busy"}),
        httpx2.Response(204),
    ]
    found = await take_all(kind, lambda client: client.tasks.follow("t1"))
    assert [one.data for one in found] == ["Hello"]
    places = [one.headers.get("Last-Event-ID") for one in door.asked]
    assert places == [None, "1.1.3", "1.1.3"]


def test_a_stream_of_which_nothing_comes_is_given_up() -> None:
    reader = reader_of_events()
    for _ in range(3):
        reader.pause_after_cut("nobody there")
    with pytest.raises(ServerUnreachable, match="nobody there"):
        reader.pause_after_cut("nobody there")
    with pytest.raises(ApiError, match="no such task"):
        reader_of_events().begin(404, '{"detail": "no such task"}')


def test_an_event_of_a_newer_server_is_kept() -> None:
    reader = reader_of_events()
    reader.begin(200)
    lines = ["event: applause", 'data: {"loud": true}', ""]
    [found] = [one for line in lines if (one := reader.take(line)) is not None]
    assert (found.event, found.data) == ("applause", {"loud": True})


FOOD = {"_metadata": {"revision": 2}, "likes": ["tea"]}


def test_a_model_keeps_the_fields_that_have_no_names_before() -> None:
    """Those of a document depend on its kind."""
    document = MemoryDocument.model_validate(FOOD)
    assert document.model_dump() == FOOD


@both
@pytest.mark.parametrize(
    ("response", "found"),
    [
        (
            {"text": "# Food", "headers": {"Content-Type": "text/markdown"}},
            "# Food",
        ),
        ({"json": FOOD}, MemoryDocument.model_validate(FOOD)),
    ],
    ids=["markdown", "json"],
)
async def test_a_document_is_a_text_or_a_model(
    door: Door,
    kind: type[Client | AsyncClient],
    response: dict[str, Any],
    found: object,
) -> None:
    """Both under one address: the caller says which."""
    door.answers = [httpx2.Response(200, **response)]
    client = kind("http://here")
    shown = client.memory.document("ana", "food", format="markdown")
    assert (await shown if inspect.isawaitable(shown) else shown) == found


@pytest.mark.parametrize(
    ("stream", "line", "found"),
    [
        (
            ResultsFlows().export("Budget"),
            '{"key": "k", "result": {"total": 7}}',
            ResultLine(key="k", result={"total": 7}),
        ),
        (
            MemoryFlows().export("ana"),
            '{"resource": "food", "revision": 2, "content": "# Food"}',
            MemoryFile(resource="food", revision=2, content="# Food"),
        ),
    ],
    ids=["results", "memory"],
)
def test_a_line_of_an_export_is_a_model(
    stream: JsonLines[Any], line: str, found: object
) -> None:
    reader = StreamReader(stream)
    assert reader.begin(200)
    assert reader.take(line) == found


#: Ends of lines to `str.splitlines`, and characters of a text to JSON and to a stream of events.
NO_ENDS = "a\u2028b\u2029c\x85d"


@both
async def test_lines_end_at_line_feeds_alone(
    door: Door, kind: type[Client | AsyncClient]
) -> None:
    lines: list[dict[str, Any]] = [
        {"key": "k", "result": NO_ENDS},
        {"key": "l", "result": 1},
    ]
    first, second = (json.dumps(line, ensure_ascii=False) for line in lines)
    # The last line may lack its end.
    door.answers = [httpx2.Response(200, text=f"{first}\r\n\n{second}")]
    found = await take_all(kind, lambda client: client.results.export("Budget"))
    assert found == [ResultLine(**line) for line in lines]
    event = f"event: text\r\ndata: {json.dumps(NO_ENDS, ensure_ascii=False)}\r\n\r\n"
    door.answers = [httpx2.Response(200, text=event), httpx2.Response(204)]
    [text] = await take_all(kind, lambda client: client.tasks.follow("t1"))
    assert text.data == NO_ENDS


def test_a_line_may_come_in_pieces() -> None:
    reader = StreamReader(ResultsFlows().export("Budget"))
    assert reader.begin(200)
    pieces = ['{"key": "k", ', '"result": 1}\r', "\n", '{"key": "l", "result": 2}']
    found = [one.key for piece in pieces for one in reader.read(piece)]
    assert (found, [one.key for one in reader.read_rest()]) == (["k"], ["l"])


@pytest.mark.parametrize(
    ("stream", "text"),
    [
        (ResultsFlows().export("Budget"), '{"key": "k", "res\n'),
        (ResultsFlows().export("Budget"), '{"key": 1}\n'),
        (TasksFlows().follow("t1"), 'event: text\ndata: "Hel\n\n'),
    ],
    ids=["half a line", "another line", "half an event"],
)
def test_a_line_that_cannot_be_read_is_said_so(
    stream: JsonLines[Any] | Events[Any], text: str
) -> None:
    reader = StreamReader(stream)
    assert reader.begin(200)
    with pytest.raises(UnknownAnswer, match="client of the server's version"):
        list(reader.read(text))
