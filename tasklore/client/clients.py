"""The two clients: one that waits in its thread, and one for an event loop; both drive the same flows."""

import asyncio
import functools
import time
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import httpx2

from tasklore.client.flows import Answer, Call, Flow, Pause, SystemFlows
from tasklore.client.memory import MemoryFlows, Scope

P = ParamSpec("P")
T = TypeVar("T")

#: Seconds beside what the server takes on purpose.
_CALL_S = 10.0


def _waiting(
    flow: Callable[Concatenate[Any, P], Flow[T]],
) -> Callable[Concatenate[Any, P], T]:
    """Return *flow* as a method of a client that waits."""

    @functools.wraps(flow)
    def method(self: Any, /, *arguments: P.args, **options: P.kwargs) -> T:
        result: T = self.drive(flow(self.flows, *arguments, **options))
        return result

    return method


def _awaited(
    flow: Callable[Concatenate[Any, P], Flow[T]],
) -> Callable[Concatenate[Any, P], Awaitable[T]]:
    """Return *flow* as a method that is awaited."""

    @functools.wraps(flow)
    async def method(self: Any, /, *arguments: P.args, **options: P.kwargs) -> T:
        result: T = await self.drive(flow(self.flows, *arguments, **options))
        return result

    return method


class Client:
    """Asks a running system, each call waiting for its answer.

    Args:
        url: Where the API is, as `http://127.0.0.1:8080`.
        api_key: The key, where keys are demanded.
        call_s: Seconds for one call, beside what the server takes on purpose.

    Every method raises `Unreachable`, and `ApiError` where the server refuses.
    """

    ask = _waiting(SystemFlows.ask)
    run = _waiting(SystemFlows.run)
    add_schedule = _waiting(SystemFlows.add_schedule)
    tasks = _waiting(SystemFlows.tasks)
    schedules = _waiting(SystemFlows.schedules)
    schedule = _waiting(SystemFlows.schedule)
    pause_schedule = _waiting(SystemFlows.pause_schedule)
    run_schedule = _waiting(SystemFlows.run_schedule)
    remove_schedule = _waiting(SystemFlows.remove_schedule)

    def __init__(
        self, url: str, api_key: str | None = None, *, call_s: float = _CALL_S
    ) -> None:
        self.flows = SystemFlows()
        self._http = httpx2.Client(base_url=url, headers=_headers(api_key))
        self._call_s = call_s

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def memory(self, name: str, scope: Scope = "user") -> "Memory":
        """Return the memory of a user, an agent, a run or an organisation."""
        return Memory(self, MemoryFlows(name, scope))

    def drive(self, flow: Flow[T]) -> T:
        """Return the result of *flow*, after the calls and pauses that it asks for."""
        answer: Answer | None = None
        while True:
            try:
                step = flow.send(answer)
            except StopIteration as end:
                result: T = end.value
                return result
            if isinstance(step, Pause):
                time.sleep(step.seconds)
                answer = None
                continue
            try:
                answer = _read(
                    self._http.request(
                        step.method, step.path, **_options(step, self._call_s)
                    )
                )
            except httpx2.TransportError as error:
                answer = _silence(self._http.base_url, error)


class AsyncClient:
    """Asks a running system from an event loop; as `Client`, its methods are awaited."""

    ask = _awaited(SystemFlows.ask)
    run = _awaited(SystemFlows.run)
    add_schedule = _awaited(SystemFlows.add_schedule)
    tasks = _awaited(SystemFlows.tasks)
    schedules = _awaited(SystemFlows.schedules)
    schedule = _awaited(SystemFlows.schedule)
    pause_schedule = _awaited(SystemFlows.pause_schedule)
    run_schedule = _awaited(SystemFlows.run_schedule)
    remove_schedule = _awaited(SystemFlows.remove_schedule)

    def __init__(
        self, url: str, api_key: str | None = None, *, call_s: float = _CALL_S
    ) -> None:
        self.flows = SystemFlows()
        self._http = httpx2.AsyncClient(base_url=url, headers=_headers(api_key))
        self._call_s = call_s

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    def memory(self, name: str, scope: Scope = "user") -> "AsyncMemory":
        """Return the memory of a user, an agent, a run or an organisation."""
        return AsyncMemory(self, MemoryFlows(name, scope))

    async def drive(self, flow: Flow[T]) -> T:
        """Return the result of *flow*, after the calls and pauses that it asks for."""
        answer: Answer | None = None
        while True:
            try:
                step = flow.send(answer)
            except StopIteration as end:
                result: T = end.value
                return result
            if isinstance(step, Pause):
                await asyncio.sleep(step.seconds)
                answer = None
                continue
            try:
                answer = _read(
                    await self._http.request(
                        step.method, step.path, **_options(step, self._call_s)
                    )
                )
            except httpx2.TransportError as error:
                answer = _silence(self._http.base_url, error)


class Memory:
    """One memory, as `Client.memory` gives it."""

    hand_in = _waiting(MemoryFlows.hand_in)
    search = _waiting(MemoryFlows.search)
    block = _waiting(MemoryFlows.block)
    items = _waiting(MemoryFlows.items)
    add = _waiting(MemoryFlows.add)
    change = _waiting(MemoryFlows.change)
    delete = _waiting(MemoryFlows.delete)
    undo = _waiting(MemoryFlows.undo)
    waiting = _waiting(MemoryFlows.waiting)
    settings = _waiting(MemoryFlows.settings)
    settle = _waiting(MemoryFlows.settle)
    forget = _waiting(MemoryFlows.forget)

    def __init__(self, client: Client, flows: MemoryFlows) -> None:
        self.drive = client.drive
        self.flows = flows


class AsyncMemory:
    """As `Memory`, its methods are awaited."""

    hand_in = _awaited(MemoryFlows.hand_in)
    search = _awaited(MemoryFlows.search)
    block = _awaited(MemoryFlows.block)
    items = _awaited(MemoryFlows.items)
    add = _awaited(MemoryFlows.add)
    change = _awaited(MemoryFlows.change)
    delete = _awaited(MemoryFlows.delete)
    undo = _awaited(MemoryFlows.undo)
    waiting = _awaited(MemoryFlows.waiting)
    settings = _awaited(MemoryFlows.settings)
    settle = _awaited(MemoryFlows.settle)
    forget = _awaited(MemoryFlows.forget)

    def __init__(self, client: AsyncClient, flows: MemoryFlows) -> None:
        self.drive = client.drive
        self.flows = flows


def _headers(api_key: str | None) -> dict[str, str]:
    return {"Authorization": f"Bearer {api_key}"} if api_key else {}


def _options(call: Call, call_s: float) -> dict[str, Any]:
    headers = {"Idempotency-Key": call.key} if call.key else {}
    return {
        "params": dict(call.params),
        "json": call.body,
        "headers": headers,
        "timeout": call.wait_s + call_s,
    }


def _read(response: httpx2.Response) -> Answer:
    try:
        body = response.json()
    except ValueError:
        body = {"detail": response.text[:500]}
    after = response.headers.get("retry-after", "")
    return Answer(response.status_code, body, float(after) if after.isdigit() else None)


def _silence(url: object, error: Exception) -> Answer:
    return Answer(
        0, {"detail": f"{url} does not answer: {error or type(error).__name__}"}
    )
