"""How the HTTP API answers each case of its document is as it is frozen.

After a change: `python -m tests.golden.write http`; docs/reference/changes-0.3.md
explains each difference.
"""

from typing import Any

import pytest

from tests.golden.calling import show_verdicts
from tests.golden.frozen import demand_frozen, read

FROZEN = read("http_errors.json")

pytestmark = pytest.mark.timeout(400)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Call every operation in every way once."""
    return show_verdicts(tmp_path_factory.mktemp("http"))


@pytest.mark.parametrize("operation", sorted(FROZEN))
def test_an_operation_answers_as_it_is_frozen(
    operation: str, shown: dict[str, dict[str, Any]]
) -> None:
    """Status, type and places of faults, and the sentence for a person, by case."""
    demand_frozen(shown[operation], FROZEN[operation])


def test_every_operation_is_frozen(shown: dict[str, dict[str, Any]]) -> None:
    assert sorted(shown) == sorted(FROZEN)
