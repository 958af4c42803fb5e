"""The script that takes a user's imports from 0.2 to 0.3."""

import pytest

from examples.rename_imports import rename


@pytest.mark.parametrize(
    ("was", "becomes"),
    [
        ("from workers import Agent, Context", "from tasklore import Agent, Context"),
        (
            "from workers.testing import AgentKit",
            "from tasklore.testing import AgentKit",
        ),
        (
            "from workers.testing.fakes import KitServices",
            "from tasklore.workers.testing.fakes import KitServices",
        ),
        ("import workers as agents", "import tasklore as agents"),
        (
            "from contracts.errors import GiveUp",
            "from tasklore.contracts.errors import GiveUp",
        ),
        ("import workers.agents.budget", "import tasklore.workers.agents.budget"),
        (
            "from quantities import amounts",
            "from tasklore.contracts.quantities import amounts",
        ),
        (
            "    from quantities.amounts import Amount",
            "    from tasklore.contracts.quantities.amounts import Amount",
        ),
        ("from tasklore.client import Client", "from tasklore.client import Client"),
        ("from workersunion import Strike", "from workersunion import Strike"),
        (
            "memory = 'from workers import Agent'",
            "memory = 'from workers import Agent'",
        ),
    ],
)
def test_an_import_of_0_2_becomes_that_of_0_3(was: str, becomes: str) -> None:
    """Only what is imported is renamed, and a second run changes nothing."""
    assert rename(was) == becomes
    assert rename(becomes) == becomes
