"""What pages show behind a command is what it prints: README and the how-tos, on one system.

After a change: `python -m tests.golden.write guides` puts what is printed behind each
command where it does not fit; then shorten it by `...`.
"""

from pathlib import Path

import pytest

from tests.architecture.tree import name_of
from tests.golden.consoles import ShownCommand, fits, put_output, read_commands
from tests.golden.giving import Printed, give_commands, held_pages, is_given
from tests.golden.guides import GUIDES
from tests.golden.normal import Normaliser

pytestmark = pytest.mark.timeout(400)

_CURE = "run `python -m tests.golden.write guides`, and look at what git shows"


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> list[Printed]:
    """Give every command of the pages once."""
    return list(give_commands(tmp_path_factory.mktemp("guides")))


@pytest.mark.parametrize("page", held_pages(), ids=name_of)
def test_a_page_shows_what_its_commands_print(
    page: Path, printed: list[Printed]
) -> None:
    """Ids, times, addresses, measured numbers and what `...` stands for aside."""
    differing = [
        "\n".join([f"$ {one.command.line}", *one.lines])
        for one in printed
        if one.page == page and not fits(one.command.shown, one.lines, one.normal)
    ]
    assert not differing, f"{_CURE}\n" + "\n".join(differing)


def test_a_command_that_is_not_given_here_shows_something() -> None:
    """Whoever reads it knows what to expect; nothing holds that it is so but what NOT_GIVEN names."""
    bare = [
        f"{name_of(page)}: {command.line}"
        for page in held_pages()
        for command in read_commands(page.read_text("utf-8"))
        if not is_given(command.line) and not command.shown
    ]
    assert bare == []


def test_every_page_that_is_prepared_for_has_commands() -> None:
    """What is prepared for a page that is gone goes as well."""
    with_commands = {
        name_of(page)
        for page in held_pages()
        if any(True for _ in read_commands(page.read_text("utf-8")))
    }
    assert set(GUIDES) <= with_commands


@pytest.mark.parametrize(
    ("shown", "printed", "fit"),
    [
        (["done in 3 ms"], ["done in 41 ms"], True),
        (["a  b", "..."], ["a   b", "c", "d"], True),
        (["...", "c"], ["a", "b", "c"], True),
        (["...", "c"], ["a", "b", "c", "d"], False),
        (["the key ... is kept"], ["the key k1 is kept"], True),
        (["the key ... is kept"], ["the key is kept"], False),
        (["7 tasks"], ["8 tasks"], False),
        ([], ["something"], False),
        (["in /home/ana/shop"], ["in <folder>"], True),
    ],
)
def test_what_is_shown_fits_what_is_printed(
    shown: list[str], printed: list[str], fit: bool
) -> None:
    """But for what differs from run to run, and what three dots stand for."""
    assert fits(shown, printed, Normaliser()) is fit


def test_commands_are_read_with_what_stands_behind_them() -> None:
    """And what is printed is put there, nothing else changed."""
    page = "# P\n\n```console\n$ tasklore a &\n$ tasklore b\nold\n```\n\nEnd.\n"
    first, second = read_commands(page)

    assert (first.line, first.shown) == ("tasklore a", ())
    assert (second.line, second.shown) == ("tasklore b", ("old",))
    assert put_output(page, second, ["new", "er"]) == page.replace("old", "new\ner")
    assert isinstance(first, ShownCommand)
