"""The task of an agent in a world: hear, see, decide, and keep the decision.

Messages are stored before anything is decided, and are no longer new when the decision is stored: a run that ends in
between leaves them new for the next one. A text is delivered once the decision is stored, so that it cannot change.
"""

from collections.abc import Mapping, Sequence

from pydantic import BaseModel, ConfigDict

from tasklore import Agent, Context
from tasklore.contracts.conversations import TakenMessages, Utterance
from tasklore.contracts.errors import InvalidParameters
from tasklore.contracts.observations import Action, AgentTarget, Observation, Position
from tasklore.memory.rendering.narration import Narrator, TellSense, list_words
from tasklore.workers.agents.decision.moment import Moment
from tasklore.workers.agents.decision.policy import (
    LOOKED_AT,
    ChosenAction,
    Policy,
    by_rules,
)
from tasklore.workers.agents.decision.question import Question, ask_model, question_of
from tasklore.workers.agents.decision.skills import (
    SKILLS,
    ActionRefusal,
    Skill,
    permit,
    wish_of,
)
from tasklore.workers.summary import summarising

#: What a decision says as `by` when it is not a model's: the rules', or one that stands since an earlier run.
RULES = "rules"
EARLIER = "earlier run"
#: Characters of a model's reasoning that are kept.
_LONGEST_REASONING = 500


class Decision(BaseModel):
    """The next action of the agent; the world carries it out.

    `by` is "rules", the name of a model, or "earlier run" for a decision that was stored before.
    `refused` says why a proposal of a model was not possible, None otherwise.
    `message_id` is that of the text that is to be delivered; `delivered` says that it has been.
    `prompt` is the prompt for a model when the request asked for it.
    """

    model_config = ConfigDict(frozen=True)

    action: str
    target: Position | AgentTarget | None = None
    utterance: str | None = None
    reasoning: str
    by: str
    refused: str | None = None
    message_id: str | None = None
    delivered: bool = False
    prompt: str | None = None


def decision_agent(
    agent_id: str = "DecisionAgent",
    *,
    skills: Sequence[Skill] = SKILLS,
    senses: Mapping[str, TellSense] | None = None,
    policy: Policy = by_rules,
) -> Agent:
    """Return an agent that decides its actions in a world with these *skills*.

    *senses* put further senses of the sensory data into words, by key; without, they are stored but not shown. *policy*
    decides without a model, and whenever a proposal is not possible.
    """
    agent = Agent(
        agent_id,
        description="Decides what somebody in a world does next: hears, sees, moves, collects, and talks to others.",
        keywords=("decide", "world", "move", "collect"),
    )
    narrator = Narrator()
    for skill in skills:
        narrator = (
            narrator.with_action(skill.action, skill.told)
            if skill.told is not None
            else narrator
        )
    for key, tell in (senses or {}).items():
        narrator = narrator.with_sense(key, tell)

    @agent.task(remember=False, uses=("llm",), in_words=False)
    async def decide(moment: Moment, context: Context) -> Decision:
        """Decide what an agent does now, from what it was told, what it senses, and what it remembers of both."""
        _demand_skills(moment, skills)
        task_id = context.assignment.task_id
        # The rules look back only upon what was done; reading what was sensed is most of the work then.
        senses = context.llm.configured or moment.tell_prompt or policy is not by_rules
        taken = await context.history.take(
            _arriving(moment, task_id), observations=LOOKED_AT, senses=senses
        )
        async with summarising(context, taken):
            question = await question_of(
                context, moment=moment, taken=taken, skills=skills, narrator=narrator
            )
            decision = _earlier(taken)
            if decision is None:
                decision = await choose(context, moment, taken, question)
            if moment.tell_prompt and question is not None:
                decision = decision.model_copy(update={"prompt": question.text})
            return await _store(context, moment, decision)

    async def choose(
        context: Context,
        moment: Moment,
        taken: TakenMessages,
        question: Question | None,
    ) -> Decision:
        answered = await ask_model(context, question) if question is not None else None
        refused = None
        if answered is not None:
            action = permit(answered.wish, moment, skills)
            if isinstance(action, Action):
                return _decision(
                    ChosenAction(action, answered.wish.reasoning), answered.model
                )
            refused = f"{answered.model} wished what is not possible: {action.reason}"
        return _decision(_by_policy(policy, moment, taken, skills), RULES, refused)

    return agent


def _demand_skills(moment: Moment, skills: Sequence[Skill]) -> None:
    known = [skill.action for skill in skills]
    unknown = [action for action in moment.allowed if action not in known]
    if unknown:
        names = list_words([repr(action) for action in unknown])
        raise InvalidParameters(
            [
                f"allowed holds {names}; known are {list_words(known)}: use these, or add a Skill for it"
            ]
        )


def _arriving(moment: Moment, task_id: str) -> tuple[Utterance, ...]:
    """Return the new messages as they are stored; each has an id that a further run of the task gives it again."""
    return tuple(
        Utterance(
            message_id=one.message_id or f"{task_id}:{number}",
            speaker=one.sender,
            message=one.message,
            time=moment.simulation_time if one.time is None else one.time,
        )
        for number, one in enumerate(moment.new_messages)
    )


def _by_policy(
    policy: Policy, moment: Moment, taken: TakenMessages, skills: Sequence[Skill]
) -> ChosenAction:
    """Return the choice of *policy*; waiting when that is not possible."""
    choice = policy(moment, taken)
    outcome = permit(wish_of(choice.action), moment, skills)
    if isinstance(outcome, ActionRefusal):
        # An agent that may do nothing else waits, whether that is listed or not.
        return (
            choice
            if choice.action.action == "wait"
            else ChosenAction(Action(action="wait"), f"No: {outcome.reason}.")
        )
    return ChosenAction(outcome, choice.reasoning)


def _earlier(taken: TakenMessages) -> Decision | None:
    """Return the stored decision of an earlier run of the task; its text, if any, may be delivered or not."""
    # It is noted before the messages are settled, so that a run may have ended between the two.
    if taken.done is None or taken.done.did is None:
        return None
    return _decision(
        ChosenAction(taken.done.did, "Decided in an earlier run of this task."), EARLIER
    )


def _decision(choice: ChosenAction, by: str, refused: str | None = None) -> Decision:
    action = choice.action
    return Decision(
        action=action.action,
        target=action.target,
        utterance=action.utterance,
        reasoning=choice.reasoning[:_LONGEST_REASONING],
        by=by,
        refused=refused,
    )


async def _store(context: Context, moment: Moment, decision: Decision) -> Decision:
    """Store the moment and deliver a text into its conversation; return the decision with its message id."""
    history = context.history
    said = None
    address = None
    if decision.utterance is not None:
        said = Utterance(
            message_id=history.said_id,
            speaker=moment.name,
            message=decision.utterance,
            time=moment.simulation_time,
        )
        to = decision.target.agent if isinstance(decision.target, AgentTarget) else None
        address = moment.conversations.get(to) if to is not None else None
        decision = decision.model_copy(
            update={"message_id": said.message_id, "delivered": address is not None}
        )
    did = Action(
        action=decision.action, target=decision.target, utterance=decision.utterance
    )
    # Another run might decide otherwise: the decision is stored before its text is delivered.
    await history.settle(
        said,
        Observation(time=moment.simulation_time, sensed=moment.sensory_data, did=did),
    )
    if said is not None and address is not None:
        await history.post(address, said)
    return decision
