"""What the models of a task saw: each message behind its heading, and at the end what the answer came from.

The words are of persons, models and tools, and stand as data: each of their lines behind a bar, so that none can pass
for a heading.
"""

import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from tasklore.commands.render.screen import printable, styled
from tasklore.commands.render.words import count_of, duration, one_line, size

#: Lines and characters of one message that a terminal is shown; files and pipes get all of it.
_MOST_LINES = 60
_MOST_LETTERS = 6_000
#: What each kind is called; others stand as they are.
_KINDS = {
    "prompt": "shown to",
    "answer": "said by",
    "tool": "tool",
    "step": "step",
    "child": "called",
    "memory": "memory",
    "person": "answered by",
    "parameters": "parameters of",
    "result": "result",
    "error": "failed",
    "other": "unreadable",
}
#: Facts that the heading says.
_SAID = {"error", "source", "took_ms", "instead_of", "input_tokens", "output_tokens"}


def draw(view: Mapping[str, Any]) -> str:
    """Return the messages of *view* in order, and its sources."""
    return "\n".join(_lines(view))


def _lines(view: Mapping[str, Any]) -> Iterator[str]:
    heading = f"{view['agent_id']}  {view['task_id']}  {view['status']}"
    yield styled(printable(heading), "bold")
    if view["dropped"]:
        yield styled(
            f"{count_of(view['dropped'], 'older message')}, {size(view['dropped_bytes'])}, had no room any more",
            "yellow",
        )
    run = None
    for number, message in enumerate(view["messages"], 1):
        if run != (of := (message["generation"], message["run"])):
            run = of
            yield ""
            yield styled(
                f"run {of[1]}" + (f" of generation {of[0]}" if of[0] > 1 else ""),
                "cyan",
            )
        yield ""
        yield _head(number, message)
        if message.get("given"):
            yield from _quoted(message["given"], "given")
        yield from _quoted(message["text"], "")
        if message["size"]:
            yield styled(f"   … {message['size']:,} characters in whole", "yellow")
    if not view["messages"]:
        yield "no messages are kept of it"
    if view["sources"]:
        yield ""
        yield styled("The answer came from", "bold")
        yield from (_source(one) for one in view["sources"])
    if view["kept_until"]:
        yield ""
        yield styled(
            f"kept until {view['kept_until'][:16].replace('T', ' ')} UTC", "dim"
        )


def _head(number: int, message: Mapping[str, Any]) -> str:
    facts = message["facts"]
    at = datetime.fromtimestamp(message["at_ms"] / 1000, UTC)
    parts = [f"{number:>3}", f"{at:%H:%M:%S}.{at.microsecond // 1000:03}"]
    kind = _KINDS.get(message["kind"], message["kind"])
    parts.append(
        styled(printable(f"{kind} {one_line(message['name'], 120)}".strip()), "bold")
    )
    said = []
    if facts.get("instead_of"):
        said.append(f"in place of {one_line(str(facts['instead_of']), 80)}")
    if facts.get("source") == "journal":
        said.append("read from the journal")
    if facts.get("took_ms") is not None:
        said.append(f"took {duration(facts['took_ms'])}")
    if facts.get("input_tokens") or facts.get("output_tokens"):
        said.append(
            f"{facts.get('input_tokens') or 0:,} + {facts.get('output_tokens') or 0:,} tokens"
        )
    said += [
        one_line(f"{name} {_spell(fact)}", 120)
        for name, fact in facts.items()
        if name not in _SAID
    ]
    error = facts.get("error")
    tail = [styled(", ".join(map(printable, said)), "dim")] if said else []
    return "  ".join(
        [*parts, *([styled(one_line(str(error), 80), "red")] if error else []), *tail]
    )


def _spell(fact: object) -> str:
    return ", ".join(map(str, fact)) if isinstance(fact, list) else str(fact)


def _quoted(text: str, name: str) -> Iterator[str]:
    """Yield *text* line by line behind a bar; a terminal is shown its beginning."""
    whole = printable(text)
    shown = whole
    lines = whole.split("\n")
    if sys.stdout.isatty():
        shown = whole[:_MOST_LETTERS]
        lines = shown.split("\n")[:_MOST_LINES]
    if name:
        yield f"   {styled(f'{name}:', 'dim')}"
    yield from (f"   | {line}" for line in lines if whole)
    left = len(whole) - len("\n".join(lines))
    if left > 0:
        yield styled(f"   … {left:,} characters more; --json has them", "yellow")


def _source(source: Mapping[str, Any]) -> str:
    where = f"  (message {source['message']})" if source["message"] else ""
    return f"   {source['kind']:<7}{one_line(source['name'], 100)}: {one_line(source['said'], 300)}{where}"
