"""OpenAI's own client holds conversations with a real system, and programs read what came of them over HTTP."""

import time
from collections.abc import Iterator
from typing import Any

import httpx2
import openai
import pytest

from tests.acceptance.conversation import FOOD
from tests.acceptance.keyed_api import KeyedApi, keyed_api
from tests.acceptance.system import PATIENCE_S

BUDGETED = "Check my budget: limit 50000, spent 42000, history [5000, 7000, 8000, 6000]"


class Api:
    """Two ways to ask a system: by OpenAI's client, and by plain requests."""

    def __init__(self, system: KeyedApi) -> None:
        self.url, self.keys = system

    def openai(self, who: str = "anybody", **options: Any) -> openai.OpenAI:
        """Return OpenAI's client for *who*; it tries nothing twice, so that each refusal is seen."""
        return openai.OpenAI(
            base_url=f"{self.url}/v1", api_key=self.keys[who], max_retries=0, **options
        )

    def ask(
        self, method: str, path: str, who: str = "anybody", **options: Any
    ) -> httpx2.Response:
        """Return what *method* of *path* answers to *who*."""
        headers = {"Authorization": f"Bearer {self.keys[who]}"} | options.pop(
            "headers", {}
        )
        return httpx2.request(
            method, self.url + path, headers=headers, timeout=PATIENCE_S, **options
        )

    def until(self, path: str, field: str) -> Any:
        """Return *field* of what lies at *path*, once there is something in it."""
        gives_up_at = time.monotonic() + PATIENCE_S
        while not (found := self.ask("GET", path).json()[field]):
            assert time.monotonic() < gives_up_at, f"no {field} at {path}"
            time.sleep(0.05)
        return found


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """Run a system for all tests here."""
    with keyed_api(tmp_path_factory.mktemp("http_chat")) as system:
        yield Api(system)


def person(text: str) -> Any:
    """Return what a person says."""
    return {"role": "user", "content": text}


def assistant(text: str | None) -> Any:
    """Return what was answered."""
    return {"role": "assistant", "content": text}


def test_a_client_that_sends_its_whole_history_holds_a_conversation(api: Api) -> None:
    client = api.openai()
    first = client.chat.completions.create(
        model="tasklore", messages=[person(BUDGETED)], temperature=0
    )
    reply = first.choices[0].message.content
    assert reply is not None
    assert "Remaining: 8,000" in reply
    assert first.choices[0].finish_reason == "stop"
    messages = [person(BUDGETED), assistant(reply), person("the same with 45k spent")]
    second = client.chat.completions.create(model="tasklore", messages=messages)
    assert "spent 45,000; history [5,000; 7,000; 8,000; 6,000]" in str(
        second.choices[0].message.content
    )
    # No model was asked, so nothing was used of any.
    assert second.usage is not None
    assert second.usage.total_tokens == 0
    about = second.model_dump()["tasklore"]
    assert about["agent_id"] == "BudgetTrackerAgent"
    told = api.ask("GET", f"/v1/conversations/{about['conversation_id']}").json()[
        "messages"
    ]
    assert [one["message"] for one in told[:3]] == [
        BUDGETED,
        reply,
        "the same with 45k spent",
    ]


async def test_a_streamed_conversation_asks_back_and_goes_on(api: Api) -> None:
    """With the asynchronous client: role first, then words, an end, and the usage when it is wished for."""
    client = openai.AsyncOpenAI(base_url=f"{api.url}/v1", api_key=api.keys["anybody"])
    messages = [person("Check my budget: limit 50000, history [5000, 7000]")]

    async def streamed() -> tuple[str, list[Any]]:
        stream = await client.chat.completions.create(
            model="tasklore",
            messages=messages,
            stream=True,
            stream_options={"include_usage": True},
        )
        chunks = [chunk async for chunk in stream]
        return "".join(
            chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices
        ), chunks

    question, chunks = await streamed()
    assert question == "What is the spent amount (what has been spent so far)?"
    assert chunks[0].choices[0].delta.role == "assistant"
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][
        -1
    ] == "stop"
    assert chunks[-1].usage.total_tokens == 0
    assert len({chunk.id for chunk in chunks}) == 1
    messages += [assistant(question), person("42000")]
    told, chunks = await streamed()
    assert "Remaining: 8,000" in told
    assert (
        len(
            [
                chunk
                for chunk in chunks
                if chunk.choices and chunk.choices[0].delta.content
            ]
        )
        > 5
    )
    await client.close()


def test_a_client_that_names_its_conversation_need_not_send_it(api: Api) -> None:
    client = api.openai()
    named = {"metadata": {"conversation_id": "named"}}
    client.chat.completions.create(
        model="tasklore", messages=[person(BUDGETED)], **named
    )  # type: ignore[call-overload]
    told = client.chat.completions.create(
        model="tasklore",
        messages=[person("again with spent 1000")],
        extra_headers={"X-Conversation-Id": "named"},
    )
    assert "Remaining: 49,000" in str(told.choices[0].message.content)
    # Without its name there is nothing to do again.
    other = client.chat.completions.create(
        model="tasklore", messages=[person("again with spent 1000")]
    )
    assert "Remaining" not in str(other.choices[0].message.content)


def test_a_body_that_makes_no_sense_is_refused_in_openais_form(api: Api) -> None:
    """Each with the status that its clients make an error of, and never as a fault of the server."""
    asked = b'{"model": "%b", "messages": [{"role": "%b", "content": "%b"}]%b}'
    for body, status in (
        (b"\xff\xfe", 400),
        (asked % (b"tasklore", b"king", b"hi", b""), 400),
        (asked % (b"tasklore", b"user", b"hi", b', "user": "\\udc00"'), 400),
        (asked % (b"no", b"user", b"hi", b""), 404),
        (asked % (b"tasklore", b"user", b"x" * 2_000_000, b""), 413),
    ):
        told = api.ask(
            "POST",
            "/v1/chat/completions",
            content=body,
            headers={"Content-Type": "application/json"},
        )
        assert told.status_code == status, told.text
        assert {"message", "type", "param", "code"} == set(told.json()["error"])


def test_who_may_not_ask_is_refused_in_openais_form(api: Api) -> None:
    hello: dict[str, Any] = {"model": "tasklore", "messages": [person("hi")]}
    with pytest.raises(openai.AuthenticationError) as unknown:
        openai.OpenAI(
            base_url=f"{api.url}/v1", api_key="tlk_no", max_retries=0
        ).chat.completions.create(**hello)
    assert unknown.value.code == "invalid_api_key"
    with pytest.raises(openai.PermissionDeniedError):
        api.openai("reader").chat.completions.create(**hello)
    with pytest.raises(openai.PermissionDeniedError):
        api.openai("ana").chat.completions.create(user="bob", **hello)


def test_nobody_reaches_the_conversations_of_another_user(api: Api) -> None:
    hers = {"metadata": {"conversation_id": "of-ana"}}
    api.openai("ana").chat.completions.create(
        model="tasklore", messages=[person(BUDGETED)], **hers
    )  # type: ignore[call-overload]
    with pytest.raises(openai.PermissionDeniedError):
        api.openai("bob").chat.completions.create(
            model="tasklore", messages=[person("the same again")], **hers
        )  # type: ignore[call-overload]
    assert api.ask("GET", "/v1/conversations/of-ana", "bob").status_code == 404
    assert (
        api.ask("GET", "/v1/conversations", "bob", params={"user": "ana"}).status_code
        == 403
    )
    assert (
        "of-ana"
        not in api.ask("GET", "/v1/conversations", "bob").json()["conversations"]
    )
    assert (
        "of-ana" in api.ask("GET", "/v1/conversations", "ana").json()["conversations"]
    )
    assert api.ask("GET", "/v1/conversations").status_code == 422


def test_what_a_chat_taught_is_read_and_taken_back(api: Api) -> None:
    """Documents, their history page by page, and an undo that the memory worker carries out."""
    taught = [person("I love scrambled eggs with lox, and I'm allergic to peanuts")]
    api.openai("ana").chat.completions.create(model="tasklore", messages=taught)
    api.until(f"/v1/memory/ana/documents/{FOOD}/history", "plans")
    api.until("/v1/memory/ana/documents/resource_user_health/history", "plans")
    listed = {
        one["resource"]: one["revision"]
        for one in api.ask("GET", "/v1/memory/ana", "ana").json()["documents"]
    }
    assert listed[FOOD] == 1

    read = api.ask("GET", f"/v1/memory/ana/documents/{FOOD}", "ana")
    assert read.json()["food"]["likes"][0]["display"] == "Scrambled eggs with lox"
    assert read.headers["etag"].startswith('"1-')
    again = api.ask(
        "GET",
        f"/v1/memory/ana/documents/{FOOD}",
        "ana",
        headers={"If-None-Match": read.headers["etag"]},
    )
    assert (again.status_code, again.content) == (304, b"")
    assert (
        "Scrambled eggs with lox"
        in api.ask(
            "GET", f"/v1/memory/ana/documents/{FOOD}?format=markdown", "ana"
        ).text
    )

    first = api.ask("GET", "/v1/memory/ana/history?limit=1", "ana").json()
    rest = api.ask(
        "GET", f"/v1/memory/ana/history?limit=50&after={first['after']}", "ana"
    ).json()
    numbers = [plan["number"] for plan in [*first["plans"], *rest["plans"]]]
    assert (numbers, rest["after"]) == (sorted(set(numbers), reverse=True), None)

    plan = api.ask("GET", f"/v1/memory/ana/documents/{FOOD}/history", "ana").json()[
        "plans"
    ][0]
    assert plan["evidence"] in taught[0]["content"]
    undo = {"plan_id": plan["plan_id"]}
    assert (
        api.ask(
            "POST",
            "/v1/memory/ana/documents/resource_user_routine/undo",
            "ana",
            json=undo,
        ).status_code
        == 404
    )
    done = api.ask("POST", f"/v1/memory/ana/documents/{FOOD}/undo", "ana", json=undo)
    assert (done.status_code, done.json()["undoes"], done.json()["revisions"]) == (
        200,
        plan["plan_id"],
        {FOOD: 2},
    )
    assert (
        api.ask("GET", f"/v1/memory/ana/documents/{FOOD}", "ana").json()["food"][
            "likes"
        ]
        == []
    )
    refused = api.ask("POST", "/v1/memory/ana/undo", "ana", json=undo)
    assert (refused.status_code, refused.headers["content-type"]) == (
        409,
        "application/problem+json",
    )


def test_nobody_reaches_the_memory_of_another_user(api: Api) -> None:
    for path in (
        "",
        "/history",
        f"/documents/{FOOD}",
        f"/documents/{FOOD}/history",
        "/undo",
        f"/documents/{FOOD}/undo",
    ):
        method, body = (
            ("POST", {"plan_id": "p"}) if path.endswith("undo") else ("GET", None)
        )
        assert (
            api.ask(method, f"/v1/memory/ana{path}", "bob", json=body).status_code
            == 403
        )


def nap(ms: int) -> dict[str, Any]:
    """Return a pipeline that naps."""
    phase = {
        "name": "rest",
        "agent": "NapAgent",
        "task": "take_nap",
        "parameters": {"ms": ms},
    }
    return {"name": "napping", "phases": [phase]}


def test_a_pipeline_is_run_and_listened_to(api: Api) -> None:
    taken = api.ask(
        "POST",
        "/v1/pipelines",
        "ana",
        json={"pipeline": nap(200), "session_id": "nap-1"},
    )
    assert (taken.status_code, taken.headers["location"]) == (
        202,
        "/v1/pipelines/nap-1",
    )
    told = api.ask("GET", "/v1/pipelines/nap-1/events", "ana").text
    events = [line for line in told.split("\n") if line.startswith("event: ")]
    assert (events[0], events[-1]) == ("event: state", "event: done")
    end = [line for line in told.split("\n") if line.startswith("id: ")][-1][4:]
    run = api.ask("GET", "/v1/pipelines/nap-1", "ana").json()
    assert (run["state"], run["outcome"]["phases"][0]["status"]) == (
        "completed",
        "done",
    )
    again = api.ask(
        "POST",
        "/v1/pipelines",
        "ana",
        json={"pipeline": nap(200), "session_id": "nap-1"},
    )
    assert again.status_code == 202
    other = api.ask(
        "POST", "/v1/pipelines", "ana", json={"pipeline": nap(1), "session_id": "nap-1"}
    )
    assert other.status_code == 409
    assert api.ask("GET", "/v1/pipelines/nap-1", "bob").status_code == 404
    path = "/v1/pipelines/nap-1/events"
    for place, who, status in (
        ("1.0", "bob", 404),
        (end, "bob", 404),
        (end, "ana", 204),
        ("1.1.5", "ana", 422),
    ):
        headers = {"Last-Event-ID": place}
        assert api.ask("GET", path, who, headers=headers).status_code == status
    told = api.ask("GET", path, "ana", headers={"Last-Event-ID": "1.0"}).text
    assert [line[7:] for line in told.split("\n") if line.startswith("event: ")] == [
        "phase_started",
        "phase_done",
        "completed",
        "done",
    ]


def test_a_run_is_cancelled_and_taken_up_again(api: Api) -> None:
    wish = {"pipeline": nap(60_000), "session_id": "nap-2"}
    assert api.ask("POST", "/v1/pipelines", "ana", json=wish).status_code == 202
    assert (
        api.ask("POST", "/v1/pipelines/nap-2/resume", "ana", json={}).status_code == 409
    )
    assert api.ask("POST", "/v1/pipelines/nap-2/cancel", "bob").status_code == 404
    assert [
        one["session_id"]
        for one in api.ask("GET", "/v1/pipelines?state=running", "ana").json()["runs"]
    ] == ["nap-2"]
    assert api.ask("GET", "/v1/pipelines", "bob").json()["runs"] == []
    assert (
        api.ask(
            "POST", "/v1/pipelines/nap-2/cancel", "ana", json={"reason": "enough"}
        ).status_code
        == 202
    )
    assert "event: done" in api.ask("GET", "/v1/pipelines/nap-2/events", "ana").text
    assert api.ask("GET", "/v1/pipelines/nap-2", "ana").json()["state"] == "cancelled"
    assert api.ask("POST", "/v1/pipelines/nap-2/cancel", "ana").status_code == 409
    rerun = api.ask(
        "POST",
        "/v1/pipelines/nap-2/rerun",
        "ana",
        json={"phase": "rest", "pipeline": nap(1)},
    )
    assert rerun.status_code == 202, rerun.text
