"""How long a letter is repeated: never past the time in which its stream swallows a repeat."""

import asyncio
from typing import Any, cast

from tasklore.contracts.errors import NotAccepted
from tasklore.runtime.messaging.link import Link
from tasklore.runtime.messaging.outbox import PATIENCE_S, Outbox
from tasklore.runtime.messaging.streams import DUPLICATE_WINDOW


class DeafLink:
    """A connection that stands, and to which nobody answers; it notes when what was sent under which id."""

    is_connected = True

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.sent: list[tuple[float, str]] = []

    def new_inbox(self) -> str:
        """Return where nobody will ever answer."""
        return "inbox"

    def send(
        self, subject: str, body: bytes, reply: str = "", headers: str = ""
    ) -> None:
        """Note a copy."""
        self.sent.append((self._loop.time(), headers))


class Hurried(asyncio.SelectorEventLoop):
    """An event loop whose clock jumps to the next thing to do, so that four minutes take no time."""

    def __init__(self) -> None:
        super().__init__()
        self._ahead = 0.0

    def time(self) -> float:
        """Return the time by its own clock."""
        return super().time() + self._ahead

    def _run_once(self) -> None:
        own = cast("Any", self)
        if not own._ready and own._scheduled:
            self._ahead += max(0.0, own._scheduled[0]._when - self.time())
        cast("Any", super())._run_once()


async def give_up_one() -> tuple[list[tuple[float, str]], NotAccepted | None, float]:
    """Send one letter to nobody; return its copies, what became of it, and when that was told."""
    loop = asyncio.get_running_loop()
    link = DeafLink(loop)
    outbox = Outbox(link=cast("Link", link))
    told: asyncio.Future[NotAccepted | None] = loop.create_future()
    sweeping = asyncio.create_task(outbox.sweep())
    outbox.send("tasks.A.x", b"{}", "t1:1", told.set_result)
    problem = await told
    sweeping.cancel()
    return link.sent, problem, loop.time()


def test_a_letter_is_repeated_under_one_id_for_four_minutes_from_the_first_time_and_no_longer() -> (
    None
):
    """By a clock that starts with the first copy, and stays a minute below the time of the stream."""
    with asyncio.Runner(loop_factory=Hurried) as runner:
        copies, problem, told_at = runner.run(give_up_one())
    first = copies[0][0]
    last = copies[-1][0]
    assert isinstance(problem, NotAccepted)
    assert {headers for _, headers in copies} == {"Nats-Msg-Id: t1:1\r\n"}
    assert len(copies) > 10
    assert last - first <= PATIENCE_S <= told_at - first
    assert last - first <= DUPLICATE_WINDOW / 1e9 - 59
