"""Asking the supervisor: one request over core NATS, sent again without harm until a supervisor takes it."""

import asyncio
import contextlib
import shlex
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from nats.aio.client import Client
from pydantic import ValidationError

from tasklore.commands.ask.call import Call
from tasklore.commands.exits import FAILED, OK, QUESTION, UNABLE
from tasklore.commands.places import (
    current_supervisor,
    demand_listener,
    endpoints_when_started,
    open_nats,
    open_redis,
)
from tasklore.commands.render.durations import parse_moment, parse_span
from tasklore.commands.render.screen import (
    patience,
    print_exactly,
    printable,
    say,
)
from tasklore.contracts import subjects
from tasklore.contracts.errors import InvalidInput, TaskloreError, Unreachable
from tasklore.contracts.faults import fault_of
from tasklore.contracts.identifiers import new_id
from tasklore.contracts.person_messages import PersonReply, PersonRequest, ReplyPart
from tasklore.runtime.messaging.connection import Listener, connected

if TYPE_CHECKING:
    from tasklore.supervisor.dead_letters.queue import DeadLetters

#: Seconds that the answer may be late after the time the supervisor was given for it.
LATE_S = 2.0
#: Seconds for asking once more when it was late: a supervisor that was replaced meanwhile finds what was started.
LAST_S = 3.0
#: Seconds for looking up where a task failed.
PLACE_S = 3.0
#: Characters of that place that are shown.
PLACE_WIDTH = 2000


def make_request(text: str, **fields: Any) -> PersonRequest:
    """Return the request that says *text*, with an id of its own; a field that is None is left out.

    Raises:
        InvalidInput: a value cannot be sent; the message names it.
    """
    if not text.strip():
        raise InvalidInput("there is no question; say what you want to know")
    given: dict[str, Any] = {
        name: value for name, value in fields.items() if value is not None
    }
    given.setdefault("unserved_at_once", True)
    given.setdefault("request_id", new_id(time.time_ns() // 1_000_000))
    try:
        return PersonRequest(text=text.strip(), **given)
    except ValidationError as error:
        raise InvalidInput(fault_of(error.errors(include_url=False)[0])) from error


def read_start(
    at: str | None, after: str | None, time_zone: str | None, *, is_repeat: bool = False
) -> datetime | None:
    """Return when the tasks may begin, None at once; the time of a request that is sent again may have passed.

    Raises:
        InvalidInput: both are given, or one is no time, or has passed; names the option.
    """
    now = datetime.now(UTC)
    if at is not None and after is not None:
        raise InvalidInput("say either --at or --after, not both")
    if after is not None:
        return now + parse_span(after, "--after")
    if at is None:
        return None
    start = parse_moment(at, "--at", time_zone or "UTC")
    if start < now and not is_repeat:
        raise InvalidInput(f"--at {at!r} has passed; leave it out to begin at once")
    return start


async def ask_and_print(
    request: PersonRequest, *, as_json: bool = False, verbose: bool = False
) -> int:
    """Ask, print the answer (or the whole reply as JSON) and return the exit code.

    On a terminal the words of the task are printed as they come. With *verbose*, what was asked of which task and how
    the answer came about follow on stderr.

    Raises:
        Unreachable: nobody answers.
    """
    try:
        async with patience("asking") as end_spinner:

            def show(words: str) -> None:
                end_spinner()
                print(printable(words), end="", flush=True)

            is_live = sys.stdout.isatty() and not as_json
            endpoints = await endpoints_when_started()
            reply = await ask(
                endpoints.nats,
                current_supervisor(),
                request,
                show=show if is_live else None,
            )
    except asyncio.CancelledError:
        say(f"it may go on without you; {_how_to_fetch(request)}")
        raise
    answers = reply.parts or (reply,)
    kinds = {one.kind for one in answers}
    if as_json:
        print(reply.model_dump_json(indent=2), flush=True)
    else:
        print_exactly("" if is_live else reply.text)
        for one in answers:
            _say_about(one, verbose=verbose)
        if reply.read_by_rules:
            why = printable(reply.read_by_rules)
            say(f"No model read that, rules did: {why}")
        await _say_places(answers)
        if reply.kind == "question":
            say(
                f'answer with: {_command(request, "--conversation", reply.conversation_id)} "..."'
            )
        elif "pending" in kinds:
            say(_how_to_fetch(request))
    # What waits for a time or for another person's yes is as it should be.
    is_unfinished = any(
        one.kind == "pending" and not (request.not_before or one.approval_id)
        for one in answers
    )
    if is_unfinished or "failed" in kinds:
        return FAILED
    return QUESTION if "question" in kinds else UNABLE if "unable" in kinds else OK


def _say_about(answer: PersonReply | ReplyPart, *, verbose: bool) -> None:
    """Say heading and origin of *answer* where its text is the task's own and has neither."""
    if answer.heading is None or answer.origin is None or answer.origin in answer.text:
        return
    if verbose:
        say(printable(f"{answer.heading}. {answer.origin}"))
    elif answer.taken:
        say(printable(f"I took {answer.taken}."))


async def _say_places(answers: Sequence[PersonReply | ReplyPart]) -> None:
    """Say which lines of an agent's code failed, to a reader of dead letters; others see nothing."""
    failed = [
        one.report.task_id
        for one in answers
        if one.report is not None and one.report.status == "failed"
    ]
    if not failed:
        return
    with contextlib.suppress(TaskloreError, TimeoutError):
        async with asyncio.timeout(PLACE_S), _open_letters() as letters:
            for task_id in failed:
                # It has died just now: its letter is among the newest.
                for letter in (await letters.of_task(task_id)).letters:
                    if letter.content.place is not None:
                        place = " ".join(printable(letter.content.place).split())
                        say(f"it failed at {place[:PLACE_WIDTH]}")


@contextlib.asynccontextmanager
async def _open_letters() -> "AsyncIterator[DeadLetters]":
    """Open the dead letters of the system that runs here."""
    # Who asks for an answer alone loads none of it.
    from tasklore.memory.ledger.ledger import Ledger
    from tasklore.runtime.messaging.link import Link
    from tasklore.runtime.messaging.outbox import open_outbox
    from tasklore.supervisor.dead_letters.queue import open_dead_letters

    async with (
        open_nats("tasklore-letters") as client,
        open_redis("tasklore-letters", PLACE_S) as redis,
        open_outbox(link := Link(client)) as outbox,
        open_dead_letters(link, outbox, Ledger(redis)) as letters,
    ):
        yield letters


def _how_to_fetch(request: PersonRequest) -> str:
    """Return the command that asks the same again, under the same id: it starts nothing twice."""
    conversation = (
        ()
        if request.conversation_id is None
        else ("--conversation", request.conversation_id)
    )
    memory = ("--no-memory",) if request.memory == "bypass" else ()
    command = _command(
        request, "--request-id", str(request.request_id), *conversation, *memory
    )
    return f"for the answer: {command} {shlex.quote(request.text)}"


def _command(request: PersonRequest, *options: str) -> str:
    """Return the beginning of a command with *options* that asks as the same person, from the same place."""
    user = () if request.user_id is None else ("--user", request.user_id)
    zone = () if request.time_zone is None else ("--time-zone", request.time_zone)
    start = (
        () if request.not_before is None else ("--at", request.not_before.isoformat())
    )
    return shlex.join(("tasklore", "ask", *options, *user, *zone, *start))


async def ask(
    nats_url: str,
    supervisor_id: str,
    request: PersonRequest,
    *,
    show: Callable[[str], None] | None = None,
) -> PersonReply:
    """Return the answer to *request*; one of kind `pending` when it takes longer than its `wait_ms`.

    *show* is called with the words of the task that answers as they come, and then with what the answer says beside.
    """
    await demand_listener(nats_url)
    calls: list[Call] = []

    def ask_again() -> None:
        # A reply on its way is lost with the connection.
        for call in calls:
            call.ask_again()

    async with connected(
        nats_url, "tasklore-ask", Listener(reconnected=ask_again)
    ) as client:
        calls.append(_call(client, supervisor_id, request))
        replying = asyncio.ensure_future(_reply_to(calls[0], request))
        try:
            if show is not None:
                await _show_output(
                    client,
                    supervisor_id=supervisor_id,
                    request=request,
                    replying=replying,
                    show=show,
                )
            return await replying
        finally:
            replying.cancel()


async def _show_output(
    client: Client,
    supervisor_id: str,
    request: PersonRequest,
    replying: "asyncio.Future[PersonReply]",
    show: Callable[[str], None],
) -> None:
    """Call *show* with the output of the task of *request* until *replying* is done, and with the rest of the reply."""
    # Who asks for the answer alone loads none of it.
    from tasklore.runtime.messaging.link import Link
    from tasklore.runtime.messaging.output import LOOK_S, open_output
    from tasklore.supervisor.feed.tasks import Feeds
    from tasklore.supervisor.replies.live_text import LiveText
    from tasklore.supervisor.requests.request import single_task_id

    async with (
        open_output(Link(client)) as output,
        contextlib.AsyncExitStack() as stack,
    ):
        live = LiveText(Feeds(output))
        stack.push_async_callback(live.close)
        live.follow(single_task_id(supervisor_id, request))
        while not replying.done():
            for delta in await live.take():
                show(delta.words)
            news: asyncio.Future[Any] = asyncio.ensure_future(live.wait(LOOK_S))
            await asyncio.wait(
                [replying, news], timeout=LOOK_S, return_when=asyncio.FIRST_COMPLETED
            )
            news.cancel()
        for delta in await live.take_rest(await replying):
            show(delta.words)


async def ask_over(
    client: Client, supervisor_id: str, request: PersonRequest
) -> PersonReply:
    """Return the answer to *request* over a connection that is open, as `ask` does."""
    return await _reply_to(_call(client, supervisor_id, request), request)


def _call(client: Client, supervisor_id: str, request: PersonRequest) -> Call:
    wait_until = time.monotonic() + request.wait_ms / 1000

    def body() -> bytes:
        left_s = wait_until - time.monotonic()
        # Whoever took it may be gone; its successor finds what was started under the same id.
        left_ms = int((max(0.0, left_s) if left_s > -LATE_S else LAST_S / 2) * 1000)
        return (
            request.model_copy(update={"wait_ms": left_ms})
            .model_dump_json(exclude_none=True)
            .encode()
        )

    return Call(client, subjects.requests(supervisor_id), body)


async def _reply_to(call: Call, request: PersonRequest) -> PersonReply:
    late_s = request.wait_ms / 1000 + LATE_S
    body = await call.reply(late_s + LAST_S, late_s)
    try:
        return PersonReply.model_validate_json(body)
    except ValidationError as error:
        msg = f"the supervisor answered with something else than a reply: {body[:200]!r}; are the versions the same?"
        raise Unreachable(msg) from error
