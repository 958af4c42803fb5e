"""The program between a worker and an MCP server over stdio: `mcp_relay.py SECONDS BYTES PROGRAM ARGUMENT...`.

The client library reads lines of any length on the worker's event loop, and a server that hangs stays for ever. So
this hands on whole lines up to a size, and ends the server when it sends more or leaves a request unanswered: the
client hears why as the error of each open request, and starts another one for the next task.

It imports nothing but the standard library, as the server's environment has no path of ours.
"""

import json
import os
import subprocess
import sys
import threading
import time
from typing import Any

#: Lines that a server may send for one line that it is sent, such as notices of progress.
_MOST_LINES = 10_000
#: The code of JSON-RPC for a server that failed.
_FAILED = -32000
#: Seconds for a server that closed its stream to end.
_END_S = 2.0
#: Seconds between two looks at the clock.
_LOOK_S = 0.05


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
        self._left = most
        self._lines = _MOST_LINES

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

    def hand_out(self) -> None:
        """Hand whole lines of the server to the client, until there are no more or too many."""
        stdout = self._server.stdout
        assert stdout is not None  # noqa: S101 - it has pipes
        while line := stdout.readline(self._most + 1):
            with self._lock:
                self._left -= len(line)
                self._lines -= 1
                is_over = self._left < 0 or self._lines < 0
                self._settle(line)
            if is_over:
                self.give_up(
                    f"the MCP server sent more than {self._most:,} bytes or {_MOST_LINES:,} lines for one request; "
                    "let it answer with less"
                )
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()

    def watch(self) -> None:
        """End the server when a request of the client waits longer than it may."""
        while True:
            time.sleep(_LOOK_S)
            with self._lock:
                oldest = min(self._open.values(), default=time.monotonic())
            if time.monotonic() - oldest > self._seconds:
                self.give_up(
                    f"the MCP server did not answer within {self._seconds:g} s, and was ended; "
                    "the next task starts it anew"
                )

    def give_up(self, reason: str) -> None:
        """End the server and this process, with *reason* as the answer to every open request."""
        with self._lock:
            self._server.kill()
            error = {"code": _FAILED, "message": reason}
            for number in self._open:
                answer = {"jsonrpc": "2.0", "id": number, "error": error}
                sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
            sys.stdout.buffer.flush()
            print(reason, file=sys.stderr, flush=True)  # noqa: T201 - the log of a server is its stderr
            os._exit(1)

    def leave(self) -> None:
        """End this process, as the server has ended; not while its end is being reported."""
        with self._lock:
            os._exit(0)

    def _note(self, line: bytes) -> None:
        """Remember the request in *line*, or that the client does without one."""
        message = json.loads(line)
        with self._lock:
            self._left = self._most
            self._lines = _MOST_LINES
            if message.get("method") == "notifications/cancelled":
                self._open.pop(message.get("params", {}).get("requestId"), None)
            elif "method" in message and "id" in message:
                self._open[message["id"]] = time.monotonic()

    def _settle(self, line: bytes) -> None:
        """Forget the request that *line* answers."""
        if self._open and b'"id"' in line:
            try:
                message = json.loads(line)
            except (ValueError, RecursionError):
                return
            if not isinstance(message, dict) or "method" in message:
                return
            if isinstance(number := message.get("id"), int | str):
                self._open.pop(number, None)


def main() -> None:
    """Start the server and hand lines to and fro until either side ends."""
    seconds, most, *command = sys.argv[1:]
    try:
        server = subprocess.Popen(  # noqa: S603 - the author of the agent names it
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
    except OSError as error:
        sys.exit(f"{command[0]!r} cannot be started: {error}")
    relay = Relay(server, float(seconds), int(most))
    for work in (relay.hand_in, relay.watch):
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
