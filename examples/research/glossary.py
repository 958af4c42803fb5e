"""A glossary as an MCP server over stdio, of the official package `mcp`: `python examples/research/glossary.py`."""

from mcp.server.mcpserver import MCPServer

TERMS = {
    "crepuscular": "active at dawn and at dusk",
    "nocturnal": "active at night",
    "diurnal": "active by day",
}
server = MCPServer("glossary")


@server.tool()
def look_up(term: str) -> str:
    """Return the meaning of a term."""
    return TERMS.get(term.casefold(), f"{term} is not in this glossary")


if __name__ == "__main__":
    server.run("stdio")
