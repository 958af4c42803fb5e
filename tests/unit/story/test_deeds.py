"""Whose words and whose acts they are, as rules read a response."""

import pytest

from tests.unit.story.stage import CORWIN, ENTITIES, INES, MARA, TOBIAS, entity
from workers.agents.story.reading.casting import cast_of
from workers.agents.story.reading.deeds import Deed, deeds_in

#: Files that say he and she, so that pronouns can be told apart.
GENDERED = tuple(
    one if one.name not in (MARA, TOBIAS) else entity(one.name, {MARA: "She keeps it.", TOBIAS: "He helps."}[one.name])
    for one in ENTITIES
)


def deeds(text: str) -> list[Deed]:
    """Return what the characters of *text* say and do."""
    return deeds_in(text, GENDERED, cast_of(text, GENDERED))


def said_by(text: str) -> list[tuple[str, str]]:
    """Return who says what in *text*."""
    return [(deed.who, deed.text) for deed in deeds(text) if deed.is_said]


@pytest.mark.parametrize(
    ("text", "speaks"),
    [
        ('"Wait," said Mara.', MARA),
        ('"Wait," Tobias said to Mara.', TOBIAS),
        ('Mara rose. "Wait," she told Tobias.', MARA),
        ('Mara looked at Tobias. "Wait," he said.', TOBIAS),
        ('Mara put the book away. "Wait."', MARA),
        ('Mara rose. Tobias rose.\n\n"Wait," said Tobias.', TOBIAS),
    ],
)
def test_speech_is_whose_name_or_pronoun_stands_beside_it(text: str, speaks: str) -> None:
    """Behind it, else before it; a pronoun means whoever can be he or she."""
    assert [who for who, _ in said_by(text)] == [speaks]


def test_of_two_who_talk_the_other_answers() -> None:
    """Speech without any name is that of whoever did not speak last, as long as there is only one such."""
    assert said_by('"Wait," said Mara. Tobias stood.\n\n"For what?"\n\n"For me."') == [
        (MARA, '"Wait,"'),
        (TOBIAS, '"For what?"'),
        (MARA, '"For me."'),
    ]
    assert said_by('"Wait," said Mara. Ines and Tobias stood.\n\n"For what?"') == [(MARA, '"Wait,"')]


def test_speech_that_nothing_ascribes_is_nobody_s() -> None:
    """Nothing is made up."""
    assert deeds('"Wait."') == []


def test_speech_in_two_parts_has_one_speaker() -> None:
    """The second part is said in the same paragraph, whether a name or a pronoun says the first."""
    assert said_by('Tobias stood by Mara.\n\n"Wait," she said. "Now."') == [(MARA, '"Wait,"'), (MARA, '"Now."')]
    assert said_by('"Wait," said Mara. "I am coming. Now."') == [
        (MARA, '"Wait,"'),
        (MARA, '"I am coming.'),
        (MARA, 'Now."'),
    ]


@pytest.mark.parametrize(
    ("text", "acts"),
    [
        ("Mara rang the bell.", [MARA]),
        ("Mara rang the bell. Then she wept.", [MARA, MARA]),
        ("Mara saw Tobias. He wept.", [MARA, TOBIAS]),
        ("Mara rang. The rain fell.", [MARA]),
        ("Mara rang. He listened to Tobias.", [MARA]),
        ("Tobias sat down, and Mara left.", [TOBIAS, MARA]),
        ("Tobias sat down. Old Jonas Blake took off his hat. He wept.", [TOBIAS]),
        ("The widow wept.", []),
        ("Corwin limped in after Ines.", [CORWIN]),
    ],
)
def test_an_act_is_whose_name_stands_first_or_is_meant(text: str, acts: list[str]) -> None:
    """What nobody in the scene does is left out."""
    assert [deed.who for deed in deeds(text)] == acts


def test_what_is_told_and_what_is_said_are_kept_apart() -> None:
    """A name that is only spoken makes nobody act."""
    (told, said) = deeds('"Ines lied to us," Mara whispered.')
    assert (told.who, told.text, told.is_said, told.quotation) == (
        MARA,
        "Mara whispered.",
        False,
        "Ines lied to us,",
    )
    assert (said.who, said.text, said.is_said, said.quotation) == (MARA, '"Ines lied to us,"', True, "Ines lied to us,")
    assert INES not in {told.who, said.who}
