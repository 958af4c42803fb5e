"""The prepared tasks of a catalogue: made once, beside whoever asks about another one, and kept while it is used."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tasklore.contracts.messages import AgentCard, TaskCard
from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.understanding import RuleInterpreter, rules
from tasklore.supervisor.understanding.routing import Router

#: Seconds after which a test gives up.
PATIENCE_S = 30.0
MANY = 100


def card(agent_id: str) -> AgentCard:
    """Return the card of an agent with one task."""
    task = TaskCard(name="work", parameters={"type": "object", "properties": {}})
    return AgentCard(agent_id=agent_id, tasks=(task,), digest="0011223344556677")


class Maker:
    """Makes routers; those of *slow* only when `goes_on` is set."""

    def __init__(self) -> None:
        self.made: list[Catalogue] = []
        self.slow: Catalogue | None = None
        self.begun, self.goes_on = threading.Event(), threading.Event()

    def __call__(self, catalogue: Catalogue) -> Router:
        """Return the router of *catalogue*."""
        self.made.append(catalogue)
        if catalogue is self.slow:
            self.begun.set()
            assert self.goes_on.wait(PATIENCE_S)
        return Router(catalogue)


@pytest.fixture
def maker(monkeypatch: pytest.MonkeyPatch) -> Iterator[Maker]:
    maker = Maker()
    monkeypatch.setattr(rules, "Router", maker)
    yield maker
    maker.goes_on.set()


@pytest.fixture
def whole() -> Catalogue:
    return Catalogue(card(f"Agent{number}") for number in range(MANY))


def part_of(whole: Catalogue, number: int) -> Catalogue:
    """Return the part with one agent."""
    part = whole.narrow(f"Agent{number}")
    assert part is not None
    return part


def test_a_router_that_is_made_holds_up_nobody_who_asks_for_another(
    maker: Maker, whole: Catalogue
) -> None:
    maker.slow = whole
    interpreter = RuleInterpreter()
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(interpreter.router, whole)
        assert maker.begun.wait(PATIENCE_S)
        part = threads.submit(interpreter.router, part_of(whole, 0)).result(PATIENCE_S)
        assert not first.done()
        maker.goes_on.set()
        assert first.result(PATIENCE_S).catalogue.cards.keys() == whole.cards.keys()
    assert part.catalogue.cards.keys() == {"Agent0"}


def test_of_two_routers_of_one_catalogue_one_is_kept(
    maker: Maker, whole: Catalogue
) -> None:
    maker.slow = whole
    interpreter = RuleInterpreter()
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(interpreter.router, whole)
        assert maker.begun.wait(PATIENCE_S)
        maker.slow = None
        kept = interpreter.router(whole)
        maker.goes_on.set()
        assert first.result(PATIENCE_S) is kept
    assert interpreter.router(whole) is kept
    assert maker.made == [whole, whole]


def test_a_router_of_a_catalogue_that_was_replaced_meanwhile_is_not_kept(
    maker: Maker, whole: Catalogue
) -> None:
    maker.slow = whole
    latest = Catalogue([card("Agent0")])
    interpreter = RuleInterpreter()
    with ThreadPoolExecutor(1) as threads:
        first = threads.submit(interpreter.router, whole)
        assert maker.begun.wait(PATIENCE_S)
        kept = interpreter.router(latest)
        maker.goes_on.set()
        first.result(PATIENCE_S)
    assert interpreter.router(latest) is kept
    assert maker.made == [whole, latest]


def test_parts_that_are_asked_about_take_the_whole_from_nobody(
    maker: Maker, whole: Catalogue
) -> None:
    """Of the parts the last ones used are kept."""
    interpreter = RuleInterpreter()
    for number in range(MANY):
        interpreter.router(whole)
        interpreter.router(part_of(whole, number))
    assert maker.made.count(whole) == 1
    interpreter.router(part_of(whole, MANY - 1))
    assert len(maker.made) == MANY + 1
    interpreter.router(part_of(whole, 0))
    assert len(maker.made) == MANY + 2
