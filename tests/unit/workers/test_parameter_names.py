"""Names of parameters that the base class uses too: each works whole, or is refused with the cure."""

import json
import warnings
from dataclasses import replace
from typing import Any

import pytest
from pydantic.errors import PydanticUserError

from tasklore import Agent, Parameters
from tasklore.contracts.errors import InvalidParameters
from tests.unit.workers.execution.fake_worker import FakeWorker, a_task

#: Every public name of the base class, and words that agents and their callers use.
OWN = sorted(name for name in dir(Parameters) if not name.startswith("_"))
REFUSED = [name for name in OWN if name.startswith("model_")]
OPEN = [name for name in OWN if name not in REFUSED]
WORDS = ["agent", "cls", "context", "parameters", "self", "task", "tenant", "user"]


def parameters(name: str) -> type[Parameters]:
    """Return parameters with one field of that *name*, as an author would write them."""
    return type(
        "Named",
        (Parameters,),
        {
            "__annotations__": {name: str},
            "__module__": __name__,
            "__doc__": "Parameters with an odd name.",
        },
    )


@pytest.mark.parametrize("name", REFUSED)
def test_a_name_that_pydantic_uses_itself_is_refused_where_it_is_declared(
    name: str,
) -> None:
    """With the field, and for all but the one that is configuration with another name for it."""
    with pytest.raises((TypeError, PydanticUserError), match=f"{name}.*{name}"):
        parameters(name)


@pytest.mark.parametrize("name", [*OPEN, *WORDS])
async def test_any_other_name_works_whole(name: str) -> None:
    """It is declared without a warning, is required, and each of its values is a question of its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        named = parameters(name)
    with pytest.raises(InvalidParameters, match=f"{name} is missing"):
        Parameters.read.__func__(named, {})  # type: ignore[attr-defined]  # it may be hidden
    card = Parameters.schema_for_cards.__func__(named)  # type: ignore[attr-defined]  # it may be hidden
    assert card["required"] == [name]

    async def echo(asked: Any) -> str:
        """Say it again."""
        return str(getattr(asked, name))

    echo.__annotations__ = {"asked": named, "return": str}

    def declare(agent: Agent) -> None:
        agent.task(name="echo", remember="shared")(echo)

    worker = FakeWorker(declare=declare)
    for word in ("one", "two", "one"):
        delivery = a_task()
        body = json.loads(delivery.body)
        body["task"] = {"name": "echo", "parameters": {name: word}}
        body["task_id"] = f"t{len(worker.outbox.stored)}"
        await worker.work(replace(delivery, body=json.dumps(body).encode()))
    reports = worker.outbox.reports()
    assert [one.result for one in reports] == ["one", "two", "one"], reports
    assert [one.memory.outcome for one in reports] == ["miss", "miss", "hit"]


def test_a_default_of_such_a_field_stays() -> None:
    """What its author wrote, also where another class adds to it."""

    class Stored(Parameters):
        """Parameters with a default."""

        key: str = "front"
        read: bool = False

    class More(Stored):
        """The same, and one more."""

        copy: int

    assert More.read({"copy": 2}) == More(key="front", read=False, copy=2)
