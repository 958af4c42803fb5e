"""Servers that understand less than OpenAI's own: the request is said in another way, once found out."""

import pytest

from tasklore.contracts.errors import LlmRejected
from tasklore.runtime.models.dialects import known_dialects
from tasklore.runtime.models.llm import LlmRole
from tests.llm_double import Asked, ScriptedLlm, fault
from tests.llm_questions import GOOD, KEY, Book, Opener, ask
from tests.llm_servers import KINDS, Kind, ModelServer

pytest_plugins = ["tests.fixtures_llm"]

ROLES = {"editor": LlmRole(model="own", temperature=0.2)}
#: Requests that a server refuses before the first is answered.
REFUSED = {"json_schema": 0, "json_object": 2, "text": 3}


@pytest.mark.parametrize("kind", KINDS)
async def test_a_question_is_answered_by_a_server_of_each_kind(
    open_llm: Opener, scripted_llm: ScriptedLlm, kind: Kind
) -> None:
    """What it refused is not said again, in this client or another one of the process."""
    server = ModelServer(kind, ("own",), answers=lambda _asked: GOOD)
    scripted_llm.respond = server
    book = Book()

    first = await ask(open_llm(roles=ROLES, meter=book))
    again = await ask(open_llm(roles=ROLES))

    assert (first.value.colour, again.value.colour) == ("green", "green")
    assert len(server.refused) == REFUSED[kind]
    assert len(scripted_llm.requests) == REFUSED[kind] + 2
    # A refused request is no attempt, and costs nothing.
    assert (first.attempts, [line[3] for line in book.lines]) == (1, [None])
    said = " ".join(known_dialects())
    address = scripted_llm.base_url.removesuffix("/v1")
    assert (f"own at {address}" in said) == (kind != "json_schema")
    assert KEY not in said


@pytest.mark.parametrize("kind", ["json_object", "text"])
async def test_without_a_schema_in_the_request_the_prompt_has_it(
    open_llm: Opener, scripted_llm: ScriptedLlm, kind: Kind
) -> None:
    scripted_llm.respond = ModelServer(kind, ("own",), answers=lambda _asked: GOOD)
    await ask(open_llm(roles=ROLES))
    asked = scripted_llm.requests[-1]
    assert asked.system.startswith("Name the colour.")
    assert '"enum": ["red", "green"]' in asked.system
    assert (asked.user, [one["role"] for one in asked.body["messages"]]) == (
        "grass",
        ["system", "user"],
    )
    bound = "max_tokens" if kind == "json_object" else "max_completion_tokens"
    assert asked.body[bound] == 2_048


@pytest.mark.parametrize(
    "words",
    [
        "max_completion_tokens is too large: 2048; at most 1024",
        "this model's context length is 4096 tokens",
        "prompt is empty",
    ],
)
async def test_what_no_other_words_can_help_is_refused_once(
    open_llm: Opener, scripted_llm: ScriptedLlm, words: str
) -> None:
    scripted_llm.respond = lambda _asked: fault(400, words)
    with pytest.raises(LlmRejected, match=words):
        await ask(open_llm(roles=ROLES))
    assert len(scripted_llm.requests) == 1
    assert not any(words in one for one in known_dialects())


async def test_a_server_that_refuses_everything_is_asked_a_few_times_and_not_remembered(
    open_llm: Opener, scripted_llm: ScriptedLlm
) -> None:
    def respond(asked: Asked) -> object:
        return fault(422, f"unknown field: {', '.join(asked.body)}")

    scripted_llm.respond = respond  # type: ignore[assignment] # a Canned
    with pytest.raises(LlmRejected, match="unknown field"):
        await ask(open_llm(roles=ROLES))
    assert len(scripted_llm.requests) <= 6
    assert not any(scripted_llm.base_url[:-3] in one for one in known_dialects())
