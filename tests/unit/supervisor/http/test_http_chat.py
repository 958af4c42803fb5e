"""The OpenAI chat API: requests read or refused, histories, and answers in its form."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from pydantic import ValidationError

from tasklore.contracts.errors import MemoryUnavailable
from tasklore.contracts.messages import ChatTurn, PersonReply, Usage
from tasklore.runtime.models.llm import Expense, Llm, Reply, Spent
from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.http.chat.errors import error_body
from tasklore.supervisor.http.chat.forms import (
    AssistantMessage,
    ChatMessage,
    ChatRequest,
    ResponseFormat,
    demand_served,
)
from tasklore.supervisor.http.chat.history import ChatHistory, derive_conversation
from tasklore.supervisor.http.chat.stream import ChatAnswer, complete, split_pieces
from tasklore.supervisor.http.chat.structured import AnswerFormat
from tasklore.supervisor.http.dependencies import ApiDependencies
from tasklore.supervisor.operations.refusals import Refused
from tasklore.supervisor.requests.readings import ShownTurn
from tasklore.supervisor.understanding import RuleInterpreter, Understood
from tasklore.supervisor.understanding.model import Counted, counting
from tasklore.workers.agents.budget import agent
from tasklore.workers.card import card_of
from tests.fakes.json_schemas import HereSchemas
from tests.unit.supervisor.reports import report

CATALOGUE = Catalogue([card_of(agent)])
ASKED = "Check my budget: limit 50000, spent 42000, history [5000, 7000]"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def said(role: str, content: Any) -> dict[str, Any]:
    return {"role": role, "content": content}


def request(*messages: dict[str, Any], **options: Any) -> ChatRequest:
    body = {
        "model": "tasklore",
        "messages": messages or (said("user", "hi"),),
        **options,
    }
    return ChatRequest.model_validate_json(json.dumps(body))


@pytest.mark.parametrize(
    "options",
    [
        {
            "temperature": 0,
            "top_p": 0.1,
            "seed": 7,
            "max_tokens": 5,
            "max_completion_tokens": 5,
            "stop": ["."],
        },
        {
            "tools": None,
            "n": None,
            "stream": None,
            "stream_options": None,
            "metadata": None,
            "tool_choice": "auto",
        },
        {
            "store": True,
            "service_tier": "auto",
            "reasoning_effort": "low",
            "of_tomorrow": {"a": 1},
        },
    ],
)
def test_options_without_effect_are_ignored(options: dict[str, Any]) -> None:
    assert demand_served(request(**options)) == "hi"


@pytest.mark.parametrize(
    ("options", "param"),
    [
        ({"n": 2}, "n"),
        ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "tools"),
        ({"logprobs": True}, "logprobs"),
    ],
)
def test_options_that_cannot_be_served_are_refused(
    options: dict[str, Any], param: str
) -> None:
    with pytest.raises(Refused) as refusal:
        demand_served(request(**options))
    error = error_body(refusal.value.problem.model_dump()).error
    assert (error.param, error.type, error.code) == (
        param,
        "invalid_request_error",
        "unsupported_parameter",
    )


@pytest.mark.parametrize(
    ("messages", "status"),
    [
        ([said("assistant", "hi")], 400),
        ([said("user", " \n")], 400),
        ([said("user", [{"type": "image_url", "image_url": {"url": "x"}}])], 400),
        ([said("user", "x" * 20_001)], 413),
    ],
)
def test_an_unanswerable_last_message_is_refused(
    messages: list[dict[str, Any]], status: int
) -> None:
    with pytest.raises(Refused) as refusal:
        demand_served(request(*messages))
    assert refusal.value.problem.status == status


@pytest.mark.parametrize(
    "content", ["\ud800", ["\ud800"], [{"type": "text", "text": "\udfff"}]]
)
def test_half_a_surrogate_pair_is_refused(content: Any) -> None:
    with pytest.raises(ValidationError):
        ChatRequest.model_validate(
            {"model": "tasklore", "messages": [said("user", content)]}
        )


def test_a_conversation_keeps_its_id_as_it_grows_and_owners_differ() -> None:
    begun = request(said("system", "It is noon."), said("user", "hi")).messages
    grown = request(
        said("system", "It is one."),
        said("user", "hi"),
        said("assistant", "ho"),
        said("user", "!"),
    ).messages
    assert derive_conversation(["key", "ana"], begun) == derive_conversation(
        ["key", "ana"], grown
    )
    others = [
        derive_conversation(owner, begun)
        for owner in (["key", "bob"], ["key", None], ["k2", "ana"])
    ]
    assert (
        len(
            {
                *others,
                derive_conversation(["key", "ana"], begun),
                derive_conversation(["key", "ana"], grown[1:]),
            }
        )
        == 4
    )
    assert (
        derive_conversation(["key", "ana"], request(said("user", "ho")).messages)
        not in others
    )


@dataclass
class Stored:
    """Stands for the store of conversations."""

    turns: list[ChatTurn] = field(default_factory=list)
    is_away: bool = False

    async def recent(self, conversation_id: str, count: int) -> list[bytes]:
        if self.is_away:
            raise MemoryUnavailable("away")
        return [turn.model_dump_json().encode() for turn in self.turns]


@dataclass
class Standing:
    """Stands for the parts that recollecting needs."""

    conversations: Stored = field(default_factory=Stored)

    def catalogue(self) -> Catalogue:
        return CATALOGUE


async def recollected(standing: Standing, *messages: dict[str, Any]) -> list[ChatTurn]:
    told = [ChatMessage.model_validate(message) for message in messages]
    return await ChatHistory(cast("ApiDependencies", standing)).read("c", "ana", told)


def understood(text: str, before: Sequence[ChatTurn]) -> dict[str, Any]:
    found = RuleInterpreter().understand(text, catalogue=CATALOGUE, previous=before)
    assert isinstance(found, Understood), found
    return found.task.parameters


async def test_an_answer_about_several_tasks_becomes_a_turn_for_each() -> None:
    asked = "limit 900, spent 350 and then limit 1000, spent 400"
    before = await recollected(
        Standing(),
        {"role": "user", "content": asked},
        {"role": "assistant", "content": "1. Remaining: 550\n\n2. Remaining: 600"},
    )
    assert [
        turn.task.parameters["spent"] for turn in before if turn.task is not None
    ] == [350, 400]
    assert understood("again with 500 spent", before) == {
        "budget_limit": 1000,
        "spent": 500,
    }


@pytest.mark.parametrize("is_away", [False, True])
async def test_a_history_unknown_to_the_store_can_be_referred_to(
    *, is_away: bool
) -> None:
    before = await recollected(
        Standing(Stored(is_away=is_away)),
        said("system", "Be kind."),
        said("user", "Check my budget: limit 50000, history [5000, 7000]"),
        said("assistant", "What is spent?"),
        said("user", "42000"),
        said("assistant", "You have 8,000 left."),
    )
    assert understood("the same with 45k spent", before) == {
        "budget_limit": 50_000,
        "spent": 45_000,
        "history": [5000, 7000],
    }


async def test_a_question_that_was_shown_in_other_words_is_found_by_them() -> None:
    """The answer is read by the words of the rules."""
    common = {"conversation_id": "c", "at": NOW, "request_id": "r"}
    question = "What are the budget limit and the spent amount?"
    stored = [
        ChatTurn(turn_id="1", speaker="person", text="prüf mein Budget", **common),
        ShownTurn.model_validate(
            {
                "turn_id": "2",
                "speaker": "assistant",
                "text": "Wie hoch ist es?",
                "asked_as": question,
                "agent_id": "BudgetTrackerAgent",
                "task": {"name": "analyze_budget", "parameters": {}},
                **common,
            }
        ),
    ]
    before = await recollected(
        Standing(Stored(stored)),
        said("user", "prüf mein Budget"),
        said("assistant", "Wie hoch ist es?"),
    )
    assert before[-1].text == question
    assert understood("50k, 42k", before) == {"budget_limit": 50_000, "spent": 42_000}


async def test_a_stored_turn_of_the_same_words_and_user_counts() -> None:
    call = understood(ASKED, [])
    common = {"conversation_id": "c", "at": NOW, "request_id": "r"}
    stored = [
        ChatTurn(turn_id="1", speaker="person", text="how do I stand?", **common),
        ChatTurn.model_validate(
            {
                "turn_id": "2",
                "speaker": "assistant",
                "text": "Well.",
                "agent_id": "BudgetTrackerAgent",
                "task": {"name": "analyze_budget", "parameters": call},
                **common,
            }
        ),
    ]
    sent = said("user", "how do I stand?"), said("assistant", "Well.\n")
    before = await recollected(Standing(Stored(stored)), *sent)
    assert understood("again with spent 1", before) == {**call, "spent": 1}
    # Words that were not answered so are not that answer.
    others = await recollected(
        Standing(Stored(stored)), sent[0], said("assistant", "Badly.")
    )
    assert others[-1].task is None
    # Nor are those that another user was told.
    of_bob = [turn.model_copy(update={"user_id": "bob"}) for turn in stored]
    assert (await recollected(Standing(Stored(of_bob)), *sent))[-1].task is None


async def test_a_long_history_is_cut_to_twenty_turns() -> None:
    before = await recollected(
        Standing(),
        *[said(role, f"{n}") for n in range(300) for role in ("user", "assistant")],
    )
    assert (len(before), before[-1].text) == (20, "299")


@pytest.mark.parametrize(
    "text", ["", "a  b\n\n  c\n", "日本語" * 200, "x" * 1000, "\U0001f600 " * 50]
)
def test_pieces_of_an_answer_join_to_the_whole(text: str) -> None:
    told = list(split_pieces(text))
    assert "".join(told) == text
    assert all(told)


def test_usage_sums_agent_and_understanding() -> None:
    paid = report(usage=Usage(input_tokens=100, output_tokens=10))
    reply = PersonReply(
        request_id="r", conversation_id="c", kind="answer", text="ok", report=paid
    )
    words = AssistantMessage(content="ok")
    usage = complete(
        ChatAnswer(reply, Usage(input_tokens=5, output_tokens=2), 0, words)
    ).usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (
        105,
        12,
        117,
    )
    assert (
        complete(
            ChatAnswer(reply.model_copy(update={"report": None}), Usage(), 0, words)
        ).usage.total_tokens
        == 0
    )


async def fitting(schema: Any) -> AnswerFormat:
    form = {"type": "json_schema", "json_schema": {"name": "form", "schema": schema}}
    asked = ResponseFormat.model_validate(form)
    return await AnswerFormat.read(asked, HereSchemas(), "ada")


@pytest.mark.parametrize(
    ("schema", "fault"),
    [
        ({"type": "nothing"}, "nothing"),
        ({"$ref": "http://127.0.0.1/schema"}, "is not followed"),
        ({"$id": "http://a/", "$ref": "#/$defs/a"}, "is not followed"),
        ({"$ref": "#/$defs/a"}, "leads nowhere"),
        (
            {"$defs": {"a": {"items": {"$ref": "#/$defs/a"}}}, "$ref": "#/$defs/a"},
            "refers to itself",
        ),
        ({"pattern": "("}, "regex"),
        ({"allOf": [{}] * 3_000}, "more than 2,000 parts"),
        (
            {
                "$defs": {
                    f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2}
                    for n in range(40)
                }
                | {"d40": {}}
            },
            "",
        ),
    ],
)
async def test_a_schema_that_cannot_be_checked_at_once_is_refused(
    schema: dict[str, Any], fault: str
) -> None:
    """What would be looked up elsewhere, or would take for ever; parts that are not referred to cost nothing."""
    if not fault:
        await fitting(schema)
        schema = schema | {"$ref": "#/$defs/d0"}
        fault = "more than 2,000 parts"
    with pytest.raises(Refused) as refusal:
        await fitting(schema)
    error = error_body(refusal.value.problem.model_dump()).error
    assert error.param == "response_format.json_schema.schema"
    assert fault in error.message
    with pytest.raises(Refused):
        await AnswerFormat.read(
            ResponseFormat(type="json_schema"), HereSchemas(), "ada"
        )


async def test_an_answer_without_a_result_is_no_json() -> None:
    form = await fitting({})
    reply = PersonReply(
        request_id="r", conversation_id="c", kind="question", text="What is spent?"
    )
    assert await form.write(reply) is None
    failed = reply.model_copy(update={"report": report(status="failed")})
    assert await form.write(failed) is None
    empty = reply.model_copy(update={"report": report(result=None)})
    assert await form.write(empty) == "null"


class Paid:
    """A model that costs two tokens a question."""

    configured = True

    async def ask(
        self, role: str, answer: Any, *, spent: Spent | None = None, **_: Any
    ) -> Reply[Any]:
        if spent is not None:
            spent.add(Expense(input_tokens=2))
        return Reply(answer, Expense(input_tokens=2), "m", 1, 0.0)


async def test_each_request_counts_its_own_model_usage() -> None:
    model = Counted(cast("Llm", Paid()))
    with counting() as first:
        await model.ask("supervisor", ChatMessage, system="", user="")
        with counting() as second:
            await model.ask("supervisor", ChatMessage, system="", user="")
    await model.ask("supervisor", ChatMessage, system="", user="")
    assert (first.usage.input_tokens, second.usage.input_tokens) == (2, 2)
