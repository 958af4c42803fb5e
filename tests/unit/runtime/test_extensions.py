"""What others write for an extension point is found by its name, and each mistake is named."""

import asyncio
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from tasklore.contracts.admission.limits import CallUsage, ModelCall, Reservation
from tasklore.contracts.errors import (
    BudgetSpent,
    ConfigurationError,
    LlmNotConfigured,
    LlmRejected,
    LlmUnavailable,
)
from tasklore.runtime.models.embeddings import ThreadGate
from tasklore.runtime.models.llm import Llm
from tasklore.runtime.secret_sources import read_secret
from tasklore.runtime.settings import Settings
from tasklore.workers.listening.embedder import _load_embedder

MODULE = """
from tasklore.extensions import ModelAnswer


class Models:
    asked = []
    closed = 0

    async def answer(self, request):
        Models.asked.append(request)
        if request.model == "slip":
            raise KeyError("usage")
        if request.model == "away":
            raise ConnectionError("nobody listens")
        return ModelAnswer(
            text='{"reasoning": "so", "colour": "red"}', input_tokens=7, output_tokens=3
        )

    async def aclose(self):
        Models.closed += 1


class Letters:
    name = "letters"

    def width(self):
        return 2

    def embed(self, texts):
        return [[1.0, 0.0] for _ in texts]


class Vault:
    secrets = {"tasklore_llm_api_key": "sk-vault\\n", "tasklore_redis_url": "redis://vault"}

    def read(self, name):
        return self.secrets.get(name)


class Locked:
    def read(self, name):
        raise PermissionError("the vault is sealed")


class Half:
    def width(self):
        return 1
"""

POINTS = """
[tasklore.models]
acme = acme_extension:Models
gone = acme_extension:Nothing
half = acme_extension:Half

[tasklore.embedders]
letters = acme_extension:Letters
half = acme_extension:Half

[tasklore.secrets]
vault = acme_extension:Vault
locked = acme_extension:Locked
"""


class Colour(BaseModel):
    """An answer."""

    reasoning: str
    colour: str


@pytest.fixture(autouse=True)
def _acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Install a distribution with one of each."""
    (tmp_path / "acme_extension.py").write_text(MODULE, "utf-8")
    info = tmp_path / "acme-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: acme\nVersion: 1.0\n", "utf-8")
    (info / "entry_points.txt").write_text(POINTS, "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("LLM_API_KEY", "LLM_BASE_URL", "REDIS_URL", "SECRETS_DIR"):
        monkeypatch.delenv(f"TASKLORE_{name}", raising=False)
    yield
    sys.modules.pop("acme_extension", None)


async def test_a_role_is_answered_by_a_provider_of_others() -> None:
    """With its tokens accounted; the others stay without one."""
    settings = Settings.load(llm_roles="writer=acme:big").llm()
    async with Llm(settings) as llm:
        assert not llm.configured
        with pytest.raises(LlmNotConfigured):
            await llm.ask("supervisor", Colour, system="a", user="b")
    settings = Settings.load(llm_roles="default=acme:big,writer=acme:bigger").llm()
    async with Llm(settings) as llm:
        await llm.warm_up()
        reply = await llm.ask("writer", Colour, system="a", user="b")
        for role in ("supervisor", "finder", "anything"):
            await llm.ask(role, Colour, system="a", user="b")
    provider = sys.modules["acme_extension"].Models
    assert reply.value.colour == "red"
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (7, 3)
    assert [one.model for one in provider.asked] == ["bigger", "big", "big", "big"]
    assert [one.speaker for one in provider.asked[0].messages] == ["system", "user"]
    assert provider.closed == 1


@pytest.mark.parametrize(
    ("model", "kind", "words"),
    [
        ("slip", LlmRejected, "provider 'acme' raised KeyError: 'usage'"),
        ("away", LlmUnavailable, "provider 'acme' failed: nobody listens"),
    ],
)
async def test_what_a_provider_raises_is_an_error_of_its_model(
    model: str, kind: type[Exception], words: str
) -> None:
    """A connection is tried again, a slip of its code is not."""
    settings = Settings.load(llm_roles=f"writer=acme:{model}").llm()
    settings = settings.model_copy(update={"max_attempts": 1})
    async with Llm(settings) as llm:
        with pytest.raises(kind, match=re.escape(words)):
            await llm.ask("writer", Colour, system="a", user="b")


@pytest.mark.parametrize(
    ("role", "words"),
    [
        (
            "writer=acm:big",
            r"no installed distribution has 'acm' .*did you mean 'acme'",
        ),
        ("writer=gone:big", r"'gone' \(acme_extension:Nothing\) cannot be made"),
        ("writer=half:big", r"made a Half without aclose, answer; write them as"),
    ],
)
async def test_a_provider_that_cannot_be_used_is_named(role: str, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        async with Llm(Settings.load(llm_roles=role).llm()) as llm:
            await llm.warm_up()


@pytest.mark.parametrize("role", ["default=gone:big", "default=anthropic:big"])
async def test_a_provider_that_cannot_be_used_gives_no_answer(role: str) -> None:
    """To whoever asks it is a model without an answer, for which there are rules."""
    settings = Settings.load(llm_roles=role, llm_api_key="sk-a").llm()
    async with Llm(settings) as llm:
        with pytest.raises(LlmNotConfigured, match=r"cannot be made|tools only"):
            await llm.ask("anything", Colour, system="a", user="b")


class NoRoom:
    """A governor that lets nothing pass."""

    async def reserve(self, call: ModelCall) -> Reservation:
        raise BudgetSpent(f"nothing is left for {call.model}", "none")

    def settle(self, held: Reservation, taken: CallUsage | None) -> None:
        """Settle nothing."""


class Chain:
    """A governor that lets everything pass, with fallbacks of several providers for one model."""

    async def reserve(self, call: ModelCall) -> Reservation:
        return Reservation(call_id="c", call=call, input_tokens=0, accounts=())

    def settle(self, held: Reservation, taken: CallUsage | None) -> None:
        """Settle nothing."""

    def count(self, held: Reservation, text: str) -> tuple[int, int]:
        return 0, 0

    def fallbacks(self, model: str) -> tuple[str, ...]:
        return ("gpt-of-ours", "small") if model == "away" else ()


async def test_a_fallback_is_a_model_of_the_same_provider() -> None:
    """Others' names are not asked of it, nor its own of ours."""
    roles = "writer=acme:away,other=acme:small"
    settings = Settings.load(llm_roles=roles, llm_api_key="sk-a").llm()
    settings = settings.model_copy(update={"max_attempts": 1})
    async with Llm(settings, governor=Chain()) as llm:
        reply = await llm.ask("writer", Colour, system="a", user="b")
        asked = sys.modules["acme_extension"].Models.asked
        assert [one.model for one in asked] == ["away", "small"]
        assert reply.model == "small"
        assert llm.fallback("away", LlmUnavailable("503")) == "gpt-of-ours"


async def test_turns_are_embedded_by_an_embedder_of_others() -> None:
    """Where the limits leave room for it."""
    embedder = _load_embedder(Settings.load(episodes_embedder="letters"), None)
    assert embedder is not None
    assert embedder.embed(["a"]) == [[1.0, 0.0]]
    door = ThreadGate(NoRoom(), asyncio.get_running_loop())  # type: ignore[arg-type] # asked for room alone
    limited = _load_embedder(Settings.load(episodes_embedder="letters"), door)
    assert limited is not None
    assert (limited.name, limited.width()) == ("letters", 2)
    with pytest.raises(BudgetSpent, match="nothing is left for letters"):
        await asyncio.to_thread(limited.embed, ["a"])


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("leters", "did you mean 'letters'.* installed are half, letters"),
        ("half", "made a Half without embed, name"),
    ],
)
def test_an_embedder_that_cannot_be_used_is_named(name: str, words: str) -> None:
    with pytest.raises(
        ConfigurationError, match=rf"TASKLORE_EPISODES_EMBEDDER.*{words}"
    ):
        _load_embedder(Settings.load(episodes_embedder=name), None)


def test_secrets_come_from_a_source_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the environment, before the directory."""
    folder = tmp_path / "secrets"
    folder.mkdir()
    (folder / "tasklore_llm_api_key").write_text("sk-file\n", "utf-8")
    (folder / "TASKLORE_APPROVAL_SECRET").write_text("a" * 32, "utf-8")
    monkeypatch.setenv("TASKLORE_SECRETS_DIR", str(folder))
    monkeypatch.setenv("TASKLORE_SECRETS_SOURCE", "vault")
    settings = Settings.load()
    assert settings.llm_api_key is not None
    assert settings.llm_api_key.get_secret_value() == "sk-vault"
    assert settings.redis_url == "redis://vault"
    assert settings.approval_secret is not None
    assert settings.approval_secret.get_secret_value() == "a" * 32
    monkeypatch.setenv("TASKLORE_REDIS_URL", "redis://mine")
    assert Settings.load().redis_url == "redis://mine"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("locked", "cannot be asked for 'a': PermissionError: the vault is sealed"),
        ("vaul", "did you mean 'vault'"),
    ],
)
def test_a_source_that_cannot_be_asked_is_named(source: str, words: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"TASKLORE_SECRETS_SOURCE.*{words}"):
        read_secret({"TASKLORE_SECRETS_SOURCE": source}, "a")
