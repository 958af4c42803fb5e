"""The only door to a language model: ask a role, get a value of a pydantic model or a typed error.

Any OpenAI-compatible server will do. Tokens and cost of every attempt are accounted, also of those that failed after an
answer. Whatever comes back is data: it has the asked shape, and nothing more is promised. In particular digits never
come from a model, so the caller checks that each value stands in the text it gave.
"""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from types import TracebackType
from typing import Generic, Self

import structlog

from tasklore.contracts.admission.limits import Payer
from tasklore.contracts.errors import (
    BudgetSpent,
    ConfigurationError,
    LlmError,
    LlmMalformed,
    LlmNotConfigured,
    LlmRefused,
    LlmRejected,
    LlmThrottled,
    LlmTimeout,
    LlmUnavailable,
)
from tasklore.contracts.extensions import ModelAnswer, ModelProvider
from tasklore.contracts.messages import AwayModel
from tasklore.runtime.extensions import MODEL_GROUP, make_extension
from tasklore.runtime.models.answer_reader import T, words_of
from tasklore.runtime.models.breaker import ModelBreaker
from tasklore.runtime.models.client import OpenAiProvider
from tasklore.runtime.models.governor import (
    PATIENCE_S,
    Bill,
    ModelGate,
    PendingCall,
    governed,
    next_model,
)
from tasklore.runtime.models.prices import (
    Expense,
    ModelPrice,
    Tokens,
    expense_of,
    load_prices,
)
from tasklore.runtime.models.settings import (
    OPENAI_URL,
    LlmRole,
    LlmSettings,
    is_extension,
)
from tasklore.runtime.models.tracing import answered, asked, completed
from tasklore.runtime.models.usage import (
    Meter,
    Reply,
    SentRequest,
    Spent,
    spell_question,
    watched,
)
from tasklore.runtime.models.wire import (
    ModelQuestion,
    check_answer_model,
    estimate_tokens,
    read_answer,
    read_tokens,
    request_of,
    retry_after_s,
    spell_schema,
)
from tasklore.runtime.tracing import span
from tasklore.runtime.tracing.spans import Value

__all__ = [
    "Expense",
    "Llm",
    "LlmRole",
    "LlmSettings",
    "Meter",
    "ModelPrice",
    "Reply",
    "SentRequest",
    "Spent",
    "check_answer_model",
]

_log = structlog.get_logger(__name__)

#: Models that do not answer, as a worker's sign of life names them.
_MOST_AWAY = 20


@dataclass(frozen=True)
class _Outcome(Generic[T]):
    """Outcome and cost of one attempt."""

    result: T | LlmError
    usage: Expense
    is_sent: bool = True


class Llm:
    """The language models of this process; one instance, so that all roles share one limit on requests under way.

    An async context manager. Nothing is imported or connected before the first question (see `warm_up`).
    """

    def __init__(
        self,
        settings: LlmSettings,
        *,
        meter: Meter | None = None,
        governor: ModelGate | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        uniform: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self.settings = settings
        self._meter = meter
        self.governor = governor
        if meter is not None:
            meter.watch_models(self.open_seconds, self.troubles)
        self._monotonic = monotonic
        self._sleep = sleep
        self._uniform = uniform
        self._slots = asyncio.Semaphore(settings.max_concurrency)
        self._under_way = 0
        self._breakers: dict[tuple[str, str], ModelBreaker] = {}
        self._troubles: dict[str, str] = {}
        self._connecting = asyncio.Lock()
        self._has_prices = False
        self._openai = OpenAiProvider(settings)
        self._providers: dict[str, ModelProvider] = {"openai": self._openai}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for provider in self._providers.values():
            await provider.aclose()

    @property
    def configured(self) -> bool:
        """Say whether asking can succeed; when not, the built-in rules are all there is."""
        return self.settings.configured

    @property
    def has_room(self) -> bool:
        """Whether half of the slots stay free when one more is taken: for questions that others must not wait for."""
        return 2 * (self._under_way + 1) <= self.settings.max_concurrency

    def open_seconds(self) -> dict[str, float]:
        """Return by model for how many seconds its provider has been away, 0 when it is not; for any thread.

        A model is named as in `AwayModel`: with its provider, where that is not the usual one.
        """
        return {
            breaker.model: breaker.open_s for breaker in self._breakers.copy().values()
        }

    def away_models(self) -> tuple[AwayModel, ...]:
        """Return the models whose providers do not answer, those that are away for longest first."""
        now = datetime.now(UTC)
        away = [
            AwayModel(
                model=breaker.model,
                since=now - timedelta(seconds=breaker.open_s),
                said=breaker.said,
            )
            for breaker in self._breakers.values()
            if breaker.is_open
        ]
        return tuple(sorted(away, key=attrgetter("since"))[:_MOST_AWAY])

    def troubles(self) -> dict[str, str]:
        """Return by role why its last question has no answer, in the provider's words; for any thread."""
        return self._troubles.copy()

    def _note_trouble(self, role: str, model: str, error: LlmError | None) -> None:
        """Note how the last question of *role* ended; that a limit of ours left no room is no trouble of a model."""
        if error is None:
            self._troubles.pop(role, None)
        elif error.away_s is None and not isinstance(error, BudgetSpent | LlmThrottled):
            self._troubles[role] = f"{model!r} did not answer it: {describe(error)}"

    def role(self, name: str) -> LlmRole:
        """Return which model answers for the role *name*, and within which limits."""
        return self.settings.role(name)

    async def warm_up(self) -> None:
        """Import client library and prices now, a second of CPU or more, instead of within the first deadline.

        Raises:
            ConfigurationError: the provider of others that a role names cannot be made.
        """
        for name, role in self.settings.roles.items():
            if is_extension(role.provider):
                self._provider(name, role.provider)
        if self.configured:
            if self.settings.reaches_openai:
                await self._openai.connect()
            await self._load_prices()

    async def ask(
        self,
        role: str,
        answer: type[T],
        *,
        system: str,
        user: str,
        deadline_s: float | None = None,
        spent: Spent | None = None,
    ) -> Reply[T]:
        """Return what the model of *role* answers, as an instance of *answer*, whose first field is `reasoning`.

        Args:
            role: names model, temperature and limits in the settings; an unknown one is served by `default`.
            answer: the pydantic model to fill; its JSON schema goes with the question.
            system: what the model is to do.
            user: the material; data, never trusted.
            deadline_s: seconds left for everything: waiting for a free slot, every attempt and the pauses between.
            spent: the account of the task; every attempt is added to it, failed ones too.

        Raises:
            ConfigurationError: *answer* does not begin with `reasoning`.
            LlmNotConfigured: there is neither a key nor a base URL, nor another provider for the role, or its provider
                cannot be used.
            LlmError: the last attempt's error; those that are `retryable` were retried as far as attempts, deadline
                and the provider's Retry-After allow. An answer that does not fit is sent back with its fault, once.
        """
        check_answer_model(answer)
        provider = self.settings.role(role).provider
        if not is_extension(provider) and not self.settings.reaches_openai:
            raise LlmNotConfigured(
                "no language model: set TASKLORE_LLM_API_KEY or TASKLORE_LLM_BASE_URL, or rely on the built-in rules"
            )
        try:
            self._provider(role, provider)
        except ConfigurationError as absence:
            raise LlmNotConfigured(str(absence)) from absence
        started = self._monotonic()
        ends_at = None if deadline_s is None else started + deadline_s
        question = ModelQuestion(
            role,
            role=self.settings.role(role),
            answer=answer,
            system=system,
            user=user,
            ends_at=ends_at,
        )
        question = replace(question, waits_until=started + PATIENCE_S)
        usage = Expense()
        attempts = 0
        attempt = 0
        while True:
            outcome = await self._attempt(question, spent)
            usage += outcome.usage
            error = outcome.result
            attempts = attempts + outcome.is_sent
            attempt = attempt + outcome.is_sent
            if not isinstance(error, LlmError):
                self._note_trouble(role, question.role.model, None)
                duration_ms = (self._monotonic() - started) * 1000
                return Reply(
                    error,
                    usage=usage,
                    model=question.role.model,
                    attempts=attempts,
                    duration_ms=duration_ms,
                )
            breaker = self._breaker(question.role.provider, question.role.model)
            pause_s = (
                None if breaker.is_open else self._pause_s(question, attempt, error)
            )
            self._log_failure(question, attempt, error, pause_s)
            if pause_s is None:
                left_s = self._left_s(question)
                role_now = question.role
                fallback = (
                    self.fallback(role_now.model, error, role_now.provider)
                    if left_s is None or left_s > 0
                    else None
                )
                if fallback is None:
                    self._note_trouble(role, question.role.model, error)
                    raise breaker.mark(error) if outcome.is_sent else error
                role_now = LlmRole.model_validate(
                    {**role_now.model_dump(), "model": fallback}
                )
                question = replace(question, role=role_now, malformed=None)
                attempt = 0
                continue
            if isinstance(error, LlmMalformed) and error.answer is not None:
                question = replace(question, malformed=error)
            await self._sleep(pause_s)

    @asynccontextmanager
    async def request(
        self,
        role: str,
        model: str,
        spent: Spent | None = None,
        *,
        text: str = "",
        prompt: Callable[[], str] | None = None,
    ) -> AsyncIterator[SentRequest]:
        """Hold one of the slots for a request that another client sends in the block, and account for it.

        *text* is all that the model is shown; *prompt* returns it as who watches is to read it. `Sent.tokens` are
        counted as for an answer of *model*, those that are estimated in reports alone; an error of the block is counted
        by its class.

        Raises:
            LlmThrottled: a limit of the deployment leaves no room now; with `away_s`.
            BudgetSpent: a limit leaves no room and does not let the call wait.
            LlmUnavailable: the provider of *model* is away and was not asked; with `away_s`, as an LlmError of the
                block has it that says so again.
        """
        started = self._monotonic()
        error_class: str | None = None
        await self._load_prices()
        attributes: dict[str, Value] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": model,
            "tasklore.llm.role": role,
        }
        provider = self.role(role).provider
        address = self.settings.access(provider)[0] or OPENAI_URL
        payer = spent.payer if spent is not None else Payer(agent=role)
        asked_for = PendingCall(
            model=model,
            base_url=address,
            payer=payer,
            text=text,
            most_output=self.role(role).max_output_tokens,
        )
        async with self._admit(provider, asked_for) as bill:
            sent = SentRequest()
            self._under_way += 1
            seen_by = Spent() if spent is None else spent
            shown_text = (lambda: text) if prompt is None else prompt
            try:
                with (
                    span(
                        f"chat {model}", kind="client", attributes=attributes
                    ) as shown,
                    watched(seen_by, sent, role, model, prompt=shown_text),
                ):
                    yield sent
                    shown.note(
                        completed(sent.provider, sent.tokens, sent.first_chunk_s)
                    )
            except Exception as error:
                error_class = type(error).__name__
                if isinstance(error, LlmError):
                    self._note_trouble(role, model, error)
                raise
            else:
                self._note_trouble(role, model, None)
            finally:
                self._under_way -= 1
                bill.text = sent.text
                tokens = sent.tokens
                # One that nobody counted is settled as one of unknown usage.
                if tokens.input and not tokens.estimated:
                    bill.tokens = tokens
                elif error_class is None and not tokens.input:
                    tokens = estimate_tokens(text, sent.text)
                usage = expense_of(
                    tokens, model, sent.base_url or address, self.settings.prices
                )
                if spent is not None:
                    spent.add(usage)
                if self._meter is not None:
                    duration_s = self._monotonic() - started
                    self._meter.record(
                        role,
                        model=model,
                        usage=usage,
                        duration_s=duration_s,
                        error_class=error_class,
                        first_chunk_s=sent.first_chunk_s,
                    )

    def pause_s(
        self, attempt: int, error: LlmError, left_s: float | None
    ) -> float | None:
        """Return the seconds to wait after attempt number *attempt* before the next one, None when there is none.

        *left_s* is how long there is time, None for ever.
        """
        settings = self.settings
        if isinstance(error, LlmThrottled):
            # It waits where it is for a moment; a longer wait is its task's.
            most_s = PATIENCE_S if left_s is None else min(PATIENCE_S, left_s)
            return (
                error.away_s
                if error.away_s is not None and error.away_s < most_s
                else None
            )
        if (
            not error.retryable
            or error.away_s is not None
            or attempt >= settings.max_attempts
        ):
            return None
        wanted_s = (
            getattr(error, "retry_after_s", None)
            or retry_after_s(error.__cause__)
            or 0.0
        )
        # Full jitter, on top of the provider's wish: all who were sent away together must not come back together.
        pause_s = wanted_s + self._uniform(
            0.0,
            min(settings.backoff_cap_s, settings.backoff_base_s * 2 ** (attempt - 1)),
        )
        if wanted_s > settings.patience_s or (left_s is not None and pause_s >= left_s):
            return None
        return pause_s

    async def _attempt(
        self, question: ModelQuestion[T], spent: Spent | None
    ) -> _Outcome[T]:
        """Ask once and account for it, whatever came of it."""
        started = self._monotonic()
        tokens = Tokens()
        is_sent = True
        result: T | LlmError
        model = question.role.model
        with span(
            f"chat {model}",
            kind="client",
            attributes=asked(question.role_name, question.role.provider, model),
        ) as told:
            try:
                answer, tokens = await self._send(question, spent)
                told.note(answered(answer, tokens))
                if spent is not None:
                    spent.note_answer(model, answer.text, tokens)
                result = read_answer(answer, question.answer)
            except LlmError as error:
                told.fail(type(error).__name__)
                result = error
                if spent is not None:
                    spent.note_failure(model, error)
                is_sent = error.away_s is None and not isinstance(error, BudgetSpent)
        if not is_sent:
            # Refused here: nothing was asked, and nothing is to be accounted.
            return _Outcome(result, Expense(), is_sent=False)
        usage = expense_of(
            tokens, model, self._address(question.role.provider), self.settings.prices
        )
        if spent is not None:
            spent.add(usage)
        if self._meter is not None:
            error_class = (
                type(result).__name__ if isinstance(result, LlmError) else None
            )
            self._meter.record(
                question.role_name,
                model=model,
                usage=usage,
                duration_s=self._monotonic() - started,
                error_class=error_class,
            )
        return _Outcome(result, usage)

    def _pause_s(
        self, question: ModelQuestion[T], attempt: int, error: LlmError
    ) -> float | None:
        """Return the seconds to wait before the next attempt, None when there is to be none."""
        left_s = self._left_s(question)
        if isinstance(error, LlmThrottled):
            waits_s = question.waits_until - self._monotonic()
            left_s = waits_s if left_s is None else min(left_s, waits_s)
        if (
            isinstance(error, LlmMalformed)
            and error.answer is not None
            and attempt < self.settings.max_attempts
        ):
            return (
                None
                if question.malformed is not None
                or (left_s is not None and left_s <= 0)
                else 0.0
            )
        return self.pause_s(attempt, error, left_s)

    def _log_failure(
        self,
        question: ModelQuestion[T],
        attempt: int,
        error: LlmError,
        pause_s: float | None,
    ) -> None:
        _log.warning(
            "llm_attempt_failed",
            role=question.role_name,
            model=question.role.model,
            error=type(error).__name__,
            words=describe(error),
            attempt=attempt,
            pause_s=pause_s,
        )

    def _left_s(self, question: ModelQuestion[T]) -> float | None:
        return (
            None if question.ends_at is None else question.ends_at - self._monotonic()
        )

    def fallback(
        self, model: str, error: LlmError, provider: str = "openai"
    ) -> str | None:
        """Return the model of *provider* that may answer in place of *model*, of which *error* is; see `next_model`."""
        return next_model(
            self.governor,
            model=model,
            error=error,
            base_url=self._address(provider),
            prices=self.settings.prices,
            is_served=lambda name: self._has_model(provider, name),
        )

    def _has_model(self, provider: str, model: str) -> bool:
        """Return whether *provider* can be asked *model*: an extension those that roles name with it, and it alone."""
        named = {
            role.provider
            for role in self.settings.roles.values()
            if role.model == model
        }
        if is_extension(provider):
            return provider in named
        return not named or not all(map(is_extension, named))

    async def _send(
        self, question: ModelQuestion[T], spent: Spent | None
    ) -> tuple[ModelAnswer, Tokens]:
        """Return the answer of a provider and its tokens; holds one of the slots meanwhile."""
        role = question.role
        left_s = self._left_s(question)
        if left_s is not None and left_s <= 0:
            raise LlmTimeout(
                f"no time is left to ask {role.model!r} for {question.role_name!r}"
            )
        breaker = self._breaker(role.provider, role.model)
        breaker.demand()
        await self._load_prices()
        shown = (
            ""
            if question.malformed is None
            else f"{question.malformed.answer}{question.malformed}"
        )
        schema = spell_schema(question.answer)
        payer = spent.payer if spent is not None else Payer(agent=question.role_name)
        text = f"{question.system}{question.user}{shown}{schema}"
        asked_for = PendingCall(
            model=role.model,
            base_url=self._address(role.provider),
            payer=payer,
            text=text,
            most_output=role.max_output_tokens,
        )
        try:
            async with (
                asyncio.timeout(left_s),
                self._slots,
                governed(self.governor, asked_for, self.settings.prices) as bill,
            ):
                if spent is not None:
                    spent.note_prompt(
                        question.role_name,
                        role.model,
                        lambda: spell_question(question.system, question.user, shown),
                    )
                with breaker.asking():
                    answer = await self._complete(question)
                bill.headers = answer.headers
                # Without a count it is settled as one of unknown usage, and reported by an estimate.
                bill.tokens = read_tokens(answer)
                return answer, bill.tokens or estimate_tokens(text, answer.text)
        except TimeoutError as error:
            raise _late(question, left_s or 0.0) from error

    async def _complete(self, question: ModelQuestion[T]) -> ModelAnswer:
        role = question.role
        provider = self._provider(question.role_name, role.provider)
        self._under_way += 1
        try:
            # Its import is not within the time of an attempt.
            if provider is self._openai:
                await self._openai.connect()
            async with asyncio.timeout(role.attempt_deadline_s):
                return await provider.answer(request_of(question))
        except TimeoutError as error:
            raise _late(question, role.attempt_deadline_s) from error
        except (LlmError, asyncio.CancelledError):
            raise
        except OSError as error:
            raise LlmUnavailable(
                f"provider {role.provider!r} failed: {error}"
            ) from error
        except Exception as error:
            msg = f"provider {role.provider!r} raised {type(error).__name__}: {error}"
            raise LlmRejected(msg) from error
        finally:
            self._under_way -= 1

    def _provider(self, role_name: str, name: str) -> ModelProvider:
        """Return the provider called *name*, which serves the role of that name.

        Raises:
            ConfigurationError: it serves agents with tools only, is not installed, or cannot be made.
        """
        if name not in self._providers:
            if not is_extension(name):
                raise ConfigurationError(
                    f"role {role_name!r} is served by {name!r}, which answers agents with tools only; "
                    "ask another role"
                )
            self._providers[name] = make_extension(
                MODEL_GROUP,
                name,
                kind=ModelProvider,  # type: ignore[type-abstract] # looked at, never made
                setting="TASKLORE_LLM_ROLES",
            )
        return self._providers[name]

    def _address(self, provider: str) -> str:
        """Return by which address the models of *provider* are found in the list of prices."""
        if is_extension(provider):
            return provider
        return self.settings.base_url or OPENAI_URL

    @asynccontextmanager
    async def _admit(
        self, provider: str, asked_for: PendingCall
    ) -> AsyncIterator[Bill]:
        """Hold a slot while *provider* is asked in the block, whose LlmError counts against it and the model."""
        breaker = self._breaker(provider, asked_for.model)
        breaker.demand()
        try:
            async with (
                self._slots,
                governed(self.governor, asked_for, self.settings.prices) as bill,
            ):
                with breaker.asking():
                    yield bill
        except LlmThrottled:
            raise
        except LlmError as error:
            breaker.mark(error)
            raise

    def _breaker(self, provider: str, model: str) -> ModelBreaker:
        place = self.settings.place_of(provider)
        if (place, model) not in self._breakers:
            # A question alone is asked as often as it may be before its provider counts as away.
            limits = self.settings.max_attempts, self.settings.patience_s
            self._breakers[place, model] = ModelBreaker(
                self.settings.shown_model(place, model),
                *limits,
                monotonic=self._monotonic,
                uniform=self._uniform,
            )
        return self._breakers[place, model]

    async def _load_prices(self) -> None:
        async with self._connecting:
            if not self._has_prices:
                await asyncio.to_thread(load_prices)
                self._has_prices = True


def describe(error: LlmError) -> str:
    """Return *error* in its provider's words, on one line; of a refusal, which quotes the question, its name."""
    name = type(error).__name__
    return name if isinstance(error, LlmRefused) else f"{name}: {words_of(str(error))}"


def _late(question: ModelQuestion[T], limit_s: float) -> LlmTimeout:
    return LlmTimeout(
        f"{question.role.model!r} did not answer {question.role_name!r} within {limit_s:.3g} s"
    )
