"""`tasklore.runtime.models.llm` through the real client library against a scripted server."""

import io
import json
import logging
import traceback
from decimal import Decimal

import pytest
import structlog
from pydantic import BaseModel, SecretStr, ValidationError
from structlog.testing import capture_logs

from tasklore.contracts.errors import (
    ConfigurationError,
    LlmCutOff,
    LlmError,
    LlmMalformed,
    LlmNotConfigured,
    LlmRateLimited,
    LlmRefused,
    LlmRejected,
    LlmTimeout,
    LlmUnavailable,
)
from tasklore.runtime.models.llm import (
    Expense,
    Llm,
    LlmRole,
    LlmSettings,
    ModelPrice,
    Spent,
)
from tests.llm_double import (
    Asked,
    Canned,
    ScriptedLlm,
    answer,
    cut_off,
    dropped,
    fault,
    filtered,
    rate_limited,
    raw,
    refusal,
    saying,
    truncated,
)
from tests.llm_questions import GOOD, KEY, Book, Colour, Opener, Pauses, ask

pytest_plugins = ["tests.fixtures_llm"]


async def test_an_answer_comes_back_as_the_model_asked_for(
    open_llm: Opener, scripted_llm: ScriptedLlm
) -> None:
    scripted_llm.queue(
        answer(GOOD, input_tokens=1_000, output_tokens=50, cached_tokens=200)
    )
    reply = await ask(open_llm())
    assert reply.value == Colour(reasoning="grass is green", colour="green")
    # 800 at 1, 200 cached at 0.05 and 50 out at 5 dollars a million.
    assert reply.usage == Expense(1_000, 50, Decimal("0.00106"), cached_tokens=200)
    usage = {
        "input_tokens": 1_000,
        "output_tokens": 50,
        "cost_usd": 0.00106,
        "cached_tokens": 200,
    }
    usage["models"] = ("gpt-6.1-terra",)
    assert reply.usage.as_usage().model_dump() == usage
    assert (reply.model, reply.attempts) == ("gpt-6.1-terra", 1)
    assert reply.duration_ms >= 0


async def test_each_role_asks_its_own_model_with_a_strict_schema(
    open_llm: Opener, scripted_llm: ScriptedLlm
) -> None:
    llm = open_llm()
    for role, model in (
        ("finder", "gpt-6-luna"),
        ("editor", "gpt-6.1-terra"),
        ("undescribed", "gpt-6.1-terra"),
    ):
        scripted_llm.queue(GOOD)
        await ask(llm, role)
        asked = scripted_llm.requests[-1]
        assert asked.model == model
    assert (asked.body["reasoning_effort"], asked.body["max_completion_tokens"]) == (
        "none",
        2_048,
    )
    assert "temperature" not in asked.body
    assert (asked.system, asked.user, asked.schema_name) == (
        "Name the colour.",
        "grass",
        "Colour",
    )
    assert asked.body["response_format"]["json_schema"]["strict"] is True
    assert (
        list(asked.schema["properties"])
        == asked.schema["required"]
        == ["reasoning", "colour", "shade"]
    )
    assert asked.schema["additionalProperties"] is False


async def test_a_response_of_any_length_is_read_to_a_bound(
    open_llm: Opener, scripted_llm: ScriptedLlm
) -> None:
    """A provider, or who stands in its place, decides how much it sends."""
    scripted_llm.queue(*[raw(b"x" * (17 * 1024**2))] * 3, GOOD)
    llm = open_llm()
    with pytest.raises(LlmError) as failed:
        await ask(llm, "finder")
    chain = [failed.value, failed.value.__cause__]
    while chain[-1] is not None:
        chain.append(chain[-1].__cause__ or chain[-1].__context__)
    assert "more than 16,777,216 bytes" in " ".join(map(str, chain))


async def test_a_role_without_temperature_leaves_it_to_the_provider(
    open_llm: Opener, scripted_llm: ScriptedLlm
) -> None:
    scripted_llm.queue(GOOD, GOOD)
    llm = open_llm(
        roles={
            "editor": LlmRole(model="o-any", temperature=None),
            "finder": LlmRole(model="own"),
        }
    )
    await ask(llm)
    await ask(llm, "finder")
    first, second = (asked.body for asked in scripted_llm.requests)
    assert not {"temperature", "reasoning_effort"} & set(first)
    assert (second["temperature"], "reasoning_effort" in second) == (0.2, False)


async def test_without_key_and_base_url_asking_is_an_error() -> None:
    settings = LlmSettings(
        base_url=" ", api_key=SecretStr(""), roles={"poet": LlmRole(model="verse")}
    )
    assert (settings.role("poet").model, settings.role("finder").model) == (
        "verse",
        "gpt-6-luna",
    )
    assert not settings.configured
    async with Llm(settings) as llm:
        with pytest.raises(LlmNotConfigured, match="TASKLORE_LLM_API_KEY"):
            await ask(llm)


def in_body(code: object, message: str) -> Canned:
    """Answer with an error in a body whose status is 200."""
    return raw(json.dumps({"error": {"message": message, "code": code}}).encode())


def in_choice() -> Canned:
    """Answer with an error in a choice, as a router of models does."""
    error = {"code": 502, "message": "the upstream broke"}
    choice = {"error": error, "finish_reason": "error", "message": {"content": ""}}
    return raw(json.dumps({"choices": [choice]}).encode())


NOT_RETRIED: list[tuple[Canned, type[LlmError], str]] = [
    (refusal("I would rather not."), LlmRefused, "I would rather not"),
    (filtered(), LlmRefused, "content filter"),
    (
        fault(400, "filtered prompt", code="content_filter"),
        LlmRefused,
        "filtered prompt",
    ),
    (cut_off(), LlmCutOff, "max_output_tokens"),
    (fault(400, "bad prompt"), LlmRejected, "bad prompt"),
    (raw(b'{"detail": "no such thing"}', status=400), LlmRejected, "no such thing"),
    (in_body(401, "bad key"), LlmRejected, "bad key"),
    (in_body("context_length_exceeded", "too long"), LlmRejected, "too long"),
    (fault(401, "bad key"), LlmRejected, "401"),
    (fault(404, "no such model"), LlmRejected, "gpt-6.1-terra"),
    (fault(404, "no such model"), LlmRejected, "TASKLORE_LLM_MODEL"),
    (fault(429, "pay first", code="insufficient_quota"), LlmRejected, "pay first"),
    (in_body(429, "You exceeded your current quota"), LlmRejected, "no credit left"),
    (fault(402, "Insufficient Balance"), LlmRejected, "no credit left"),
]

RETRIED: list[tuple[Canned, type[LlmError], str]] = [
    (saying("no JSON at all"), LlmMalformed, "Colour"),
    (answer({"reasoning": "", "colour": "blue"}), LlmMalformed, "colour"),
    (saying(None), LlmMalformed, "holds no Colour"),
    (raw(b"<html>proxy</html>", content_type="text/html"), LlmUnavailable, "proxy"),
    (raw(b"[]"), LlmUnavailable, "502"),
    (raw(b"null"), LlmUnavailable, "502"),
    (raw(b""), LlmUnavailable, "502"),
    (raw(b'{"choices": []}'), LlmUnavailable, "502"),
    (raw(b'{"choices": null, "detail": "cold"}'), LlmUnavailable, "cold"),
    (raw(b'{"error": {"message": "upstream"}}'), LlmUnavailable, "upstream"),
    (raw(b'{"error": "out of memory"}'), LlmUnavailable, "out of memory"),
    (in_body(429, "too many"), LlmRateLimited, "too many"),
    (in_body("503", "overloaded"), LlmUnavailable, "overloaded"),
    (in_body("rate_limit_exceeded", "slowly"), LlmRateLimited, "slowly"),
    (in_choice(), LlmUnavailable, "the upstream broke"),
    (saying('{"reas', finish_reason="error"), LlmUnavailable, "failed within"),
    (rate_limited(), LlmRateLimited, "slow down"),
    (fault(408), LlmTimeout, "408"),
    (fault(500), LlmUnavailable, "500"),
    (dropped(), LlmUnavailable, "127.0.0.1"),
    (truncated(), LlmUnavailable, "127.0.0.1"),
]


@pytest.mark.parametrize(("canned", "error", "words"), NOT_RETRIED)
async def test_a_hopeless_fault_is_asked_once(
    open_llm: Opener,
    scripted_llm: ScriptedLlm,
    canned: Canned,
    error: type[LlmError],
    words: str,
) -> None:
    scripted_llm.queue(canned, GOOD)
    with pytest.raises(error, match=words) as caught:
        await ask(open_llm())
    assert type(caught.value) is error
    assert len(scripted_llm.requests) == 1


@pytest.mark.parametrize(("canned", "error", "words"), RETRIED)
async def test_a_passing_fault_is_asked_again(
    open_llm: Opener,
    scripted_llm: ScriptedLlm,
    canned: Canned,
    error: type[LlmError],
    words: str,
) -> None:
    llm = open_llm(max_attempts=2)
    scripted_llm.queue(canned, canned)
    with pytest.raises(error, match=words) as caught:
        await ask(llm)
    assert type(caught.value) is error
    assert len(scripted_llm.requests) == 2
    scripted_llm.queue(canned, GOOD)
    # To the first client the provider counts as away by now.
    reply = await ask(open_llm(max_attempts=2))
    assert (reply.value.colour, reply.attempts) == ("green", 2)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('{"reasoning": "sky", "colour": "blue"}', "colour: must be 'red' or 'green'"),
        ("It is green.", "Invalid JSON"),
    ],
)
async def test_a_malformed_answer_goes_back_with_its_fault(
    open_llm: Opener, scripted_llm: ScriptedLlm, pauses: Pauses, text: str, fault: str
) -> None:
    """The question is repeated at once with the answer and its fault; both attempts are paid for."""
    spent = Spent()
    scripted_llm.queue(saying(text), answer(GOOD))
    reply = await ask(open_llm(), spent=spent)
    first, second = (list(asked.body["messages"]) for asked in scripted_llm.requests)
    assert second[:3] == [*first, {"role": "assistant", "content": text}]
    assert (second[3]["role"], len(second)) == ("user", 4)
    assert fault in second[3]["content"]
    assert reply.usage == spent.usage == Expense(200, 40, reply.usage.cost_usd)
    assert (reply.attempts, pauses.pauses) == (2, [0.0])


async def test_a_malformed_answer_is_corrected_once(
    open_llm: Opener, scripted_llm: ScriptedLlm
) -> None:
    bad = answer({"colour": "red"})
    scripted_llm.queue(bad, fault(503), bad, GOOD)
    with pytest.raises(LlmMalformed, match="reasoning"):
        await ask(open_llm(max_attempts=9))
    assert [len(asked.body["messages"]) for asked in scripted_llm.requests] == [2, 4, 4]


async def test_an_endless_answer_is_not_sent_back(
    open_llm: Opener, scripted_llm: ScriptedLlm
) -> None:
    scripted_llm.queue(saying("x" * 5_000_000), GOOD)
    assert (await ask(open_llm())).attempts == 2
    assert [len(asked.body["messages"]) for asked in scripted_llm.requests] == [2, 2]


async def test_a_correction_keeps_the_deadline(
    open_llm: Opener, scripted_llm: ScriptedLlm, pauses: Pauses
) -> None:
    def respond(asked: Asked) -> Canned:
        pauses.now_s += 10.0
        return answer({"colour": "red"})

    scripted_llm.respond = respond
    with pytest.raises(LlmMalformed):
        await ask(open_llm(), deadline_s=5.0)
    assert len(scripted_llm.requests) == 1


async def test_every_attempt_is_accounted(
    open_llm: Opener, scripted_llm: ScriptedLlm
) -> None:
    book = Book()
    spent = Spent()
    scripted_llm.queue(
        answer(
            {"reasoning": "", "colour": "blue"}, input_tokens=1_000, output_tokens=100
        ),
        fault(500),
        answer(GOOD, input_tokens=1_000, output_tokens=50),
    )
    reply = await ask(open_llm(meter=book), spent=spent)
    first = Expense(1_000, 100, Decimal("0.0015"))
    last = Expense(1_000, 50, Decimal("0.00125"))
    assert book.lines == [
        ("editor", "gpt-6.1-terra", first, "LlmMalformed"),
        ("editor", "gpt-6.1-terra", Expense(), "LlmUnavailable"),
        ("editor", "gpt-6.1-terra", last, None),
    ]
    assert reply.usage == spent.usage == first + last
    assert reply.attempts == spent.attempts == 3


async def test_a_failed_task_still_knows_its_expense(
    open_llm: Opener, scripted_llm: ScriptedLlm
) -> None:
    spent = Spent()
    llm = open_llm()
    for canned in (refusal(), cut_off(), filtered()):
        scripted_llm.queue(canned)
        with pytest.raises(LlmError):
            await ask(llm, spent=spent)
    assert spent == Spent(Expense(300, 60, Decimal("0.0006")), attempts=3)


async def test_a_model_without_a_price_is_unpriced(
    open_llm: Opener, scripted_llm: ScriptedLlm
) -> None:
    prices = {"priced": ModelPrice(input=Decimal(1), output=Decimal(2))}
    llm = open_llm(
        roles={
            "free": LlmRole(model="local"),
            "priced": LlmRole(model="priced-2026-01-31"),
        },
        prices=prices,
    )
    scripted_llm.queue(
        GOOD, answer(GOOD, input_tokens=10, output_tokens=10, cached_tokens=10)
    )
    assert (await ask(llm, "free")).usage == Expense(100, 20, unpriced=True)
    assert (await ask(llm, "priced")).usage.cost_usd == Decimal("0.00003")


async def test_nonsense_about_usage_does_not_spoil_the_answer(
    open_llm: Opener, scripted_llm: ScriptedLlm
) -> None:
    message = '{"content": "{\\"reasoning\\": \\"\\", \\"colour\\": \\"red\\"}"}'
    llm = open_llm()
    for usage in (
        "null",
        '"many"',
        '{"prompt_tokens": -3}',
        '{"prompt_tokens": 1e300}',
        '{"prompt_tokens": 0, "completion_tokens": 0}',
        '{"prompt_tokens": null, "completion_tokens": 12}',
        '{"prompt_tokens": 20, "completion_tokens": 0}',
        '{"prompt_tokens": 20, "completion_tokens": null}',
    ):
        scripted_llm.queue(
            raw(f'{{"choices": [{{"message": {message}}}], "usage": {usage}}}'.encode())
        )
        reply = await ask(llm)
        assert reply.value.colour == "red"
        # An estimate of what was sent and written, never nothing.
        assert (reply.usage.input_tokens, reply.usage.output_tokens) > (50, 5)
        assert reply.usage.cost_usd > 0


class Hasty(BaseModel):
    """An answer that decides before it thinks."""

    colour: str
    reasoning: str


async def test_an_answer_must_begin_with_its_reasoning(
    open_llm: Opener, scripted_llm: ScriptedLlm
) -> None:
    with pytest.raises(ConfigurationError, match="'colour'"):
        await open_llm().ask("editor", Hasty, system="", user="")
    assert scripted_llm.requests == []


async def test_the_key_is_never_shown(
    open_llm: Opener, scripted_llm: ScriptedLlm, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    printed = io.StringIO()
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(printed))
    try:
        llm = open_llm(max_attempts=1)
        scripted_llm.queue(fault(500, f"Incorrect API key provided: {KEY}"))
        with pytest.raises(LlmError) as caught:
            await ask(llm)
    finally:
        structlog.reset_defaults()
    assert caught.value.__cause__ is not None
    trace = "".join(traceback.format_exception(caught.value))
    shown = [
        repr(llm),
        repr(llm.settings),
        llm.settings.model_dump_json(),
        repr(caught.value),
        trace,
        caplog.text,
    ]
    assert "***" in str(caught.value)
    assert "llm_attempt_failed" in printed.getvalue()
    assert not [text for text in [*shown, printed.getvalue()] if KEY in text]


def test_an_unusable_key_or_base_url_is_refused_unquoted() -> None:
    with pytest.raises(ValidationError, match="api_key") as caught:
        LlmSettings(api_key=SecretStr("sk-vielgehéim"))
    assert "vielgeh" not in str(caught.value)
    with pytest.raises(ValidationError, match="http://"):
        LlmSettings(base_url="localhost:8080")


async def test_a_server_of_ones_own_learns_no_credentials_from_the_environment(
    scripted_llm: ScriptedLlm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-somebody-else")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-of-somebody-else")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project-of-somebody-else")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    scripted_llm.queue(GOOD, GOOD)
    for key in (
        None,
        SecretStr(f"{KEY}\n"),
    ):  # a mounted secret ends with a newline, which no header can carry
        settings = LlmSettings(
            base_url=scripted_llm.base_url, **({} if key is None else {"api_key": key})
        )
        async with Llm(settings) as llm:
            await ask(llm)
    assert "somebody-else" not in str(
        [asked.headers for asked in scripted_llm.requests]
    )
    assert scripted_llm.requests[1].headers["authorization"] == f"Bearer {KEY}"


async def test_a_server_that_is_not_there_is_unavailable(pauses: Pauses) -> None:
    with ScriptedLlm() as gone:
        address = gone.base_url
    async with Llm(LlmSettings(base_url=address), sleep=pauses.sleep) as llm:
        with pytest.raises(LlmUnavailable, match=r"127\.0\.0\.1"):
            await ask(llm)
    assert len(pauses.pauses) == 2


async def test_a_role_without_an_answer_is_known_with_the_providers_words(
    open_llm: Opener, scripted_llm: ScriptedLlm
) -> None:
    """Until it is answered; what a model says as it declines speaks of people, and is not repeated."""
    llm = open_llm(roles={"editor": LlmRole(model="own")})
    scripted_llm.queue(fault(404, "model 'own' not found"))
    with capture_logs() as events, pytest.raises(LlmRejected):
        await ask(llm)
    [event] = [one for one in events if one["event"] == "llm_attempt_failed"]
    assert "model 'own' not found" in event["words"]
    assert "model 'own' not found" in llm.troubles()["editor"]
    scripted_llm.queue(GOOD, refusal("I will not speak of Ana."))
    await ask(llm)
    assert llm.troubles() == {}
    with pytest.raises(LlmRefused):
        await ask(llm)
    assert llm.troubles() == {"editor": "'own' did not answer it: LlmRefused"}
