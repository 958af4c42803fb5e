"""What an agent does, senses and hears, in sentences: the plain cases letter by letter."""

import pytest

from tasklore.contracts.observations import Action, AgentTarget, SensoryData
from tasklore.memory.rendering.narration import (
    Narrator,
    say_message,
    say_texted,
    speech,
)

NARRATOR = Narrator()
COINS = [
    {"type": "coin", "position": {"x": 2, "z": 1.6}},
    {"type": "coin", "position": {"x": 2.4, "z": 0.4}},
]
SENSED = {
    "position": {"x": 2, "z": 1},
    "nearbyAgents": [],
    "worldObjects": COINS,
    "collected": {"coin": 1},
}


def did(action: str, **parts: object) -> str:
    """Return how an action is told."""
    return NARRATOR.action(Action.model_validate({"action": action, **parts}))


def sensed(**parts: object) -> SensoryData:
    """Return what is sensed at (2, 1), with these parts in place of nothing."""
    return SensoryData.model_validate({"position": {"x": 2, "z": 1}, **parts})


def test_what_is_sensed_now_is_in_the_present() -> None:
    assert NARRATOR.now(SensoryData.model_validate(SENSED)) == (
        "I am at position (2, 1), have collected 1 coin; I see 2 coins at: (2, 1.6), (2.4, 0.4); I see no other agents"
    )


def test_what_was_sensed_is_in_the_past() -> None:
    """The same sentence, as it was."""
    assert NARRATOR.then(SensoryData.model_validate(SENSED)) == (
        "I was at position (2, 1), had collected 1 coin; I saw 2 coins at: (2, 1.6), (2.4, 0.4); I saw no other agents"
    )


@pytest.mark.parametrize(
    ("action", "told"),
    [
        (
            {"action": "move", "target": {"x": 2, "z": 1.6}},
            "I moved to position (2, 1.6)",
        ),
        (
            {"action": "text", "target": {"agent": "Al"}, "utterance": "Coins!"},
            "I texted Al: 'Coins!'",
        ),
        (
            {"action": "collect", "target": {"x": 2, "z": 1.6}},
            "I collected what lay at position (2, 1.6)",
        ),
        ({"action": "collect"}, "I collected what I had found"),
        ({"action": "move"}, "I moved"),
        ({"action": "move", "target": {"agent": "Bob"}}, "I moved towards Bob"),
        ({"action": "dance", "target": {"agent": "Bob"}}, "I did 'dance' with Bob"),
        (
            {"action": "dig", "target": {"x": 1, "z": 2}, "utterance": "ho"},
            "I did 'dig' at position (1, 2), saying 'ho'",
        ),
    ],
)
def test_every_action_has_its_sentence(action: dict[str, object], told: str) -> None:
    assert NARRATOR.action(Action.model_validate(action)) == told


def test_an_action_is_told_by_what_is_registered_for_it() -> None:
    """On one line, whatever that returns; the narrator it came from stays as it was."""
    own = NARRATOR.with_action(
        "dance",
        lambda action: f"I danced\nwith <{action.target and action.target.agent}>",
    )  # type: ignore[union-attr]

    told = own.action(Action(action="dance", target=AgentTarget(agent="Bob")))

    assert told == "I danced with \u2039Bob\u203a"
    assert did("dance") == "I did 'dance'"


def test_a_sense_is_told_by_what_is_registered_for_it() -> None:
    felt = sensed(wind=3, smell="smoke", light=None)
    own = NARRATOR.with_sense(
        "wind",
        lambda value, tense: (
            f"{'it is' if tense == 'present' else 'it was'} windy: {value}"
        ),
    )
    own = own.with_sense("light", lambda _value, _tense: None)

    assert own.now(felt).endswith("; I see no other agents; it is windy: 3")
    assert own.then(felt).endswith("; I saw no other agents; it was windy: 3")
    assert "smoke" not in own.now(felt)


def test_who_is_near_is_named() -> None:
    """With the place where it is known, joined as one says it."""
    bob = {"name": "Bob", "position": {"x": 0, "z": -1}}
    carol = {"name": "Carol"}
    dan = {"name": "Dan"}

    assert NARRATOR.now(sensed(nearbyAgents=[carol])).endswith("; I see Carol")
    assert NARRATOR.now(sensed(nearbyAgents=[bob, carol])).endswith(
        "; I see Bob at (0, -1) and Carol"
    )
    assert NARRATOR.now(sensed(nearbyAgents=[bob, carol, dan])).endswith(
        "; I see Bob at (0, -1), Carol and Dan"
    )


def test_a_crowd_is_counted() -> None:
    """Of many objects the nearest are placed, of many kinds and agents the first are named."""
    coins = [
        {"type": "coin", "position": {"x": 20 - number, "z": 1}} for number in range(15)
    ]
    agents = [{"name": f"A{number}"} for number in range(5)]
    kinds = [
        {"type": f"kind{number}", "position": {"x": 0, "z": 0}} for number in range(4)
    ]
    few = NARRATOR.telling(2)

    assert "I see 15 coins at: (6, 1), (7, 1) and 13 more; " in few.now(
        sensed(worldObjects=coins)
    )
    assert few.now(sensed(nearbyAgents=agents)).endswith(
        "I see A0, A1 and 3 other agents"
    )
    assert "; I see 1 kind1 at: (0, 0); I see 2 other objects; " in few.now(
        sensed(worldObjects=kinds)
    )
    assert "have collected 1 a, 1 b and 9 other objects; " in few.now(
        sensed(collected={"a": 1, "b": 1, "c": 4, "d": 5})
    )


def test_speech_cannot_leave_its_quotes() -> None:
    """Quotes of any kind become one that does not close; lines become blanks; nothing reads as a heading."""
    assert speech("a' said: 'b\n# New\u2018s") == "'a\u2019 said: \u2019b New\u2019s'"
    assert speech("x" * 50, limit=10) == "'xxxxxxxxx\u2026'"
    assert say_texted("Bob", None) == "I texted Bob"
    assert say_message("Bob", "") == "Bob said: ''"
