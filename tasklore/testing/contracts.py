"""What each extension point promises, as tests: subclass a suite, make yours in `make`, and run it by pytest.

```python
class TestMyEmbedder(EmbedderContract):
    def make(self) -> Embedder:
        return MyEmbedder()
```

Ours pass the same suites. Each failure names the promise that is broken.
"""

import asyncio
import json
import math
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from pydantic import BaseModel

from tasklore.contracts.errors import LlmRateLimited, LlmRejected, LlmUnavailable
from tasklore.contracts.extensions import (
    Embedder,
    ModelAnswer,
    ModelMessage,
    ModelProvider,
    ModelRequest,
    SecretSource,
)

#: How far a vector's length may be from one, and two vectors of one text apart.
_NEAR = 1e-3
#: Seconds in which a cancelled request has to be left.
_LEFT_WITHIN_S = 1.0
#: Seconds in which a service of a test answers.
_ANSWERED_WITHIN_S = 30.0
_TEXTS = (
    "Ana loves sushi.",
    "",
    "tenth of an hour \u00b7 \u65e5\u672c\u8a9e \U0001f363",
    "word " * 5_000,
)


class EmbedderContract:
    """The promises of an `Embedder`."""

    def make(self) -> Embedder:
        """Return the embedder to try; called for each promise."""
        raise NotImplementedError(f"{type(self).__name__}.make returns the embedder")

    def test_it_is_an_embedder(self) -> None:
        """It has a name, a width and `embed`."""
        embedder = self.make()
        _demand(
            isinstance(embedder, Embedder), "name, width and embed are there: see them"
        )
        _demand(
            isinstance(embedder.name, str) and 0 < len(embedder.name) <= 200,
            f"name is a text of 1 to 200 characters, not {embedder.name!r}",
        )
        _demand(embedder.name == self.make().name, "two of one model have one name")

    def test_each_text_gets_a_vector_of_length_one(self) -> None:
        """Whatever the text is: empty, in any script, or very long."""
        embedder = self.make()
        width = embedder.width()
        _demand(type(width) is int and width > 0, f"width is a count, not {width!r}")
        vectors = embedder.embed(list(_TEXTS))
        _demand(
            len(vectors) == len(_TEXTS),
            f"{len(_TEXTS)} texts get as many vectors, not {len(vectors)}",
        )
        for text, vector in zip(_TEXTS, vectors, strict=True):
            shown = repr(text[:20])
            _demand(
                len(vector) == width,
                f"the vector of {shown} has {width} numbers, not {len(vector)}",
            )
            length = math.sqrt(sum(part * part for part in vector))
            _demand(
                abs(length - 1) <= _NEAR,
                f"the vector of {shown} is of length one, not {length}",
            )

    def test_a_text_has_its_vector_whatever_stands_beside_it(self) -> None:
        """In the order of the texts, and the same one every time."""
        embedder = self.make()
        texts = ["Ana loves sushi.", "The train leaves at nine."]
        together = embedder.embed(texts)
        for place, text in enumerate(texts):
            alone = embedder.embed([text])[0]
            _demand(
                max(map(_distance, together[place], alone)) <= _NEAR,
                f"the vector of {text!r} is the same alone and as number {place} of two",
            )

    def test_threads_may_ask_at_once(self) -> None:
        """A question is embedded while turns are."""
        embedder = self.make()
        texts = [f"text {number}" for number in range(8)]
        with ThreadPoolExecutor(4) as threads:
            vectors = [
                one[0]
                for one in threads.map(lambda text: embedder.embed([text]), texts)
            ]
        for text, vector in zip(texts, vectors, strict=True):
            alone = embedder.embed([text])[0]
            _demand(
                max(map(_distance, vector, alone)) <= _NEAR,
                f"the vector of {text!r} is its own also when threads ask at once",
            )


class SecretSourceContract:
    """The promises of a `SecretSource`."""

    def make(self, secrets: Mapping[str, str]) -> SecretSource:
        """Return a source that has exactly *secrets*, by name; called for each promise."""
        raise NotImplementedError(f"{type(self).__name__}.make returns the source")

    def test_a_secret_is_read_by_its_name(self) -> None:
        """As it is, whatever characters are in it, and as often as it is asked for."""
        secrets = {
            "tasklore_llm_api_key": "sk-0123/+=",
            "tasklore_redis_url": "rediss://user:p\u00e4ss@valkey:6379/0",
        }
        source = self.make(secrets)
        _demand(isinstance(source, SecretSource), "it has read(name)")
        for name, secret in [*secrets.items()] * 2:
            found = source.read(name)
            _demand(
                found == secret, f"read({name!r}) is the secret, unchanged, each time"
            )

    def test_an_unknown_name_is_none(self) -> None:
        """It is asked for many that it does not have; none is an error, nor leads elsewhere."""
        source = self.make({"tasklore_llm_api_key": "sk-0123"})
        for name in (
            "tasklore_api_key",
            "TASKLORE_LLM_API_KEY_",
            "",
            "../tasklore_llm_api_key",
            "/etc/passwd",
        ):
            found = source.read(name)
            _demand(found is None, f"read({name!r}) is None where there is no such one")

    def test_it_shows_no_secret(self) -> None:
        """In logs and tracebacks it stands as its repr."""
        source = self.make({"tasklore_llm_api_key": "sk-0123-never-shown"})
        source.read("tasklore_llm_api_key")
        _demand("sk-0123" not in f"{source!r} {source}", "its repr shows no secret")


class ModelProviderContract:
    """The promises of a `ModelProvider`; its questions are answered by a service of your test, or a real one."""

    #: The model that is asked.
    model = "a-model"

    def make(self) -> ModelProvider:
        """Return a provider whose service answers with any JSON object that has `reasoning` and `word`."""
        raise NotImplementedError(f"{type(self).__name__}.make returns the provider")

    def make_unreachable(self) -> ModelProvider:
        """Return one whose service cannot be reached, as at an address without a server."""
        raise NotImplementedError(f"{type(self).__name__}.make_unreachable returns one")

    def make_refusing(self) -> ModelProvider:
        """Return one whose service refuses the request, as for a wrong key."""
        raise NotImplementedError(f"{type(self).__name__}.make_refusing returns one")

    def make_busy(self) -> ModelProvider:
        """Return one whose service says that too much is asked of it."""
        raise NotImplementedError(f"{type(self).__name__}.make_busy returns one")

    async def test_a_question_is_answered(self) -> None:
        """By the text of the model, with tokens that are counted or None."""
        provider = self.make()
        _demand(isinstance(provider, ModelProvider), "it has answer and aclose")
        answer = await _ask(provider, self.model)
        await provider.aclose()
        _demand(isinstance(answer, ModelAnswer), f"it is a ModelAnswer, not {answer!r}")
        _demand(not answer.fault, f"it has no fault; here {answer.fault!r}")
        read = json.loads(answer.text)
        _demand(
            isinstance(read, dict) and {"reasoning", "word"} <= read.keys(),
            f"its text is a JSON object with the fields of the form, not {answer.text!r}",
        )
        for counted in (answer.input_tokens, answer.output_tokens):
            _demand(
                counted is None or (type(counted) is int and counted >= 0),
                f"tokens are a count, or None, not {counted!r}",
            )

    async def test_an_answer_has_to_be_corrected(self) -> None:
        """Then the model is shown the messages before, in their order."""
        provider = self.make()
        answer = await _ask(provider, self.model, is_corrected=True)
        await provider.aclose()
        _demand(not answer.fault, f"four messages are answered; here {answer.fault!r}")

    async def test_many_may_ask_at_once(self) -> None:
        """One provider serves all roles of a process."""
        provider = self.make()
        answers = await asyncio.gather(*(_ask(provider, self.model) for _ in range(8)))
        await provider.aclose()
        _demand(
            all(answer.text for answer in answers),
            "each of eight questions is answered",
        )

    async def test_a_cancelled_request_is_left(self) -> None:
        """Within a second; the provider goes on to serve the others."""
        provider = self.make()
        asking = asyncio.create_task(_ask(provider, self.model))
        await asyncio.sleep(0)
        asking.cancel()
        done, _ = await asyncio.wait([asking], timeout=_LEFT_WITHIN_S)
        _demand(bool(done), f"a cancelled request is left within {_LEFT_WITHIN_S} s")
        answer = await _ask(provider, self.model)
        await provider.aclose()
        _demand(bool(answer.text), "the next question is answered")

    async def test_a_service_that_is_away_is_said_to_be(self) -> None:
        """It is asked again, or another model is."""
        await self._demand_error(self.make_unreachable(), LlmUnavailable)

    async def test_a_refusal_of_the_request_is_said_to_be_one(self) -> None:
        """It is not asked again."""
        await self._demand_error(self.make_refusing(), LlmRejected)

    async def test_a_busy_service_is_said_to_be(self) -> None:
        """It is asked later."""
        await self._demand_error(self.make_busy(), LlmRateLimited)

    async def _demand_error(
        self, provider: ModelProvider, kind: type[Exception]
    ) -> None:
        try:
            answer = await _ask(provider, self.model)
        except kind:
            return
        except Exception as error:
            msg = f"broken promise: it raises {kind.__name__}, not {type(error).__name__}: {error}"
            raise AssertionError(msg) from error
        finally:
            await provider.aclose()
        raise AssertionError(f"broken promise: it raises {kind.__name__}, not {answer}")


class Word(BaseModel):
    """The form that a provider is asked for."""

    reasoning: str
    word: str


async def _ask(
    provider: ModelProvider, model: str, *, is_corrected: bool = False
) -> ModelAnswer:
    messages = [
        ModelMessage(speaker="system", text="Repeat the word in quotes."),
        ModelMessage(speaker="user", text='"lantern"'),
    ]
    if is_corrected:
        messages += [
            ModelMessage(speaker="assistant", text="lantern"),
            ModelMessage(speaker="user", text="That is no JSON. Answer again."),
        ]
    request = ModelRequest(
        model=model,
        messages=tuple(messages),
        form=Word,
        max_output_tokens=256,
        temperature=0.0,
    )
    async with asyncio.timeout(_ANSWERED_WITHIN_S):
        return await provider.answer(request)


def _distance(one: float, other: float) -> float:
    return abs(one - other)


def _demand(kept: bool, promise: str) -> None:
    if not kept:
        raise AssertionError(f"broken promise: {promise}")
