"""The contract of project memory."""

import asyncio
import itertools
import sys

import pytest
from redis.asyncio import Redis

from contracts.errors import InvalidInput
from memory import keys
from memory.projects.project import ProjectMemory, Record
from memory.projects.records import MAX_DATA_BYTES, MAX_TEXT, Kind
from runtime.servers.embedded import ValkeyServer
from tests.architecture.tree import ROOT

SHOP = "shop"


@pytest.fixture
def memory(valkey_or_redis: Redis) -> ProjectMemory:
    """Return a project memory on a server, patient on a busy machine."""
    return ProjectMemory(valkey_or_redis, deadline_s=30.0)


async def found(memory: ProjectMemory, **wanted: object) -> list[str]:
    """Return the ids of what is found, newest first."""
    return [record.record_id for record in await memory.search(SHOP, **wanted)]  # type: ignore[arg-type] # any of them


async def exported(memory: ProjectMemory, project: str = SHOP) -> list[Record]:
    """Return every record."""
    return [record async for record in memory.export(project)]


async def test_a_record_is_read_as_it_was_appended(memory: ProjectMemory) -> None:
    """With everything that was said of it, and the time of the server."""
    appended = await memory.append(
        SHOP,
        "decision",
        "Prices are kept in cents.\nNever as floats.",
        tags=["Money", " naming "],
        by="ana",
        session_id="run-1",
        data={"files": ["a.py", None, 1.5], "é": {"ok": True}},
    )

    assert appended == await memory.read(SHOP, "d1")
    assert appended.tags == ("Money", "naming")
    assert (appended.by, appended.session_id, appended.superseded_by) == ("ana", "run-1", None)
    assert appended.data == {"files": ["a.py", None, 1.5], "é": {"ok": True}}
    assert appended.at_ms > 1_500_000_000_000


async def test_what_is_not_there_is_none(memory: ProjectMemory) -> None:
    """Neither a record of a known project nor a project."""
    await memory.append(SHOP, "decision", "one")
    assert await memory.read(SHOP, "d2") is None
    assert await memory.read("nowhere", "d1") is None
    assert await memory.search("nowhere") == []
    assert await memory.chain("nowhere", "d1") == []


async def test_ids_grow_by_kind_and_project(memory: ProjectMemory) -> None:
    """Each kind counts by itself."""
    kinds: list[Kind] = ["decision", "standard", "decision", "history", "standard"]
    assert [(await memory.append(SHOP, kind, "x")).record_id for kind in kinds] == ["d1", "s1", "d2", "h1", "s2"]
    assert (await memory.append("other", "decision", "x")).record_id == "d1"


async def test_many_at_once_get_ids_of_their_own(memory: ProjectMemory) -> None:
    """In the order of time, with none left out."""
    records = await asyncio.gather(*(memory.append(SHOP, "history", f"run {n}") for n in range(50)))
    assert sorted(int(record.record_id[1:]) for record in records) == list(range(1, 51))
    in_order = await exported(memory)
    assert [record.record_id for record in in_order] == [f"h{n}" for n in range(1, 51)]
    assert all(one.at_ms <= other.at_ms for one, other in itertools.pairwise(in_order))


async def test_a_token_appends_once(memory: ProjectMemory) -> None:
    """A repeat, also of many at once, gets the record of the first time, whatever it says."""
    first = await memory.append(SHOP, "decision", "one", token="run-1")
    again = await asyncio.gather(*(memory.append(SHOP, "decision", f"{n}", token="run-1") for n in range(10)))
    assert again == [first] * 10
    assert await found(memory) == ["d1"]


async def test_a_repeated_superseding_is_no_second_one(memory: ProjectMemory) -> None:
    """Its own first time is not held against it."""
    await memory.append(SHOP, "standard", "tabs")
    first = await memory.append(SHOP, "standard", "spaces", supersedes="s1", token="t")
    assert await memory.append(SHOP, "standard", "spaces", supersedes="s1", token="t") == first


async def test_the_same_words_without_a_token_are_two_records(memory: ProjectMemory) -> None:
    """Somebody may decide the same twice."""
    await memory.append(SHOP, "decision", "one")
    assert (await memory.append(SHOP, "decision", "one")).record_id == "d2"


async def test_a_superseded_record_stays_readable(memory: ProjectMemory) -> None:
    """It tells what superseded it, is found, and is no longer in force."""
    await memory.append(SHOP, "decision", "Use tabs everywhere")
    await memory.append(SHOP, "decision", "Use spaces everywhere", supersedes="d1")

    old = await memory.read(SHOP, "d1")
    assert old is not None
    assert (old.text, old.superseded_by, old.is_in_force) == ("Use tabs everywhere", "d2", False)
    assert await found(memory, text="everywhere") == ["d2", "d1"]
    assert await found(memory, text="everywhere", in_force=True) == ["d2"]
    assert await found(memory, in_force=True, kind="decision") == ["d2"]


@pytest.mark.parametrize("asked", ["d1", "d3", "d5"])
async def test_a_chain_is_read_from_any_of_its_records(memory: ProjectMemory, asked: str) -> None:
    """Both ways, oldest first."""
    await memory.append(SHOP, "decision", "version 1")
    await memory.append(SHOP, "decision", "of something else")
    for number, old in ((3, "d1"), (4, "d3"), (5, "d4")):
        await memory.append(SHOP, "decision", f"version {number}", supersedes=old)
    assert [record.record_id for record in await memory.chain(SHOP, asked)] == ["d1", "d3", "d4", "d5"]
    assert [record.record_id for record in await memory.chain(SHOP, "d2")] == ["d2"]


async def test_a_long_chain_is_read_whole(memory: ProjectMemory) -> None:
    """However often somebody changed their mind."""
    await memory.append(SHOP, "decision", "1")
    for number in range(2, 603):
        await memory.append(SHOP, "decision", f"{number}", supersedes=f"d{number - 1}")
    chain = await memory.chain(SHOP, "d301")
    assert [record.text for record in chain] == [f"{number}" for number in range(1, 603)]
    assert await found(memory, in_force=True) == ["d602"]


async def test_what_cannot_be_superseded_is_refused(memory: ProjectMemory) -> None:
    """The message names the field, and what to do; nothing is written."""
    await memory.append(SHOP, "decision", "one")
    await memory.append(SHOP, "decision", "two", supersedes="d1")
    with pytest.raises(InvalidInput, match="supersedes 'd1' is superseded by 'd2' already"):
        await memory.append(SHOP, "decision", "three", supersedes="d1")
    with pytest.raises(InvalidInput, match="supersedes 'd9' is no record of project 'shop'"):
        await memory.append(SHOP, "decision", "three", supersedes="d9")
    with pytest.raises(InvalidInput, match="supersedes 'd2' is no standard"):
        await memory.append(SHOP, "standard", "three", supersedes="d2")
    assert await found(memory) == ["d2", "d1"]


async def test_one_of_many_supersedes(memory: ProjectMemory) -> None:
    """The others are told which one did."""
    await memory.append(SHOP, "standard", "one")
    outcomes = await asyncio.gather(
        *(memory.append(SHOP, "standard", f"{n}", supersedes="s1") for n in range(10)), return_exceptions=True
    )
    assert sum(isinstance(outcome, Record) for outcome in outcomes) == 1
    assert sum(isinstance(outcome, InvalidInput) for outcome in outcomes) == 9


async def test_words_find_what_has_them_all(memory: ProjectMemory) -> None:
    """Beginnings of words suffice, in any order and capitals; the newest comes first."""
    await memory.append(SHOP, "decision", "Cache the results of the analysis")
    await memory.append(SHOP, "decision", "Results are cached for an hour")
    await memory.append(SHOP, "history", "nothing of the kind")

    assert await found(memory, text="RESULTS cache") == ["d2", "d1"]
    assert await found(memory, text="cached") == ["d2"]
    assert await found(memory, text="ach") == []
    assert await found(memory, text="analysis hour") == []
    assert await found(memory, text="the") == ["h1", "d1"]
    assert await found(memory, text="  ") == ["h1", "d2", "d1"]
    assert await found(memory, text="?!") == []


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("Straße nach Größe", "STRASSE"),
        ("un café crème", "Café"),
        ("un cafe\u0301", "café"),
        ("Συμφωνία ΌΛΩΝ", "όλων"),
        ("решение принято", "РЕШ"),
        ("日本語の決定", "決定"),
        ("ภาษาไทย", "ไทย"),
        ("हिन्दी में", "हिन्दी"),
        ("max_value_bytes=16", "value 16"),
        ("see \uff26\uff35\uff2c\uff2c width", "full"),
        ("a b c", "b"),
        ("x" * 200, "x" * 200),
        ("x" * 200, "x" * 70),
        ("key:{a}:* %5B \x00 \x1b[2J 'quote\" KEYS[1]", "quote keys 5b"),
        ("\N{ZERO WIDTH JOINER}\N{COMBINING ACUTE ACCENT} odd", "odd"),
    ],
)
async def test_words_of_any_script_are_found(memory: ProjectMemory, text: str, query: str) -> None:
    """Case-folded, however their accents are spelled; what is hostile is a text like any other."""
    record = await memory.append(SHOP, "decision", text)
    await memory.append(SHOP, "decision", "something else")
    assert record.text == text
    assert await memory.search(SHOP, text=query) == [record]


async def test_accents_tell_words_apart(memory: ProjectMemory) -> None:
    """Whoever writes one means it."""
    await memory.append(SHOP, "decision", "résumé")
    assert await found(memory, text="resume") == []


async def test_a_beginning_of_very_many_words_finds_them(memory: ProjectMemory) -> None:
    """Also when it is too common to be looked up word by word."""
    await memory.append(SHOP, "decision", "quartz old")
    for number in range(600):
        await memory.append(SHOP, "history", f"qx{number} new{number % 7}")
    assert await found(memory, text="q", kind="decision") == ["d1"]
    assert await found(memory, text="q old") == ["d1"]
    assert len(await found(memory, text="q", limit=1000)) == 601
    assert len(await found(memory, text="new3", limit=1000)) == 86
    assert await found(memory, text="new", limit=3) == ["h600", "h599", "h598"]


async def test_a_beginning_finds_every_word_in_the_order_of_time(memory: ProjectMemory) -> None:
    """Words of very different frequency side by side, over several pages."""
    ids: list[str] = []
    for number in range(300):
        word = "than" if number % 100 == 0 else "that" if number % 10 == 0 else "the"
        record = await memory.append(SHOP, "history", f"{word} {'odd' if number % 2 else 'even'}")
        ids.insert(0, record.record_id)
    assert await found(memory, text="th", limit=1000) == ids
    assert await found(memory, text="th even", limit=1000) == ids[1::2]
    assert await found(memory, text="th", limit=7) == ids[:7]


async def test_a_beginning_finds_words_of_different_times_in_their_order(memory: ProjectMemory) -> None:
    """Also when one was said only lately and another only before."""
    texts = ["thick", "other"] * 150 + ["thin"] * 200 + ["thin", "thick"] * 25
    await memory.load(SHOP, [Record(f"h{n}", "history", text, at_ms=n) for n, text in enumerate(texts, 1)])
    expected = [f"h{n}" for n, text in enumerate(texts, 1) if text != "other"][::-1]
    assert await found(memory, text="thi", limit=1000) == expected
    assert await found(memory, text="thi", limit=90) == expected[:90]


async def test_tags_find_what_has_them_all(memory: ProjectMemory) -> None:
    """However they are capitalised; any printable text can be one."""
    await memory.append(SHOP, "decision", "one", tags=["Money", "a b:c#d/é{}"])
    await memory.append(SHOP, "decision", "two", tags=["money", "MONEY"])
    await memory.append(SHOP, "standard", "three", tags=["mon"])

    assert await found(memory, tags=["money"]) == ["d2", "d1"]
    assert await found(memory, tags=["MONEY", "A b:c#d/É{}"]) == ["d1"]
    assert await found(memory, tags=["mon"]) == ["s1"]
    assert await found(memory, tags=["money"], text="tw") == ["d2"]
    assert await found(memory, tags=["nobody"]) == []
    assert await found(memory, text="money") == []
    two = await memory.read(SHOP, "d2")
    assert two is not None
    assert two.tags == ("money",)


async def test_times_and_kinds_narrow_a_search(memory: ProjectMemory) -> None:
    """From one moment on, before another."""
    at = [1_000_000, 2_000_000, 2_000_000, 3_000_000]
    records = [Record(f"h{n + 1}", "history", f"run {n + 1}", at_ms=time) for n, time in enumerate(at)]
    await memory.load(SHOP, [*records, Record("d1", "decision", "run", at_ms=2_000_000)])

    assert await found(memory) == ["h4", "d1", "h3", "h2", "h1"]
    assert await found(memory, since_ms=2_000_000) == ["h4", "d1", "h3", "h2"]
    assert await found(memory, until_ms=2_000_000) == ["h1"]
    assert await found(memory, since_ms=2_000_000, until_ms=2_000_001, kind="history") == ["h3", "h2"]
    assert await found(memory, since_ms=2_000_001, until_ms=2_000_001) == []
    assert await found(memory, since_ms=9_000_000_000_000_000) == []
    assert await found(memory, since_ms=-5, until_ms=10**20, text="run 4") == ["h4"]


async def test_a_search_goes_on_where_another_ended(memory: ProjectMemory) -> None:
    """Page by page, whatever is appended meanwhile."""
    for number in range(10):
        await memory.append(SHOP, "decision" if number % 2 else "history", f"number {number}")
    first = await found(memory, text="number", limit=4)
    await memory.append(SHOP, "decision", "number 11")
    second = await found(memory, text="number", limit=4, before=first[-1])
    last = await found(memory, text="number", limit=4, before=second[-1])
    assert [*first, *second, *last] == ["d5", "h5", "d4", "h4", "d3", "h3", "d2", "h2", "d1", "h1"]
    with pytest.raises(InvalidInput, match="before 'd77' is no record"):
        await memory.search(SHOP, before="d77")


async def test_standards_are_those_in_force_with_any_of_the_tags(memory: ProjectMemory) -> None:
    """Newest first; without tags all of them."""
    await memory.append(SHOP, "standard", "snake_case", tags=["naming"])
    await memory.append(SHOP, "standard", "cents", tags=["money"])
    await memory.append(SHOP, "decision", "not a standard", tags=["naming"])
    await memory.append(SHOP, "standard", "snake_case, but Kebab in URLs", tags=["Naming", "urls"], supersedes="s1")

    assert [one.record_id for one in await memory.standards(SHOP, ["naming"])] == ["s3"]
    assert [one.record_id for one in await memory.standards(SHOP, ["urls", "money", "x"])] == ["s3", "s2"]
    assert [one.record_id for one in await memory.standards(SHOP)] == ["s3", "s2"]
    assert await memory.standards(SHOP, ["x"]) == []


async def test_every_standard_comes_along(memory: ProjectMemory) -> None:
    """More than one answer of a search may hold."""
    await memory.load(SHOP, [Record(f"s{n}", "standard", "x", ("t",), at_ms=n) for n in range(1, 1103)])
    assert [one.at_ms for one in await memory.standards(SHOP, ["t"])] == list(range(1102, 0, -1))


async def test_marks_change_with_what_holds(memory: ProjectMemory) -> None:
    """When a record of that kind and tag is added or superseded, and never else."""
    nothing = await memory.marks(SHOP, "standard", ["naming", "money"])
    await memory.append(SHOP, "standard", "one", tags=["Naming"])
    one = await memory.marks(SHOP, "standard", ["naming", "money"])
    await memory.append(SHOP, "standard", "other", tags=["urls"], supersedes="s1")
    two = await memory.marks(SHOP, "standard", ["naming", "money"])
    await memory.append(SHOP, "decision", "other kind", tags=["naming"])
    await memory.append("elsewhere", "standard", "other project", tags=["naming"])
    await memory.append(SHOP, "standard", "other tag", tags=["nam"])

    assert nothing == {"naming": "", "money": ""}
    assert one["money"] == two["money"] == ""
    assert len({nothing["naming"], one["naming"], two["naming"]}) == 3
    assert await memory.marks(SHOP, "standard", ["naming", "money"]) == two
    assert await memory.marks(SHOP, "standard", ["NAMING", " naming"]) == dict.fromkeys(
        ["NAMING", " naming"], two["naming"]
    )
    assert await memory.marks(SHOP, "standard", []) == {}


async def fill(memory: ProjectMemory) -> None:
    """Append records of every kind, with everything that one may have."""
    await memory.append(SHOP, "decision", "tabs", tags=["style"], by="ana", data={"why": ["habit"]})
    await memory.append(SHOP, "decision", "spaces", tags=["style"], by="bo", supersedes="d1", session_id="run-1")
    await memory.append(SHOP, "standard", "cents ✓ 日本語", tags=["money", "a b"])
    await memory.append(SHOP, "history", "run 1", data={"took_ms": 12, "deep": {"er": [1, 2.5, None, "\ud800"]}})


#: Appends as many records as it is told, each with a token of its own, and says so of each.
_APPENDS = """
import asyncio, sys
from memory.projects.project import ProjectMemory
from runtime.servers import valkey

async def main():
    async with valkey.connect(sys.argv[1], deadline_s=30.0) as client:
        memory = ProjectMemory(client, deadline_s=30.0)
        for number in range(int(sys.argv[3])):
            await memory.append(sys.argv[2], "history", f"run {number}", tags=["t"], token=f"token-{number}")
            print(number, flush=True)

asyncio.run(main())
"""


@pytest.mark.parametrize("heard", [1, 5, 20])
async def test_a_process_that_is_killed_and_does_it_again_appends_each_once(
    store_server: ValkeyServer, valkey_or_redis: Redis, heard: int
) -> None:
    """In whichever append `kill -9` strikes; every record is found by its word and its tag."""
    memory, count = ProjectMemory(valkey_or_redis, deadline_s=30.0), 40
    command = (sys.executable, "-c", _APPENDS, store_server.url, SHOP, str(count))
    first = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=asyncio.subprocess.PIPE)
    assert first.stdout is not None
    for _ in range(heard):
        await first.stdout.readline()
    first.kill()
    await first.wait()
    left = len(await exported(memory))
    assert heard <= left <= count

    again = [await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=asyncio.subprocess.DEVNULL) for _ in "ab"]
    assert [await process.wait() for process in again] == [0, 0]

    expected = [f"h{number}" for number in range(count, 0, -1)]
    assert await found(memory, limit=100) == expected
    assert await found(memory, text="run", limit=100) == await found(memory, tags=["t"], limit=100) == expected
    assert sorted(record.text for record in await exported(memory)) == sorted(f"run {n}" for n in range(count))


async def test_what_is_exported_loads_as_it_was(memory: ProjectMemory, valkey_or_redis: Redis) -> None:
    """Ids, times, order, links and all; and is found, counted on and marked as before."""
    await fill(memory)
    await memory.redact("bo")
    records = await exported(memory)

    report = await memory.load("copy", records)

    assert (report.added, report.known, report.refused) == (4, 0, ())
    assert await exported(memory, "copy") == records
    assert [one.record_id for one in await memory.chain("copy", "d1")] == ["d1", "d2"]
    assert [one.record_id for one in await memory.search("copy", text="日本 cents")] == ["s1"]
    assert await memory.search("copy", text="spaces") == []
    assert (await memory.append("copy", "decision", "next")).record_id == "d3"
    assert await memory.count_by("ana") == 2


async def test_loading_again_changes_nothing(memory: ProjectMemory) -> None:
    """Also when it ended in the middle the first time."""
    await fill(memory)
    records = await exported(memory)
    await memory.load("copy", records[:2])
    second = await memory.load("copy", records)
    third = await memory.load("copy", records)
    assert [(one.added, one.known, one.refused) for one in (second, third)] == [(2, 2, ()), (0, 4, ())]
    assert await exported(memory, "copy") == records


async def test_what_does_not_fit_is_refused_and_the_rest_is_loaded(memory: ProjectMemory) -> None:
    """Each with its reason."""
    await memory.append(SHOP, "decision", "here before", by="ana")
    await memory.append(SHOP, "decision", "of somebody forgotten", by="bo")
    there = await exported(memory)
    await memory.redact("bo")
    report = await memory.load(
        SHOP,
        [
            Record("d1", "decision", "another", at_ms=1),
            there[1],
            Record("d3", "decision", "twice", at_ms=3),
            Record("d3", "decision", "twice, otherwise", at_ms=3),
            Record("s1", "standard", "of nothing", at_ms=1, supersedes="s9"),
            Record("d4", "standard", "which?", at_ms=1),
            Record("x1", "decision", "which?", at_ms=1),
            Record("s2", "standard", " ", at_ms=1),
            Record("s3", "standard", "when?", at_ms=2**53),
            Record("s5", "standard", "itself", at_ms=1, supersedes="s5"),
            Record("s6", "standard", "one", at_ms=9),
            Record("s7", "standard", "before what it supersedes", at_ms=8, supersedes="s6"),
            Record("h7", "history", "good", at_ms=5),
        ],
    )
    assert (report.added, report.known) == (3, 0)
    whys = [(one.record_id, one.why) for one in report.refused]
    assert sorted(name for name, _ in whys) == ["d1", "d2", "d3", "d4", "s1", "s2", "s3", "s5", "s7", "x1"]
    by_id = dict(whys)
    assert "another record is stored as 'd1'" in by_id["d1"]
    assert "was forgotten here since" in by_id["d2"]
    assert "another record is stored as 'd3'" in by_id["d3"]
    assert "supersedes 's9' is no record" in by_id["s1"]
    assert "kind 'standard'" in by_id["d4"]
    assert "record id 'x1'" in by_id["x1"]
    assert "text must not be empty" in by_id["s2"]
    assert "from 1970 to 2247" in by_id["s3"]
    assert "supersedes itself" in by_id["s5"]
    assert "supersedes 's6' is younger" in by_id["s7"]
    assert (await memory.append(SHOP, "history", "counts on")).record_id == "h8"


async def test_a_forgotten_author_is_redacted_everywhere(memory: ProjectMemory) -> None:
    """Nothing tells who it was or what they said; the record stays, and so does what it is linked to."""
    for project in (SHOP, "other"):
        await memory.append(project, "decision", "zebra rules", tags=["style"], by="ana", data={"zebra": 1})
    await memory.append(SHOP, "decision", "zebra stays", by="bo", supersedes="d1")
    before = await memory.marks(SHOP, "decision", ["style"])

    assert await memory.count_by("ana") == 2
    assert await memory.redact("ana") == 2

    gone = await memory.read(SHOP, "d1")
    assert gone is not None
    assert (gone.text, gone.by, gone.data, gone.tags, gone.superseded_by) == ("[redacted]", None, {}, ("style",), "d2")
    assert gone.redacted_ms is not None
    assert await found(memory, text="zebra") == ["d2"]
    assert await found(memory, text="rules") == []
    assert await found(memory, tags=["style"]) == ["d1"]
    assert [one.record_id for one in await memory.chain(SHOP, "d2")] == ["d1", "d2"]
    assert await memory.marks(SHOP, "decision", ["style"]) != before
    assert (await memory.redact("ana"), await memory.count_by("ana"), await memory.count_by("bo")) == (0, 0, 1)


async def test_a_repeated_token_brings_no_redacted_text_back(memory: ProjectMemory) -> None:
    """The record of that time is the redacted one."""
    await memory.append(SHOP, "decision", "zebra", by="ana", token="t")
    await memory.redact("ana")
    assert (await memory.append(SHOP, "decision", "zebra", by="ana", token="t")).text == "[redacted]"
    assert await memory.search(SHOP, text="zebra") == []


async def test_a_name_of_any_letters_is_forgotten(memory: ProjectMemory) -> None:
    """Up to the longest that there may be."""
    for name in ("日" * 256, "a}:{b", "ana"):
        await memory.append(SHOP, "decision", "x", by=name)
        assert await memory.redact(name) == 1


async def test_projects_are_listed_by_their_newest_record(memory: ProjectMemory) -> None:
    """With how much is in each; one that nothing came of is none."""
    await memory.load("old", [Record("d4", "decision", "x", at_ms=1000), Record("h2", "history", "x", at_ms=2000)])
    await memory.append("new", "standard", "x")
    with pytest.raises(InvalidInput):
        await memory.append("none", "standard", "x", supersedes="s1")
    listed = await memory.projects()
    assert [(one.project_id, one.decisions, one.standards, one.history) for one in listed] == [
        ("new", 0, 1, 0),
        ("old", 1, 0, 1),
    ]
    assert listed[1].last_ms == 2000


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"text": ""}, "text must not be empty"),
        ({"text": " \n"}, "text must not be empty"),
        ({"text": "x" * (MAX_TEXT + 1)}, "text has 8,001 characters, at most 8,000"),
        ({"text": "half \ud800"}, "text holds half of a surrogate pair"),
        ({"kind": "rumour"}, "kind 'rumour' must be one of decision, standard, history"),
        ({"tags": "naming"}, r"tags 'naming' must be a list of texts; write \['naming'\]"),
        ({"tags": [""]}, "tag '' must be 1 to 64 printable"),
        ({"tags": ["a\nb"]}, "must be 1 to 64 printable"),
        ({"tags": ["x" * 65]}, "must be 1 to 64 printable"),
        ({"tags": [f"t{n}" for n in range(21)]}, "tags are 21, at most 20"),
        ({"by": " "}, "by must name a user"),
        ({"by": "x" * 257}, "by must name a user"),
        ({"session_id": "a b"}, "session_id 'a b' must be"),
        ({"supersedes": "17"}, "record id '17' must be a letter and a number"),
        ({"data": {"x": "y" * MAX_DATA_BYTES}}, "data has 65,544 bytes as JSON, at most 65,536"),
        ({"data": {"x": float("nan")}}, "data must be JSON"),
        ({"data": {"x": object()}}, "data must be JSON"),
        ({"data": ["x"]}, "data must be a JSON object"),
        ({"token": ""}, "token must be"),
        ({"project_id": "a b"}, "project id 'a b' must be"),
    ],
)
async def test_what_cannot_be_kept_is_refused(memory: ProjectMemory, wrong: dict[str, object], message: str) -> None:
    """The message names the field and the cure."""
    given = {"project_id": SHOP, "kind": "decision", "text": "fine", **wrong}
    with pytest.raises(InvalidInput, match=message):
        await memory.append(**given)  # type: ignore[arg-type] # wrong on purpose
    assert await memory.search(SHOP) == []


async def test_the_largest_record_is_kept(memory: ProjectMemory) -> None:
    """Eight thousand words of a letter each, twenty tags, 64 KiB of data."""
    text = "".join(chr(0x4E00 + number) for number in range(MAX_TEXT))
    data = {"x": "y" * (MAX_DATA_BYTES - 8)}
    record = await memory.append(SHOP, "decision", text, tags=[f"{n}" * 32 for n in range(20)], data=data, by="ana")
    assert await memory.read(SHOP, "d1") == record
    assert await memory.search(SHOP, text=text[-5:]) == [record]
    assert await memory.redact("ana") == 1
    assert await memory.search(SHOP, text=text[-5:]) == []


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"limit": 0}, "limit 0 must be 1 to 1,000"),
        ({"limit": 1001}, "limit 1001 must be"),
        ({"kind": "rumour"}, "kind 'rumour'"),
        ({"tags": "x"}, "must be a list"),
        ({"text": " ".join(f"w{n}" for n in range(65))}, "text has 65 different words, at most 64"),
    ],
)
async def test_what_cannot_be_looked_for_is_refused(
    memory: ProjectMemory, wrong: dict[str, object], message: str
) -> None:
    """The message names the field and the cure."""
    with pytest.raises(InvalidInput, match=message):
        await memory.search(SHOP, **wrong)  # type: ignore[arg-type] # wrong on purpose


async def test_no_key_of_a_project_ends_by_itself(valkey_or_redis: Redis) -> None:
    """Whatever happened to it."""
    memory = ProjectMemory(valkey_or_redis, deadline_s=30.0)
    await fill(memory)
    await memory.redact("ana")
    found = [key async for key in valkey_or_redis.scan_iter()]
    assert len(found) > 10
    assert {await valkey_or_redis.ttl(key) for key in found} == {-1}
    assert all(key.startswith(keys.project(SHOP).encode()) for key in found if key != keys.index("projects").encode())


async def test_nothing_of_a_redacted_text_is_left_in_the_store(valkey_or_redis: Redis) -> None:
    """Neither in a value nor in the name of a key."""
    memory = ProjectMemory(valkey_or_redis, deadline_s=30.0)
    await memory.append(SHOP, "decision", "zebra quagga", by="ana-the-first", data={"zebra": "quagga"}, token="t")
    await memory.redact("ana-the-first")
    for key in [key async for key in valkey_or_redis.scan_iter()]:
        kind = await valkey_or_redis.type(key)
        held = await (valkey_or_redis.hgetall(key) if kind == b"hash" else valkey_or_redis.zrange(key, 0, -1))
        for secret in (b"zebra", b"quagga", b"ana-the-first"):
            assert secret not in key
            assert secret not in repr(held).encode()


async def test_records_of_before_stay_older_when_the_clock_goes_back(valkey_or_redis: Redis) -> None:
    """A record is never listed before one that it came after."""
    memory = ProjectMemory(valkey_or_redis, deadline_s=30.0)
    await memory.append(SHOP, "decision", "one")
    ahead = int((await memory.search(SHOP))[0].at_ms) + 3_600_000
    await valkey_or_redis.hset(keys.project_part(SHOP, "state"), "at", str(ahead))
    later = await memory.append(SHOP, "decision", "two")
    assert later.at_ms == ahead
    assert await found(memory) == ["d2", "d1"]


async def test_a_record_of_the_future_pushes_none_there(valkey_or_redis: Redis) -> None:
    """What is loaded with a wrong time is wrong alone."""
    memory = ProjectMemory(valkey_or_redis, deadline_s=30.0)
    await memory.load(SHOP, [Record("d1", "decision", "x", at_ms=4_000_000_000_000)])
    assert (await memory.append(SHOP, "decision", "y")).at_ms < 4_000_000_000_000


async def test_a_record_comes_behind_what_it_supersedes(memory: ProjectMemory) -> None:
    """Also behind one of the future; what is appended next is of the present again, and all of it can be loaded."""
    await memory.load(SHOP, [Record("d1", "decision", "x", at_ms=4_000_000_000_000)])
    assert (await memory.append(SHOP, "decision", "y", supersedes="d1")).at_ms == 4_000_000_000_000
    assert (await memory.append(SHOP, "decision", "z")).at_ms < 4_000_000_000_000
    records = await exported(memory)
    assert [record.record_id for record in records] == ["d3", "d1", "d2"]
    assert (await memory.load("copy", records)).added == 3


async def test_thousands_of_the_same_moment_keep_their_order(memory: ProjectMemory) -> None:
    """More than a millisecond has places for."""
    records = [Record(f"h{n}", "history", "x", at_ms=5000) for n in range(1, 2201)]
    report = await memory.load(SHOP, records)
    assert report.added == 2200
    assert await exported(memory) == records
