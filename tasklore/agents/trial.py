"""`tasklore agents try`: a prompt that shows how each line is read, and starts nothing."""

import asyncio
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Literal

from contracts.identifiers import new_id
from contracts.messages import ChatTurn, TaskCall
from quantities.numerals.locales import mark_of
from runtime.models.llm import Llm
from runtime.settings import Settings
from supervisor.catalogue import Catalogue
from supervisor.understanding import (
    Clarification,
    Interpreter,
    Several,
    Single,
    Span,
    Understood,
    Unfitting,
    make_interpreter,
)
from tasklore.agents.check import NOTHING_IN_WORDS, catalogue_of
from tasklore.exits import OK
from tasklore.render.screen import print_paragraph, print_table, printable, say, styled
from workers.loading import load_agents

#: Turns of the conversation at the prompt that "the same with 45k" may refer to.
_LOOK_BACK = 20


def try_aloud(references: Sequence[str]) -> int:
    """Show how each line of stdin is read by the agents in *references*, until it ends."""
    catalogue = catalogue_of([agent for reference in references for agent in load_agents(reference)])
    if not catalogue.tasks():
        say(NOTHING_IN_WORDS)
        return OK
    if sys.stdin.isatty():
        say(f"{catalogue.abilities()} Nothing is started. Ctrl-D ends.")
    settings = Settings.load()
    mark = mark_of(settings.locale) if settings.locale else None
    with asyncio.Runner() as runner:
        llm = Llm(settings.llm())
        try:
            _show_lines(runner, make_interpreter(llm, decimal_mark=mark), catalogue)
        finally:
            runner.run(llm.__aexit__(None, None, None))
    return OK


def _show_lines(runner: asyncio.Runner, interpreter: Interpreter, catalogue: Catalogue) -> None:
    turns: list[ChatTurn] = []
    while (line := _next_line()) is not None:
        if not line.strip():
            continue
        now = datetime.now(UTC)
        found = runner.run(interpreter.interpret(line, catalogue=catalogue, previous=turns, now=now))
        parts = found.parts if isinstance(found, Several) else (found,)
        turns.append(_turn("person", line, now))
        for part in parts:
            show(part)
            turns.append(_answer(part, now))
        del turns[:-_LOOK_BACK]


def _next_line() -> str | None:
    """Return the next line; None at the end of the input, or when somebody has had enough."""
    try:
        if sys.stdin.isatty():
            return input("> ")
        return sys.stdin.readline() or None
    except (EOFError, KeyboardInterrupt):
        print()
        return None


def show(part: Single) -> None:
    """Print one task with its values and the characters they came from, or the question instead of it."""
    if isinstance(part, Unfitting):
        print_paragraph(printable(part.text), "  ")
        return
    call = part.task if isinstance(part, Understood) else part.call
    if call is not None:
        print(f"  {styled(f'{part.agent_id}.{call.name}', 'bold')}")
        _print_values(call, part.spans)
    if isinstance(part, Clarification) and part.missing:
        print_paragraph(f"missing: {', '.join(part.missing)}", "  ")
    if not isinstance(part, Understood):
        print_paragraph(printable(part.question), "  ", "yellow")


def _print_values(call: TaskCall, spans: Sequence[Span]) -> None:
    rows = [
        (f"  {name}", printable(_shown(value)), printable(_words(name, spans)))
        for name, value in call.parameters.items()
    ]
    if rows:
        print_table(("  FIELD", "VALUE", "WORDS"), rows)


def _words(name: str, spans: Sequence[Span]) -> str:
    found = [span for span in spans if span.field == name]
    kept = ", kept from an earlier line"
    return ", ".join(f"{span.text!r} at {span.start}{kept if span.source else ''}" for span in found)


def _shown(value: object) -> str:
    if isinstance(value, list | tuple):
        return f"[{'; '.join(map(_shown, value))}]"
    if isinstance(value, dict) and "value" in value:
        return f"{value['value']} {value.get('unit', '')}".rstrip()
    return str(value)


def _answer(part: Single, now: datetime) -> ChatTurn:
    if isinstance(part, Unfitting):
        return _turn("assistant", part.text, now)
    if isinstance(part, Understood):
        return _turn("assistant", "Done.", now, part.agent_id, part.task)
    return _turn("assistant", part.question, now, part.agent_id, part.call)


def _turn(
    speaker: Literal["person", "assistant"],
    text: str,
    now: datetime,
    agent_id: str | None = None,
    call: TaskCall | None = None,
) -> ChatTurn:
    return ChatTurn(
        turn_id=new_id(round(now.timestamp() * 1000)),
        conversation_id="try",
        speaker=speaker,
        text=text,
        at=now,
        agent_id=agent_id,
        task=call,
    )
