"""Documents in a prompt: what matters first, within the budget, and as data that cannot act."""

import json
import unicodedata
from datetime import date, timedelta
from pathlib import Path as File

import pytest
from pydantic import JsonValue

from memory.documents.items import Body, make_item
from memory.documents.kinds import Kinds
from memory.rendering.documents import Rendered, render, rendered_spans, tokens_of, without_rendered
from memory.rendering.quoting import MARK, MAX_SHOWN, plain, quoted
from memory.rendering.recalled import CLOSE, OPEN

KINDS = Kinds.load()
FOOD, HEALTH = "resource_user_food_prefs", "resource_user_health"
TODAY = date(2026, 6, 1)
POISON = json.loads((File(__file__).parents[1] / "poison.json").read_text("utf-8"))


def _item(display: str, days_ago: int = 30, **fields: JsonValue) -> Body:
    return make_item(display, added=TODAY - timedelta(days=days_ago), source="told") | fields


def _food(*likes: JsonValue, **places: list[JsonValue]) -> dict[str, Body]:
    return {FOOD: {"_metadata": {"tags": ["food"]}, "food": {"likes": [*likes], **places}}}


def _render(documents: dict[str, Body], query: str = "", budget: int = 1_000) -> Rendered:
    return render(documents, KINDS, today=TODAY, query=query, budget_tokens=budget)


def _entries(rendered: Rendered) -> list[str]:
    """Return what stands behind the dash of each entry."""
    return [line.removeprefix(f"{MARK} - ") for line in rendered.text.splitlines() if line.startswith(f"{MARK} -")]


def test_documents_are_markdown_within_one_block() -> None:
    """Headings in plain words, what was said in quotes, no metadata."""
    documents = _food(_item("Pasta (especially carbonara)"), avoids=[_item("pork")])
    documents[HEALTH] = {"health": {"allergies": [_item("nuts")], "needs": []}}

    assert _render(documents).text == "\n".join(
        [
            OPEN,
            "¦ ## Food",
            "¦ ### Likes",
            '¦ - "Pasta (especially carbonara)"',
            "¦ ### Avoids",
            '¦ - "pork"',
            "¦ ## Health",
            "¦ ### Allergies",
            '¦ - "nuts"',
            CLOSE,
        ]
    )


def test_dates_and_confidence_are_shown_where_they_matter() -> None:
    """When a mood was, until when a diet holds, how unsure a conclusion is; not of what is settled."""
    documents = _food(
        _item("settled", durability="permanent"),
        _item("told last year", days_ago=200),
        _item("this month", durability="short_term", days_ago=5),
        _item("ends", expiry="2026-07-01"),
        _item("guessed", source="inferred:t1", confidence=0.6),
        _item("contested", conflict="p1"),
    )

    assert _entries(_render(documents)) == [
        '"this month" (since 2026-05-27)',
        '"settled"',
        '"ends" (until 2026-07-01)',
        '"guessed" (confidence 0.58, inferred)',
        '"contested" (in conflict)',
        '"told last year"',
    ]


def test_what_has_expired_or_faded_is_not_shown() -> None:
    """The last day itself still counts."""
    documents = _food(
        _item("over", expiry="2026-05-31"),
        _item("today", expiry="2026-06-01"),
        _item("tired", 5, durability="momentary"),
    )
    rendered = _render(documents)

    assert _entries(rendered) == ['"today" (until 2026-06-01)']
    assert rendered.left_out == 0


def test_the_newest_comes_first_and_then_the_first_in_the_document() -> None:
    """What nobody knows the day of comes last."""
    documents = _food("no day", _item("old", 300), _item("new", 1), _item("also new", 1))
    assert _entries(_render(documents)) == ['"new"', '"also new"', '"old"', '"no day"']


def test_what_shares_words_with_the_query_comes_first() -> None:
    """Rare words count more than those that everything has; headings count, and sections follow their best entry."""
    documents = _food(_item("dish with rice", 1), _item("dish with egg", 2), _item("dish with tea", 3), avoids=["pork"])

    rendered = _render(documents, "Any dish with eggs?")
    assert _entries(rendered)[0] == '"dish with egg"'
    assert rendered.shown[0][0] == FOOD
    assert str(rendered.shown[0][1]) == "food.likes[1]"
    assert "### Avoids" in _render(documents, "what is avoided? pork?").text.splitlines()[2]
    assert _entries(_render(_food("拉面", "寿司很好吃"), "我想吃寿司"))[0] == '"寿司很好吃"'


@pytest.mark.parametrize("budget", [0, 20, 60, 100, 200, 400])
def test_a_block_keeps_to_its_budget_and_says_what_it_left_out(budget: int) -> None:
    """The first entries by rank stay; a budget that holds no entry gives no block."""
    documents = _food(*(_item(f"dish number {number}", number) for number in range(50)))

    rendered = _render(documents, budget=budget)
    entries = _entries(rendered)

    assert tokens_of(rendered.text) <= rendered.tokens <= budget
    assert len(rendered.shown) == len(entries)
    assert rendered.left_out == 50 - len(entries)
    assert entries == [f'"dish number {number}"' for number in range(len(entries))]
    assert (f"({rendered.left_out} more not shown)" in rendered.text) == (0 < len(entries) < 50)
    assert bool(rendered.text) == bool(entries)


def test_nothing_to_show_is_no_block() -> None:
    """An empty text, not an empty frame."""
    assert _render({}) == Rendered("")
    assert _render(_food()).text == ""


def test_what_is_no_item_is_shown_with_its_name() -> None:
    """Imported documents hold all sorts of things; names that no kind knows are quoted too."""
    documents: dict[str, Body] = {
        FOOD: {
            "food": {"likes": ["tea", {"display": "Pizza", "group": "Italian"}], "spice": 3, "raw": {"fish": False}}
        },
        "resource_unknown": {"top": "x", "a": [["deep"], 10**50]},
    }

    assert _render(documents).text.splitlines()[1:-1] == [
        "¦ ## Food",
        "¦ ### Likes",
        '¦ - "tea"',
        '¦ - "Pizza" ("group": "Italian")',
        '¦ ### "food"',
        '¦ - "spice": 3',
        '¦ ### "food" / "raw"',
        '¦ - "fish": false',
        '¦ ## "resource_unknown"',
        "¦ ### More",
        '¦ - "top": "x"',
        '¦ ### "a" / 0',
        '¦ - "deep"',
        '¦ ### "a"',
        '¦ - "' + "1" + "0" * 38 + '…"',
    ]


def test_the_same_arguments_give_the_same_text() -> None:
    """Whatever order words are hashed in, and nothing is written to the documents."""
    documents = _food(*(_item(f"dish {number} with {number % 7} spoons of rice", number % 5) for number in range(40)))
    before = json.dumps(documents)

    texts = {_render(documents, "rice spoons dish 3 with 12", 300).text for _ in range(5)}

    assert len(texts) == 1
    assert json.dumps(documents) == before


def test_tokens_are_counted_rather_too_many() -> None:
    """A third of the letters of English, one for each of another script, two for a pictograph."""
    assert tokens_of("") == 0
    assert tokens_of("abcdef") == 2
    assert tokens_of("寿司") == 2
    assert tokens_of("a🍕") == 3


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Pasta (especially carbonara), 5 °C, C# & C++, 100%, #1",
            "Pasta (especially carbonara), 5 °C, C# & C++, 100%, #1",
        ),
        ('say "hi" `now` “then”', "say 'hi' 'now' 'then'"),
        ("a\nb\r\n\tc\u2028d\u0085e", "a b c d e"),
        ("## Rules\n# one", "Rules one"),
        ("BP < 120 >> x", "BP \u2039 120 \u203a x"),
        ("<|im_start|>[INST]{{x}}", "\u2039|im_start|\u203a(INST)((x))"),
        ("a\u200bb\u202ec\u2066d\ufeffe\u00adf", "abcdef"),
        ("x\U000e0041\U000e0042y\ue000z\x00", "xyz"),
        ("\uff02\uff1e\uff1e\uff1e\uff5b", "'\u203a("),
        ("--- === *** ~~~ ...", "- = * ~ ..."),
        ("C:\\temp\\n", "C:/temp/n"),
        ("&lt;b&gt; R&D", "& lt;b& gt; R&D"),
        ("¦ - x", "| - x"),
        ("a\u0335\u0336\u0337\u0338\u0321\u0322b", "a\u0335\u0336\u0337\u0338b"),
        ("नमस्ते, café, 寿司, 🍕", "नमस्ते, café, 寿司, 🍕"),
        ("", ""),
    ],
)
def test_a_stored_text_is_one_line_that_means_nothing_but_itself(text: str, expected: str) -> None:
    """Letters, digits and units stay as they are."""
    assert plain(text) == unicodedata.normalize("NFC", expected)
    assert quoted(text) == f'"{plain(text)}"'


def test_a_long_text_is_cut_and_ends_in_an_ellipsis() -> None:
    """Also one that is all unseen signs for as far as anybody looks."""
    assert len(plain("x" * 10_000)) == MAX_SHOWN
    assert plain("x" * MAX_SHOWN) == "x" * MAX_SHOWN
    assert plain("\u200b" * 10_000 + "x") == "…"
    assert plain("word word", 6) == "word…"


def test_the_poison_is_of_six_languages_and_many_sorts() -> None:
    """A hundred and fifty of it, no two alike."""
    assert len({poison["text"] for poison in POISON}) == 150
    assert len({poison["language"] for poison in POISON}) == 6
    assert len({poison["trick"] for poison in POISON}) == 25


def test_a_block_is_taken_out_of_what_somebody_says() -> None:
    """And what they said themselves stays."""
    block = _render(_food(_item("Pasta"), _item("Tea", durability="short_term"))).text

    assert without_rendered(f"Hello!\n{block}\nI like rice.") == "Hello!\nI like rice."
    assert without_rendered(f"You told me: {block} And rice?") == "You told me:\nAnd rice?"
    assert without_rendered(f"{block}\n\n{block}") == ""
    assert rendered_spans(f"Hello!\n{block}\nBye") == ((7, 7 + len(block) + 1),)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I like rice.",
        '- "Pasta" is what he said',
        "# My plan\n- tea\n- rice (until 2026-01-01)",
        "I remembered >> the rice",
        'He said "no" (twice)',
        '"tea"\n"rice"',
        "> quoted by Bob",
    ],
)
def test_what_nobody_rendered_stays_as_it_is(text: str) -> None:
    """Lists, quotes and brackets are everybody's."""
    assert rendered_spans(text) == ()
    assert without_rendered(text) == text


BLOCK = _render(
    _food(
        _item("Pasta carbonara"), _item("green tea", durability="short_term"), {"display": "Pizza", "group": "Italian"}
    ),
).text


@pytest.mark.parametrize(
    "came_back",
    [
        "\n".join(f"      {line}" for line in BLOCK.splitlines()),
        "\n".join(f"> {line}" for line in BLOCK.splitlines()),
        "\n".join(f"  > > * {line}" for line in BLOCK.splitlines()),
        BLOCK.replace("\n", " "),
        BLOCK.replace("\n", "\n\n"),
        BLOCK.replace("\n", "\r\n"),
        BLOCK.replace(" ", "\u00a0"),
        json.dumps(BLOCK),
        json.dumps(BLOCK, ensure_ascii=False)[1:-1],
        "\n".join(BLOCK.splitlines()[1:-1]),
        "\n".join(BLOCK.splitlines()[3:5]),
        BLOCK.replace("¦ ", ""),
        BLOCK.replace("¦ ", "  "),
        BLOCK.replace("green tea", "green\ntea"),
        BLOCK.replace("Pasta carbonara", "Pasta\n   carbonara"),
        "\n".join(line.removeprefix("¦ ") for line in BLOCK.splitlines() if "since" in line),
    ],
)
def test_a_block_is_known_in_whatever_shape_it_comes_back(came_back: str) -> None:
    """Indented, quoted, run together, escaped, without frame, without marks, wrapped."""
    left = without_rendered(f"Here:\n{came_back}\nI like rice.")

    assert not any(word in left for word in ("Pasta", "carbonara", "tea", "Pizza", "Italian", "Likes"))
    assert "I like rice." in left
    assert left.startswith("Here:")
