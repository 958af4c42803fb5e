"""Running an agent of pydantic-ai within a task, and serving one as an agent of its own."""

from collections.abc import (
    AsyncIterable,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import contextmanager
from types import NoneType
from typing import Any, TypeVar, Unpack, get_args

import pydantic_ai
from pydantic_ai import (
    AgentRunResult,
    AgentStreamEvent,
    ImageUrl,
    RunContext,
    UsageLimits,
)
from pydantic_ai.exceptions import (
    AgentRunError,
    ModelAPIError,
    UsageLimitExceeded,
    UserError,
)
from pydantic_ai.messages import (
    ModelMessage,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    UserContent,
)
from pydantic_ai.models import Model

from tasklore.contracts.errors import ConfigurationError, GiveUp
from tasklore.contracts.parameters.model import Field, Parameters
from tasklore.runtime import tracing
from tasklore.runtime.models.settings import DEFAULT_ROLE
from tasklore.runtime.tracing.spans import Value
from tasklore.workers.agent import Agent
from tasklore.workers.context.context import Context
from tasklore.workers.pydantic_agents.durability import (
    Approve,
    Find,
    May,
    OnText,
    TaskDurability,
    TaskRun,
)
from tasklore.workers.pydantic_agents.models import RoleModel, classify, settings_in_use
from tasklore.workers.task_options import TaskOptions

OutputT = TypeVar("OutputT")
#: Requests to models of one run unless its limits say otherwise: a loop of tools ends there.
MOST_REQUESTS = 50


async def run(
    agent: pydantic_ai.Agent[Any, OutputT],
    prompt: str | Sequence[UserContent] | None,
    context: Context,
    *,
    deps: Any = None,
    model: Model | None = None,
    history: Sequence[ModelMessage] | None = None,
    limits: UsageLimits | None = None,
    writes: "Iterable[str] | Mapping[str, Find]" = (),
    asks: "Iterable[str] | Mapping[str, str]" = (),
    approve: Approve | None = None,
    on_text: OnText | None = None,
) -> AgentRunResult[OutputT]:
    """Run *agent* within the task of *context*; steps of an earlier run of the task are read from its journal.

    Each request to a model and each call of a tool is a step. An agent without a model has that of the role `default`.
    Tokens and cost go into the task's usage. Runs in one task follow one another, so that steps keep their order.

    Args:
        agent: the agent, as pydantic-ai declares it; it needs a `name`.
        prompt: the user's message: text, or a list with images among it.
        context: the task's; the task declares `uses=("llm",)`.
        deps: given to tools and instructions; the same in each run of the task.
        model: asked instead of the agent's own.
        history: messages before the prompt.
        limits: of requests, tokens and calls of tools; 50 requests by default.
        writes: names of tools with effects: each is called once a task for the same arguments, whatever crashes. With
            a finder for each, `await find(**arguments)` returns the result of a call whose worker died, or None where
            its effect was not made; without one the model hears that it is not known.
        asks: names of tools that need a person's consent to a call; with who may give it for each:
            `{"pay": "role:finance"}`.
        approve: answers for the person, by a tool's name and arguments. Without it the task waits for one, as
            `context.ask_person` does; where its answers are remembered, such calls are refused.
        on_text: is given the model's text as it comes, such as `context.emit`; text from the journal comes at once.

    Raises:
        UndeclaredAccess: the task does not declare `uses=("llm",)`.
        GiveUp: a limit is reached, or the model does not come to an answer in the form that was asked for.
        LlmError: the model was not reached, or refused the request.
        InvalidInput: the result of a tool is over 8 MiB or no JSON.
        Unreachable: an MCP server failed; the task is run again.
    """
    if agent.model is None:
        agent.model = RoleModel()
    if not agent.name:
        raise ConfigurationError(
            "an agent needs a name, by which its steps are known: Agent(..., name='reader')"
        )
    declared: dict[str, May] = dict.fromkeys(writes, "write") | dict.fromkeys(
        asks, "ask"
    )  # type: ignore[assignment]
    asked = model if model is not None else agent.model
    role = asked.role if isinstance(asked, RoleModel) else DEFAULT_ROLE
    finders = dict(writes) if isinstance(writes, Mapping) else {}
    asked_of = dict(asks) if isinstance(asks, Mapping) else {}
    takes_fallbacks = isinstance(asked, RoleModel)
    task_run = TaskRun(
        context=context,
        agent=agent.name,
        role=role,
        declared=declared,
        approve=approve,
        asked_of=asked_of,
        finders=finders,
        on_text=on_text,
        takes_fallbacks=takes_fallbacks,
        may_be_silent=_allows_none(agent.output_type),
    )
    durability = TaskDurability(
        task_run,
        name=agent.name,
        on_event=_event_handler(task_run) if on_text else None,
    )
    token = settings_in_use.set(context.llm.settings)
    attributes: dict[str, Value] = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": agent.name,
    }
    try:
        with (
            tracing.span(f"invoke_agent {agent.name}", attributes=attributes),
            _errors_of_tasks(),
        ):
            return await agent.run(
                prompt,
                deps=deps,
                model=model,
                message_history=history,
                usage_limits=limits or UsageLimits(request_limit=MOST_REQUESTS),
                capabilities=[durability],
            )
    finally:
        settings_in_use.reset(token)


def _allows_none(output: object) -> bool:
    """Return whether None is among the types that *output* names."""
    if isinstance(output, list | tuple):
        return any(map(_allows_none, output))
    return output in (None, NoneType) or NoneType in get_args(output)


class Prompt(Parameters):
    """A message to an agent."""

    prompt: str = Field(description="what the agent is asked or told to do")
    images: list[str] = Field(
        default=[], description="addresses of images that belong to it"
    )


def serve(
    agent: pydantic_ai.Agent[Any, Any],
    as_: str,
    *,
    deps: Callable[[Context], Any] | None = None,
    writes: "Iterable[str] | Mapping[str, Find]" = (),
    asks: "Iterable[str] | Mapping[str, str]" = (),
    limits: UsageLimits | None = None,
    **options: Unpack[TaskOptions],
) -> Agent:
    """Return a worker's agent called *as_* whose one task, `ask`, runs *agent* on a prompt and returns its output.

    Args:
        agent: as pydantic-ai declares it.
        as_: the agent id.
        deps: makes the dependencies of a run from the task's context.
        writes: as for `run`.
        asks: as for `run`.
        limits: as for `run`.
        options: of the task, as `tasklore.TaskOptions` describes them; it `uses` the model unless they say otherwise.
    """
    agent.name = agent.name or as_
    description = str(agent.description or f"Ask {agent.name}.")
    served = Agent(as_, description=description)
    writes = writes if isinstance(writes, Mapping) else tuple(writes)
    asks = asks if isinstance(asks, Mapping) else tuple(asks)

    async def ask(prompt: Prompt, context: Context) -> object:
        content: list[UserContent] = [
            prompt.prompt,
            *(ImageUrl(url) for url in prompt.images),
        ]
        made = deps(context) if deps is not None else None
        result = await run(
            agent, content, context, deps=made, writes=writes, asks=asks, limits=limits
        )
        return result.output

    ask.__doc__ = description
    options.setdefault("uses", ("llm",))
    served.task(**options)(ask)
    return served


def _event_handler(
    task_run: TaskRun,
) -> Callable[[RunContext[Any], AsyncIterable[AgentStreamEvent]], Awaitable[None]]:
    """Return the handler of what a model writes, which is given every event of a run."""

    async def handle(
        _context: RunContext[Any], events: AsyncIterable[AgentStreamEvent]
    ) -> None:
        async for event in events:
            if task_run.sent is not None:
                task_run.sent.note_chunk()
            text = ""
            if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
                text = event.part.content
            elif isinstance(event, PartDeltaEvent) and isinstance(
                event.delta, TextPartDelta
            ):
                text = event.delta.content_delta
            if text:
                await task_run.show(text)

    return handle


@contextmanager
def _errors_of_tasks() -> Iterator[None]:
    """Raise our errors for those of pydantic-ai, so that a task is run again where that can help."""
    try:
        yield
    except ModelAPIError as error:
        raise classify(error) from error
    except UsageLimitExceeded as error:
        raise GiveUp(
            f"the run was ended by its limits: {error}; raise them, or give the model fewer tools"
        ) from error
    except AgentRunError as error:
        # Its steps are in the journal: another run would read the same answers.
        raise GiveUp(
            f"the model came to no answer that can be used: {error}"
        ) from error
    except UserError as error:
        raise GiveUp(f"the agent cannot be run: {error}") from error
