"""How each door answers each case of the API's document, on one system in which there is one thing of each kind."""

import asyncio
import os
from collections import Counter, defaultdict
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

import httpx2

from tasklore.contracts.manifest import OperationEntry
from tasklore.runtime import logs
from tests.acceptance.test_one_users_administrator import make_things
from tests.acceptance.test_waits import Doors
from tests.golden.command_line import run, standing_in
from tests.golden.doors import (
    AT_AN_ADDRESS,
    InThisProcess,
    Told,
    call_over_http,
    compare_command,
    compare_in_process,
    compare_without_store,
    entries_by_operation,
    give_answered,
    make_words,
    open_this_process,
)
from tests.golden.matrix import Case, cases, good_cases
from tests.golden.normal import Normaliser
from tests.golden.seeded import CALLED, Seeded, seeded_system
from tests.servers import PATIENCE_S

#: Requests at once while the store is away, so that their deadlines pass side by side, and seconds after which one
#: waits for more than the store: for the end of the task that it sent.
_AT_ONCE = 40
_WAITS_S = 15.0
#: Requests at once that only look.
_LOOKS_AT_ONCE = 4
_KEY = "TASKLORE_API_KEY"


@dataclass
class Called:
    """What each door answered.

    Args:
        shown: How HTTP refuses, by operation and case: what is frozen.
        differing: How another door differs from that, by operation: a sentence a case.
        away: The verdict of each operation over HTTP while the store is away; None waits for more than that.
        tried: Cases by door and kind of case.
    """

    shown: dict[str, dict[str, Any]]
    differing: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    away: dict[str, Any] = field(default_factory=dict)
    tried: Counter[tuple[str, str]] = field(default_factory=Counter)


def show_verdicts(folder: Path) -> dict[str, dict[str, Any]]:
    """Return by operation and case how a system below *folder* answers over HTTP.

    Only how a request is refused is shown, as `detail` what it says to a person.
    """
    return call_everything(folder).shown


def call_everything(folder: Path) -> Called:
    """Return how each door of a system below *folder* answers."""
    place = folder / "place"
    place.mkdir()
    with seeded_system(folder, *CALLED) as system:
        variables = system.processes.environment | {
            "COLUMNS": "100",
            "TASKLORE_API_URL": system.api,
            "TASKLORE_OPERATIONS_URL": system.operations,
        }
        with standing_in(place, variables):
            logs.configure("error")
            return asyncio.run(_Caller(system, place).call())


class _Caller:
    """Somebody at all doors of one system; files of commands lie in *place*."""

    def __init__(self, system: Seeded, place: Path) -> None:
        self._system = system
        self._place = place
        self._entries = entries_by_operation()
        self._called = Called(defaultdict(dict))

    async def call(self) -> Called:
        """Try every case, and then every operation without the store."""
        maker = Doors(self._system.api, {"admin": self._system.keys["maker"]})
        # Things of the user bob and the tenant acme.
        things = await make_things(maker)
        async with (
            open_this_process(self._system) as here,
            _client(self._system.api) as api,
            _client(self._system.operations) as operations,
        ):
            good: list[tuple[httpx2.AsyncClient, Case]] = []
            for client in (api, operations):
                document = (await client.get("/openapi.json")).json()
                served = set(self._called.shown)
                for operation, group in groupby(
                    cases(document, things), attrgetter("operation")
                ):
                    if operation not in served:
                        await self._try_all(client, here, list(group), things)
                good += [
                    (client, case)
                    for case in good_cases(document, things)
                    if case.operation in self._entries and case.operation not in served
                ]
            await self._system.processes.servers.valkey.stop()
            at_once = asyncio.Semaphore(_AT_ONCE)
            await asyncio.gather(
                *(self._try_away(at_once, client, here, case) for client, case in good)
            )
        return self._called

    async def _try_all(
        self,
        client: httpx2.AsyncClient,
        here: InThisProcess,
        group: list[Case],
        things: Mapping[str, str],
    ) -> None:
        """Try the cases of one operation, side by side where they only look."""
        known = Normaliser(
            (text, f"<{name}>") for name, text in things.items() if name.endswith("_id")
        )
        at_once = asyncio.Semaphore(_LOOKS_AT_ONCE if group[0].method == "GET" else 1)

        async def ask(case: Case) -> tuple[Told, Told | None]:
            async with at_once:
                told = await call_over_http(client, self._system, case)
                is_known = case.operation in self._entries
                return told, await here.call(case) if is_known else None

        answers = await asyncio.gather(*map(ask, group))
        for case, (told, found) in zip(group, answers, strict=True):
            self._called.shown[case.operation][case.name] = known.value(told.verdict)
            if found is not None:
                self._compare(case, told, found)

    def _compare(self, case: Case, told: Told, found: Told) -> None:
        if case.operation not in AT_AN_ADDRESS:
            self._note("this process", case, compare_in_process(case, told, found))
        entry = self._entries[case.operation]
        words = make_words(entry, case, self._place)
        if words is not None:
            self._set_key(case)
            self._note("command", case, compare_command(entry, told, run(words)))

    async def _try_away(
        self,
        at_once: asyncio.Semaphore,
        client: httpx2.AsyncClient,
        here: InThisProcess,
        case: Case,
    ) -> None:
        async with at_once:
            told, found = await asyncio.gather(
                _within(call_over_http(client, self._system, case)),
                _within(here.call(case)),
            )
        if told is None or found is None:
            self._called.away[case.operation] = None
            self._note("this process", case, "" if told is found else f"{told} {found}")
            return
        self._called.away[case.operation] = told.verdict
        if case.operation not in AT_AN_ADDRESS:
            self._note("this process", case, compare_without_store(told, found))
        entry: OperationEntry = self._entries[case.operation]
        words = make_words(entry, case, self._place)
        if words is not None and told.status >= 400:
            self._set_key(case)
            ended = give_answered(words, told)
            self._note("command", case, compare_command(entry, told, ended))

    def _set_key(self, case: Case) -> None:
        os.environ.pop(_KEY, None)
        if case.caller is not None:
            os.environ[_KEY] = self._system.keys[case.caller]

    def _note(self, door: str, case: Case, difference: str) -> None:
        self._called.tried[door, case.name] += 1
        if difference:
            self._called.differing[case.operation].append(
                f"{case.name}, {door}: {difference}"
            )


def _client(address: str) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(base_url=address, timeout=PATIENCE_S)


async def _within(call: Awaitable[Told]) -> Told | None:
    """Return what *call* answers; None where it waits for more than the store."""
    try:
        async with asyncio.timeout(_WAITS_S):
            return await call
    except TimeoutError:
        return None
