"""What statements claim, and which two of them cannot both hold."""

import pytest

from contracts.stories import Entity
from workers.agents.story.reading.claims import Claim, Reader
from workers.agents.story.reading.conflicts import World, clashes_of

MARA, TOBIAS, INES, LANTERN, QUAY = "Mara Voss", "Tobias Reed", "Ines Calder", "Lantern House", "Salt Quay"
ENTITIES = (
    Entity(name=MARA, aliases=("the keeper",)),
    Entity(name=TOBIAS),
    Entity(name=INES),
    Entity(name=LANTERN, kind="location"),
    Entity(name=QUAY, kind="location"),
    Entity(name="Grey Heron", kind="object"),
)
READER = Reader(ENTITIES)
CHARACTERS = frozenset((MARA, TOBIAS, INES))


def clashes(old: str, new: str, whose: str = MARA) -> list[tuple[str, str, str]]:
    """Return subject, kind and severity of what *new*, a response, says against *old*, the file of somebody."""
    world = World(READER.claims(old, "file", whose), old.casefold().splitlines(), CHARACTERS)
    return [(one.new.subject, one.kind, one.severity) for one in clashes_of(READER.claims(new, "Ch1-R2"), world)]


def told(text: str) -> list[Claim]:
    """Return what prose claims."""
    return list(READER.claims(text, "Ch1-R2"))


@pytest.mark.parametrize(
    ("old", "new", "kind", "severity"),
    [
        # numbers
        ("Mara Voss is forty-one years old.", "Mara was thirty-six years old, and looked older.", "age", "major"),
        ("- Age: 41", "At thirty-six, Mara was the last keeper of the coast, aged thirty-six.", "age", "major"),
        ("Mara Voss has two brothers.", "Mara had three brothers, and wrote to none.", "count", "major"),
        ("Mara Voss has no sister.", "Mara had two sisters on the mainland.", "count", "major"),
        (
            "Mara Voss climbs the 112 steps of the tower each night.",
            "Mara climbed the ninety steps of the tower.",
            "count",
            "major",
        ),
        # states
        ("Mara Voss has never married.", "Mara was married to a pilot from the south.", "state", "major"),
        ("Mara Voss died in the winter of the wreck.", "Mara was alive, and sat by the stove.", "state", "critical"),
        ("Mara Voss is left-handed.", "Mara was right-handed and cut the bread badly.", "state", "minor"),
        # features
        ("Mara Voss has grey eyes.", "Mara's brown eyes followed the beam.", "feature", "minor"),
        ("Mara Voss is grey-haired.", "Mara pushed her red hair under the cap.", "feature", "minor"),
        (
            "Mara Voss is deaf in her left ear.",
            "Mara was deaf in her right ear, and turned her head.",
            "feature",
            "minor",
        ),
        # likes, days
        ("Mara Voss hates the smell of tar.", "Mara loved the smell of tar.", "taste", "minor"),
        ("Mara Voss bakes rye bread on Wednesdays.", "Mara baked rye bread on Mondays.", "days", "minor"),
        # kin
        ("Mara Voss is the sister of Tobias Reed.", "Mara was the aunt of Tobias Reed.", "relation", "critical"),
        ("Mara Voss is Tobias Reed's mother.", "Mara's brother Tobias came up the stairs.", "relation", "critical"),
        ("Her father is Jonas Voss.", "Mara's father was Peter Lund, a cook.", "role", "critical"),
        # places, trades
        ("Mara Voss lives at Lantern House.", "Mara lived at Salt Quay, above the sail loft.", "place", "major"),
        ("Mara Voss was born in Corrow.", "Mara was born in Kelmouth, the third of five.", "place", "major"),
        ("Mara Voss is a baker.", "Mara was a doctor, and the only one for miles.", "trade", "major"),
        # denials
        ("Mara Voss cannot swim.", "Mara could swim.", "negation", "major"),
        ("Mara Voss knows the Morse code.", "Mara did not know the Morse code.", "negation", "major"),
        ("Mara Voss never knew her father.", "Mara had known her father, a cook.", "negation", "major"),
        ("Mara Voss speaks Danish.", "Mara never spoke Danish.", "negation", "major"),
    ],
)
def test_what_cannot_both_hold_is_found(old: str, new: str, kind: str, severity: str) -> None:
    """Each kind of statement is held to an older one of its kind."""
    assert clashes(old, new) == [(MARA, kind, severity)]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # the same in other words
        ("Mara Voss is forty-one years old.", "Mara was 41 years old."),
        ("Mara Voss has grey eyes.", "Mara's silver eyes followed the beam."),
        ("Mara Voss bakes rye bread on Mondays and Fridays.", "Mara baked rye bread on Fridays."),
        ("Mara Voss is the sister of Tobias Reed.", "Tobias was Mara's brother."),
        # change over time, in words
        ("Mara Voss is forty-one years old.", "Mara was forty-two years old now."),
        ("Mara Voss lives at Lantern House.", "Mara lived at Salt Quay now."),
        ("Mara Voss lives at Lantern House.", "Mara no longer lived there. Since then Mara lived at Salt Quay."),
        ("Mara Voss used to live at Lantern House.", "Mara lived at Salt Quay."),
        ("Mara Voss is a baker.", "Mara had become a doctor."),
        # change over time, by itself
        ("Mara Voss is alive.", "Mara died before morning."),
        ("Mara Voss has not answered the letter.", "Mara answered the letter."),
        ("Mara Voss climbs the stairs of the tower.", "Mara did not climb the stairs of the tower."),
        # other things
        ("Mara Voss was twelve when her mother died.", "Mara was forty-one years old."),
        ("Mara Voss came to the tower at twenty-nine.", "Mara was forty-one years old."),
        ("Mara Voss has two brothers.", "Mara had three letters in her pocket."),
        ("Mara Voss wears a blue coat.", "Mara held out a green bottle."),
        ("Mara Voss has a scar on her left hand.", "Mara raised her right hand."),
        ("Mara Voss was born in Corrow.", "Mara lived in Kelmouth."),
        ("Mara Voss bakes rye bread on Mondays.", "Mara scrubbed the stairs on Fridays."),
        ("Mara Voss has one hundred and twelve steps.", "Mara climbed the first forty steps and stopped."),
        # somebody else
        ("Mara Voss is forty-one years old.", "Tobias was nineteen years old."),
        ("Mara Voss is a baker.", "Mara saw that Ines was a doctor."),
        ("Mara Voss is the sister of Tobias Reed.", "Mara's aunt Ines wrote at Easter."),
        # not told as so
        ("Mara Voss is forty-one years old.", "Was Mara thirty-six years old?"),
        ("Mara Voss is forty-one years old.", "If Mara was thirty-six years old, nobody could tell."),
        ("Mara Voss is forty-one years old.", "Mara looked thirty-six years old."),
        ("Mara Voss has grey eyes.", "In the dream Mara's eyes seemed green."),
        ("Mara Voss is forty-one years old.", "Tobias thought that Mara was thirty-six years old."),
        ("Mara Voss is a baker.", "Mara would have been a doctor."),
        ("Mara Voss is a baker.", "Mara was as careful as a doctor."),
    ],
)
def test_what_may_both_hold_is_left_alone(old: str, new: str) -> None:
    """Changes, other things, other people, questions, conditions and likenesses contradict nothing."""
    assert clashes(old, new) == []


def test_a_house_in_a_street_is_no_second_place() -> None:
    """Two places that were told of together may lie in each other."""
    old = "Mara Voss lives at Lantern House.\n\nLantern House stands at Salt Quay."
    assert clashes(old, "Mara lived at Salt Quay.") == []


def test_what_was_told_once_cannot_speak_against_what_was_told_otherwise_too() -> None:
    """When both were told before, the response repeats one of them."""
    old = "Mara Voss is a baker.\n\nMara Voss is a doctor."
    assert clashes(old, "Mara was a doctor.") == []


def test_speech_weighs_less() -> None:
    """People err and lie: what somebody says is one step less grave."""
    assert clashes("Mara Voss is 41 years old.", '"Mara is thirty-six years old," said Ines.') == [
        (MARA, "age", "minor")
    ]
    assert clashes("Mara Voss has no sister.", '"I have two sisters," said Mara.') == [(MARA, "count", "minor")]


def test_she_is_whoever_the_sentence_before_was_about() -> None:
    """A pronoun is read as long as nobody else was named."""
    assert clashes("Mara Voss has grey eyes.", "Mara looked up. Her eyes were green.") == [(MARA, "feature", "minor")]
    assert clashes("Mara Voss has grey eyes.", "Mara looked at Ines. Her eyes were green.") == []
    assert clashes("Mara Voss has grey eyes.", "Mara sat down by Ines, and her eyes were green.") == []
    assert clashes("Mara Voss has grey eyes.", "Mara sat down, and her eyes were green.") == [
        (MARA, "feature", "minor")
    ]


def test_a_line_of_a_file_needs_no_subject() -> None:
    """Labels, bare verbs and pronouns of a file are about whoever's it is, and headings tell nothing."""
    file = (
        "# Mara Voss\n- Kind: character\n\n## Who she is\n- Age: 41\n- Lives at **Lantern House**\n\nShe has grey eyes."
    )
    claims = READER.claims(file, "mara.md", MARA)
    kinds = {slot.kind for claim in claims for slot in claim.slots}
    assert {claim.subject for claim in claims} == {MARA}
    assert {"age", "place", "feature"} <= kinds
    assert "Lives at Lantern House" in {claim.text for claim in claims}


def test_a_sentence_is_kept_as_it_stands() -> None:
    """A claim quotes its sentence whole."""
    sentence = "At dusk, when the ice sang, Mara was the keeper of Lantern House."
    assert {claim.text for claim in told(f"Snow fell. {sentence} Nobody came.")} == {sentence}


def test_claims_come_in_the_order_of_their_text_and_speech_after_them() -> None:
    """What is told comes first, then what is said."""
    claims = told('Mara was a baker. "Ines is a doctor," said Tobias. Tobias was a miner.')
    assert [(claim.subject, claim.is_spoken) for claim in claims] == [(MARA, False), (TOBIAS, False), (INES, True)]
