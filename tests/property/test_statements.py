"""Whatever is said: a statement points at words of the text, and comes back from the sentence written of it."""

from dataclasses import replace
from datetime import date, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from workers.statements.normal import may_merge, normal, same
from workers.statements.reading import read, read_statements
from workers.statements.wording import statement_text

TODAY = date(2025, 12, 1)

things = st.sampled_from(
    [
        "omelettes",
        "dark chocolate",
        "green tea",
        "jazz",
        "rock climbing",
        "blorpwave",
        "mac and cheese",
        "strong cheese",
    ]
)
foods = st.sampled_from(
    ["omelettes", "dark chocolate", "tofu", "red wine", "peanuts", "scrambled eggs with lox", "pork"]
)
verbs = st.sampled_from(
    ["like", "love", "hate", "can't stand", "don't like", "am not a fan of", "prefer", "really enjoy"]
)
days = st.dates(TODAY, TODAY + timedelta(days=300))
ends = st.one_of(
    st.just(""),
    days.map(lambda day: f" until {day.isoformat()}"),
    st.sampled_from([" until Friday", " for two weeks", " this week", " right now", " till the end of the month"]),
)
#: Pieces that sentences about oneself are made of, in any order: most of them make no sense.
_PIECES = (
    "I i'm my am not like likes eat don't no longer any more forget that user user's the , . ? ! and but or until",
    "Friday vegan eggs pizza allergic to peanuts asthma get up at 6:30 remove all preferences food please call me Ana",
    "if \" ' > \n",
)
pieces = st.sampled_from([piece for line in _PIECES for piece in line.split(" ")])
texts = st.one_of(st.text(max_size=200), st.lists(pieces, max_size=30).map(" ".join))


@st.composite
def statements(draw: st.DrawFn) -> str:
    """Say something of oneself in one of many ways."""
    many = draw(st.lists(things, min_size=1, max_size=4, unique=True))
    listed = many[0] if len(many) == 1 else f"{', '.join(many[:-1])} and {many[-1]}"
    food, end = draw(foods), draw(ends)
    return draw(
        st.sampled_from(
            [
                f"I {draw(verbs)} {listed}",
                f"I'm allergic to {food}",
                f"I don't eat {food}{end}",
                f"I'm off {food}{end}",
                f"I'm on call{end}",
                f"I'm vegan{end}",
                f"I no longer like {food}",
                f"Forget that I like {food}",
                f"Remove all {food} preferences",
                f"Remove {food} from my likes",
                "I get up at 6:30",
                "Please keep answers short",
                "Never call me after 8pm",
                "My name is Ana",
            ]
        )
    )


@given(statements())
@settings(deadline=None)
def test_what_is_said_comes_back_from_its_text(text: str) -> None:
    """Written of the user and read again it is the same statement, and a second writing changes nothing."""
    found = read_statements(text, today=TODAY)
    assert found, text
    for statement in found:
        sentence = statement_text(statement)
        (back,) = read_statements(sentence, today=TODAY)
        assert replace(back, evidence="") == replace(statement, evidence="")
        assert back.evidence == sentence
        assert statement_text(back) == sentence


@given(texts)
@settings(deadline=None, max_examples=300)
def test_evidence_stands_in_the_text(text: str) -> None:
    """Letter by letter, whatever the text is; reading never fails, and says the same every time."""
    reading = read(text, today=TODAY)

    assert all(statement.evidence and statement.evidence in text for statement in reading.statements)
    assert read(text, today=TODAY) == reading


@given(st.text(max_size=80), st.text(max_size=80))
@settings(deadline=None)
def test_sameness_is_fair(first: str, second: str) -> None:
    """Everything is the same as itself, in both directions alike; what is the same shares its key and may merge."""
    assert same(first, first)
    assert may_merge(first, first)
    assert same(first, second) == same(second, first)
    assert may_merge(first, second) == may_merge(second, first)
    if same(first, second):
        assert normal(first).key == normal(second).key
        assert may_merge(first, second)
