"""A real MCP server of the official package, as a script: `mcp_double.py LOG` over stdio, with a PORT over HTTP.

Each call of a tool is a line in LOG.
"""

import os
import sys
import time
from pathlib import Path

from mcp.server.mcpserver import MCPServer

LOG = Path(sys.argv[1])
server = MCPServer("double")


def note(event: str) -> None:
    """Add *event* to the log, in one write."""
    with LOG.open("a") as log:
        log.write(event + "\n")


@server.tool()
def count_words(text: str) -> int:
    """Count the words of a text."""
    note(f"count_words {text}")
    return len(text.split())


@server.tool()
def die_once() -> str:
    """End the server's process when it is called for the first time."""
    note("die_once")
    if LOG.read_text().count("die_once") == 1:
        os._exit(3)
    return "alive"


@server.tool()
def hang() -> str:
    """Answer after an hour."""
    note("hang")
    time.sleep(3600)
    return "late"


@server.tool()
def hang_once() -> str:
    """Answer after a minute when it is called for the first time."""
    note(f"hang_once {os.getpid()}")
    if LOG.read_text().count("hang_once") == 1:
        time.sleep(600)
    return "awake"


@server.tool()
def flood(megabytes: int) -> str:
    """Answer with so many megabytes in one line."""
    note("flood")
    return "x" * (megabytes * 1024**2)


@server.tool()
def refuse() -> str:
    """Fail."""
    raise ValueError("not today")


if __name__ == "__main__":
    if len(sys.argv) > 2:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[2]))
    else:
        server.run("stdio")
