"""What the definitions of the commands share: how help looks, and options that many of them take."""

from typing import Annotated, Any

from typer import Option

#: Plain help, the same on every terminal and in the manual; a crash of ours shows an ordinary traceback.
SETTLED: dict[str, Any] = {
    "rich_markup_mode": None,
    "pretty_exceptions_enable": False,
    "add_completion": False,
    "context_settings": {"max_content_width": 100, "help_option_names": ["--help", "-h"]},
}

Json = Annotated[bool, Option("--json", help="Print JSON for programs.")]
AgentId = Annotated[str | None, Option("--agent", metavar="AGENT", help="Only of this agent.")]


def example(*lines: str) -> str:
    """Return the end of a help page that shows *lines* as they are typed."""
    return "\b\nExample:\n" + "\n".join(f"  {line}" for line in lines)
