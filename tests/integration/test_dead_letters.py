"""Dead letters in a real stream: found in any order with few requests, and deleted for good."""

from collections.abc import AsyncIterator, Sequence
from datetime import timedelta

import pytest

from tasklore.contracts.errors import InvalidInput, Unreachable
from tasklore.contracts.identifiers import TaskName
from tasklore.runtime.messaging.jetstream import ask_jetstream
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.dead_letters import queue
from tasklore.supervisor.dead_letters import stream as dead_stream
from tasklore.supervisor.dead_letters.letters import FOREIGN, Letter, LetterSelection
from tasklore.supervisor.dead_letters.summaries import LetterSummary
from tests.integration.dead_letters import (
    Morgue,
    a_letter,
    an_assignment,
    morgue_of,
)


@pytest.fixture
async def morgue(own_servers: EmbeddedServers) -> AsyncIterator[Morgue]:
    async with morgue_of(own_servers) as opened:
        yield opened


def numbers(letters: Sequence[Letter | LetterSummary]) -> list[int]:
    return [letter.sequence for letter in letters]


async def test_letters_are_listed_page_by_page_from_either_end(morgue: Morgue) -> None:
    await morgue.bury_many(23)
    found: list[int] = []
    before = None
    while True:
        page = await morgue.letters.page(LetterSelection(), 5, before=before)
        assert page.total == 23
        found += numbers(page.letters)
        if page.goes_on_at is None:
            break
        before = page.goes_on_at
    assert found == list(range(23, 0, -1))
    oldest = await morgue.letters.page(LetterSelection(), 5, oldest_first=True)
    assert (numbers(oldest.letters), oldest.goes_on_at) == ([1, 2, 3, 4, 5], 5)
    rest = await morgue.letters.page(LetterSelection(), 18, after=5, oldest_first=True)
    assert (numbers(rest.letters), rest.goes_on_at) == (list(range(6, 24)), None)
    whole = await morgue.letters.page(LetterSelection(), 23, oldest_first=True)
    assert (len(whole.letters), whole.goes_on_at) == (23, None)


async def test_the_few_letters_of_one_agent_are_found_among_many_with_few_requests(
    morgue: Morgue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead_stream, "PAGE", 8)
    for _ in range(5):
        await morgue.bury_many(100)
        await morgue.bury_many(3, agent="RareAgent")
    asked = morgue.letters._stream._reads.asked
    page = await morgue.letters.page(LetterSelection("RareAgent"), 4)
    assert numbers(page.letters) == [515, 514, 513, 412]
    assert (page.goes_on_at, page.total) == (412, 15)
    assert morgue.letters._stream._reads.asked - asked < 30
    page = await morgue.letters.page(LetterSelection("RareAgent"), 100)
    assert len(page.letters) == 15
    assert {letter.agent_id for letter in page.letters} == {"RareAgent"}


async def test_letters_are_filtered_by_reason_task_and_time(morgue: Morgue) -> None:
    await morgue.bury_many(40, reason="gave_up")
    await morgue.bury(a_letter("t1", task_name="other"))
    since = (await morgue.letters.read(41)).stored_at
    await morgue.bury_many(300)
    page = await morgue.letters.page(LetterSelection(reason="gave_up"), 2)
    assert (numbers(page.letters), page.goes_on_at, page.total) == ([40, 39], 39, None)
    assert numbers(
        (await morgue.letters.page(LetterSelection(task_name="other"), 5)).letters
    ) == [41]
    assert (await morgue.letters.count_all(LetterSelection(since=since))).total == 301
    assert (
        await morgue.letters.count_all(LetterSelection(reason="gave_up"))
    ).total == 40
    assert numbers(
        (
            await morgue.letters.page(
                LetterSelection(since=since), 1, oldest_first=True
            )
        ).letters
    ) == [41]
    earlier = LetterSelection(until=since)
    assert numbers((await morgue.letters.page(earlier, 2)).letters) == [40, 39]
    assert (await morgue.letters.count_all(earlier)).total == 40
    later = LetterSelection(since=since + timedelta(days=1))
    assert (await morgue.letters.page(later, 5)).letters == []
    assert (await morgue.letters.page(LetterSelection("NoAgent"), 5)).letters == []


async def test_letters_are_counted_by_agent_and_error(
    morgue: Morgue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How many, from when to when, with the newest as an example; call by call, each of which is bounded."""
    monkeypatch.setattr(dead_stream, "PAGE", 4)
    monkeypatch.setattr(queue, "MOST_LOOKED_AT", 8)
    await morgue.bury_many(20)
    await morgue.bury_many(3, agent="OtherAgent")
    error = {"type": "KeyError", "message": "'tea'"}
    for user in ("ann", "bob"):
        body = an_assignment("t1", user_id=user, tenant="acme")
        await morgue.bury(a_letter("t1", body, error=error))
    page = await morgue.letters.groups(LetterSelection())
    assert (page.counts.total, page.position) == (8, (8, 25))
    counts = await morgue.letters.count_all(LetterSelection())
    assert [
        (group.agent_id, group.error_type, group.count, group.example.sequence)
        for group in counts.groups
    ] == [
        ("TripAgent", "OSError", 20, 20),
        ("OtherAgent", "OSError", 3, 23),
        ("TripAgent", "KeyError", 2, 25),
    ]
    for selection, number in (
        (LetterSelection(error_type="KeyError"), 2),
        (LetterSelection(tenant="acme"), 2),
        (LetterSelection(user_id="ann"), 1),
        (LetterSelection(user_id="eve"), 0),
        (LetterSelection(up_to=21), 21),
    ):
        assert (await morgue.letters.count_all(selection)).total == number


async def test_a_page_of_which_little_fits_comes_back_short_and_goes_on(
    morgue: Morgue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead_stream, "PAGE", 4)
    monkeypatch.setattr(queue, "MOST_LOOKED_AT", 8)
    await morgue.bury(a_letter("t1", task_name="other"))
    await morgue.bury_many(40)
    selection = LetterSelection(task_name="other")
    for oldest_first in (False, True):
        found: list[int] = []
        at = None
        calls = 0
        while True:
            calls += 1
            page = await morgue.letters.page(
                selection,
                5,
                before=None if oldest_first else at,
                after=at if oldest_first else None,
                oldest_first=oldest_first,
            )
            found += numbers(page.letters)
            if (at := page.goes_on_at) is None:
                break
        assert found == [1]
        assert 3 <= calls <= 8


async def test_letters_of_a_task_that_ended_days_ago_are_read_of_its_agent_alone(
    morgue: Morgue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the ledger by agent the pointer to it is gone."""
    monkeypatch.setattr(queue, "MOST_LOOKED_AT", 8)
    [task_id] = await morgue.bury_many(1, agent="RareAgent")
    await morgue.bury_many(100)
    await morgue.finish_long_ago(TaskName("RareAgent", task_id), 1, "failed")
    page = await morgue.letters.of_task(task_id)
    assert (numbers(page.letters), page.goes_on_at) == ([1], None)


async def test_letters_of_an_unknown_task_are_looked_for_in_calls_that_are_bounded(
    morgue: Morgue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "MOST_LOOKED_AT", 50)
    [task_id] = await morgue.bury_many(1)
    await morgue.bury_many(300)
    found: list[int] = []
    before = None
    calls = 0
    while True:
        calls += 1
        page = await morgue.letters.of_task(task_id, before=before)
        found += numbers(page.letters)
        if (before := page.goes_on_at) is None:
            break
    assert found == [1]
    assert 3 <= calls <= 6


async def test_the_newest_twenty_letters_of_a_task_are_returned(morgue: Morgue) -> None:
    await morgue.bury(*(a_letter("t1", generation=one) for one in range(1, 46)))
    page = await morgue.letters.of_task("t1")
    assert (numbers(page.letters), page.goes_on_at) == (list(range(45, 25, -1)), None)


async def test_a_letter_is_read_by_its_number_or_by_its_task(morgue: Morgue) -> None:
    first, second = await morgue.bury_many(2)
    await morgue.bury(a_letter(first, generation=2))
    assert (await morgue.letters.read(2)).content.task_id == second
    assert numbers((await morgue.letters.of_task(first)).letters) == [3, 1]
    assert await morgue.letters.of_task("nobody") == ([], None)
    assert (await morgue.letters.purge([2])).purged == 1
    for number in (2, 4):
        with pytest.raises(InvalidInput, match=f"no dead letter {number}"):
            await morgue.letters.read(number)


async def test_a_message_that_is_no_dead_letter_is_listed_and_can_be_purged(
    morgue: Morgue,
) -> None:
    await morgue.bury(b"rubbish", a_letter("t1"))
    page = await morgue.letters.page(LetterSelection(), 5)
    assert [letter.reason for letter in page.letters] == ["attempts", FOREIGN]
    outcome = await morgue.letters.redrive(LetterSelection())
    assert (outcome.redriven, [kept.sequence for kept in outcome.kept]) == (1, [1])
    assert await morgue.letters.purge(LetterSelection(reason=FOREIGN)) == (1, None)
    assert await morgue.count("DEAD") == 0


async def test_an_unknown_number_stops_a_whole_redrive_or_purge(morgue: Morgue) -> None:
    await morgue.bury_many(2)
    for asked in (morgue.letters.redrive([1, 99]), morgue.letters.purge([1, 99])):
        with pytest.raises(InvalidInput, match="no dead letter 99"):
            await asked
    assert (await morgue.count("TASKS"), await morgue.count("DEAD")) == (0, 2)


@pytest.mark.parametrize("everything", [False, True])
async def test_a_purge_leaves_nothing_in_the_files_of_the_server(
    morgue: Morgue, everything: bool
) -> None:
    secret = b"my bank is called Oak"
    await morgue.bury(
        *(a_letter(f"t{number}", traceback=secret.decode()) for number in range(3))
    )
    await morgue.bury_many(2, agent="OtherAgent")
    await morgue.until_on_disk(secret, 3)
    assert await morgue.letters.purge(
        LetterSelection() if everything else LetterSelection("TripAgent")
    ) == (5 if everything else 3, None)
    await morgue.until_on_disk(secret, 0)
    assert await morgue.count("DEAD") == (0 if everything else 2)


async def test_without_a_stream_the_error_says_what_to_start(morgue: Morgue) -> None:
    await ask_jetstream(morgue.link.client, "STREAM.DELETE.DEAD")
    letters = morgue.letters
    for asked in (
        letters.page(LetterSelection(), 5),
        letters.read(1),
        letters.redrive(LetterSelection()),
    ):
        with pytest.raises(Unreachable, match="tasklore up"):
            await asked


@pytest.mark.parametrize("erase", [True, False])
@pytest.mark.parametrize("sequence", [1, 2, 3])
async def test_a_letter_that_another_has_deleted_is_gone_wherever_it_lay(
    morgue: Morgue, sequence: int, erase: bool
) -> None:
    """The server says so with one code for the oldest and with another for those behind it."""
    await morgue.bury_many(3)
    stream = morgue.letters._stream
    assert await stream.remove(sequence, erase=erase)
    assert not await stream.remove(sequence, erase=erase)
