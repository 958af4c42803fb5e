"""The durability engine: pydantic-ai hands each request and each call here, and each becomes a step of the task."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal, TypedDict, cast
from weakref import WeakKeyDictionary

import structlog
from pydantic_ai import RunContext, ToolFailed
from pydantic_ai.agent import EventStreamHandler
from pydantic_ai.capabilities import AbstractCapability, WrapToolExecuteHandler
from pydantic_ai.durable_exec import (
    JSON_CODEC,
    BaseDurabilityCapability,
    DurabilityEngineSpec,
    DurableOperationId,
    EventStreamHandlerId,
    JournalCallableOperationBackend,
    ModelRequestId,
    RoleBasedOperationConfig,
    ToolsetCallToolId,
    ToolsetGetInstructionsId,
    ToolsetGetToolsId,
    record_durable_unit,
)
from pydantic_ai.exceptions import ModelAPIError, UnexpectedModelBehavior
from pydantic_ai.messages import ModelMessage, ToolCallPart
from pydantic_ai.models import Model
from pydantic_ai.tools import ToolDefinition
from pydantic_core import to_json, to_jsonable_python

from tasklore.contracts.errors import (
    EffectUncertain,
    InvalidInput,
    LlmError,
    LlmThrottled,
    LlmTimeout,
    TaskloreError,
    Unreachable,
)
from tasklore.contracts.run_messages import RunMessageKind
from tasklore.runtime import tracing
from tasklore.runtime.models.governor import PATIENCE_S
from tasklore.runtime.models.llm import SentRequest
from tasklore.runtime.models.prices import Tokens
from tasklore.runtime.models.wire import estimate_tokens
from tasklore.runtime.tracing.spans import Value
from tasklore.workers.context.context import Context
from tasklore.workers.pydantic_agents.messages_in_words import (
    SeenMessages,
    describe_parts,
)
from tasklore.workers.pydantic_agents.models import (
    classify,
    demand_whole,
    fallback_in_use,
)
from tasklore.workers.pydantic_agents.shown import class_of, digest, shown

log = structlog.get_logger(__name__)

#: How a tool is declared: `Tool(..., metadata=WRITES)`. One without a declaration reads.
READS: dict[str, Any] = {"tasklore": {"may": "read"}}
WRITES: dict[str, Any] = {"tasklore": {"may": "write"}}
ASKS: dict[str, Any] = {"tasklore": {"may": "ask"}}

#: How long a person is asked whether a tool may be called; no longer than the deadline of the task.
ASKED_FOR = timedelta(days=7)

May = Literal["read", "write", "ask"]
#: Answers whether a person agrees to a call of the tool with these arguments.
Approve = Callable[[str, dict[str, Any]], Awaitable[bool]]
#: Returns the result of an earlier call with these arguments, None when its effect was not made.
Find = Callable[..., Awaitable[Any]]
#: Is given each piece of text as the model writes it.
OnText = Callable[[str], Awaitable[None]]


class StepConfig(TypedDict, total=False):
    """How the tool of an operation is declared; empty for another operation."""

    may: May


_is_in_unit: ContextVar[bool] = ContextVar("is_in_unit", default=False)


@dataclass
class WrittenResults:
    """The results of the writing calls of one run of a task, by agent, tool and arguments."""

    results: dict[str, object] = field(default_factory=dict)
    locks: dict[str, asyncio.Lock] = field(
        default_factory=lambda: defaultdict(asyncio.Lock)
    )


_written: "WeakKeyDictionary[Context, WrittenResults]" = WeakKeyDictionary()


@dataclass(kw_only=True)
class TaskRun:
    """The run of one agent in one run of a task."""

    context: Context
    agent: str
    role: str
    declared: Mapping[str, May] = field(default_factory=dict)
    approve: Approve | None = None
    asked_of: Mapping[str, str] = field(default_factory=dict)
    finders: Mapping[str, Find] = field(default_factory=dict)
    on_text: OnText | None = None
    takes_fallbacks: bool = False
    #: Whether None is an answer of the agent, so that its model need not say anything.
    may_be_silent: bool = False
    has_shown: bool = False
    sent: SentRequest | None = None
    seen: SeenMessages = field(default_factory=SeenMessages)

    async def show(self, text: str) -> None:
        """Hand out *text*, which cannot be taken back."""
        self.has_shown = True
        if self.sent is not None:
            self.sent.text += text
        if self.on_text is not None:
            await self.on_text(text)

    @property
    def written(self) -> WrittenResults:
        """The writing calls of all agents in this run of the task."""
        return _written.setdefault(self.context, WrittenResults())


class StepBackend(JournalCallableOperationBackend[StepConfig]):
    """Executes one operation of pydantic-ai as one step of the task."""

    def __init__(
        self,
        name: str,
        task_run: TaskRun,
        resolve: Callable[[object | None, str], StepConfig | Literal[False]],
    ):
        self._run = task_run
        none: StepConfig = {}
        config = RoleBasedOperationConfig[StepConfig](
            model=none,
            event=none,
            capability=none,
            tool=none,
            resolve_tool=lambda _id, tool, name: resolve(tool, name),
        )
        super().__init__(agent_name=name, config=config)

    async def execute(
        self,
        *,
        operation_id: DurableOperationId,
        name: str,
        body: Callable[[], Awaitable[object]],
        cache_key: tuple[object, ...],
        config: StepConfig,
    ) -> object:
        """Return the journaled payload of the operation, or that of *body*."""
        if isinstance(operation_id, EventStreamHandlerId):
            # An event that was shown is nothing to do again, and nothing to keep.
            return await body()
        if isinstance(operation_id, ModelRequestId):
            request = _Request(
                self._run,
                operation_id,
                body,
                text=shown(cache_key).decode(errors="replace"),
                prompt=lambda: self._run.seen.describe_new(
                    cast("list[ModelMessage]", cache_key[1]), cache_key[3]
                ),
            )
            payload = await self._step(
                f"chat {operation_id.model_name}",
                request,
                digest(cache_key),
                kind=None,
            )
            if not request.is_executed:
                self._note_journaled(request, operation_id, payload)
                # What this run of the task shows begins anew.
                for part in cast("dict[str, Any]", payload)["parts"]:
                    if part["part_kind"] == "text":
                        await self._run.show(part["content"])
            return payload
        if not isinstance(operation_id, ToolsetCallToolId):
            return await self._step(name, _Unit(operation_id, body), None)
        tool = cast("str", cache_key[0])
        arguments: dict[str, Any] = to_jsonable_python(cache_key[1], fallback=class_of)
        call = _Unit(operation_id, body, tool)
        may = config.get("may", "read")
        if may == "ask":
            await self._ask(tool, arguments)
        if may == "read":
            return await self._step(f"tool {self._run.agent}.{tool}", call, arguments)
        return await self._write(tool, call, arguments)

    def _note_journaled(
        self, request: "_Request", operation_id: ModelRequestId, payload: object
    ) -> None:
        """Note what a model was shown and said in an earlier run."""
        recorder = self._run.context.recorder
        if recorder is None:
            return
        parts = cast("dict[str, Any]", payload)["parts"]
        name = operation_id.model_name
        recorder.note("prompt", request.prompt(), name=name, source="journal")
        recorder.note("answer", describe_parts(parts), name=name, source="journal")

    async def _step(
        self,
        name: str,
        unit: "_Unit",
        arguments: object,
        *,
        once: bool = False,
        kind: RunMessageKind | None = "tool",
    ) -> object:
        payload = await self._run.context.step_noted_as(
            kind, name, unit.run, arguments, once=once
        )
        record_durable_unit(executed=unit.is_executed)
        return payload

    async def _ask(self, tool: str, arguments: dict[str, Any]) -> None:
        context = self._run.context
        approve = self._run.approve
        if approve is not None:
            is_approved = await context.step(
                f"approve {self._run.agent}.{tool}", approve, tool, arguments
            )
            note = ""
        elif context.can_wait:
            said = await context.ask_person(
                "{agent} wants to call {tool}",
                who=self._run.asked_of.get(tool),
                within=context.longest_wait(ASKED_FOR),
                otherwise="reject",
                agent=self._run.agent,
                tool=tool,
                arguments=arguments,
            )
            is_approved = said.approved
            note = said.note and f": {said.note}"
        else:
            msg = (
                f"{tool} asks a person first, and this task has nobody to ask: it was not called. Say what you would "
                "do and leave it to the person"
            )
            raise ToolFailed(msg)
        if not is_approved:
            raise ToolFailed(
                f"a person refused this call of {tool}; it was not made{note}"
            )

    async def _write(
        self, tool: str, call: "_Unit", arguments: dict[str, Any]
    ) -> object:
        """Call a tool that writes once a task for the same arguments; a second call has the first one's result."""
        if _is_in_unit.get():
            msg = f"{tool} writes, and is called within another tool's step; give the agent as a tool by agent_tool()"
            raise InvalidInput(msg)
        written = self._run.written
        name = f"tool {self._run.agent}.{tool}"
        key = f"{name} {to_json(arguments).decode()}"
        async with written.locks[key]:
            if key not in written.results:
                try:
                    written.results[key] = await self._step(
                        name, call, arguments, once=True
                    )
                except EffectUncertain as error:
                    written.results[key] = await self._settle(
                        tool, call, arguments, error
                    )
        result = written.results[key]
        if isinstance(result, EffectFound):
            raise result
        return result

    async def _settle(
        self,
        tool: str,
        call: "_Unit",
        arguments: dict[str, Any],
        error: EffectUncertain,
    ) -> object:
        """Look for the effect of a call that a worker's end interrupted, and make it where it is not there."""
        find = self._run.finders.get(tool)
        if find is None:
            msg = (
                f"a worker ended while {tool} was called with these arguments, so that it is not known whether its "
                "effect was made; it was not called again. Look whether it was before you go on"
            )
            raise ToolFailed(msg) from error

        async def find_or_call(_arguments: object) -> dict[str, Any]:
            found = await find(**arguments)
            return (
                {"found": found}
                if found is not None
                else {"payload": await call.run(None)}
            )

        settled = await self._run.context.step(
            f"tool {self._run.agent}.{tool} again", find_or_call, arguments
        )
        return (
            EffectFound(settled["found"]) if "found" in settled else settled["payload"]
        )


class EffectFound(Exception):
    """The result of a call that an earlier run made, as its finder returned it."""

    def __init__(self, result: object) -> None:
        super().__init__("found")
        self.result = result


@dataclass
class _Unit:
    """One operation that a step runs; `is_executed` is false where the journal had its result."""

    operation_id: DurableOperationId
    body: Callable[[], Awaitable[object]]
    tool: str = ""
    is_executed: bool = False

    async def run(self, _arguments: object) -> object:
        self.is_executed = True
        token = _is_in_unit.set(True)
        attributes: dict[str, Value] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": self.tool,
        }
        try:
            with (
                tracing.span(f"execute_tool {self.tool}", attributes=attributes)
                if self.tool
                else nullcontext()
            ):
                return await self.body()
        except (TaskloreError, ToolFailed):
            raise
        except Exception as error:
            if (server := _server_of(self.operation_id)) is None:
                raise
            raise Unreachable(
                f"MCP server {server!r} failed: {error or type(error).__name__}"
            ) from error
        finally:
            _is_in_unit.reset(token)


class _Request(_Unit):
    """One request to a model: it holds one of the worker's slots, and is accounted for when it comes back."""

    def __init__(
        self,
        task_run: TaskRun,
        operation_id: ModelRequestId,
        body: Callable[[], Awaitable[object]],
        text: str,
        prompt: Callable[[], str],
    ) -> None:
        super().__init__(operation_id, body)
        self.prompt = prompt
        self._task_run = task_run
        self._model = operation_id.model_name
        self._text = text

    async def run(self, _arguments: object) -> object:
        """Send it, and again as often as the settings allow while the provider fails and nothing of it was shown."""
        llm = self._task_run.context.llm
        self._task_run.has_shown = False
        attempt = 0
        waits_until = time.monotonic() + PATIENCE_S
        own = fallback_in_use.set(None)
        try:
            while True:
                try:
                    return await self._send()
                except LlmError as error:
                    if self._task_run.has_shown:
                        raise
                    is_waiting = isinstance(error, LlmThrottled)
                    attempt += not is_waiting
                    pause_s = llm.pause_s(max(1, attempt), error)
                    if (
                        is_waiting
                        and pause_s is not None
                        and time.monotonic() + pause_s > waits_until
                    ):
                        pause_s = None
                    if pause_s is None:
                        fallback = (
                            llm.fallback(self._model, error)
                            if self._task_run.takes_fallbacks
                            else None
                        )
                        if fallback is None:
                            raise
                        fallback_in_use.set(fallback)
                        self._model = fallback
                        attempt = 0
                        pause_s = 0.0
                    log.info(
                        "llm_request_repeated",
                        model=self._model,
                        error=type(error).__name__,
                        pause_s=pause_s,
                    )
                await asyncio.sleep(pause_s)
        finally:
            fallback_in_use.reset(own)

    @property
    def _limit_s(self) -> float | None:
        """Seconds for a whole answer of the role's model; a stream has them for each part, another model its own."""
        run = self._task_run
        if run.on_text is not None or not run.takes_fallbacks:
            return None
        return run.context.llm.role(run.role).attempt_deadline_s

    async def _send(self) -> object:
        async with self._task_run.context.llm.request(
            self._task_run.role, self._model, text=self._text, prompt=self.prompt
        ) as sent:
            self._task_run.sent = sent
            try:
                async with asyncio.timeout(self._limit_s) as clock:
                    payload = cast("dict[str, Any]", await super().run(None))
            except (ModelAPIError, UnexpectedModelBehavior) as error:
                raise classify(error) from error
            except TimeoutError as error:
                if not clock.expired():
                    raise
                msg = f"{self._model!r} did not answer within {self._limit_s:.3g} s"
                raise LlmTimeout(msg) from error
            sent.base_url = payload.get("provider_url")
            sent.provider = payload.get("provider_name") or ""
            texts = [one for one in payload["parts"] if one["part_kind"] == "text"]
            sent.text = sent.text or "".join(one["content"] for one in texts)
            sent.tokens = _count(payload["usage"], self._text, sent.text)
            if self._task_run.context.recorder is not None:
                sent.answer = describe_parts(payload["parts"])
            demand_whole(
                payload,
                is_stream=self._task_run.on_text is not None,
                may_be_empty=self._task_run.may_be_silent,
            )
            return payload


class TaskDurability(BaseDurabilityCapability[Any]):
    """The capability that `run` gives an agent: what leaves the process goes through a step of the task."""

    engine_spec = DurabilityEngineSpec(
        engine_name="Tasklore",
        durable_unit_noun="step",
        durable_container_noun="task",
        codec=JSON_CODEC,
        toolset_lifecycles={
            "function": "enter-always",
            "mcp": "enter-in-durable-unit",
            "dynamic": "enter-never",
        },
        serialization_failure=lambda error: InvalidInput(
            f"a tool's result is not JSON ({error}); return models or JSON"
        ),
        tool_config_key="tasklore",
        accepts_cancellation_token=True,
    )

    def __init__(
        self,
        task_run: TaskRun,
        *,
        name: str,
        models: Mapping[str, Model] | None = None,
        on_event: EventStreamHandler[Any] | None = None,
    ) -> None:
        super().__init__(name=name, models=models, event_stream_handler=on_event)
        self._task_run = task_run
        self._on_event = on_event

    @property
    def in_durable_context(self) -> bool:
        """True: it is made for one run of a task."""
        return True

    async def for_run(self, ctx: RunContext[Any]) -> AbstractCapability[Any]:
        """Return the capability for the model of this run, which an override or `model=` may have changed."""
        agent = ctx.agent
        model = ctx.model
        if agent is None or not isinstance(model, Model) or model is agent.model:
            return self
        again = TaskDurability(
            self._task_run,
            name=self.name,
            models={"run": model},
            on_event=self._on_event,
        )
        return again.for_agent(agent)

    async def wrap_tool_execute(
        self,
        ctx: RunContext[Any],  # noqa: ARG002 - as pydantic-ai calls it
        *,
        call: ToolCallPart,  # noqa: ARG002
        tool_def: ToolDefinition,  # noqa: ARG002
        args: dict[str, Any],
        handler: WrapToolExecuteHandler,
    ) -> object:
        """Return the tool's result, or the one that a finder found."""
        try:
            return await handler(args)
        except EffectFound as found:
            return found.result

    def get_durable_operation_backend(self) -> StepBackend:
        """Return the backend that takes the steps."""
        return StepBackend(self.name, self._task_run, self._resolve_tool)

    def _resolve_tool(
        self, tool: object | None, name: str
    ) -> StepConfig | Literal[False]:
        if name in self._task_run.declared:
            return {"may": self._task_run.declared[name]}
        metadata = getattr(getattr(tool, "tool_def", None), "metadata", None) or {}
        declared = metadata.get("tasklore", {})
        if declared is not False and declared.get("may", "read") not in (
            "read",
            "write",
            "ask",
        ):
            raise InvalidInput(
                f"tool {name!r} is declared as {declared!r}; use READS, WRITES or ASKS"
            )
        return cast("StepConfig | Literal[False]", declared)


def _count(usage: dict[str, Any], asked: str, written: str) -> Tokens:
    """Return the tokens in *usage*; where its provider did not count, an estimate, which is written into it.

    So it is in the journal, marked as one, and limits of a run count it.
    """
    read = usage["input_tokens"]
    wrote = usage["output_tokens"]
    if read and (wrote or not written):
        return Tokens(read, wrote, usage.get("cache_read_tokens", 0))
    tokens = estimate_tokens(asked, written)
    usage["input_tokens"] = tokens.input
    usage["output_tokens"] = tokens.output
    usage["details"] = {
        **(usage.get("details") or {}),
        "estimated_tokens": tokens.input + tokens.output,
    }
    return tokens


def _server_of(operation_id: DurableOperationId) -> str | None:
    """Return the id of the MCP server that the operation asks, None for any other operation."""
    if isinstance(operation_id, ToolsetCallToolId | ToolsetGetToolsId):
        return operation_id.toolset_id if operation_id.toolset_kind == "mcp" else None
    return (
        operation_id.toolset_id
        if isinstance(operation_id, ToolsetGetInstructionsId)
        else None
    )
