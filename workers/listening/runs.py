"""One run of a listener's function, kept from harming more than itself."""

import asyncio
from collections.abc import Awaitable
from datetime import timedelta
from typing import TypeVar

from contracts.errors import TaskloreError
from workers.listening.declaration import Listener

T = TypeVar("T")


async def contained(listener: Listener, run: Awaitable[T]) -> T:
    """Return what *run* of *listener* returns, within its deadline.

    Raises:
        TaskloreError: its time was over, it let a CancelledError escape that nobody asked for, or it raised what would
            end the whole process.
        Exception: whatever it raises.
    """
    deadline: timedelta | None = listener.deadline
    try:
        async with asyncio.timeout(deadline.total_seconds() if deadline is not None else None) as time:
            return await run
    except TimeoutError as error:
        if not time.expired():
            raise
        msg = f"{listener.label} did not end within {deadline}; allow more time, or do less at once"
        raise TaskloreError(msg) from error
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        msg = f"{listener.label} let a CancelledError escape that nobody asked for; catch it where it cancels"
        raise TaskloreError(msg) from error
    except Exception:
        raise
    except BaseException as error:
        msg = f"{listener.label} raised {type(error).__name__}({error}), which is no Exception; return or raise one"
        raise TaskloreError(msg) from error
