"""A decision as a worker makes it: storing, showing, whose wish counts, and a second run."""

import json
from collections.abc import Awaitable, Callable
from typing import Any, Literal

import pytest

from tasklore.contracts.conversations import Utterance
from tasklore.contracts.errors import MemoryUnavailable
from tasklore.contracts.observations import Action, AgentTarget, Observation, Position
from tasklore.memory.conversations.inbox import Inbox
from tasklore.memory.rendering.tokens import counter
from tasklore.runtime.models.client import _response_format
from tasklore.workers.agents.decision import (
    ActionRefusal,
    ChosenAction,
    Moment,
    Skill,
    decision_agent,
)
from tasklore.workers.agents.decision.answer import Wish
from tasklore.workers.testing import AgentKit, KitHistory
from tasklore.workers.testing.stores import PATIENCE_S
from tests.unit.workers.agents.decision.sample_world import (
    AGENT,
    CONVERSATION,
    asking,
    at,
    coins,
    decided,
    kit,
    moment,
    said,
    wish,
)

NEW = [
    {"sender": "Bob", "message": "Where are the coins?", "message_id": "b1", "time": 6}
]


async def stored(
    stand: AgentKit, conversation: str = CONVERSATION
) -> list[tuple[str, str]]:
    """Return who said what in a conversation."""
    page = await stand.services.inbox.page(conversation)
    return [(one.speaker, one.message) for one in page.messages]


async def observed(stand: AgentKit) -> tuple[Observation, ...]:
    """Return what was sensed and done."""
    return await stand.services.inbox.recent_observations(CONVERSATION, 99)


async def test_what_is_heard_and_said_is_one_conversation() -> None:
    stand = kit()
    decision = await decided(stand, {"worldObjects": coins((5, 5))}, new_messages=NEW)

    assert decision.model_dump() == {
        "action": "text",
        "target": {"agent": "Bob"},
        "utterance": "I am at (2, 1) and see 1 coin at: (5, 5).",
        "reasoning": "Bob asked.",
        "by": "rules",
        "refused": None,
        "message_id": "task-1:said",
        "delivered": False,
        "prompt": None,
    }
    assert await stored(stand) == [
        ("Bob", "Where are the coins?"),
        ("Ana", decision.utterance),
    ]
    [seen] = await observed(stand)
    assert seen.time == 7
    assert seen.sensed == moment({"worldObjects": coins((5, 5))}).sensory_data
    assert seen.did == Action(
        action="text", target=AgentTarget(agent="Bob"), utterance=decision.utterance
    )


async def test_a_message_is_new_once() -> None:
    """In the next decision it is past, and sent again it is known."""
    stand = kit(*[wish("wait")] * 3)
    for _ in range(2):
        await decided(stand, new_messages=NEW)
    await decided(stand)
    first, second, third = (asked.user for asked in stand.asked)

    assert "New messages:\n- Bob said: 'Where are the coins?'" in first
    for later in (second, third):
        assert (
            "- At time 6s Bob said: 'Where are the coins?'\nNo new messages." in later
        )


async def test_messages_without_an_id_are_told_apart_by_their_task() -> None:
    """Each request brings its own."""
    stand = kit()
    plain = [{"sender": "Bob", "message": "Hello!"}]
    await decided(stand, new_messages=plain * 2)
    await decided(stand, new_messages=plain)

    assert await stored(stand) == [("Bob", "Hello!")] * 3


async def test_a_text_is_delivered_where_the_world_says() -> None:
    stand = kit()
    decision = await decided(stand, new_messages=NEW, conversations={"Bob": "bob"})
    taken = await stand.services.inbox.take("bob", "other")

    assert decision.delivered
    [message] = taken.history.current
    assert (message.message_id, message.speaker, message.message) == (
        decision.message_id,
        "Ana",
        decision.utterance,
    )
    assert not (
        await decided(kit(), new_messages=NEW, conversations={"Carol": "carol"})
    ).delivered


async def test_a_world_that_wishes_it_is_told_what_the_agent_was_shown() -> None:
    """The question itself when a model was asked; by rules what one would have been asked; else nothing."""
    asked = kit(*[wish("wait")] * 3)
    unasked = kit()
    for stand in (asked, unasked):
        await decided(stand, {"worldObjects": coins((5, 5))}, simulation_time=3)
    told = [
        await decided(stand, new_messages=NEW, tell_prompt=True)
        for stand in (asked, unasked)
    ]

    question = asked.asked[-1]
    assert told[0].prompt == f"{question.system}\n\n{question.user}"
    assert told[1].prompt is not None
    assert "You are Ana, an agent" in told[1].prompt
    assert "1 coin at: (5, 5)" in told[1].prompt
    assert "New messages:\n- Bob said: 'Where are the coins?'" in told[1].prompt
    assert (await decided(asked)).prompt is None


class Failing(Inbox):
    """Fails once at *seam*, before or after it has done its work; `note` is the first half of settling."""

    def __init__(
        self,
        stand: AgentKit,
        seam: Literal["post", "settle", "note"],
        *,
        after: bool = True,
    ) -> None:
        super().__init__(stand.services.redis, PATIENCE_S)
        self._seam: str | None = seam
        self._after = after

    async def _pass(
        self,
        seam: str,
        work: Callable[..., Awaitable[Any]],
        *arguments: Any,
        **options: Any,
    ) -> Any:
        """Do *work*; at the seam do it or not, and raise."""
        if seam != self._seam:
            return await work(*arguments, **options)
        self._seam = None
        if self._after:
            await work(*arguments, **options)
        raise MemoryUnavailable("the store did not answer")

    async def post(self, *arguments: Any, **options: Any) -> bool:
        """Post, or raise, or both."""
        return bool(await self._pass("post", super().post, *arguments, **options))

    async def settle(
        self,
        owner: str,
        task_id: str,
        said: Utterance | None = None,
        *,
        observation: Observation | None = None,
        user_id: str | None = None,
    ) -> None:
        """Settle, or raise, or both, or note what was done and be gone before the rest."""
        if self._seam == "note" and observation is not None:
            note = self._observations.note
            await self._pass("note", note, owner, task_id, observation)
        await self._pass(
            "settle",
            super().settle,
            owner,
            task_id,
            said,
            observation=observation,
            user_id=user_id,
        )


async def heard_by_bob(stand: AgentKit) -> list[tuple[str, str]]:
    """Return what Bob hears: who said it, and what."""
    return [
        (one.speaker, one.message)
        for one in (await stand.services.inbox.take("bob", "look")).history.current
    ]


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("seam", ["settle", "post"])
async def test_what_is_delivered_is_what_stands(
    seam: Literal["settle", "post"], after: bool
) -> None:
    stand = kit(
        wish("text", agent="Bob", utterance="First."),
        wish("text", agent="Bob", utterance="Second."),
    )
    stand.services.inbox = Failing(stand, seam, after=after)
    decision = await decided(stand, new_messages=NEW, conversations={"Bob": "bob"})

    stands = "Second." if (seam, after) == ("settle", False) else "First."
    assert (decision.utterance, decision.delivered) == (stands, True)
    assert await heard_by_bob(stand) == [("Ana", stands)]
    assert (await stored(stand))[-1] == ("Ana", stands)
    [seen] = await observed(stand)
    assert seen.did is not None
    assert seen.did.utterance == stands
    assert len(stand.asked) == (2 if stands == "Second." else 1)


async def test_what_was_noted_stands_though_the_messages_are_not_settled() -> None:
    """Its words, its deed and what Bob hears are one."""
    stand = kit(
        wish("text", agent="Bob", utterance="First."),
        wish("text", agent="Bob", utterance="Second."),
    )
    stand.services.inbox = Failing(stand, "note")
    decision = await decided(stand, new_messages=NEW, conversations={"Bob": "bob"})

    assert (decision.utterance, decision.by) == ("First.", "earlier run")
    assert await heard_by_bob(stand) == [("Ana", "First.")]
    assert await stored(stand) == [("Bob", "Where are the coins?"), ("Ana", "First.")]
    assert "No new messages." in (await decided(stand, tell_prompt=True)).prompt  # type: ignore[operator]


@pytest.mark.parametrize(
    "words",
    [
        "I found a coin near the old mill, and there may be more of them.",
        "\u5f7c\u5973\u306f\u786c\u8ca8" * 20,
    ],
)
async def test_a_question_keeps_its_budget_with_a_thousand_of_everything(
    words: str,
) -> None:
    """Instructions, the schema as it is sent, and the situation, counted exactly; the latest of all of it is there."""
    past = tuple(
        said(number, f"{number} {words}", ("Bob", "Carol")[number % 2])
        for number in range(1_000)
    )
    look = {
        "worldObjects": [
            {"type": f"coin {kind}", "position": at(kind / 4, 1)} for kind in range(40)
        ]
    }
    sensed = moment(look).sensory_data
    seen = tuple(
        Observation(
            time=number,
            sensed=sensed,
            did=Action(action="move", target=Position(x=2, z=1)),
        )
        for number in range(1_000)
    )
    others = [f"Agent {number} \u5f7c\u5973" for number in range(400)]
    stand = kit(wish("wait"), history=KitHistory(past, observations=seen))
    stand.services.inbox = Inbox(stand.services.redis, PATIENCE_S, window=1_000)
    await decided(
        stand,
        look,
        new_messages=NEW,
        agents=["Bob", "Carol", *others],
        simulation_time=1_001,
    )
    [asked] = stand.asked
    count = counter()
    schema = json.dumps(_response_format(asked.answer))

    assert count(asked.system) + count(schema) + count(asked.user) <= 1_200
    assert "New messages:\n- Bob said: 'Where are the coins?'" in asked.user
    assert "At time 999s Carol said: '999 " in asked.user
    assert "At time 999s I moved to position (2, 1)" in asked.user
    assert "You can text: Bob, " in asked.system


def dance(wished: Wish, now: Moment) -> Action | ActionRefusal:
    """Allow dancing with whoever is near."""
    near = [one.name for one in now.sensory_data.nearby_agents]
    if wished.agent not in near:
        return ActionRefusal(f"{wished.agent} is not near")
    return Action(action="dance", target=AgentTarget(agent=wished.agent))


DANCER = decision_agent(
    "DancerAgent",
    skills=(
        Skill(
            "dance",
            "dance: with agent, who must be near",
            dance,
            lambda done: f"I danced with {done.target.agent}",
        ),
    ),  # type: ignore[union-attr]
    senses={
        "music": lambda value, tense: (
            f"{'I hear' if tense == 'present' else 'I heard'} {value}"
        )
    },
    policy=lambda _now, _taken: ChosenAction(
        Action(action="dance", target=AgentTarget(agent="Bob")), "Why not?"
    ),
)


async def test_a_world_brings_actions_senses_and_rules_of_its_own() -> None:
    stand = kit(wish("dance", agent="Bob"), wish("dance", agent="Carol"), agent=DANCER)
    ball = {"nearbyAgents": [{"name": "Bob"}], "music": "a waltz"}
    first = await decided(stand, ball, allowed=["dance"])
    second = await decided(stand, ball, allowed=["dance"])
    alone = await decided(kit(agent=DANCER), allowed=["dance"])

    assert (first.action, first.target, first.by) == (
        "dance",
        AgentTarget(agent="Bob"),
        "scripted",
    )
    assert (second.action, second.by, second.refused) == (
        "dance", "rules", "scripted wished what is not possible: Carol is not near",
    )  # fmt: skip
    assert (alone.action, alone.reasoning) == ("wait", "No: Bob is not near.")
    assert "- dance: with agent, who must be near" in stand.asked[0].system
    assert stand.asked[1].user.count("- At time 7s I danced with Bob") == 1
    assert "; I heard a waltz" in stand.asked[1].user
    assert "; I hear a waltz" in stand.asked[1].user
    report = await stand.run("decide", asking())
    assert report.error is not None


async def test_without_a_conversation_nothing_is_decided() -> None:
    report = await AgentKit(AGENT).run("decide", asking())

    assert report.status == "rejected"
    assert report.error is not None
    assert "conversation_id is missing" in report.error.message
