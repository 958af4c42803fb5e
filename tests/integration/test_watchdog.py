"""What ends a process that stands still: real interpreters, one of which keeps its global lock for good."""

import subprocess
import sys
import time

import pytest

#: Seconds until the watchdog of these processes ends them, and those that a process may take on a busy machine.
LIMIT_S, PATIENCE_S = 3.0, 60.0

HEAD = f"""
import asyncio, os, re, signal, sys, threading, time
from runtime.health import Pulse
from runtime.watchdog import Watchdog

def hold_the_lock():
    # One call into C that goes back and tries again for years, and lets no thread run meanwhile.
    re.match("(a+)+$", "a" * 60 + "b")

watchdog = Watchdog({LIMIT_S})
"""

STUCK_LOOP = """
async def main():
    pulse = Pulse(on_beat=watchdog.beat)
    pulse.start()
    await asyncio.sleep(5)
    print("still here", flush=True)
    signal.signal(signal.SIGTERM, lambda *_: None)
    os.kill(os.getpid(), signal.SIGTERM)
    hold_the_lock()

asyncio.run(main())
"""
STUCK_THREAD = """
watchdog.beat_from_thread()
time.sleep(5)
print("still here", flush=True)
threading.Thread(target=hold_the_lock).start()
"""
ASKED_TO_LEAVE = """
watchdog.beat_from_thread()
watchdog.end_within(5)
print("still here", flush=True)
while True:
    time.sleep(0.1)
"""
BUSY_THREAD = """
from tasklore.up import serve as serving
serving.LEAVE_S = 1.0

async def main():
    asyncio.get_running_loop().run_in_executor(None, time.sleep, 3600)
    print("still here", flush=True)

serving._run(main())
"""


@pytest.mark.parametrize("body", [STUCK_LOOP, STUCK_THREAD, ASKED_TO_LEAVE, BUSY_THREAD])
def test_a_process_that_stands_still_ends_and_says_where(body: str) -> None:
    """While it beats it lives, longer than the limit; then status 1, and where each thread was."""
    began = time.monotonic()
    ended = subprocess.run([sys.executable, "-c", HEAD + body], capture_output=True, timeout=PATIENCE_S, text=True)
    assert (ended.returncode, ended.stdout) == (1, "still here\n"), ended.stderr
    assert "Timeout" in ended.stderr
    assert "most recent call first" in ended.stderr
    if body is not BUSY_THREAD:
        assert time.monotonic() - began >= 4


def test_a_watchdog_that_was_stopped_ends_nothing() -> None:
    """Also when somebody beats after that."""
    body = "watchdog.beat(); watchdog.stop(); watchdog.beat(); time.sleep(3); print('still here')"
    ended = subprocess.run([sys.executable, "-c", HEAD + body], capture_output=True, timeout=PATIENCE_S, text=True)
    assert (ended.returncode, ended.stdout) == (0, "still here\n"), ended.stderr
