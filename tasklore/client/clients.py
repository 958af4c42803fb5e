"""The two clients: one that waits in its thread, and one for an event loop; both drive the same flows."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx2

from tasklore.client import flows
from tasklore.client.flows import Answer, Call, Flow, Pause
from tasklore.client.memory import MemoryFlows, Scope
from tasklore.client.results import Changed, Forgotten, Item, Keeping, Matches, Reply, Task, Turn, WaitingRow

T = TypeVar("T")

#: Seconds beside what the server takes on purpose.
_CALL_S = 10.0


class Client:
    """Asks a running system, each call waiting for its answer.

    Args:
        url: Where the API is, as `http://127.0.0.1:8080`.
        api_key: The key, where keys are demanded.
        call_s: Seconds for one call, beside what the server takes on purpose.

    Every method raises `Unreachable`, and `ApiError` where the server refuses.
    """

    def __init__(self, url: str, api_key: str | None = None, *, call_s: float = _CALL_S) -> None:
        self._http = httpx2.Client(base_url=url, headers=_headers(api_key))
        self._call_s = call_s

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def ask(
        self,
        text: str,
        *,
        user: str | None = None,
        conversation: str | None = None,
        memory: str | None = None,
        time_zone: str | None = None,
        within_s: float = 60.0,
        request_id: str | None = None,
    ) -> Reply:
        """Return the reply to *text*; the same *request_id* again starts nothing twice.

        Raises:
            NotDone: there is none after *within_s* seconds.
        """
        options = {"user": user, "conversation": conversation, "memory": memory, "time_zone": time_zone}
        return self._drive(flows.ask(text, within_s, request_id, **options))

    def run(
        self,
        agent_id: str,
        task: str,
        parameters: Mapping[str, Any],
        *,
        user: str | None = None,
        conversation: str | None = None,
        memory: str | None = None,
        within_s: float = 60.0,
        task_key: str | None = None,
    ) -> Task:
        """Return a task when it is done, whatever its report says; with 0 *within_s*, once it is accepted.

        Raises:
            NotDone: it is not done after *within_s* seconds.
        """
        options = {"user": user, "conversation": conversation, "memory": memory}
        return self._drive(flows.run(agent_id, task, parameters, within_s, task_key, **options))

    def memory(self, name: str, scope: Scope = "user") -> "Memory":
        """Return the memory of a user, an agent, a run or an organisation."""
        return Memory(self, MemoryFlows(name, scope))

    def _drive(self, flow: Flow[T]) -> T:
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
            else:
                answer = self._answer(step)

    def _answer(self, call: Call) -> Answer:
        try:
            return _read(self._http.request(call.method, call.path, **_options(call, self._call_s)))
        except httpx2.TransportError as error:
            return _silence(self._http.base_url, error)


class AsyncClient:
    """Asks a running system from an event loop; as `Client`, its methods are awaited."""

    def __init__(self, url: str, api_key: str | None = None, *, call_s: float = _CALL_S) -> None:
        self._http = httpx2.AsyncClient(base_url=url, headers=_headers(api_key))
        self._call_s = call_s

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def ask(
        self,
        text: str,
        *,
        user: str | None = None,
        conversation: str | None = None,
        memory: str | None = None,
        time_zone: str | None = None,
        within_s: float = 60.0,
        request_id: str | None = None,
    ) -> Reply:
        """As `Client.ask`."""
        options = {"user": user, "conversation": conversation, "memory": memory, "time_zone": time_zone}
        return await self._drive(flows.ask(text, within_s, request_id, **options))

    async def run(
        self,
        agent_id: str,
        task: str,
        parameters: Mapping[str, Any],
        *,
        user: str | None = None,
        conversation: str | None = None,
        memory: str | None = None,
        within_s: float = 60.0,
        task_key: str | None = None,
    ) -> Task:
        """As `Client.run`."""
        options = {"user": user, "conversation": conversation, "memory": memory}
        return await self._drive(flows.run(agent_id, task, parameters, within_s, task_key, **options))

    def memory(self, name: str, scope: Scope = "user") -> "AsyncMemory":
        """Return the memory of a user, an agent, a run or an organisation."""
        return AsyncMemory(self, MemoryFlows(name, scope))

    async def _drive(self, flow: Flow[T]) -> T:
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
            else:
                answer = await self._answer(step)

    async def _answer(self, call: Call) -> Answer:
        try:
            return _read(await self._http.request(call.method, call.path, **_options(call, self._call_s)))
        except httpx2.TransportError as error:
            return _silence(self._http.base_url, error)


class Memory:
    """One memory, as `Client.memory` gives it; `MemoryFlows` says what each method does."""

    def __init__(self, client: Client, of: MemoryFlows) -> None:
        self._drive = client._drive  # noqa: SLF001 - a client's own half
        self._of = of

    def hand_in(self, turns: Sequence[Turn]) -> int:
        """Hand turns in, at most 100; return how many were taken."""
        return self._drive(self._of.hand_in(turns))

    def search(self, question: str, **bounds: Any) -> Matches:
        """Return what answers *question*: `at`, `since`, `until`, `speaker`, `conversation_id`, `limit` narrow it."""
        return self._drive(self._of.search(question, **bounds))

    def block(self, question: str = "", *, tokens: int | None = None) -> str:
        """Return what a prompt is to quote."""
        return self._drive(self._of.block(question, tokens=tokens))

    def items(self, *, category: str = "", state: str | None = None) -> tuple[Item, ...]:
        """Return the items of a category, all by default."""
        return self._drive(self._of.items(category=category, state=state))

    def add(self, category: str, value: str, **fields: Any) -> Changed:
        """Add an item; `subject`, `since`, `until` say more, `key` makes a repeat change nothing."""
        return self._drive(self._of.add(category, value, **fields))

    def change(self, reference: str, **fields: Any) -> Changed:
        """Give an item another `value`, `subject`, `since` or `until`."""
        return self._drive(self._of.change(reference, **fields))

    def delete(self, reference: str, *, key: str | None = None) -> Changed:
        """Delete an item."""
        return self._drive(self._of.delete(reference, key=key))

    def undo(self, plan_id: str, *, key: str | None = None) -> Changed:
        """Take a change back, by its plan."""
        return self._drive(self._of.undo(plan_id, key=key))

    def waiting(self) -> tuple[WaitingRow, ...]:
        """Return what is not learned yet, or could not be."""
        return self._drive(self._of.waiting())

    def settings(self) -> Keeping:
        """Return whether turns are kept."""
        return self._drive(self._of.settings())

    def settle(self, *, is_on: bool = True, days: int | None = None) -> Keeping:
        """Say whether turns are kept from now on, and for how many days."""
        return self._drive(self._of.settle(is_on=is_on, days=days))

    def forget(self) -> Forgotten:
        """Remove all of it; that cannot be undone."""
        return self._drive(self._of.forget())


class AsyncMemory:
    """As `Memory`, its methods are awaited."""

    def __init__(self, client: AsyncClient, of: MemoryFlows) -> None:
        self._drive = client._drive  # noqa: SLF001 - a client's own half
        self._of = of

    async def hand_in(self, turns: Sequence[Turn]) -> int:
        """As `Memory.hand_in`."""
        return await self._drive(self._of.hand_in(turns))

    async def search(self, question: str, **bounds: Any) -> Matches:
        """As `Memory.search`."""
        return await self._drive(self._of.search(question, **bounds))

    async def block(self, question: str = "", *, tokens: int | None = None) -> str:
        """As `Memory.block`."""
        return await self._drive(self._of.block(question, tokens=tokens))

    async def items(self, *, category: str = "", state: str | None = None) -> tuple[Item, ...]:
        """As `Memory.items`."""
        return await self._drive(self._of.items(category=category, state=state))

    async def add(self, category: str, value: str, **fields: Any) -> Changed:
        """As `Memory.add`."""
        return await self._drive(self._of.add(category, value, **fields))

    async def change(self, reference: str, **fields: Any) -> Changed:
        """As `Memory.change`."""
        return await self._drive(self._of.change(reference, **fields))

    async def delete(self, reference: str, *, key: str | None = None) -> Changed:
        """As `Memory.delete`."""
        return await self._drive(self._of.delete(reference, key=key))

    async def undo(self, plan_id: str, *, key: str | None = None) -> Changed:
        """As `Memory.undo`."""
        return await self._drive(self._of.undo(plan_id, key=key))

    async def waiting(self) -> tuple[WaitingRow, ...]:
        """As `Memory.waiting`."""
        return await self._drive(self._of.waiting())

    async def settings(self) -> Keeping:
        """As `Memory.settings`."""
        return await self._drive(self._of.settings())

    async def settle(self, *, is_on: bool = True, days: int | None = None) -> Keeping:
        """As `Memory.settle`."""
        return await self._drive(self._of.settle(is_on=is_on, days=days))

    async def forget(self) -> Forgotten:
        """As `Memory.forget`."""
        return await self._drive(self._of.forget())


def _headers(api_key: str | None) -> dict[str, str]:
    return {"Authorization": f"Bearer {api_key}"} if api_key else {}


def _options(call: Call, call_s: float) -> dict[str, Any]:
    headers = {"Idempotency-Key": call.key} if call.key else {}
    return {"params": dict(call.params), "json": call.body, "headers": headers, "timeout": call.wait_s + call_s}


def _read(response: httpx2.Response) -> Answer:
    try:
        body = response.json()
    except ValueError:
        body = {"detail": response.text[:500]}
    after = response.headers.get("retry-after", "")
    return Answer(response.status_code, body, float(after) if after.isdigit() else None)


def _silence(url: object, error: Exception) -> Answer:
    return Answer(0, {"detail": f"{url} does not answer: {error or type(error).__name__}"})
