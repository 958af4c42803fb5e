"""The memory of projects on a real store: records, searches, links, marks, loading and redacting."""

import asyncio
import itertools
import sys

import pytest
from redis.asyncio import Redis

from tasklore.contracts.errors import InvalidInput
from tasklore.memory import keys
from tasklore.memory.projects.project import ProjectMemory, Record
from tasklore.memory.projects.records import MAX_DATA_BYTES, MAX_TEXT, Kind
from tasklore.runtime.servers.embedded import ValkeyServer
from tests.architecture.tree import ROOT

SHOP = "shop"


@pytest.fixture
def memory(valkey_or_redis: Redis) -> ProjectMemory:
    return ProjectMemory(valkey_or_redis, deadline_s=30.0)


async def found(memory: ProjectMemory, **wanted: object) -> list[str]:
    """Return the ids of the records found, newest first."""
    return [record.record_id for record in await memory.search(SHOP, **wanted)]  # type: ignore[arg-type] # any of them


async def exported(memory: ProjectMemory, project: str = SHOP) -> list[Record]:
    """Return every record."""
    return [record async for record in memory.export(project)]


async def test_a_record_is_read_as_it_was_appended_under_an_id_of_its_kind(
    memory: ProjectMemory,
) -> None:
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
    assert (appended.by, appended.session_id, appended.superseded_by) == (
        "ana",
        "run-1",
        None,
    )
    assert appended.data == {"files": ["a.py", None, 1.5], "é": {"ok": True}}
    assert appended.at_ms > 1_500_000_000_000
    kinds: list[Kind] = ["standard", "decision", "history", "standard"]
    assert [(await memory.append(SHOP, kind, "x")).record_id for kind in kinds] == [
        "s1",
        "d2",
        "h1",
        "s2",
    ]
    assert (await memory.append("other", "decision", "x")).record_id == "d1"


async def test_an_unknown_record_or_project_is_none(memory: ProjectMemory) -> None:
    await memory.append(SHOP, "decision", "one")
    assert await memory.read(SHOP, "d2") is None
    assert await memory.read("nowhere", "d1") is None
    assert await memory.search("nowhere") == await memory.chain("nowhere", "d1") == []


async def test_many_at_once_get_ids_of_their_own(memory: ProjectMemory) -> None:
    records = await asyncio.gather(
        *(memory.append(SHOP, "history", f"run {n}") for n in range(50))
    )
    assert sorted(int(record.record_id[1:]) for record in records) == list(range(1, 51))
    in_order = await exported(memory)
    assert [record.record_id for record in in_order] == [f"h{n}" for n in range(1, 51)]
    assert all(one.at_ms <= other.at_ms for one, other in itertools.pairwise(in_order))


async def test_a_token_appends_once(memory: ProjectMemory) -> None:
    first = await memory.append(SHOP, "standard", "one", token="run-1")
    again = await asyncio.gather(
        *(memory.append(SHOP, "standard", f"{n}", token="run-1") for n in range(10))
    )
    assert again == [first] * 10
    second = await memory.append(SHOP, "standard", "two", supersedes="s1", token="t")
    assert (
        await memory.append(SHOP, "standard", "two", supersedes="s1", token="t")
        == second
    )
    assert (await memory.append(SHOP, "standard", "two")).record_id == "s3"
    assert await found(memory) == ["s3", "s2", "s1"]


async def test_a_superseded_record_is_found_and_no_longer_in_force(
    memory: ProjectMemory,
) -> None:
    await memory.append(SHOP, "decision", "Use tabs everywhere")
    await memory.append(SHOP, "decision", "Use spaces everywhere", supersedes="d1")
    old = await memory.read(SHOP, "d1")
    assert (old.text, old.superseded_by, old.is_in_force) == (
        "Use tabs everywhere",
        "d2",
        False,
    )
    assert await found(memory, text="everywhere") == ["d2", "d1"]
    assert await found(memory, text="everywhere", in_force=True) == ["d2"]


async def test_a_long_chain_is_read_whole_from_any_of_its_records(
    memory: ProjectMemory,
) -> None:
    records = [Record(record_id="d1", kind="decision", text="1", at_ms=1)]
    records += [
        Record(
            record_id=f"d{number}",
            kind="decision",
            text=f"{number}",
            at_ms=number,
            supersedes=f"d{number - 1}",
        )
        for number in range(2, 603)
    ]
    await memory.load(
        SHOP,
        [
            *records,
            Record(
                record_id="d700", kind="decision", text="of something else", at_ms=5
            ),
        ],
    )
    for asked in ("d1", "d301", "d602"):
        assert [record.text for record in await memory.chain(SHOP, asked)] == [
            f"{number}" for number in range(1, 603)
        ]
    assert [record.record_id for record in await memory.chain(SHOP, "d700")] == ["d700"]
    assert await found(memory, in_force=True) == ["d602", "d700"]


async def test_superseding_an_old_unknown_or_other_record_is_refused(
    memory: ProjectMemory,
) -> None:
    await memory.append(SHOP, "decision", "one")
    await memory.append(SHOP, "decision", "two", supersedes="d1")
    with pytest.raises(
        InvalidInput, match="supersedes 'd1' is superseded by 'd2' already"
    ):
        await memory.append(SHOP, "decision", "three", supersedes="d1")
    with pytest.raises(
        InvalidInput, match="supersedes 'd9' is not a record of project 'shop'"
    ):
        await memory.append(SHOP, "decision", "three", supersedes="d9")
    with pytest.raises(InvalidInput, match="supersedes 'd2' is not a standard"):
        await memory.append(SHOP, "standard", "three", supersedes="d2")
    assert await found(memory) == ["d2", "d1"]


async def test_of_many_who_supersede_a_record_one_does(memory: ProjectMemory) -> None:
    await memory.append(SHOP, "standard", "one")
    outcomes = await asyncio.gather(
        *(memory.append(SHOP, "standard", f"{n}", supersedes="s1") for n in range(10)),
        return_exceptions=True,
    )
    assert sum(isinstance(outcome, Record) for outcome in outcomes) == 1
    assert sum(isinstance(outcome, InvalidInput) for outcome in outcomes) == 9


async def test_words_of_any_script_are_found_by_their_beginning(
    memory: ProjectMemory,
) -> None:
    for text, query in (
        ("Straße nach Größe", "STRASSE"),
        ("un cafe\u0301 crème", "Café"),
        ("Συμφωνία ΌΛΩΝ", "όλων"),
        ("решение принято", "РЕШ"),
        ("日本語の決定", "決定"),
        ("ภาษาไทย", "ไทย"),
        ("हिन्दी में", "हिन्दी"),
        ("max_value_bytes=16", "value 16"),
        ("see \uff26\uff35\uff2c\uff2c width", "full"),
        ("x" * 200, "x" * 70),
        ("key:{a}:* %5B \x00 \x1b[2J 'quote\" KEYS[1]", "quote keys 5b"),
        ("\N{ZERO WIDTH JOINER}\N{COMBINING ACUTE ACCENT} odd", "odd"),
    ):
        record = await memory.append(SHOP, "decision", text)
        assert record.text == text
        assert await memory.search(SHOP, text=query) == [record]
    assert await found(memory, text="cafe") == await found(memory, text="?!") == []
    assert len(await found(memory, text="  ")) == 12


async def test_the_beginning_of_very_many_words_finds_them(
    memory: ProjectMemory,
) -> None:
    await memory.load(
        SHOP, [Record(record_id="d1", kind="decision", text="quartz old", at_ms=0)]
    )
    texts = [f"qx{number} new{number % 7}" for number in range(600)]
    await memory.load(
        SHOP,
        [
            Record(record_id=f"h{n}", kind="history", text=text, at_ms=n)
            for n, text in enumerate(texts, 1)
        ],
    )
    assert await found(memory, text="q", kind="decision") == ["d1"]
    assert await found(memory, text="q old") == ["d1"]
    assert len(await found(memory, text="q", limit=1000)) == 601
    assert len(await found(memory, text="new3", limit=1000)) == 86
    assert await found(memory, text="new", limit=3) == ["h600", "h599", "h598"]


async def test_words_with_one_beginning_are_found_in_order_of_time(
    memory: ProjectMemory,
) -> None:
    texts = ["thick", "other"] * 150 + ["thin"] * 200 + ["thin", "thick"] * 25
    await memory.load(
        SHOP,
        [
            Record(record_id=f"h{n}", kind="history", text=text, at_ms=n)
            for n, text in enumerate(texts, 1)
        ],
    )
    expected = [f"h{n}" for n, text in enumerate(texts, 1) if text != "other"][::-1]
    assert await found(memory, text="thi", limit=1000) == expected
    assert await found(memory, text="thi", limit=90) == expected[:90]


async def test_tags_of_any_text_are_one_however_they_are_capitalised(
    memory: ProjectMemory,
) -> None:
    await memory.append(SHOP, "decision", "one", tags=["Money", "a b:c#d/é{}"])
    assert (
        await memory.append(SHOP, "decision", "two", tags=["money", "MONEY"])
    ).tags == ("money",)
    assert await found(memory, tags=["MONEY"]) == ["d2", "d1"]
    assert await found(memory, tags=["MONEY", "A b:c#d/É{}"]) == ["d1"]
    assert await found(memory, tags=["mon"]) == await found(memory, text="money") == []


async def test_more_standards_than_a_page_are_all_returned(
    memory: ProjectMemory,
) -> None:
    await memory.load(
        SHOP,
        [
            Record(record_id=f"s{n}", kind="standard", text="x", tags=("t",), at_ms=n)
            for n in range(1, 1103)
        ],
    )
    assert [one.at_ms for one in await memory.standards(SHOP, ["t"])] == list(
        range(1102, 0, -1)
    )


async def test_a_mark_changes_with_the_records_of_its_kind_and_tag_alone(
    memory: ProjectMemory,
) -> None:
    asked = SHOP, "standard", ["naming", "money"]
    nothing = await memory.marks(*asked)
    await memory.append(SHOP, "standard", "one", tags=["Naming"])
    one = await memory.marks(*asked)
    await memory.append(SHOP, "standard", "other", tags=["urls"], supersedes="s1")
    two = await memory.marks(*asked)
    await memory.append(SHOP, "decision", "other kind", tags=["naming"])
    await memory.append("elsewhere", "standard", "other project", tags=["naming"])
    await memory.append(SHOP, "standard", "other tag", tags=["nam"])
    assert nothing == {"naming": "", "money": ""}
    assert one["money"] == two["money"] == ""
    assert len({nothing["naming"], one["naming"], two["naming"]}) == 3
    assert await memory.marks(*asked) == two
    assert await memory.marks(SHOP, "standard", [" NAMING"]) == {
        " NAMING": two["naming"]
    }


async def fill(memory: ProjectMemory) -> None:
    """Append records of every kind, with everything that one may have."""
    await memory.append(
        SHOP, "decision", "tabs", tags=["style"], by="ana", data={"why": ["habit"]}
    )
    await memory.append(
        SHOP,
        "decision",
        "spaces",
        tags=["style"],
        by="bo",
        supersedes="d1",
        session_id="run-1",
    )
    await memory.append(SHOP, "standard", "cents ✓ 日本語", tags=["money", "a b"])
    await memory.append(
        SHOP,
        "history",
        "run 1",
        data={"took_ms": 12, "deep": {"er": [1, 2.5, None, "\ud800"]}},
    )


#: Appends as many records as it is told, each with a token of its own, and says so of each.
_APPENDS = """
import asyncio, sys
from tasklore.memory.projects.project import ProjectMemory
from tasklore.runtime.servers import valkey

async def main():
    async with valkey.connect(sys.argv[1], deadline_s=30.0) as client:
        memory = ProjectMemory(client, deadline_s=30.0)
        for number in range(int(sys.argv[3])):
            await memory.append(sys.argv[2], "history", f"run {number}", tags=["t"], token=f"token-{number}")
            print(number, flush=True)

asyncio.run(main())
"""


@pytest.mark.parametrize("heard", [1, 5, 20])
async def test_a_killed_process_that_repeats_its_appends_adds_each_once(
    store_server: ValkeyServer, valkey_or_redis: Redis, heard: int
) -> None:
    """In whichever append `kill -9` strikes, and although two repeat them at once."""
    memory = ProjectMemory(valkey_or_redis, deadline_s=30.0)
    count = 40
    command = (sys.executable, "-c", _APPENDS, store_server.url, SHOP, str(count))
    child = await asyncio.create_subprocess_exec(
        *command, cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    for _ in range(heard):
        await child.stdout.readline()
    child.kill()
    await child.wait()
    assert heard <= len(await exported(memory)) <= count

    async def repeat() -> None:
        for number in range(count):
            await memory.append(
                SHOP, "history", f"run {number}", tags=["t"], token=f"token-{number}"
            )

    await asyncio.gather(repeat(), repeat())
    expected = [f"h{number}" for number in range(count, 0, -1)]
    assert await found(memory, limit=100) == expected
    assert (
        await found(memory, text="run", limit=100)
        == await found(memory, tags=["t"], limit=100)
        == expected
    )
    assert sorted(record.text for record in await exported(memory)) == sorted(
        f"run {n}" for n in range(count)
    )


async def test_an_export_loads_as_it_was_and_only_once(memory: ProjectMemory) -> None:
    await fill(memory)
    await memory.redact("bo")
    records = await exported(memory)
    await memory.load("copy", records[:2])
    reports = [await memory.load("copy", records) for _ in range(2)]
    assert [(one.added, one.known, one.refused) for one in reports] == [
        (2, 2, ()),
        (0, 4, ()),
    ]
    assert await exported(memory, "copy") == records
    assert [one.record_id for one in await memory.chain("copy", "d1")] == ["d1", "d2"]
    assert [
        one.record_id for one in await memory.search("copy", text="日本 cents")
    ] == ["s1"]
    assert await memory.search("copy", text="spaces") == []
    assert (await memory.append("copy", "decision", "next")).record_id == "d3"
    assert await memory.count_by("ana") == 2


async def test_loading_refuses_each_wrong_record_with_its_reason(
    memory: ProjectMemory,
) -> None:
    await memory.append(SHOP, "decision", "here before", by="ana")
    await memory.append(SHOP, "decision", "of somebody forgotten", by="bo")
    there = await exported(memory)
    await memory.redact("bo")
    refused = [
        (
            Record(record_id="d1", kind="decision", text="another", at_ms=1),
            "another record is stored as 'd1'",
        ),
        (there[1], "was forgotten here since"),
        (
            Record(record_id="d3", kind="decision", text="twice, otherwise", at_ms=3),
            "another record is stored as 'd3'",
        ),
        (
            Record(
                record_id="s1",
                kind="standard",
                text="of nothing",
                at_ms=1,
                supersedes="s9",
            ),
            "supersedes 's9' is not a record",
        ),
        (
            Record(record_id="d4", kind="standard", text="which?", at_ms=1),
            "kind 'standard'",
        ),
        (
            Record(record_id="x1", kind="decision", text="which?", at_ms=1),
            "record id 'x1'",
        ),
        (
            Record(record_id="s2", kind="standard", text=" ", at_ms=1),
            "text must not be empty",
        ),
        (
            Record(record_id="s3", kind="standard", text="when?", at_ms=2**53),
            "from 1970 to 2247",
        ),
        (
            Record(
                record_id="s5", kind="standard", text="itself", at_ms=1, supersedes="s5"
            ),
            "supersedes itself",
        ),
        (
            Record(
                record_id="s7",
                kind="standard",
                text="before it",
                at_ms=8,
                supersedes="s6",
            ),
            "supersedes 's6' is younger",
        ),
    ]
    good = [
        Record(record_id="d3", kind="decision", text="twice", at_ms=3),
        Record(record_id="s6", kind="standard", text="one", at_ms=9),
        Record(record_id="h7", kind="history", text="good", at_ms=5),
    ]
    report = await memory.load(SHOP, [*good, *(record for record, _ in refused)])
    assert (report.added, report.known) == (3, 0)
    whys = {one.record_id: one.why for one in report.refused}
    assert len(report.refused) == len(whys) == len(refused)
    for record, why in refused:
        assert why in whys[record.record_id]
    assert (await memory.append(SHOP, "history", "counts on")).record_id == "h8"


async def test_a_forgotten_author_is_redacted_everywhere(memory: ProjectMemory) -> None:
    for project in (SHOP, "other"):
        await memory.append(
            project,
            "decision",
            "zebra rules",
            tags=["style"],
            by="ana",
            data={"zebra": 1},
        )
    await memory.append(SHOP, "decision", "zebra stays", by="bo", supersedes="d1")
    before = await memory.marks(SHOP, "decision", ["style"])

    assert await memory.count_by("ana") == 2
    assert await memory.redact("ana") == 2

    gone = await memory.read(SHOP, "d1")
    assert (gone.text, gone.by, gone.data, gone.tags, gone.superseded_by) == (
        "[redacted]",
        None,
        {},
        ("style",),
        "d2",
    )
    assert gone.redacted_ms is not None
    assert await found(memory, text="zebra") == ["d2"]
    assert await found(memory, text="rules") == []
    assert await found(memory, tags=["style"]) == ["d1"]
    assert [one.record_id for one in await memory.chain(SHOP, "d2")] == ["d1", "d2"]
    assert await memory.marks(SHOP, "decision", ["style"]) != before
    assert (
        await memory.redact("ana"),
        await memory.count_by("ana"),
        await memory.count_by("bo"),
    ) == (0, 0, 1)


async def test_projects_are_listed_by_their_newest_record(
    memory: ProjectMemory,
) -> None:
    await memory.load(
        "old",
        [
            Record(record_id="d4", kind="decision", text="x", at_ms=1000),
            Record(record_id="h2", kind="history", text="x", at_ms=2000),
        ],
    )
    await memory.append("new", "standard", "x")
    with pytest.raises(InvalidInput):
        await memory.append("none", "standard", "x", supersedes="s1")
    listed = await memory.projects()
    assert [
        (one.project_id, one.decisions, one.standards, one.history) for one in listed
    ] == [
        ("new", 0, 1, 0),
        ("old", 1, 0, 1),
    ]
    assert listed[1].last_ms == 2000


async def test_a_wrong_record_or_search_is_refused_with_the_field(
    memory: ProjectMemory,
) -> None:
    for wrong, message in (
        ({"text": " \n"}, "text must not be empty"),
        ({"text": "x" * (MAX_TEXT + 1)}, "text has 8,001 characters, at most 8,000"),
        ({"text": "half \ud800"}, "text contains an unpaired surrogate"),
        (
            {"kind": "rumour"},
            "kind 'rumour' must be one of decision, standard, history",
        ),
        (
            {"tags": "naming"},
            r"tags 'naming' must be a list of texts; write \['naming'\]",
        ),
        ({"tags": ["a\nb"]}, "must be 1 to 64 printable"),
        ({"tags": ["x" * 65]}, "must be 1 to 64 printable"),
        ({"tags": [f"t{n}" for n in range(21)]}, "tags are 21, at most 20"),
        ({"by": "x" * 257}, "by must name a user"),
        ({"session_id": "a b"}, "session_id 'a b' must be"),
        ({"supersedes": "17"}, "record id '17' must be a letter and a number"),
        (
            {"data": {"x": "y" * MAX_DATA_BYTES}},
            "data has 65,544 bytes as JSON, at most 65,536",
        ),
        ({"data": {"x": float("nan")}}, "data must be JSON"),
        ({"data": ["x"]}, "data must be a JSON object"),
        ({"token": ""}, "token must be"),
        ({"project_id": "a b"}, "project id 'a b' must be"),
    ):
        with pytest.raises(InvalidInput, match=message):
            await memory.append(
                **{"project_id": SHOP, "kind": "decision", "text": "fine", **wrong}
            )
    for wrong, message in (
        ({"limit": 0}, "limit 0 must be 1 to 1,000"),
        ({"limit": 1001}, "limit 1001 must be"),
        ({"kind": "rumour"}, "kind 'rumour'"),
        ({"tags": "x"}, "must be a list"),
        (
            {"text": " ".join(f"w{n}" for n in range(65))},
            "text has 65 different words, at most 64",
        ),
        ({"before": "d77"}, "before 'd77' is not a record"),
    ):
        with pytest.raises(InvalidInput, match=message):
            await memory.search(SHOP, **wrong)
    assert await memory.search(SHOP) == []


async def test_the_largest_record_is_kept(memory: ProjectMemory) -> None:
    text = "".join(chr(0x4E00 + number) for number in range(MAX_TEXT))
    data = {"x": "y" * (MAX_DATA_BYTES - 8)}
    record = await memory.append(
        SHOP,
        "decision",
        text,
        tags=[f"{n}" * 32 for n in range(20)],
        data=data,
        by="ana",
    )
    assert await memory.read(SHOP, "d1") == record
    assert await memory.search(SHOP, text=text[-5:]) == [record]
    assert await memory.redact("ana") == 1
    assert await memory.search(SHOP, text=text[-5:]) == []


async def test_a_redacted_text_is_in_no_key_and_comes_back_by_no_repeat(
    memory: ProjectMemory, valkey_or_redis: Redis
) -> None:
    words = {"by": "ana-the-first", "data": {"zebra": "quagga"}, "token": "t"}
    await memory.append(SHOP, "decision", "zebra quagga", **words)
    assert await memory.redact("ana-the-first") == 1
    assert (
        await memory.append(SHOP, "decision", "zebra quagga", **words)
    ).text == "[redacted]"
    assert await memory.search(SHOP, text="zebra") == []
    for key in [key async for key in valkey_or_redis.scan_iter()]:
        assert await valkey_or_redis.ttl(key) == -1
        kind = await valkey_or_redis.type(key)
        held = await (
            valkey_or_redis.hgetall(key)
            if kind == b"hash"
            else valkey_or_redis.zrange(key, 0, -1)
        )
        for secret in (b"zebra", b"quagga", b"ana-the-first"):
            assert secret not in key
            assert secret not in repr(held).encode()
    for name in ("日" * 256, "a}:{b"):
        await memory.append(SHOP, "decision", "x", by=name)
        assert await memory.redact(name) == 1


async def test_records_of_before_stay_older_when_the_clock_goes_back(
    memory: ProjectMemory, valkey_or_redis: Redis
) -> None:
    await memory.append(SHOP, "decision", "one")
    ahead = int((await memory.search(SHOP))[0].at_ms) + 3_600_000
    await valkey_or_redis.hset(keys.project_part(SHOP, "state"), "at", str(ahead))
    later = await memory.append(SHOP, "decision", "two")
    assert later.at_ms == ahead
    assert await found(memory) == ["d2", "d1"]


async def test_a_record_is_never_older_than_the_one_it_supersedes(
    memory: ProjectMemory,
) -> None:
    await memory.load(
        SHOP,
        [Record(record_id="d1", kind="decision", text="x", at_ms=4_000_000_000_000)],
    )
    assert (
        await memory.append(SHOP, "decision", "y", supersedes="d1")
    ).at_ms == 4_000_000_000_000
    assert (await memory.append(SHOP, "decision", "z")).at_ms < 4_000_000_000_000
    records = await exported(memory)
    assert [record.record_id for record in records] == ["d3", "d1", "d2"]
    assert (await memory.load("copy", records)).added == 3


async def test_thousands_of_the_same_moment_keep_their_order(
    memory: ProjectMemory,
) -> None:
    records = [
        Record(record_id=f"h{n}", kind="history", text="x", at_ms=5000)
        for n in range(1, 2201)
    ]
    assert (await memory.load(SHOP, records)).added == 2200
    assert await exported(memory) == records
