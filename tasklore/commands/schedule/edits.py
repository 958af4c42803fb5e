"""`tasklore schedule add|pause|resume|run|remove`."""

import contextlib
import json
import os
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, cast

from pydantic import JsonValue

from tasklore.commands.pipeline.check import check_alone
from tasklore.commands.pipeline.client import ask
from tasklore.commands.pipeline.sources import read_source
from tasklore.commands.places import (
    current_supervisor,
    leading_with_the_cure,
    open_nats,
    open_redis,
)
from tasklore.commands.render.durations import parse_moment, parse_span
from tasklore.commands.render.screen import confirm, print_json, say
from tasklore.commands.schedule.views import document_of, spell_local
from tasklore.contracts.admission.schedules import MissedTicks, Timing
from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.identifiers import checked_name, demand_user_id
from tasklore.contracts.messages import PipelineReply, PipelineRequest
from tasklore.memory.budgets.waiting_tasks import WaitingTasks
from tasklore.memory.ledger.ledger import Ledger
from tasklore.memory.ledger.requests import RequestRecords
from tasklore.memory.long_term.card_parameters import parameters_of
from tasklore.memory.schedules.store import KeptSchedule, Schedule, ScheduleStore
from tasklore.runtime.messaging.link import Link
from tasklore.runtime.messaging.outbox import open_outbox
from tasklore.supervisor.cancellation import Canceller
from tasklore.supervisor.cards import read_cards
from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.dispatch import Dispatch
from tasklore.supervisor.schedules.book import ScheduleBook, make_id, stamps_of
from tasklore.supervisor.schedules.tick_maker import TickMaker
from tasklore.supervisor.schedules.ticks import next_five

#: Seconds for one look into a store: a person waits, and an answer late is better than none.
_DEADLINE_S = 5.0


class Wanted(NamedTuple):
    """The options of `add`, as they were typed."""

    task: str | None
    pipeline: str | None
    values: tuple[str, ...]
    cron: str | None
    every: str | None
    at: str | None
    after: str | None
    time_zone: str
    missed: str
    schedule_id: str | None
    user: str | None


class Opened(NamedTuple):
    """The schedules of the system that runs here, and what makes their ticks."""

    book: ScheduleBook
    maker: TickMaker


async def add_schedule(wanted: Wanted, *, is_sure: bool, as_json: bool) -> None:
    """Print the next five times of a schedule, and keep it once the person says yes.

    Raises:
        InvalidInput: it cannot be kept; names the option and the cure.
        Aborted: the person says no.
        Unreachable: a server does not answer.
    """
    now = datetime.now(UTC)
    schedule = _read_target(wanted)
    schedule = schedule.model_copy(update={"timing": _read_timing(wanted, now)})
    async with open_schedules() as (book, maker):
        offer = maker.catalogue().find(schedule.agent_id or "", schedule.task or "")
        book.check(schedule)
        if offer is not None:
            parameters_of(offer.task.name, offer.task.parameters).read(
                schedule.parameters
            )
        times = [
            spell_local(one, schedule.timing)
            for one in next_five(schedule.timing, now, schedule.anchor)
        ]
        if not as_json:
            say(f"{schedule.target} would run at")
            for one in times:
                say(f"  {one}")
        if not is_sure:
            confirm(
                "Keep it?",
                unasked="say --yes where nobody can be asked",
                declined="nothing was kept",
            )
        kept = await book.add(schedule)
    if as_json:
        print_json(document_of(kept))
    else:
        print(
            f"Schedule {kept.schedule.id} runs {kept.schedule.target}; next at {times[0]}."
        )


async def set_paused(schedule_id: str, *, paused: bool, as_json: bool) -> None:
    """Pause or resume a schedule, and print its state.

    Raises:
        InvalidInput: there is none, or its ticks are all over.
        Unreachable: a server does not answer.
    """
    async with open_schedules() as (book, maker):
        changed = await book.set_paused(
            schedule_id, os.environ.get("USER", "command line"), paused=paused
        )
        if changed is None:
            raise unknown(schedule_id)
        await maker.withdraw(changed.withdrawn)
    _print_changed(changed.kept, "is paused" if paused else "goes on", as_json=as_json)


async def remove_schedule(schedule_id: str, *, as_json: bool) -> None:
    """Remove a schedule.

    Raises:
        InvalidInput: there is none, or it stands in the code of its agent.
        Unreachable: a server does not answer.
    """
    async with open_schedules() as (book, maker):
        changed = await book.remove(schedule_id)
        if changed is None:
            raise unknown(schedule_id)
        await maker.withdraw(changed.withdrawn)
    _print_changed(changed.kept, "is removed", as_json=as_json)


async def run_once_more(schedule_id: str, *, as_json: bool) -> None:
    """Run a schedule now, and print the id of its task or session.

    Raises:
        InvalidInput: there is none, or it is refused.
        Unreachable: a server does not answer.
    """
    async with open_schedules() as (book, maker):
        kept = (await book.store.read(schedule_id))[0]
        if kept is None:
            raise unknown(schedule_id)
        task_id = await maker.run_now(kept.schedule)
    if as_json:
        print_json({"id": schedule_id, "task_id": task_id})
    else:
        print(f"{kept.schedule.target} runs as {task_id}.")


@contextlib.asynccontextmanager
async def open_schedules() -> AsyncIterator[Opened]:
    """Open the schedules of the supervisor id of this environment.

    Raises:
        Unreachable: no system runs here, or a server does not answer.
    """
    supervisor_id = current_supervisor()
    async with (
        open_redis("tasklore-schedule", _DEADLINE_S) as redis,
        open_nats("tasklore-schedule") as client,
        open_outbox(Link(client)) as outbox,
    ):
        with leading_with_the_cure():
            catalogue = Catalogue(await read_cards(client))
        ledger = Ledger(redis, deadline_s=_DEADLINE_S)

        async def request(asked: PipelineRequest) -> PipelineReply:
            return await ask(client, asked)

        store = ScheduleStore(redis, supervisor_id, deadline_s=_DEADLINE_S)
        book = ScheduleBook(store, lambda: catalogue)
        dispatch = Dispatch(outbox, ledger)
        canceller = Canceller(
            client,
            outbox,
            ledger,
            "tasklore-schedule",
            waiting=WaitingTasks(redis, deadline_s=_DEADLINE_S),
        )
        records = RequestRecords(redis, deadline_s=_DEADLINE_S)
        yield Opened(
            book,
            TickMaker(
                supervisor_id=supervisor_id,
                catalogue=lambda: catalogue,
                dispatch=dispatch,
                pipelines=request,
                canceller=canceller,
                records=records,
                now=book.now,
            ),
        )


def unknown(schedule_id: str) -> InvalidInput:
    """Return the error for a schedule that is not there."""
    return InvalidInput(
        f"there is no schedule {schedule_id!r}; `tasklore schedule list` shows them"
    )


def _read_target(wanted: Wanted) -> Schedule:
    """Return the task or pipeline of *wanted*, as a schedule without its times."""
    if (wanted.task is None) == (wanted.pipeline is None):
        raise InvalidInput("say what to run: AGENT.TASK, or --pipeline FILE")
    now = datetime.now(UTC)
    fields = cast("dict[str, Any]", {})
    if wanted.pipeline is not None:
        source = read_source(wanted.pipeline)
        name = source.pipeline.name
        fields["pipeline"] = source.pipeline.model_dump(mode="json", exclude_unset=True)
        fields["parameters"] = check_alone(source, wanted.values)
    else:
        agent_id, _, name = (wanted.task or "").partition(".")
        fields["agent_id"] = checked_name(agent_id, "AGENT")
        fields["task"] = checked_name(name, "TASK")
        fields["parameters"] = dict(map(_read_value, wanted.values))
    if wanted.user is not None:
        demand_user_id(wanted.user)
    schedule_id = (
        checked_name(wanted.schedule_id, "--id")
        if wanted.schedule_id
        else make_id(name)
    )
    stamps = stamps_of(os.environ.get("USER", "command line"), now)
    return Schedule(
        id=schedule_id,
        timing=Timing(),
        user_id=wanted.user,
        anchor=now,
        **fields,
        **stamps,
    )


def _read_timing(wanted: Wanted, now: datetime) -> Timing:
    if wanted.missed not in ("skip", "once", "all"):
        raise InvalidInput(f"--missed {wanted.missed!r} is none of skip, once and all")
    given = [
        name
        for name in ("cron", "every", "at", "after")
        if getattr(wanted, name) is not None
    ]
    if len(given) != 1:
        raise InvalidInput("say when: one of --cron, --every, --at and --after")
    at = (
        None if wanted.at is None else parse_moment(wanted.at, "--at", wanted.time_zone)
    )
    every = None
    if wanted.after is not None:
        at = now + parse_span(wanted.after, "--after")
    if wanted.every is not None:
        span = parse_span(wanted.every, "--every")
        if span % timedelta(seconds=1):
            raise InvalidInput(f"--every {wanted.every!r} must be whole seconds")
        every = span // timedelta(seconds=1)
    missed = cast("MissedTicks", wanted.missed)
    return Timing(
        cron=wanted.cron,
        every_s=every,
        at=at,
        time_zone=wanted.time_zone,
        missed=missed,
    )


def _read_value(text: str) -> tuple[str, JsonValue]:
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise InvalidInput(f"--parameter {text!r} is not NAME=VALUE")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _print_changed(kept: KeptSchedule, words: str, *, as_json: bool) -> None:
    if as_json:
        print_json(document_of(kept))
    else:
        print(f"{kept.schedule.id} {words}.")
