"""The commands `agents check` and `agents try` over examples of cards."""

import io
import json
from pathlib import Path

import pytest
import structlog

from tasklore.commands.agents.check import (
    amounts_that_lose_currency,
    amounts_without_unit,
    check_examples,
    warn_of_unread,
)
from tasklore.commands.agents.trial import try_lines
from tasklore.contracts.parameters.model import Field, Parameters
from tasklore.contracts.quantities.amounts import Amount, Money
from tasklore.supervisor.catalogue import Catalogue
from tasklore.workers.loading import load_agents
from tests.understanding_cases import card_for

CARDS = '''
from tasklore import Agent, Amount, Field, Parameters

lender = Agent("LenderAgent", description="Lends bicycles.", keywords=("bicycle",))
spare = Agent("SpareAgent", description="Sells parts.", keywords=("saddle",))


class Rental(Parameters):
    """A bicycle for some days."""

    days: int = Field(ge=1, cues=("days",))


@lender.task(examples=({examples}))
def rent_bicycle(rental: Rental) -> int:
    """Rent a bicycle."""
    return rental.days


@spare.task(examples=("sell a saddle for 3 days",))
def sell_saddle(rental: Rental) -> int:
    """Sell a saddle."""
    return rental.days


@lender.task(in_words=False, examples=("wash it",))
def wash(rental: Rental) -> int:
    """Wash a bicycle, as a phase of a pipeline."""
    return rental.days
'''


@pytest.fixture(autouse=True)
def _without_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TASKLORE_LLM_BASE_URL", raising=False)


def cards(folder: Path, *examples: str) -> str:
    """Return the reference of agents whose only task with examples has *examples*."""
    path = folder / "cards.py"
    path.write_text(
        CARDS.replace("{examples}", "".join(f"{one!r}, " for one in examples)), "utf-8"
    )
    return str(path)


@pytest.mark.parametrize(
    ("example", "outcome", "code"),
    [
        ("rent a bicycle for 3 days", "right", 0),
        ("rent a bicycle", "asked", 1),
        ("SpareAgent, sell a saddle for 2 days", "collides", 1),
    ],
)
def test_an_example_is_right_asked_about_or_collides(
    example: str,
    outcome: str,
    code: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert check_examples([cards(tmp_path, example)], as_json=True) == code
    told = json.loads(capsys.readouterr().out)
    [checked] = [one for one in told["examples"] if one["agent_id"] == "LenderAgent"]
    assert (checked["example"], checked["rules"]["outcome"], checked["model"]) == (
        example,
        outcome,
        None,
    )
    assert (told["is_read"], told["without_examples"]) == (code == 0, [])


def test_a_task_without_examples_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check_examples([cards(tmp_path)], as_json=False) == 0
    assert (
        "LenderAgent.rent_bicycle has no examples; give it" in capsys.readouterr().err
    )


def test_agents_without_tasks_in_words_are_no_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "phases.py"
    path.write_text(CARDS.replace("{examples}", "").replace(".task(", ".task(in_words=False, ").replace(
        "in_words=False, in_words=False", "in_words=False"), "utf-8")  # fmt: skip
    assert check_examples([str(path)], as_json=False) == 0
    assert try_lines([str(path)]) == 0
    assert (
        capsys.readouterr().err.count(
            "no task of these agents may be asked for in words"
        )
        == 2
    )


def test_a_worker_warns_of_unread_examples(tmp_path: Path) -> None:
    agents = load_agents(
        cards(
            tmp_path,
            "rent a bicycle for 2 days",
            "SpareAgent, sell a saddle for 2 days",
        )
    )
    with structlog.testing.capture_logs() as logged:
        warn_of_unread(agents)
    assert {(one["event"], one["log_level"], one["outcome"]) for one in logged} == {
        ("example_not_read", "warning", "collides")
    }
    assert [(one["task"], one["example"]) for one in logged] == [
        ("rent_bicycle", "SpareAgent, sell a saddle for 2 days"),
    ]


def test_try_shows_values_with_their_places(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "sys.stdin", io.StringIO("rent a bicycle for 3 days\n\nrent a bicycle\n5\n")
    )
    assert try_lines([cards(tmp_path, "rent a bicycle for 2 days")]) == 0
    printed = capsys.readouterr().out
    assert "LenderAgent.rent_bicycle\n" in printed
    assert "'3' at 19" in printed or "'3 days' at 19" in printed
    assert "missing: days" in printed
    assert printed.rstrip().splitlines()[-1].split()[:2] == ["days", "5"]


def test_an_amount_without_a_unit_is_named() -> None:
    """A currency that is said of it is asked about; one field declares its unit, another takes any currency."""

    class Bill(Parameters):
        """Amounts of four kinds."""

        price: Amount = Field(unit="EUR")
        tip: Amount
        deposit: Amount = Field(any_currency=True)
        guests: int

    card = card_for("TillAgent", "bill", Bill, "Bill it.", ("bill",))
    catalogue = Catalogue([card])
    assert dict(amounts_without_unit(catalogue)) == {"TillAgent.bill": ["tip"]}


def test_an_amount_whose_currency_is_dropped_is_named() -> None:
    """Money keeps it, and a field for it beside the amounts does."""

    class Deposit(Parameters):
        """A currency that nobody keeps, and one that is kept."""

        deposit: Amount = Field(any_currency=True)
        fee: Money

    class Paid(Parameters):
        """A currency that a field keeps."""

        amount: Amount
        currency: str = "EUR"

    catalogue = Catalogue(
        [
            card_for("TillAgent", "keep", Deposit, "Keep it.", ("keep",)),
            card_for("PayAgent", "pay", Paid, "Pay it.", ("pay",)),
        ]
    )
    assert dict(amounts_that_lose_currency(catalogue)) == {
        "TillAgent.keep": ["deposit"]
    }
    assert not dict(amounts_without_unit(catalogue))


@pytest.mark.parametrize(
    ("examples", "told"),
    [
        (["rent a bicycle for 3 days"], "2 examples without a model: all start their task."),
        (
            ["rent a bicycle for 3 days", "rent a bicycle"],
            "3 examples without a model: 2 start their task, 1 are not read, only asked about (say what is asked for,",
        ),
        (
            ["rent a bicycle", "SpareAgent, sell a saddle for 2 days"],
            "or give it a default), 1 are not read (reword",
        ),
    ],
)  # fmt: skip
def test_examples_that_are_only_asked_about_are_not_called_read(
    examples: list[str],
    told: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    check_examples([cards(tmp_path, *examples)], as_json=False)
    assert told in capsys.readouterr().out


def test_an_example_that_is_shown_for_the_yes_of_its_task_is_right(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With all its values; without one it is only asked about."""
    path = Path(cards(tmp_path, "rent a bicycle for 3 days"))
    confirmed = path.read_text("utf-8").replace(
        "(examples=(", "(confirm=True, examples=("
    )
    path.write_text(confirmed, "utf-8")
    assert check_examples([str(path)], as_json=False) == 0
    other = tmp_path / "others.py"
    other.write_text(confirmed.replace("bicycle for 3 days", "bicycle"), "utf-8")
    assert check_examples([str(other)], as_json=False) == 1
    assert "1 are not read, only asked about" in capsys.readouterr().out
