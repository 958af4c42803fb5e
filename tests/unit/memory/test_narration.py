"""What an agent does, senses and hears, in sentences: the plain cases letter by letter."""

import pytest

from contracts.observations import Action, AgentTarget, Position, SensoryData
from memory.rendering.narration import (
    Narrator,
    at_time,
    by_whom,
    list_words,
    plural,
    say_message,
    say_texted,
    short,
    speech,
)

NARRATOR = Narrator()
COINS = [{"type": "coin", "position": {"x": 2, "z": 1.6}}, {"type": "coin", "position": {"x": 2.4, "z": 0.4}}]
SENSED = {"position": {"x": 2, "z": 1}, "nearbyAgents": [], "worldObjects": COINS, "collected": {"coin": 1}}


def did(action: str, **parts: object) -> str:
    """Return how an action is told."""
    return NARRATOR.action(Action.model_validate({"action": action, **parts}))


def sensed(**parts: object) -> SensoryData:
    """Return what is sensed at (2, 1), with these parts in place of nothing."""
    return SensoryData.model_validate({"position": {"x": 2, "z": 1}, **parts})


def test_a_move_is_told_with_its_place() -> None:
    """In the first person, without a full stop."""
    assert did("move", target={"x": 2, "z": 1.6}) == "I moved to position (2, 1.6)"


def test_a_text_is_told_with_its_words() -> None:
    """To whom, and what."""
    told = did("text", target={"agent": "Alice"}, utterance="Found coins!")

    assert told == "I texted Alice: 'Found coins!'"


def test_what_is_sensed_now_is_in_the_present() -> None:
    """Place, what it has, objects with their places, agents."""
    assert NARRATOR.now(SensoryData.model_validate(SENSED)) == (
        "I am at position (2, 1), have collected 1 coin; I see 2 coins at: (2, 1.6), (2.4, 0.4); I see no other agents"
    )


def test_what_was_sensed_is_in_the_past() -> None:
    """The same sentence, as it was."""
    assert NARRATOR.then(SensoryData.model_validate(SENSED)) == (
        "I was at position (2, 1), had collected 1 coin; I saw 2 coins at: (2, 1.6), (2.4, 0.4); I saw no other agents"
    )


def test_time_stands_before_the_sentence() -> None:
    """Of what was done as of what was said."""
    assert at_time(0, did("move", target={"x": 2, "z": 1})) == "At time 0s I moved to position (2, 1)"
    assert at_time(5, say_message("Bob", "Hello!")) == "At time 5s Bob said: 'Hello!'"


@pytest.mark.parametrize(
    ("action", "told"),
    [
        ({"action": "collect", "target": {"x": 2, "z": 1.6}}, "I collected what lay at position (2, 1.6)"),
        ({"action": "collect"}, "I collected what I had found"),
        ({"action": "wait"}, "I waited"),
        ({"action": "move"}, "I moved"),
        ({"action": "move", "target": {"agent": "Bob"}}, "I moved towards Bob"),
        ({"action": "text", "target": {"agent": "Bob"}}, "I texted Bob"),
        ({"action": "dance", "target": {"agent": "Bob"}}, "I did 'dance' with Bob"),
        (
            {"action": "dig", "target": {"x": 1, "z": 2}, "utterance": "ho"},
            "I did 'dig' at position (1, 2), saying 'ho'",
        ),
    ],
)
def test_every_action_has_its_sentence(action: dict[str, object], told: str) -> None:
    """With a target or without, and also when nobody has registered it."""
    assert NARRATOR.action(Action.model_validate(action)) == told


def test_an_action_is_told_by_what_is_registered_for_it() -> None:
    """On one line, whatever that returns; the narrator it came from stays as it was."""
    own = NARRATOR.with_action("dance", lambda action: f"I danced\nwith <{action.target and action.target.agent}>")  # type: ignore[union-attr]

    told = own.action(Action(action="dance", target=AgentTarget(agent="Bob")))

    assert told == "I danced with \u2039Bob\u203a"
    assert did("dance") == "I did 'dance'"


def test_a_sense_is_told_by_what_is_registered_for_it() -> None:
    """In both tenses, at the end; what nobody registered, and None, is not told."""
    felt = sensed(wind=3, smell="smoke", light=None)
    own = NARRATOR.with_sense(
        "wind", lambda value, tense: f"{'it is' if tense == 'present' else 'it was'} windy: {value}"
    )
    own = own.with_sense("light", lambda _value, _tense: None)

    assert own.now(felt).endswith("; I see no other agents; it is windy: 3")
    assert own.then(felt).endswith("; I saw no other agents; it was windy: 3")
    assert "smoke" not in own.now(felt)


def test_who_is_near_is_named() -> None:
    """With the place where it is known, joined as one says it."""
    bob, carol, dan = {"name": "Bob", "position": {"x": 0, "z": -1}}, {"name": "Carol"}, {"name": "Dan"}

    assert NARRATOR.now(sensed(nearbyAgents=[carol])).endswith("; I see Carol")
    assert NARRATOR.now(sensed(nearbyAgents=[bob, carol])).endswith("; I see Bob at (0, -1) and Carol")
    assert NARRATOR.now(sensed(nearbyAgents=[bob, carol, dan])).endswith("; I see Bob at (0, -1), Carol and Dan")


def test_empty_hands_and_an_empty_place_are_told() -> None:
    """Also when a kind is collected no times."""
    told = "I am at position (2, 1), have collected nothing; I see no objects; I see no other agents"

    assert NARRATOR.now(sensed()) == told
    assert NARRATOR.now(sensed(collected={"coin": 0})) == told


def test_kinds_are_told_apart() -> None:
    """Each with its places, in the order of their names; one of a kind is no plural."""
    gem = {"type": "gem", "position": {"x": 9, "z": 9}}

    told = NARRATOR.now(sensed(worldObjects=[gem, *COINS], collected={"key": 1, "coin": 2, "berry": 3}))

    assert "have collected 3 berries, 2 coins and 1 key; " in told
    assert "; I see 2 coins at: (2, 1.6), (2.4, 0.4); I see 1 gem at: (9, 9); " in told


def test_a_crowd_is_counted() -> None:
    """Of many objects the nearest are placed, of many kinds and agents the first are named."""
    coins = [{"type": "coin", "position": {"x": 20 - number, "z": 1}} for number in range(15)]
    agents = [{"name": f"A{number}"} for number in range(5)]
    kinds = [{"type": f"kind{number}", "position": {"x": 0, "z": 0}} for number in range(4)]
    few = NARRATOR.telling(2)

    assert "I see 15 coins at: (6, 1), (7, 1) and 13 more; " in few.now(sensed(worldObjects=coins))
    assert few.now(sensed(nearbyAgents=agents)).endswith("I see A0, A1 and 3 other agents")
    assert "; I see 1 kind1 at: (0, 0); I see 2 other objects; " in few.now(sensed(worldObjects=kinds))
    assert "have collected 1 a, 1 b and 9 other objects; " in few.now(
        sensed(collected={"a": 1, "b": 1, "c": 4, "d": 5})
    )


def test_who_only_counts_names_nobody() -> None:
    """As little as there can be told."""
    told = NARRATOR.telling(0).then(sensed(worldObjects=COINS, nearbyAgents=[{"name": "Bob"}], collected={"coin": 7}))

    assert told == "I was at position (2, 1), had collected 7 objects; I saw 2 objects; I saw 1 other agent"


@pytest.mark.parametrize(
    ("number", "told"),
    [
        (2.0, "2"), (1.6, "1.6"), (-0.0, "0"), (-0.001, "0"), (0.1 + 0.2, "0.3"), (1e-9, "0"), (12345.678, "12345.68"),
        (-3.10, "-3.1"), (100.0, "100"), (1e12, "1000000000000"), (0.005, "0.01"), (0.995, "0.99"),
    ],
)  # fmt: skip
def test_numbers_are_short(number: float, told: str) -> None:
    """Two decimals at most, no minus before nothing, no exponent."""
    assert short(number) == told


@pytest.mark.parametrize(
    ("one", "many"),
    [
        ("coin", "coins"),
        ("box", "boxes"),
        ("berry", "berries"),
        ("key", "keys"),
        ("torch", "torches"),
        ("gas", "gases"),
    ],
)
def test_nouns_have_their_plural(one: str, many: str) -> None:
    """The regular ones by their ending."""
    assert plural(one) == many


def test_odd_plurals_are_known_or_registered() -> None:
    """Sheep stay sheep; a world names its own."""
    own = NARRATOR.with_plural("ox", "oxen")

    assert (NARRATOR.counted(2, "sheep"), NARRATOR.counted(1, "wolf"), NARRATOR.counted(2, "wolf")) == (
        "2 sheep", "1 wolf", "2 wolves",
    )  # fmt: skip
    assert (own.counted(2, "ox"), NARRATOR.counted(2, "ox")) == ("2 oxen", "2 oxes")


def test_lists_are_joined_as_one_says_them() -> None:
    """Commas, and `and` before the last."""
    assert [list_words(parts) for parts in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == [
        "",
        "a",
        "a and b",
        "a, b and c",
    ]


def test_who_spoke_is_counted() -> None:
    """The busiest first; the rest together."""
    assert by_whom({"Bob": 2, "Carol": 7}) == "7 by Carol and 2 by Bob"
    assert by_whom(dict.fromkeys("abcdefg", 1), most=2) == "1 by a, 1 by b and 5 by others"


def test_speech_cannot_leave_its_quotes() -> None:
    """Quotes of any kind become one that does not close; lines become blanks; nothing reads as a heading."""
    assert speech("a' said: 'b\n# New\u2018s") == "'a\u2019 said: \u2019b New\u2019s'"
    assert speech("x" * 50, limit=10) == "'xxxxxxxxx\u2026'"
    assert say_texted("Bob", None) == "I texted Bob"
    assert say_message("Bob", "") == "Bob said: ''"


def test_a_place_is_told_whatever_its_decimals() -> None:
    """As short as numbers are."""
    assert did("move", target=Position(x=0.1 + 0.2, z=-0.0)) == "I moved to position (0.3, 0)"
