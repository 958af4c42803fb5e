"""The world of the example stays a world, by any choices of anyone in any order."""

import tempfile
from collections.abc import Mapping
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from examples.coin_world.recording import Recorder
from examples.coin_world.replaying import read_recording
from examples.coin_world.running import Runner
from examples.coin_world.world import STRIDE, Choice, Place, World, names
from tests.property.examples import examples

Chosen = Mapping[str, Choice | None]

WORLDS = st.builds(
    lambda seed, agents, size, share: World.new(
        seed, names(agents), size, round(share * (size + 1) ** 2)
    ),
    st.integers(),
    st.integers(1, 8),
    st.integers(1, 6),
    st.floats(0, 1),
)
#: Coordinates inside, outside and nowhere near; what is no finite number is refused before it is a choice.
COORDINATES = st.one_of(
    st.integers(-1, 7).map(float), st.floats(allow_nan=False, allow_infinity=False)
)


def choices_in(world: World) -> st.SearchStrategy[dict[str, Choice | None]]:
    """Return what everybody may choose: much that is possible, some that is not, and nothing."""
    coins = [Place(coin["x"], coin["z"]) for coin in world.picture()["coins"]]
    somewhere = st.builds(Place, COORDINATES, COORDINATES)
    collecting = st.builds(
        Choice, st.just("collect"), st.sampled_from(coins) if coins else somewhere
    )

    def chosen(name: str) -> st.SearchStrategy[Choice | None]:
        here = world.place(name)
        near = st.builds(
            lambda x, z: Place(here.x + x, here.z + z),
            st.floats(-1, 1),
            st.floats(-1, 1),
        )
        others = st.sampled_from((*world.plan.names, "Nobody"))
        return st.one_of(
            st.builds(Choice, st.just("move"), st.one_of(near, somewhere)),
            collecting,
            st.builds(Choice, st.just("text"), st.none(), others, st.text(max_size=20)),
            st.sampled_from([None, Choice("wait"), Choice("dance")]),
        )

    return st.fixed_dictionaries({name: chosen(name) for name in world.plan.names})


@examples(12)
@given(WORLDS, st.data())
def test_no_coin_is_lost_or_made_whatever_the_order_of_the_choices(
    world: World, data: st.DataObject
) -> None:
    other = World(world.plan)
    for _ in range(4):
        before = {name: world.place(name) for name in world.plan.names}
        choices: Chosen = data.draw(choices_in(world))
        order = data.draw(st.permutations(sorted(choices)))
        world.apply(choices)
        other.apply({name: choices[name] for name in order})

        assert world.digest() == other.digest()
        assert (
            world.left + sum(world.collected(name) for name in world.plan.names)
            == world.plan.coins
        )
        for name, there in before.items():
            assert all(0 <= edge <= world.plan.size for edge in world.place(name))
            assert world.place(name).far_from(there) <= STRIDE + 1e-6


@examples(12)
@given(WORLDS, st.data())
def test_of_those_who_reach_for_a_coin_exactly_one_gets_it(
    world: World, data: st.DataObject
) -> None:
    """One of those who could, whatever the others do."""
    coins = [Place(coin["x"], coin["z"]) for coin in world.picture()["coins"]]
    choices = data.draw(choices_in(world))
    able = {
        coin: {
            name
            for name, choice in choices.items()
            if choice is not None
            and choice.action == "collect"
            and choice.target == coin
            if world.place(name).far_from(coin) <= 1
        }
        for coin in coins
    }
    deeds = world.apply(choices)
    left = {Place(coin["x"], coin["z"]) for coin in world.picture()["coins"]}

    for coin, those in able.items():
        assert len([name for name in those if deeds[name].refused is None]) == min(
            1, len(those)
        )
        assert (coin in left) == (not those)


@examples(8)
@given(WORLDS, st.data())
async def test_a_recording_goes_the_same_way_again(
    world: World, data: st.DataObject
) -> None:
    """Every world of it, whatever was chosen."""
    worlds = list[str]()
    with tempfile.NamedTemporaryFile() as kept:
        recorder = Recorder(Path(kept.name), world.plan)
        for _ in range(data.draw(st.integers(1, 4))):
            choices = data.draw(choices_in(world))
            world.apply(choices)
            recorder.note(world, choices)
            worlds.append(world.digest())
        recorder.close()
        recording = read_recording(Path(kept.name))
    again: list[str] = []
    runner = Runner(
        World(recording.plan),
        recording.decide,
        notes=[recording.check, lambda world, _: again.append(world.digest())],
        steps=len(recording.worlds),
    )
    await runner.run()

    assert again == worlds
