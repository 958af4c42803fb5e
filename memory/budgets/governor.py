"""The governor of one process: reserves each call to a model before it leaves, and settles it after.

A call that is covered by no limit costs no round trip before it; one that is costs one. Settlements go out together,
behind the answer.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any
from uuid import uuid4

import structlog
from redis.asyncio import Redis

from tasklore.contracts.admission.limits import (
    NANO_USD,
    Account,
    CallUsage,
    Limits,
    Measure,
    ModelCall,
    Payer,
    Reservation,
)
from tasklore.contracts.cadence import until_look
from tasklore.contracts.errors import BudgetSpent, LlmThrottled, MemoryUnavailable
from tasklore.memory import keys
from tasklore.memory.breaker import Breaker
from tasklore.memory.budgets import scripts
from tasklore.memory.budgets.store import (
    KEEP,
    WAITING,
    book_field,
    book_of,
    kind_of,
    read_stored,
)
from tasklore.memory.command_batch import Command, CommandBatch
from tasklore.memory.rendering.tokens import Count, counter, estimate

log = structlog.get_logger(__name__)

#: Seconds that a reservation outlives its process, and between two renewals, which also look for other limits.
LEASE_S = 20.0
RENEWED_S = 1.0
#: Seconds for one answer of the store.
_DEADLINE_S = 1.0
#: Seconds after which a call that waits for a far refill looks whether there is room before it.
_LOOKS_AGAIN_S = 300.0
#: Characters that are counted on the event loop; more take longer than 1 ms.
_COUNTED_HERE = 20_000
#: Tokens that a provider adds to a request.
_FRAME_TOKENS = 32
#: The first word on how a provider counts, for a model whose tokens are not known exactly.
_UNKNOWN = 1.25
#: Stands in the books where no model was asked.
RECALLED = "recalled"


class ModelBudget:
    """Holds the calls of this process to the limits of the deployment.

    Args:
        client: Where limits, accounts and books are.
        declared: Limits that hold while those of the store were never read, such as those of a file.
        unchecked: Counts calls that went out while the store was away.
        deadline_s: Seconds for one answer of the store.
        now: The clock, in UTC; that of the store by default.
    """

    def __init__(
        self,
        client: Redis,
        *,
        declared: Limits | None = None,
        unchecked: Callable[[str], None] = lambda _model: None,
        deadline_s: float = _DEADLINE_S,
        now: Callable[[], datetime] | None = None,
    ) -> None:
        self._batch = CommandBatch(client, deadline_s, Breaker())
        self._declared = declared
        self._unchecked = unchecked
        self._now = now or _now
        self._has_own_clock = now is not None
        self._process = uuid4().hex[:12]
        self._numbers = count(1)
        self._limits: Limits | None = None
        self._version: bytes | None = None
        self._under_way: dict[str, Reservation] = {}
        self._settlements: list[Command] = []
        self._sending: asyncio.Task[None] | None = None
        #: By model, how many tokens a provider counts for one of ours.
        self._ratios: dict[str, float] = {}
        #: None before a call was held to a limit: the exact tables cost a second of CPU, and 130 MB.
        self._count: Count | None = None
        self._loading = asyncio.Lock()

    @asynccontextmanager
    async def running(self) -> AsyncIterator["ModelBudget"]:
        """Renew reservations and look for other limits until the block ends; then send all settlements."""
        beat = asyncio.create_task(self._beat(), name="governor")
        try:
            yield self
        finally:
            beat.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await beat
            for held in list(self._under_way.values()):
                self.settle(held, None)
            with contextlib.suppress(MemoryUnavailable):
                await self.flush()

    async def limits(self) -> Limits:
        """Return the limits as they were within the last second, or before the store went away.

        Raises:
            MemoryUnavailable: the store is away, and was never read.
        """
        if self._limits is None:
            try:
                self._version, self._limits = await read_stored(self._batch)
            except MemoryUnavailable:
                if self._declared is None:
                    raise
                return self._declared
        return self._limits

    async def reserve(self, call: ModelCall) -> Reservation:
        """Reserve the worst case of *call*.

        Raises:
            LlmThrottled: a limit leaves no room now; `away_s` says when to come back.
            BudgetSpent: a limit leaves no room, and says that such a call is refused or goes to another model.
            MemoryUnavailable: the accounts cannot be read, and limits are not to be passed unchecked.
        """
        payer = call.payer
        model = call.model
        # No number is used again, also not by a run that goes on elsewhere under the same attempt.
        call_id = f"{payer.run}:{self._process}:{next(self._numbers)}"
        accounts = (await self.limits()).accounts_of(model, payer, self._now())
        held = Reservation(
            call_id=call_id, call=call, input_tokens=0, accounts=accounts
        )
        self._under_way[call_id] = held
        if not accounts:
            return held
        held.counted = await self._count_tokens(call.text)
        ratio = self._ratios.get(
            model, 1.0 if model.startswith(("gpt-", "o1", "o3", "o4")) else _UNKNOWN
        )
        held.input_tokens = int(held.counted * ratio) + _FRAME_TOKENS
        try:
            await self._reserve(held)
        except MemoryUnavailable:
            if not (await self.limits()).passes_without_store(accounts):
                # It may be reserved all the same, and does not leave.
                self.settle(held, CallUsage(requests=0))
                raise
            log.warning(
                "call_unchecked",
                model=model,
                limits=[account.name for account in accounts],
            )
            self._unchecked(model)
        except (BudgetSpent, LlmThrottled):
            self._drop(held)
            raise
        except BaseException:
            self.settle(held, CallUsage(requests=0))
            raise
        return held

    def settle(self, held: Reservation, taken: CallUsage | None) -> None:
        """Settle *held* once; None is a call of unknown usage: it counts in full, unconfirmed."""
        if held.is_closed:
            return
        self._drop(held)
        call = held.call
        if taken is not None and taken.input and held.counted:
            self._learn(call.model, taken.input / held.counted)
        if taken is None and not held.accounts:
            return
        book = book_of(self._now())
        numbers = taken or CallUsage()
        tree = (
            keys.budget("tree", call.payer.root_id or call.payer.task_id)
            if call.payer.task_id
            else book
        )
        places = [keys.budget("calls"), keys.budget("leases"), book, tree]
        said = numbers.pause_ms, numbers.requests_in_minute, numbers.tokens_in_minute
        places += (keys.budget("account", account.key) for account in held.accounts)
        kinds = [
            word
            for account in held.accounts
            for word in (kind_of(account), account.measure)
        ]
        self._settlements.append(
            (
                *(
                    "FCALL",
                    scripts.SETTLE,
                    len(places),
                    *places,
                    self._clock(),
                    held.call_id,
                ),
                book_field(call.payer, call.model),
                "" if taken is None else taken.requests,
                numbers.input + numbers.output,
                *(
                    numbers.nano_usd,
                    numbers.input,
                    numbers.output,
                    numbers.cached,
                    KEEP // timedelta(milliseconds=1),
                ),
                *("" if one is None else one for one in said),
                *kinds,
            )
        )
        if self._sending is None or self._sending.done():
            self._sending = asyncio.get_running_loop().create_task(self._send())

    def count(self, held: Reservation, text: str) -> tuple[int, int]:
        """Return the tokens of a reserved request, and those of the *text* that came of its answer.

        They are estimated, and never too low, while no call was held to a limit.
        """
        count_tokens = self._count or estimate
        return held.input_tokens or count_tokens(held.call.text), count_tokens(text)

    def fallbacks(self, model: str) -> tuple[str, ...]:
        """Return the models that answer in place of *model*, the best one first; none before limits were read."""
        return () if self._limits is None else self._limits.fallbacks.get(model, ())

    def save(self, payer: Payer, nano_usd: int) -> None:
        """Enter into the books the cost that a recalled answer spared."""
        book = book_of(self._now())
        self._settlements.append(
            ("HINCRBY", book, f"{book_field(payer, RECALLED)}|saved", nano_usd)
        )
        if self._sending is None or self._sending.done():
            self._sending = asyncio.get_running_loop().create_task(self._send())

    async def flush(self) -> None:
        """Send the settlements.

        Raises:
            MemoryUnavailable: the store is away; it is kept for the next time.
        """
        commands = self._settlements
        self._settlements = []
        try:
            await self._batch.run(commands)
        except MemoryUnavailable:
            # A settlement that arrived all the same counts once: the call is known.
            self._settlements = commands + self._settlements
            raise

    async def _send(self) -> None:
        await asyncio.sleep(0)
        while self._settlements:
            try:
                await self.flush()
            except MemoryUnavailable:
                return

    def _drop(self, held: Reservation) -> None:
        held.is_closed = True
        self._under_way.pop(held.call_id, None)

    async def _reserve(self, held: Reservation) -> None:
        call = held.call
        tokens = held.input_tokens + call.most_output
        price = call.price(held.input_tokens, call.most_output)
        needs: dict[Measure, int] = {
            "requests": 1,
            "tokens": tokens,
            "usd": price or 0,
            "at_once": 1,
        }
        places = [
            *map(keys.budget, ("calls", "leases", "accounts")),
            *map(keys.budget, WAITING),
        ]
        rows: list[Any] = []
        for account in held.accounts:
            if account.measure == "usd" and price is None:
                msg = f"limit {account.name!r}: the price of {call.model!r} is not known; set TASKLORE_LLM_PRICES"
                raise BudgetSpent(msg, account.name, account.at_limit, unit="usd")
            place = keys.budget("account", account.key)
            places += place, f"{place}:queue"
            refill = (
                ""
                if account.refills_in_s is None
                else int(account.refills_in_s * 1000) + 1
            )
            # Who asks for no task is not woken once a budget has room, and holds up no one who is.
            waits = int(
                account.at_limit == "park"
                and (bool(call.payer.run) or kind_of(account) != "c")
            )
            rows += (
                kind_of(account),
                account.measure,
                account.limit,
                needs[account.measure],
                account.window,
                refill,
                waits,
            )
        waiter = call.payer.run.rpartition(":")[0] or held.call_id
        book = book_of(self._now())
        lease_ms = int(LEASE_S * 1000)
        heads = (
            self._clock(),
            held.call_id,
            waiter,
            lease_ms,
            book,
            book_field(call.payer, call.model),
            price or 0,
            int(_LOOKS_AGAIN_S * 1000) if call.payer.run else "",
        )
        answer = (
            await self._batch.run(
                [("FCALL", scripts.RESERVE, len(places), *places, *heads, *rows)]
            )
        )[0]
        if answer[0]:
            return
        raise _refusal(held, held.accounts[answer[1] - 1], needs, answer[2])

    def _clock(self) -> int | str:
        """Return ms since 1970 for the scripts, nothing where the store's own clock counts."""
        return int(self._now().timestamp() * 1000) if self._has_own_clock else ""

    async def _count_tokens(self, text: str) -> int:
        async with self._loading:
            if self._count is None:
                self._count = await asyncio.to_thread(counter)
        if len(text) <= _COUNTED_HERE:
            return self._count(text)
        return await asyncio.to_thread(self._count, text)

    def _learn(self, model: str, ratio: float) -> None:
        known = self._ratios.get(model, 0.0)
        self._ratios[model] = ratio if ratio > known else max(ratio, 0.98 * known)

    async def _beat(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(until_look(loop.time(), RENEWED_S))
            mine = [held.call_id for held in self._under_way.values() if held.accounts]
            renewals = [renewal(self._clock(), mine)] if mine else []
            with contextlib.suppress(MemoryUnavailable):
                # Workers may read limits, and a script takes the keys alone that its caller may write.
                stored: Command = ("HGET", keys.budget("limits"), "version")
                *_, version = await self._batch.run([*renewals, stored])
                if self._limits is None or version != self._version:
                    self._version, self._limits = await read_stored(self._batch)
                await self.flush()


def renewal(now: str | int, call_ids: Sequence[str]) -> Command:
    """Return the command that renews *call_ids*, and takes calls of dead processes off what is reserved.

    *now* is a clock in ms since 1970, "" for that of the store.
    """
    places = keys.budget("calls"), keys.budget("leases")
    lease_ms = int(LEASE_S * 1000)
    return ("FCALL", scripts.RENEW, 2, *places, now, lease_ms, *call_ids)


def _now() -> datetime:
    return datetime.now(UTC)


def _refusal(
    held: Reservation, account: Account, needs: dict[Measure, int], wait_ms: int
) -> Exception:
    """Return the error for a call that *account* has no room for within *wait_ms*, -1 for ever."""
    need = needs[account.measure]
    unit = account.measure
    shown: object = need
    if unit == "usd":
        shown = f"{need / NANO_USD:.6f}"
    if need > account.limit:
        cure = "raise the limit, ask for less, or lower max_output_tokens"
        msg = f"limit {account.name!r}: a call of {held.call.model!r} may take {shown} {unit}, more than all; {cure}"
        at_limit = "refuse" if account.at_limit == "park" else account.at_limit
        return BudgetSpent(msg, account.name, at_limit, unit=unit)
    msg = (
        f"limit {account.name!r} has no room for {shown} {unit} of {held.call.model!r}"
    )
    if account.at_limit != "park" or wait_ms < 0:
        return BudgetSpent(msg, account.name, account.at_limit, unit=unit)
    error = LlmThrottled(msg)
    # Limits may be raised meanwhile: it looks again before long.
    error.away_s = min(wait_ms / 1000, _LOOKS_AGAIN_S)
    error.model = held.call.model
    error.limit = account.name
    error.words = account.words
    error.room_in_s = wait_ms / 1000
    return error
