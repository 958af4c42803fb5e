"""Ask a model for an action: within a budget of tokens, and in time for the rules to decide without it."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC
from functools import cache
from pathlib import Path

import structlog

from tasklore import Context
from tasklore.contracts.conversations import TakenMessages
from tasklore.contracts.errors import LlmError
from tasklore.memory.rendering.narration import Narrator, list_words, short
from tasklore.memory.rendering.situation import BUDGET_TOKENS, situation
from tasklore.memory.rendering.tokens import counter
from tasklore.workers.agent_files import AgentFiles, load_agent_files
from tasklore.workers.agents.decision.answer import Wish
from tasklore.workers.agents.decision.moment import Moment
from tasklore.workers.agents.decision.skills import Skill

log = structlog.get_logger(__name__)

#: Tokens of a question that a provider's own framing takes, rather too many.
FRAME_TOKENS = 40
#: Tokens of the situation in any case, also beside a long prompt of the operator's own.
_LEAST_TOKENS = 400
#: Tokens of the names of others in a prompt.
_NAMES_TOKENS = 120
#: The part of a task's time that a model may take, so that the rules still come in time when it does not answer.
_SHARE = 0.8


@dataclass(frozen=True, slots=True)
class Question:
    """A question to a model: instructions, and the situation as data."""

    system: str
    user: str

    @property
    def text(self) -> str:
        """All of it, for a person who wants to read what an agent was shown."""
        return f"{self.system}\n\n{self.user}"


@dataclass(frozen=True, slots=True)
class ProposedAction:
    """The proposal of a model, and the model's name."""

    wish: Wish
    model: str


async def question_of(
    context: Context,
    moment: Moment,
    taken: TakenMessages,
    skills: Sequence[Skill],
    narrator: Narrator,
) -> Question | None:
    """Return the prompt; None when no model is configured and the request does not ask for it.

    Raises:
        ConfigurationError: the role's files are wrong; the message names file and cure.
    """
    if not (context.llm.configured or moment.tell_prompt):
        return None
    return await asyncio.to_thread(
        question_on, _files(context), moment, taken, skills, narrator
    )


async def ask_model(context: Context, question: Question) -> ProposedAction | None:
    """Return the proposal of a model; None without a model, or without a usable answer in time."""
    if not context.llm.configured:
        return None
    role = _files(context).role
    try:
        async with asyncio.timeout(_patience_s(context)):
            wish = await context.llm.ask(
                role, Wish, system=question.system, user=question.user
            )
    except (LlmError, TimeoutError) as error:
        log.warning("decided_by_rules_alone", error=type(error).__name__)
        return None
    return ProposedAction(wish, context.llm.role(role).model)


def question_on(
    files: AgentFiles,
    moment: Moment,
    taken: TakenMessages,
    skills: Sequence[Skill],
    narrator: Narrator,
) -> Question:
    """Return the question on *moment*: with the schema of the answer, `BUDGET_TOKENS` in all."""
    count = counter()
    actions = [skill.explained for skill in skills if skill.action in moment.allowed]
    system = files.render(
        name=moment.name, actions=actions, limits=_limits(moment, taken)
    )
    left = max(
        BUDGET_TOKENS - FRAME_TOKENS - count(system) - _schema_tokens(), _LEAST_TOKENS
    )
    user = situation(
        taken.history,
        observations=taken.observations,
        now=moment.sensory_data,
        time=moment.simulation_time,
        allowed=moment.allowed,
        name=moment.name,
        budget_tokens=left,
        narrator=narrator,
    )
    return Question(system, user)


def _files(context: Context) -> AgentFiles:
    return load_agent_files(Path(__file__).parent, context.agent_files)


def _limits(moment: Moment, taken: TakenMessages) -> list[str]:
    """Return the limits of the world, a line each."""
    lines = []
    if moment.bounds is not None:
        lines.append(f"The world goes {moment.bounds}.")
    if moment.step is not None:
        lines.append(
            f"One move goes {short(moment.step)} at most; towards a farther place it ends on the way."
        )
    if "collect" in moment.allowed:
        lines.append(f"Within reach is {short(moment.reach)}.")
    if "text" in moment.allowed:
        lines.append(f"You can text: {_names(moment, taken)}.")
    return lines


def _names(moment: Moment, taken: TakenMessages) -> str:
    """Return names that it can text: last speakers and near agents first, as many as their budget allows."""
    others = moment.others
    spoke = [one.speaker for one in reversed(taken.history.current)]
    near = [one.name for one in moment.sensory_data.nearby_agents]
    known = set(others)
    ranked = [name for name in dict.fromkeys((*spoke, *near, *others)) if name in known]
    count = counter()
    left = _NAMES_TOKENS
    named = list[str]()
    for name in ranked:
        left -= count(f"{name}, ")
        if left < 0:
            break
        named.append(name)
    more = [f"{len(ranked) - len(named)} more"] if len(named) < len(ranked) else []
    return list_words([*named, *more]) or "nobody"


@cache
def _schema_tokens() -> int:
    return counter()(json.dumps(Wish.model_json_schema()))


def _patience_s(context: Context) -> float | None:
    """Return the seconds that a model may take, None for a task without a deadline."""
    begins = context.assignment.created_at
    ends = context.assignment.deadline
    if ends is None:
        return None
    # Other programs may leave the zone out of one of the two; the wire is in UTC.
    allowed = ends.replace(tzinfo=ends.tzinfo or UTC) - begins.replace(
        tzinfo=begins.tzinfo or UTC
    )
    return max(0.0, allowed.total_seconds() * _SHARE)
