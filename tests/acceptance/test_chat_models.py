"""Each agent is a model that OpenAI's own client lists, asks and streams; words reach that agent alone."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import openai
import pytest

from tests.acceptance.system import AGENTS, running_system

BOOKING = "book the room number 7 for 2 guests"
MODELS = (
    "tasklore",
    "DeskAgent",
    "DeskAgent/book_room",
    "DeskAgent/close_desk",
    "RivalAgent",
)


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run a system for all tests here, and return the address of the door."""
    with running_system(tmp_path_factory.mktemp("chat_models")) as system:
        file = AGENTS / "desk.py"
        worker = system.worker(
            f"{file}:desk", f"{file}:rival", llm_base_url="", llm_api_key=""
        )
        supervisor = system.supervisor(llm_base_url="", llm_api_key="")
        worker.ready()
        supervisor.ready().await_agents(2)
        yield f"{supervisor.api}/v1"


@pytest.fixture
def client(door: str) -> Iterator[openai.OpenAI]:
    """Give OpenAI's client, which tries nothing twice."""
    with openai.OpenAI(base_url=door, api_key="none", max_retries=0) as found:
        yield found


def said(*texts: str) -> list[Any]:
    """Return a conversation of which every second text was an answer."""
    return [
        {"role": ("user", "assistant")[place % 2], "content": text}
        for place, text in enumerate(texts)
    ]


def test_agents_and_their_tasks_are_models(client: openai.OpenAI) -> None:
    assert tuple(one.id for one in client.models.list()) == MODELS
    for name in MODELS:
        found = client.models.retrieve(name)
        assert (found.id, found.object) == (name, "model")


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("gpt-6", "use 'tasklore'"),
        ("deskagent", "did you mean 'DeskAgent'?"),
        ("DeskAgent/book_rom", "did you mean 'DeskAgent/book_room'?"),
        ("DeskAgent/", "did you mean 'DeskAgent'?"),
        ("RivalAgent/book_room_elsewhere/", "did you mean 'RivalAgent'?"),
    ],
)
def test_an_unknown_model_is_not_found(
    client: openai.OpenAI, name: str, near: str
) -> None:
    """In OpenAI's form, by whichever way it is asked for; one that is nearly right is named."""

    def asked(**options: Any) -> object:
        return client.chat.completions.create(
            model=name, messages=said(BOOKING), **options
        )

    for ask in (
        asked,
        partial(asked, stream=True),
        partial(client.models.retrieve, name),
    ):
        with pytest.raises(openai.NotFoundError) as refused:
            ask()
        error = refused.value
        assert (error.code, error.param, error.type) == (
            "model_not_found",
            "model",
            "invalid_request_error",
        )
        assert near in error.message


def test_words_go_to_the_agent_that_was_asked_alone(client: openai.OpenAI) -> None:
    """Without a name they fit two agents, and the person is asked which."""
    whole = client.chat.completions.create(model="tasklore", messages=said(BOOKING))
    assert str(whole.choices[0].message.content).startswith("Do you mean ")
    for name, told in (
        ("DeskAgent", "Booked room 7 for 2"),
        ("DeskAgent/book_room", "Booked room 7 for 2"),
        ("RivalAgent", "Elsewhere room 7 for 2"),
        ("RivalAgent/book_room_elsewhere", "Elsewhere room 7 for 2"),
    ):
        done = client.chat.completions.create(model=name, messages=said(BOOKING))
        assert (done.model, done.choices[0].message.content) == (name, told)
        assert done.model_dump()["tasklore"]["agent_id"] == name.partition("/")[0]
    # What another one does is not done by this one.
    other = client.chat.completions.create(
        model="RivalAgent", messages=said("close the desk")
    )
    assert other.model_dump()["tasklore"]["agent_id"] != "DeskAgent"
    assert other.choices[0].message.content != "Closed"


def test_a_stream_is_of_the_model_that_was_asked(client: openai.OpenAI) -> None:
    chunks = list(
        client.chat.completions.create(
            model="DeskAgent",
            messages=said(BOOKING),
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    assert {chunk.model for chunk in chunks} == {"DeskAgent"}
    text = "".join(
        chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices
    )
    assert text.endswith("Booked room 7 for 2")
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.total_tokens == 0


def test_what_is_missing_is_asked_for_in_the_assistants_turn(
    client: openai.OpenAI,
) -> None:
    """Also where nothing in the words names the task: it was chosen by its model."""
    for name in ("DeskAgent/book_room", "RivalAgent"):
        first = client.chat.completions.create(
            model=name, messages=said("hey, number 12 please")
        )
        question = str(first.choices[0].message.content)
        assert "guests" in question
        done = client.chat.completions.create(
            model=name, messages=said("hey, number 12 please", question, "3")
        )
        assert str(done.choices[0].message.content).endswith("room 12 for 3")


def test_a_task_without_values_starts_by_no_other_words(client: openai.OpenAI) -> None:
    for words in ("what a nice day", "hello", "tell me a joke about lawyers"):
        done = client.chat.completions.create(
            model="DeskAgent/close_desk", messages=said(words)
        )
        assert done.model_dump()["tasklore"]["kind"] != "answer"
    done = client.chat.completions.create(
        model="DeskAgent/close_desk", messages=said("close the desk")
    )
    assert done.choices[0].message.content == "Closed"


def test_the_same_key_for_another_model_is_refused(client: openai.OpenAI) -> None:
    named = {"extra_headers": {"Idempotency-Key": "once"}}
    first = client.chat.completions.create(
        model="DeskAgent", messages=said(BOOKING), **named
    )  # type: ignore[call-overload]
    again = client.chat.completions.create(
        model="DeskAgent", messages=said(BOOKING), **named
    )  # type: ignore[call-overload]
    assert first.choices[0].message == again.choices[0].message
    with pytest.raises(openai.ConflictError):
        client.chat.completions.create(
            model="RivalAgent", messages=said(BOOKING), **named
        )  # type: ignore[call-overload]


def test_an_error_in_a_running_stream_is_raised_with_its_code(
    client: openai.OpenAI,
) -> None:
    """The status was sent before; the last event says what went wrong, as OpenAI's client reads it."""
    form: Any = {
        "type": "json_schema",
        "json_schema": {"name": "room", "schema": {"type": "object"}},
    }
    stream = client.chat.completions.create(
        model="DeskAgent", messages=said(BOOKING), stream=True, response_format=form
    )
    with pytest.raises(openai.APIError) as broken:
        list(stream)
    assert (broken.value.code, broken.value.param, broken.value.type) == (
        "result_does_not_fit",
        "response_format",
        "invalid_request_error",
    )


def test_what_is_not_served_is_refused_of_agents_too(client: openai.OpenAI) -> None:
    tool: Any = {"type": "function", "function": {"name": "look", "parameters": {}}}
    with pytest.raises(openai.BadRequestError) as refused:
        client.chat.completions.create(
            model="DeskAgent", messages=said(BOOKING), tools=[tool]
        )
    assert (refused.value.code, refused.value.param) == (
        "unsupported_parameter",
        "tools",
    )
    form: Any = {
        "type": "json_schema",
        "json_schema": {"name": "told", "schema": {"type": "string"}},
    }
    done = client.chat.completions.create(
        model="DeskAgent", messages=said(BOOKING), response_format=form
    )
    assert done.choices[0].message.content == '"Booked room 7 for 2"'
