"""The coin world: senses, outcomes of choices, pace, and invalid worlds."""

import asyncio
from collections.abc import Mapping

import pytest

from examples.coin_world.running import Answer, Runner
from examples.coin_world.world import REACH, SIGHT, Choice, Place, World
from tasklore.contracts.errors import InvalidInput
from tasklore.workers.agents.decision import Moment

EVERYBODY = ("Ana", "Bob", "Carol")


def world(seed: int = 7, size: int = 10, coins: int = 30) -> World:
    return World.new(seed, EVERYBODY, size, coins)


def coins_in(of: World) -> list[Place]:
    return [Place(coin["x"], coin["z"]) for coin in of.picture()["coins"]]


def nearest(of: World, name: str) -> Place:
    return min(coins_in(of), key=of.place(name).far_from)


def step_towards(here: Place, there: Place) -> Place:
    far = here.far_from(there)
    share = min(1.0, 1.0 / far) if far else 0.0
    return Place(
        here.x + (there.x - here.x) * share, here.z + (there.z - here.z) * share
    )


def walk(of: World, name: str, there: Place) -> None:
    while of.place(name).far_from(there) > REACH:
        of.apply({name: Choice("move", step_towards(of.place(name), there))})


def test_moments_are_valid_parameters_of_the_agent() -> None:
    of = world()
    for _ in range(3):
        for name in EVERYBODY:
            moment = Moment.read(of.moment(name))
            assert moment.others == tuple(other for other in EVERYBODY if other != name)
            assert moment.bounds is not None
            assert moment.bounds.hold(moment.sensory_data.position)
        of.apply(
            {
                name: Choice("move", step_towards(of.place(name), Place(5, 5)))
                for name in EVERYBODY
            }
        )


def test_only_near_things_are_sensed() -> None:
    of = world(size=20, coins=100)
    here = of.place("Ana")
    sensed = of.senses("Ana")
    seen = {Place(**thing["position"]) for thing in sensed["worldObjects"]}
    assert seen == {coin for coin in coins_in(of) if coin.far_from(here) <= SIGHT}
    assert seen
    near = [
        other for other in ("Bob", "Carol") if of.place(other).far_from(here) <= SIGHT
    ]
    assert [other["name"] for other in sensed["nearbyAgents"]] == near


def test_a_coin_is_collected_once() -> None:
    of = world()
    coin = nearest(of, "Ana")
    walk(of, "Ana", coin)
    walk(of, "Bob", coin)
    deeds = of.apply(dict.fromkeys(("Ana", "Bob"), Choice("collect", coin)))
    assert sorted(str(deeds[name].refused) for name in ("Ana", "Bob")) == [
        "None",
        "there is no coin any more",
    ]
    assert (of.collected("Ana") + of.collected("Bob"), of.left) == (1, 29)
    assert deeds["Carol"].late


@pytest.mark.parametrize(
    ("choice", "why"),
    [
        (Choice("move", Place(11, 5)), "outside the world"),
        (Choice("move", Place(float("nan"), 5)), "outside the world"),
        (Choice("move"), "nobody can 'move' like that"),
        (Choice("dance"), "nobody can 'dance' like that"),
        (Choice("collect", Place(0.5, 0.5)), "no coin"),
        (Choice("text", to="Zoe", said="Hello."), "nobody called 'Zoe'"),
    ],
)
def test_an_invalid_choice_is_refused(choice: Choice, why: str) -> None:
    of = world()
    before = of.place("Ana"), coins_in(of)
    deeds = of.apply({"Ana": choice, "Bob": Choice("wait")})
    assert why in str(deeds["Ana"].refused)
    assert deeds["Bob"].refused is None
    assert (of.place("Ana"), coins_in(of), of.step) == (*before, 1)


def test_steps_and_reach_are_limited() -> None:
    of = world(size=20)
    here = of.place("Ana")
    far = max(coins_in(of), key=here.far_from)
    corner = Place(0.0, 0.0) if here.far_from(Place(0, 0)) > 2 else Place(20.0, 20.0)
    assert (
        of.apply({"Ana": Choice("move", corner)})["Ana"].refused
        == "that is too far for one step"
    )
    assert (
        of.apply({"Ana": Choice("collect", far)})["Ana"].refused == "it is out of reach"
    )


@pytest.mark.parametrize(
    ("plan", "field"),
    [
        ((7, (), 10, 5), "names"),
        ((7, ("Ana", "Ana"), 10, 5), "names"),
        ((7, EVERYBODY, 0, 5), "size"),
        ((7, EVERYBODY, 10, 122), "coins"),
    ],
)
def test_an_invalid_world_is_refused(
    plan: tuple[int, tuple[str, ...], int, int], field: str
) -> None:
    with pytest.raises(InvalidInput, match=rf"^{field} (is|are) "):
        World.new(*plan)


async def waits(of: World) -> Mapping[str, Answer]:
    """Decide that everybody waits, but for Carol, of whom nothing is heard."""
    told = {
        name: Answer(Choice("wait", by="rules"), prompt=f"You are {name}.")
        for name in of.plan.names
    }
    return {**told, "Carol": Answer(None, problem="no worker is up")}


async def test_a_paused_world_makes_single_steps() -> None:
    runner = Runner(world(), waits, steps=5, paused=True)
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        run = group.create_task(runner.run())
        runner.single_step()
        while runner.world.step == 0:
            await runner.changed(runner.version)
        assert (runner.world.step, runner.picture()["running"]) == (1, False)
        runner.pace(0)
        runner.play()
        await run
    assert runner.world.step == 5
    assert runner.picture()["over"]
    assert not runner.picture()["running"]


async def test_a_silent_agent_waits_and_is_late() -> None:
    runner = Runner(world(), waits, steps=1)
    await runner.run()
    shown = {agent["name"]: agent for agent in runner.picture()["agents"]}

    assert [shown[name]["late"] for name in EVERYBODY] == [False, False, True]
    assert runner.told("Ana") == {
        "name": "Ana",
        "step": 1,
        "prompt": "You are Ana.",
        "decision": {
            "action": "wait",
            "to": None,
            "said": None,
            "reasoning": "",
            "by": "rules",
            "target": None,
        },
        "problem": None,
    }
    silent = runner.told("Carol")
    assert silent is not None
    assert (silent["decision"], silent["problem"]) == (None, "no worker is up")
    assert runner.told("Nobody") is None
