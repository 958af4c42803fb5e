"""What is a kind of what: from data files, in three answers."""

from pathlib import Path

import pytest

from contracts.errors import ConfigurationError
from workers.statements.taxonomy import Taxonomy


@pytest.fixture(scope="module")
def taxonomy() -> Taxonomy:
    """The shipped files."""
    return Taxonomy.load()


@pytest.mark.parametrize(
    ("term", "category"),
    [
        ("scrambled eggs with lox", "eggs"),
        ("scrambled_eggs_with_lox", "eggs"),
        ("scrambled eggs with lox", "fish"),
        ("scrambled_eggs_with_lox", "fish"),
        ("omelettes", "egg"),
        ("bacon", "meat"),
        ("a tuna sandwich", "fish"),
        ("Grandma's beef stew", "beef"),
        ("nutella", "nuts"),
        ("bread", "gluten"),
        ("decaf coffee", "coffee"),
        ("natto rolls", "natto"),
        ("type 2 diabetes", "condition"),
        ("jazz", "music"),
    ],
)
def test_a_term_is_what_its_words_tell(taxonomy: Taxonomy, term: str, category: str) -> None:
    """Kinds, contents and slugs, in singular and plural."""
    assert taxonomy.is_a(term, category) is True


@pytest.mark.parametrize(
    ("term", "category"),
    [
        ("egg-free mayonnaise", "egg"),
        ("eggless pasta", "egg"),
        ("pasta without eggs", "egg"),
        ("no eggs", "egg"),
        ("vegan cheese", "dairy"),
        ("gluten-free bread", "wheat"),
        ("oat milk", "dairy"),
        ("eggplant", "egg"),
        ("peanut butter", "dairy"),
        ("turkey bacon", "pork"),
        ("decaf coffee", "caffeine"),
        ("lamb's lettuce", "lamb"),
        ("apple", "meat"),
        ("salmon", "pet"),
        ("non-dairy cream", "dairy"),
    ],
)
def test_a_term_that_says_so_or_is_known_well_is_not(taxonomy: Taxonomy, term: str, category: str) -> None:
    """What is said to be absent is, and what is known whole holds nothing else."""
    assert taxonomy.is_a(term, category) is False


@pytest.mark.parametrize(
    ("term", "category"),
    [
        ("pizza", "meat"),
        ("sushi", "fish"),
        ("bread", "egg"),
        ("fish", "salmon"),
        ("cauliflower steak", "meat"),
        ("soy yogurt", "dairy"),
        ("blorpfish", "meat"),
        ("anything", "blorp"),
        ("egg-free mayonnaise", "animal product"),
        ("eggs", ""),
    ],
)
def test_what_is_not_told_is_unknown(taxonomy: Taxonomy, term: str, category: str) -> None:
    """Neither yes nor no: somebody else must decide."""
    assert taxonomy.is_a(term, category) is None


def test_a_diet_leaves_categories_out(taxonomy: Taxonomy) -> None:
    """By its name, its other names and with "diet" behind it; an unknown one is None."""
    assert taxonomy.excluded_by("vegan") == {"animal product"}
    assert taxonomy.excluded_by("Vegan diet") == taxonomy.excluded_by("plant-based") == taxonomy.excluded_by("vegan")
    assert "meat" in (taxonomy.excluded_by("vegetarian") or set())
    assert taxonomy.excluded_by("moonlight") is None


@pytest.mark.parametrize(
    ("diet", "term", "excluded"),
    [
        ("vegan", "steak", True),
        ("vegan", "scrambled_eggs_with_lox", True),
        ("vegan", "honey", True),
        ("vegan", "kale", False),
        ("vegan", "vegan pizza", False),
        ("vegan", "oat milk", False),
        ("vegan", "curry", None),
        ("vegan", "Tofu", False),
        ("vegan", "Hummus", False),
        ("vegan", "Falafel", False),
        ("vegan", "peanut butter", False),
        ("vegan", "roasted vegetables", False),
        ("vegan", "lentils with brown rice", False),
        ("vegan", "fruit salad", False),
        ("vegan", "mapo tofu", None),
        ("vegan", "Tomato soup", None),
        ("vegan", "Salad", None),
        ("vegan", "kimchi", None),
        ("vegan", "tofu with egg", True),
        ("vegan", "hummus with lamb", True),
        ("vegan", "falafel burger", None),
        ("vegetarian", "honey", False),
        ("vegetarian", "cheese", False),
        ("pescatarian", "salmon", False),
        ("pescatarian", "bacon", True),
        ("gluten-free", "rice", False),
        ("moonlight", "rice", None),
    ],
)
def test_a_diet_excludes_a_term_or_not_or_nobody_knows(
    taxonomy: Taxonomy, diet: str, term: str, excluded: bool | None
) -> None:
    """True is certain enough to act on, None is not."""
    assert taxonomy.excludes(diet, term) is excluded


def test_a_term_is_headed_by_what_it_ends_in(taxonomy: Taxonomy) -> None:
    """A book about asthma is no illness, and a coffee table no drink."""
    assert taxonomy.is_headed("mild seasonal asthma", "condition")
    assert not taxonomy.is_headed("book about asthma", "condition")
    assert not taxonomy.is_headed("coffee table", "food")
    assert taxonomy.is_headed("vegan cheese", "food")
    assert not taxonomy.is_headed("vegan", "food")
    assert taxonomy.is_wholly("coffee in the morning", "food")
    assert taxonomy.tag_of("omelette") == "food"
    assert taxonomy.tag_of("asthma") == "health"
    assert taxonomy.tag_of("blorp") is None
    assert taxonomy.knows("scrambled egg")
    assert not taxonomy.knows("scrambled blorp")


def test_a_folder_adds_to_the_files_and_replaces_them(tmp_path: Path) -> None:
    """A file of a new name joins the graph of its root; one of a shipped name takes its place."""
    (tmp_path / "mine.toml").write_text('root = "food"\ntag = "food"\n[is_a]\ncheese = ["blorp"]\n')
    added = Taxonomy.load(tmp_path)
    assert added.is_a("smoked blorp", "dairy") is True
    assert added.is_a("omelette", "egg") is True

    (tmp_path / "foods.toml").write_text('root = "food"\ntag = "food"\n[is_a]\nfood = ["stone"]\n')
    replaced = Taxonomy.load(tmp_path, tmp_path)
    assert replaced.is_a("stones", "food") is True
    assert replaced.is_a("omelette", "egg") is None


@pytest.mark.parametrize("text", ["is_a = 3", 'root = "r"\n[is_a]\nfood = 3', "[[[", 'root = "r"\n[is_a]\nfood = [1]'])
def test_a_wrong_file_is_named(tmp_path: Path, text: str) -> None:
    """Whoever wrote it is told where to look."""
    (tmp_path / "odd.toml").write_text(text)

    with pytest.raises(ConfigurationError):
        Taxonomy.load(tmp_path)


def test_a_folder_that_is_none_is_named(tmp_path: Path) -> None:
    """A slip in a path does not silently mean the shipped files."""
    with pytest.raises(ConfigurationError, match="no folder"):
        Taxonomy.load(tmp_path / "nowhere")


def test_several_hundred_foods_are_known(taxonomy: Taxonomy) -> None:
    """Everyday ones of every sort belong to what one eats and drinks."""
    everyday = [
        "porridge",
        "croissants",
        "pad thai",
        "falafel",
        "gnocchi",
        "ginger ale",
        "kimchi",
        "oat milk",
        "brie",
        "figs",
    ]

    assert [term for term in everyday if taxonomy.is_a(term, "food") is not True] == []


@pytest.mark.parametrize(
    ("dish", "category", "is_called_so"),
    [
        ("omelette", "egg", True),
        ("scrambled_eggs_with_lox", "eggs", True),
        ("egg fried rice", "egg", True),
        ("Pasta (especially carbonara)", "egg", False),
        ("pancakes", "egg", False),
        ("pizza", "cheese", False),
        ("brie", "cheese", True),
        ("carbonara", "pasta", True),
        ("cheeseburger", "meat", True),
        ("oat milk", "dairy", False),
    ],
)
def test_a_dish_is_called_after_what_it_is_and_not_after_all_that_is_in_it(
    dish: str, category: str, is_called_so: bool
) -> None:
    """Else taking back a taste for eggs would take every cake; meat is meant wherever it is in."""
    assert Taxonomy.load().is_about(dish, category) is is_called_so
