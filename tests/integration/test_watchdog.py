"""The watchdog ends a real process that stands still, also one that keeps the lock of the interpreter."""

import subprocess
import sys
import time
from subprocess import PIPE

#: Seconds until the watchdog of these processes ends them, and those that a process may take on a busy machine.
LIMIT_S = 3.0
PATIENCE_S = 60.0

HEAD = f"""
import asyncio, os, re, signal, sys, threading, time
from tasklore.runtime.health import Pulse
from tasklore.runtime.watchdog import Watchdog

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
from tasklore.commands.up import serve as serving
serving.LEAVE_S = 1.0

async def main():
    asyncio.get_running_loop().run_in_executor(None, time.sleep, 3600)
    print("still here", flush=True)

serving._run(main())
"""
STOPPED = "watchdog.beat(); watchdog.stop(); watchdog.beat(); time.sleep(5); print('still here')"


def test_a_process_that_stands_still_ends_and_says_where() -> None:
    """While it beats it lives, longer than the limit; then status 1, and where each thread was."""
    began = time.monotonic()
    bodies = (STUCK_LOOP, STUCK_THREAD, ASKED_TO_LEAVE, BUSY_THREAD, STOPPED)
    running = [
        subprocess.Popen(
            [sys.executable, "-c", HEAD + body], stdout=PIPE, stderr=PIPE, text=True
        )
        for body in bodies
    ]
    for body, process in zip(bodies, running, strict=True):
        out, err = process.communicate(timeout=PATIENCE_S)
        assert out == "still here\n", err
        if body is STOPPED:
            assert process.returncode == 0
            continue
        assert process.returncode == 1, err
        assert "Timeout" in err
        assert "most recent call first" in err
    assert time.monotonic() - began >= 4
