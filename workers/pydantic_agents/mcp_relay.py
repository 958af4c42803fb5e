"""The program between a worker and an MCP server over stdio: `mcp_relay.py SECONDS BYTES PROGRAM ARGUMENT...`.

The client library reads lines of any length on the worker's event loop, and a server that hangs stays for ever. So
this hands on whole lines up to a size, and ends the server, with all that it started in its group, when it sends more
or leaves a request unanswered: the client hears why as the error of each open request, and starts another one for the
next task.

It imports nothing but the standard library, as the server's environment has no path of ours.
"""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from typing import Any

#: Lines that a server may send for one request, such as notices of progress.
_MOST_LINES = 10_000
#: Values of all lines for one request: each costs the worker some 10 us and 1 KB, on its event loop.
MOST_VALUES = 20_000
#: Questions that a server may ask for one request: the client answers each.
_MOST_QUESTIONS = 100
#: Bytes that a server may log for one request.
_MOST_LOGGED = 64 * 1024
#: The code of JSON-RPC for a server that failed.
_FAILED = -32000
#: Seconds for a server that closed its stream to end.
_END_S = 2.0
#: Seconds between two looks at the clock.
_LOOK_S = 0.05
_LEFT_OUT = b"\n... the MCP server logs more, which is left out\n"
#: A string of JSON, also one that nothing closes: no byte is looked at twice.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)


class Relay:
    """Hands lines between the streams of this process and those of *server*."""

    def __init__(
        self, server: "subprocess.Popen[bytes]", seconds: float, most: int
    ) -> None:
        self._server = server
        self._seconds = seconds
        self._most = most
        self._open: dict[Any, float] = {}
        self._lock = threading.Lock()
        self._client_left: float | None = None
        self._server_left: float | None = None
        self._begin()

    def _begin(self) -> None:
        """Let the server send as much as it may for one request."""
        self._left = self._most
        self._lines = _MOST_LINES
        self._values = MOST_VALUES
        self._questions = _MOST_QUESTIONS
        self._logged = _MOST_LOGGED

    def hand_in(self) -> None:
        """Hand lines of the client to the server, until there are no more."""
        stdin = self._server.stdin
        assert stdin is not None  # noqa: S101 - it has pipes
        try:
            for line in sys.stdin.buffer:
                self._note(line)
                stdin.write(line)
                stdin.flush()
            stdin.close()
        except OSError:
            # The server is gone, which the other direction tells.
            return
        self._client_left = time.monotonic()

    def hand_out(self) -> None:
        """Hand whole lines of the server to the client, until there are no more or too many."""
        stdout = self._server.stdout
        assert stdout is not None  # noqa: S101 - it has pipes
        while line := stdout.readline(self._most + 1):
            with self._lock:
                self._left -= len(line)
                self._lines -= 1
                self._values -= _count_values(line)
                is_over = min(self._left, self._lines, self._values) < 0
                if not is_over:
                    self._settle(line)
            if is_over or self._questions < 0:
                self.give_up(
                    f"the MCP server sent more than {self._most:,} bytes, {_MOST_LINES:,} lines, {MOST_VALUES:,} "
                    f"values of JSON or {_MOST_QUESTIONS} questions for one request; let it answer with less"
                )
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()

    def log(self) -> None:
        """Hand on what the server logs, as much as it may for one request."""
        stderr = self._server.stderr
        assert stderr is not None  # noqa: S101 - it has pipes
        while piece := os.read(stderr.fileno(), _MOST_LOGGED):
            with self._lock:
                room = self._logged
                self._logged = max(0, room - len(piece))
            if room:
                os.write(sys.stderr.fileno(), piece[:room])
            if 0 < room < len(piece):
                os.write(sys.stderr.fileno(), _LEFT_OUT)

    def watch(self) -> None:
        """End the server when a request of the client waits longer than it may, or either side is gone."""
        while True:
            time.sleep(_LOOK_S)
            now = time.monotonic()
            if self._server_left is None and self._server.poll() is not None:
                self._server_left = now
            # A child of it may hold its stream open, and one that hangs does not see that its client has left.
            if now - min(self._server_left or now, self._client_left or now) > _END_S:
                self.leave()
            with self._lock:
                oldest = min(self._open.values(), default=time.monotonic())
            if time.monotonic() - oldest > self._seconds:
                self.give_up(
                    f"the MCP server did not answer within {self._seconds:g} s, and was "
                    "stopped; the next task restarts it"
                )

    def give_up(self, reason: str) -> None:
        """End the server and this process, with *reason* as the answer to every open request."""
        with self._lock:
            self._server.kill()
            # Said before it is answered: a client that has its answer may end this process.
            print(reason, file=sys.stderr, flush=True)  # noqa: T201 - the log of a server is its stderr
            error = {"code": _FAILED, "message": reason}
            for number in self._open:
                answer = {"jsonrpc": "2.0", "id": number, "error": error}
                sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
            sys.stdout.buffer.flush()
            _end_group()

    def leave(self) -> None:
        """End this process and what the server started, as it has ended; not while its end is being reported."""
        with self._lock:
            _end_group()

    def _note(self, line: bytes) -> None:
        """Remember the request in *line*, or that the client does without one."""
        message = json.loads(line)
        with self._lock:
            if message.get("method") == "notifications/cancelled":
                self._open.pop(message.get("params", {}).get("requestId"), None)
            elif "method" in message and "id" in message:
                self._open[message["id"]] = time.monotonic()
                self._begin()

    def _settle(self, line: bytes) -> None:
        """Forget the request that *line* answers, or count the question that it asks."""
        if b'"id"' in line:
            try:
                message = json.loads(line)
            except (ValueError, RecursionError):
                return
            number = message.get("id") if isinstance(message, dict) else None
            if not isinstance(number, int | str):
                return
            if "method" in message:
                self._questions -= 1
            else:
                self._open.pop(number, None)


def _count_values(line: bytes) -> int:
    """Return about how many values of JSON *line* has."""
    if line.count(b",") < MOST_VALUES and line.count(b"[") < MOST_VALUES:
        return line.count(b",")
    bare = _STRING.sub(b"", line)
    return bare.count(b",") + bare.count(b"[") + bare.count(b"{")


def _end_group() -> None:
    """End this process with all of its group: the server, and all that it started."""
    os.killpg(0, signal.SIGKILL)


def main() -> None:
    """Start the server and hand lines to and fro until either side ends."""
    seconds, most, *command = sys.argv[1:]
    if os.getpgrp() != os.getpid():
        os.setpgid(0, 0)
    try:
        server = subprocess.Popen(  # noqa: S603 - the author of the agent names it
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
    except OSError as error:
        sys.exit(f"{command[0]!r} cannot be started: {error}")
    relay = Relay(server, float(seconds), int(most))
    for work in (relay.hand_in, relay.watch, relay.log):
        threading.Thread(target=work, daemon=True).start()
    relay.hand_out()
    # It closed its stream: it has a moment to end by itself.
    try:
        server.wait(_END_S)
    except subprocess.TimeoutExpired:
        server.kill()
    relay.leave()


if __name__ == "__main__":
    main()
