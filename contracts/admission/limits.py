"""Limits on models: requests, tokens and money for each payer and time, and the choice at the limit; and on runs.

A limit that names no model, tenant, user or agent covers all of them together; `*` gives each value an account of its
own. One without `every` is of requests, or of runs of tasks, under way at the same time.
"""

import hashlib
import json
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from decimal import Decimal
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.faults import fault_of
from tasklore.contracts.identifiers import Name, user_token
from tasklore.contracts.zones import TimeZone, read_zone

AtLimit = Literal["park", "next", "refuse"]
Every = Literal["minute", "day", "month", "task", "tree"]
Measure = Literal["requests", "tokens", "usd", "at_once", "at_most"]

#: Money is counted in billionths of a dollar, so that a single token has a whole price.
NANO_USD = 1_000_000_000
#: Limits of one deployment, and the largest of any of them: sums stay exact in a double.
MOST_LIMITS = 200
_MOST = 4_000_000
#: Runs that one limit may allow at once.
MOST_RUNS = 100_000
_DIMENSIONS = ("model", "tenant", "user", "agent", "task")


@dataclass(frozen=True)
class Payer:
    """The payer of a call: names of the tenant, agent and task, the user's token, ids of the task and its tree.

    `run` names the run of the task, by which its calls are known; all are empty where there is none.
    """

    tenant: str = ""
    user: str = ""
    agent: str = ""
    task: str = ""
    task_id: str = ""
    root_id: str = ""
    run: str = ""


@dataclass(frozen=True, kw_only=True)
class ModelCall:
    """A request that is about to leave: its `text`, most tokens of the answer, and nano-dollars by token counts."""

    model: str
    payer: Payer
    text: str
    most_output: int
    price: Callable[[int, int], int | None]


@dataclass(frozen=True, kw_only=True)
class CallUsage:
    """A provider's count of a call, and its own limits: ms of a pause, requests and tokens of this minute."""

    input: int = 0
    output: int = 0
    cached: int = 0
    nano_usd: int = 0
    requests: int = 1
    pause_ms: int | None = None
    requests_in_minute: int | None = None
    tokens_in_minute: int | None = None


@dataclass(frozen=True, kw_only=True)
class Account:
    """One count that a call is held against: `key` names it, `limit` is in whole units of `measure`.

    `window` is the part of the key for the present day or month; `refills_in_s` is None for one that never refills.
    `covers` says in words whose it is, "" for everybody's.
    """

    name: str
    key: str
    measure: Measure
    every: Every | None
    limit: int
    at_limit: AtLimit
    window: str = ""
    refills_in_s: float | None = None
    covers: str = ""

    @property
    def words(self) -> str:
        """What a call that finds no room waits for: "the budget of tenant acme (2 requests a day)"."""
        kind = {None: "concurrency limit", "minute": "rate limit"}.get(
            self.every, "budget"
        )
        size = f"{self.limit:,} {self.measure}"
        if self.measure == "usd":
            size = f"${self.limit / NANO_USD:,.2f}"
        elif self.measure == "at_once":
            size = f"{self.limit:,} requests at once"
        span = "" if self.every is None else f" a {self.every}"
        whose = f" of {self.covers}" if self.covers else f" {self.name}"
        return f"the {kind}{whose} ({size}{span})"


@dataclass(kw_only=True)
class Reservation:
    """A call under way, to be settled once; `accounts` are those it was reserved on."""

    call_id: str
    call: ModelCall
    input_tokens: int
    accounts: tuple[Account, ...] = ()
    counted: int = 0
    is_closed: bool = False


class Limit(BaseModel):
    """One limit; exactly one of `requests`, `tokens`, `usd`, `at_once` and `at_most` says of what.

    `model` may hold `*` as part of a name ("gpt-6*"): all models that fit share one account. `at_limit` is `park` (the
    task waits without a slot until there is room), `next` (the next model of the fallbacks answers) or `refuse`.
    `at_most` counts runs of tasks, `at_once` requests to models under way.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Name
    model: str = Field(default="", max_length=200)
    tenant: str = Field(default="", max_length=200)
    user: str = Field(default="", max_length=200)
    agent: str = Field(default="", max_length=200)
    task: str = Field(default="", max_length=200)
    requests: Annotated[int, Field(ge=1, le=_MOST * 1000)] | None = None
    tokens: Annotated[int, Field(ge=1, le=_MOST * 1_000_000)] | None = None
    usd: Annotated[Decimal, Field(ge=Decimal(1) / NANO_USD, le=_MOST)] | None = None
    at_once: Annotated[int, Field(ge=1, le=_MOST)] | None = None
    at_most: Annotated[int, Field(ge=1, le=MOST_RUNS, strict=True)] | None = None
    every: Every | None = None
    at_limit: AtLimit = "park"

    @property
    def measure(self) -> Measure:
        """The one field of the five that is set."""
        measures: tuple[Measure, ...] = get_args(Measure)
        return next(one for one in measures if getattr(self, one) is not None)

    @property
    def amount(self) -> int:
        """Its size: requests, tokens, or billionths of a dollar."""
        return (
            int(self.usd * NANO_USD)
            if self.usd is not None
            else int(getattr(self, self.measure))
        )

    @property
    def own_bound(self) -> str | None:
        """The name of its bound on runs; None for one that counts values apart, and for a limit on models."""
        if self.at_most is None or "*" in (
            self.tenant,
            self.user,
            self.agent,
            self.task,
        ):
            return None
        return bound_name(
            self.scope_of(
                Payer(self.tenant, user_token(self.user), self.agent, self.task)
            )
            or {}
        )

    @model_validator(mode="after")
    def _check(self) -> Self:
        given = [one for one in get_args(Measure) if getattr(self, one) is not None]
        if len(given) != 1:
            names = "requests, tokens, usd, at_once and at_most"
            raise ValueError(
                f"name one of {names}, not {' and '.join(given) or 'none'}"
            )
        if (self.measure in ("at_once", "at_most")) != (self.every is None):
            raise ValueError(
                'set every = "minute", "day", "month", "task" or "tree"; at_once and at_most have none'
            )
        if self.at_most is not None and self.model:
            raise ValueError(
                "at_most counts runs of tasks: remove model, or set at_once, which "
                "counts requests"
            )
        if self.at_most is not None and self.at_limit != "park":
            raise ValueError(
                "a task over at_most waits for a slot: remove at_limit, or set it to "
                '"park"'
            )
        if self.every in ("task", "tree") and self.at_limit == "park":
            raise ValueError(
                'what a task or tree has spent never refills: set at_limit = "refuse" or "next"'
            )
        return self

    def scope_of(self, payer: Payer, model: str = "") -> dict[str, str] | None:
        """Return the values of *payer* by the dimensions that are named, None where the limit does not cover it."""
        values = {
            "model": model,
            "tenant": payer.tenant,
            "user": payer.user,
            "agent": payer.agent,
            "task": payer.task,
        }
        scope = {}
        for dimension in _DIMENSIONS:
            wanted = getattr(self, dimension)
            value = values[dimension]
            if dimension == "user" and wanted not in ("", "*"):
                wanted = user_token(wanted)
            if wanted:
                scope[dimension] = value
                if wanted != "*" and not (
                    fnmatchcase(value, wanted)
                    if dimension == "model"
                    else value == wanted
                ):
                    return None
        return scope

    def account_of(
        self, model: str, payer: Payer, now: datetime, zone: tzinfo
    ) -> Account | None:
        """Return the account of a call of *model* for *payer*, None where the limit does not cover it."""
        if self.at_most is not None or (scope := self.scope_of(payer, model)) is None:
            return None
        own = [
            f"{dimension}={value}"
            for dimension, value in scope.items()
            if getattr(self, dimension) == "*"
        ]
        if self.every in ("task", "tree"):
            id_ = (
                payer.task_id
                if self.every == "task"
                else payer.root_id or payer.task_id
            )
            if not id_:
                return None
            own.append(f"{self.every}={id_}")
        window, refills_at = window_of(self.every, now, zone)
        left_s = None if refills_at is None else (refills_at - now).total_seconds()
        key = ";".join((self.name, *own))
        return Account(
            name=self.name,
            key=key,
            measure=self.measure,
            every=self.every,
            limit=self.amount,
            at_limit=self.at_limit,
            window=window,
            refills_in_s=left_s,
            covers=", ".join(_whose(name, value) for name, value in scope.items()),
        )


class Shares(BaseModel):
    """The shares of tenants in an agent that is busy: a weight of 2 gets twice as many turns as the usual 1.

    `longest_wait_s` is how many seconds a task of a lower priority waits for a turn although higher ones wait.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    weights: dict[str, Annotated[float, Field(ge=0.001, le=1000, strict=True)]] = Field(
        default_factory=dict, max_length=10_000
    )
    longest_wait_s: dict[
        Literal["normal", "batch"],
        Annotated[float, Field(ge=0, le=86_400, strict=True)],
    ] = Field(default_factory=dict)


class Limits(BaseModel):
    """All limits of a deployment.

    `fallbacks` names the models that answer in place of another one, at the same address, the best one first.
    `without_store` says what happens to calls under limits of money and of rates while the store of the accounts is
    away. `time_zone` is that of days and months.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    limits: tuple[Limit, ...] = Field(default=(), max_length=MOST_LIMITS)
    shares: "Shares" = Field(
        default_factory=lambda: Shares(), exclude_if=lambda shares: shares == Shares()
    )
    fallbacks: dict[str, tuple[str, ...]] = Field(
        default_factory=dict, max_length=MOST_LIMITS
    )
    without_store: dict[Literal["money", "rates"], Literal["refuse", "pass"]] = Field(
        default_factory=dict
    )
    time_zone: TimeZone = "UTC"

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        for model in self.fallbacks:
            seen = {model}
            chain = list(self.fallbacks[model])
            while chain:
                if (name := chain.pop()) in seen:
                    raise ValueError(
                        f"fallbacks of {model!r} lead back to {name!r}; let a chain end"
                    )
                seen.add(name)
                chain += self.fallbacks.get(name, ())
        names = [limit.name for limit in self.limits]
        if twice := {name for name in names if names.count(name) > 1}:
            raise ValueError(
                f"two limits are called {min(twice)!r}; give each its own name"
            )
        return self

    def accounts_of(
        self, model: str, payer: Payer, now: datetime
    ) -> tuple[Account, ...]:
        """Return every account that a call of *model* for *payer* is held against."""
        zone = read_zone(self.time_zone)
        found = (limit.account_of(model, payer, now, zone) for limit in self.limits)
        return tuple(account for account in found if account is not None)

    def bounds_of(self, payer: Payer) -> dict[str, int]:
        """Return how many runs may go on at once, that of *payer* included, by the name of each bound it falls under.

        Bounds of one tenant or user come first, the narrower before the wider: a run takes its places in this order.
        """
        found: dict[tuple[bool, int, str], int] = {}
        for limit in self.limits:
            if (
                limit.at_most is not None
                and (scope := limit.scope_of(payer)) is not None
            ):
                order = (
                    not scope.keys() & {"tenant", "user"},
                    -len(scope),
                    bound_name(scope),
                )
                found[order] = min(limit.at_most, found.get(order, MOST_RUNS))
        return {order[2]: found[order] for order in sorted(found)}

    def bound_of(self, payer: Payer, name: str) -> Limit | None:
        """Return the smallest limit on runs of *payer* whose bound is called *name*, None where there is none."""
        found = [
            limit
            for limit in self.limits
            if limit.at_most is not None
            and (scope := limit.scope_of(payer)) is not None
            and bound_name(scope) == name
        ]
        return min(found, key=lambda limit: limit.amount, default=None)

    def passes_without_store(self, accounts: tuple[Account, ...]) -> bool:
        """Say whether a call may go out unchecked while the store is away: no by default where money is limited."""
        asked = {
            "money" if account.measure == "usd" else "rates" for account in accounts
        }
        defaults = {"money": "refuse", "rates": "pass"} | dict(self.without_store)
        return all(defaults[one] == "pass" for one in asked)


def _whose(dimension: str, value: str) -> str:
    """Return a value of a scope in words; a user's is a token, which says nothing to people."""
    if dimension == "user":
        return "this user"
    return f"{dimension} {value}" if value else f"those without a {dimension}"


def bound_name(scope: Mapping[str, str]) -> str:
    """Return the name of the bound on runs of *scope*, the same for every limit of it; values may be personal."""
    text = json.dumps(scope, sort_keys=True)
    return f"limit:{hashlib.blake2b(text.encode(), digest_size=16).hexdigest()}"


def parse_limits(text: str) -> Limits:
    """Return the limits in *text*, in TOML.

    Raises:
        InvalidInput: it is no TOML, or a field does not fit; the message names the field and the cure.
    """
    try:
        return read_limits(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"the limits are not valid TOML: {error}") from error


def read_limits(value: Mapping[str, Any]) -> Limits:
    """Return *value* as limits.

    Raises:
        InvalidInput: a field does not fit; the message names it and the cure.
    """
    try:
        return Limits.model_validate(value)
    except ValidationError as error:
        faults = []
        for details in error.errors(include_url=False, include_context=False):
            match details["loc"]:
                case ("limits", int(place), *rest) if isinstance(
                    name := value["limits"][place], Mapping
                ):
                    place_of = (f"limit {name.get('name', place + 1)!r}", *rest)
                    faults.append(fault_of({**details, "loc": place_of}))
                case _:
                    faults.append(fault_of(details, "limits"))
        raise InvalidInput("; ".join(faults)) from error


def window_of(
    every: Every | None, now: datetime, zone: tzinfo
) -> tuple[str, datetime | None]:
    """Return the name of the present window, and when the next one begins."""
    local = now.astimezone(zone)
    if every == "day":
        begins = (local + timedelta(days=1)).replace(
            hour=0, minute=0, second=0, microsecond=0
        )
        return f"{local:%Y-%m-%d}", begins.astimezone(UTC)
    if every == "month":
        begins = (local.replace(day=1) + timedelta(days=32)).replace(
            day=1, hour=0, minute=0, second=0, microsecond=0
        )
        return f"{local:%Y-%m}", begins.astimezone(UTC)
    return "", None
