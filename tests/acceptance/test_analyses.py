"""Turn analysis on real processes: one worker with the ten agents, one supervisor, and what an outside program sees."""

import asyncio

from tasklore.contracts.analysis.section_agents import SECTION_AGENTS
from tasklore.contracts.analysis.stories import SeatSettings
from tasklore.memory.stories.view import CHANGING
from tests.acceptance.analyses import STORY, TELLERS, editor
from tests.acceptance.system import System

TEXT = "Mara set the lamp down."


async def test_a_response_is_analysed_by_all_and_served_from_memory_the_second_time(
    own_system: System,
) -> None:
    """Ten agents take part, an eleventh of the story's own too; asked again, nobody is."""
    own_system.worker(TELLERS).ready()
    own_system.supervisor().ready()
    async with editor(own_system) as desk:
        on = SeatSettings(enabled=True)
        tone = SeatSettings(agent="ToneAgent", task="hear_tone", after=("knowledge",))
        await desk.load({"contradiction": on, "tone": tone})
        first = await desk.ask(1, TEXT, chapter=2)
        again = await desk.ask(1, TEXT, chapter=2)
        changes = await desk.changes()

    assert (first.kind, first.served) == ("done", False), first
    assert first.document is not None
    meta = first.document["meta"]
    assert isinstance(meta, dict)
    assert (meta["agents_run"], meta["agents_ok"], meta["status"]) == (
        11,
        11,
        "fresh",
    ), first.document
    background = first.document["background"]
    assert isinstance(background, dict)
    assert background["tone"] == {**background["tone"], "by": "rules"}  # type: ignore[dict-item] # a section
    assert (again.served, again.document) == (True, first.document)
    assert {
        section: change.model_dump(exclude_defaults=True)
        for section, change in changes[1].items()
    } == {
        "resp_analyzer": {"scene": "dialogue", "tension": 1.0},
        "memory_create": {
            "memories": (
                {
                    "id": "MEM-1-lamp",
                    "character": "Mara",
                    "title": "Lamp",
                    "summary": "Lit the lamp, 1",
                    "chapter": 2,
                    "response": 1,
                },
            )
        },
        "relationship": {"points": {"Mara|Tom": 5.0}},
        "plot_threads": {
            "threads": (
                {"id": "THREAD-001", "title": "Who was at the door in 1", "opened": 1},
            )
        },
        "knowledge": {
            "facts": (
                {"subj": "Harbour", "fact": "It froze in year 1", "src": "Ch2-R1"},
            )
        },
    }


async def test_whatever_one_agent_does_nine_sections_and_a_truthful_head_are_left(
    own_system: System,
) -> None:
    own_system.worker(
        *(
            f"{TELLERS}:{seat.section}_agent"
            for seat in SECTION_AGENTS
            if seat.section != "knowledge"
        )
    ).ready()
    own_system.worker(f"{TELLERS}:knowledge_agent").ready()
    own_system.supervisor().ready()
    deeds = {1: "hang", 2: "raise", 3: "nonsense", 4: "die"}
    async with editor(own_system) as desk:
        on = SeatSettings(enabled=True)
        documents = {}
        replies = []
        # What answers has all the time of a busy machine; what never does is waited for briefly.
        for deadline_s, numbers in ((60, (2, 3)), (4, (1,)), (4, (4,))):
            knowledge = SeatSettings(deadline_s=deadline_s)
            await desk.load(
                {"contradiction": on, "knowledge": knowledge}, patience_s=1, late_s=0
            )
            asked = [
                desk.ask(number, f"{TEXT}\n@knowledge {deeds[number]}")
                for number in numbers
            ]
            replies += await asyncio.gather(*asked)
            documents |= {number: await desk.ended(number) for number in numbers}

    assert [reply.kind for reply in replies] == ["done"] * 4, replies
    for number, document in documents.items():
        meta = document["meta"]
        sections = {**document["background"], **document["immediate"]}
        counts = [meta[f"agents_{count}"] for count in ("run", "ok", "fail", "skip")]
        assert (counts, meta["resp_num"]) == ([10, 9, 1, 0], number), document
        assert [name for name, section in sections.items() if "status" in section] == [
            "knowledge"
        ]
        assert sections["knowledge"]["status"] == (
            "late" if deeds[number] in ("hang", "die") else "failed"
        ), document
    assert documents[4]["meta"]["status"] == "partial"
    assert {
        number: documents[number]["background"]["knowledge"]
        .get("error", "")
        .partition(":")[0]
        for number in deeds
    } == {
        1: "",
        2: "ValueError",
        3: "Nonsense",
        4: "",
    }


async def test_an_analysis_waits_for_a_store_that_is_away(own_system: System) -> None:
    """Valkey is gone while an agent works, and comes back as it was: nothing is lost or found twice."""
    own_system.worker(TELLERS).ready()
    own_system.supervisor().ready()
    gate = own_system.folder / "gate"
    async with editor(own_system) as desk:
        await desk.load()
        asking = asyncio.ensure_future(desk.ask(1, f"{TEXT}\n@knowledge wait {gate}"))
        await desk.begun("knowledge", 1)
        own_system.servers.valkey.kill()
        gate.touch()
        await own_system.servers.valkey.start()
        reply = await asking
        document = await desk.ended(1)
        changes = await desk.changes()

    assert reply.kind in ("done", "refused"), reply
    assert document["meta"]["agents_ok"] == 9
    assert sorted(changes[1]) == sorted(CHANGING)
    assert changes[1]["relationship"].points == {"Mara|Tom": 5}


async def test_two_responses_at_once_lose_no_update(own_system: System) -> None:
    """Twelve responses of one story, asked for side by side of two supervisors: each change is there once."""
    own_system.worker(TELLERS).ready()
    own_system.supervisor().ready()
    own_system.supervisor().ready()
    async with editor(own_system) as desk:
        await desk.load()
        replies = await asyncio.gather(
            *(desk.ask(number, f"{TEXT} {number}") for number in range(1, 13))
        )
        changes = await desk.changes()
        standing = await desk.stories.standing(STORY, 13)
        ran = {
            seat.section: desk.ran(seat.section)
            for seat in SECTION_AGENTS
            if seat.enabled
        }

    assert [reply.kind for reply in replies] == ["done"] * 12
    assert standing.scores == {"Mara|Tom": 18 + 12 * 5}
    assert (
        len({state.thread.id for state in standing.threads})
        == len(standing.threads)
        == 12
    )
    assert sorted(changes) == list(range(1, 13))
    assert {len(by) for by in changes.values()} == {5}
    assert all(
        set(counts.values()) == {1} and len(counts) == 12 for counts in ran.values()
    ), ran
