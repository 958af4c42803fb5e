"""`tasklore agents try`: a prompt that shows how each line is read, and starts nothing."""

import asyncio
import sys
from collections.abc import Sequence
from datetime import UTC, datetime

from tasklore.commands.agents.check import NOTHING_IN_WORDS, catalogue_of
from tasklore.commands.exits import OK
from tasklore.commands.render.screen import (
    print_paragraph,
    print_table,
    printable,
    say,
    styled,
)
from tasklore.contracts.identifiers import new_id
from tasklore.contracts.messages import ChatTurn
from tasklore.contracts.quantities.numerals.locales import mark_of
from tasklore.runtime.models.llm import Llm
from tasklore.runtime.settings import Settings
from tasklore.supervisor.understanding import (
    Clarification,
    Several,
    Single,
    Understood,
    Unfitting,
    make_interpreter,
)
from tasklore.workers.loading import load_agents

#: Turns of the conversation at the prompt that "the same with 45k" may refer to.
_LOOK_BACK = 20


def try_lines(references: Sequence[str]) -> int:
    """Show how each line of stdin is read by the agents in *references*, until it ends."""
    catalogue = catalogue_of(
        [agent for reference in references for agent in load_agents(reference)]
    )
    if not catalogue.tasks():
        say(NOTHING_IN_WORDS)
        return OK
    if sys.stdin.isatty():
        say(f"{catalogue.abilities()} Nothing is started. Ctrl-D ends.")
    settings = Settings.load()
    mark = mark_of(settings.locale) if settings.locale else None
    turns: list[ChatTurn] = []
    with asyncio.Runner() as runner:
        llm = Llm(settings.llm())
        interpreter = make_interpreter(llm, decimal_mark=mark)
        try:
            while (line := _next_line()) is not None:
                if not line.strip():
                    continue
                now = datetime.now(UTC)
                found = runner.run(
                    interpreter.interpret(
                        line, catalogue=catalogue, previous=turns, now=now
                    )
                )
                turns.append(_turn(now, speaker="person", text=line))
                for part in found.parts if isinstance(found, Several) else (found,):
                    show_reading(part)
                    turns.append(_answer(part, now))
                del turns[:-_LOOK_BACK]
        finally:
            runner.run(llm.__aexit__(None, None, None))
    return OK


def _next_line() -> str | None:
    """Return the next line; None at the end of the input, or after Ctrl-C."""
    try:
        if sys.stdin.isatty():
            return input("> ")
        return sys.stdin.readline() or None
    except (EOFError, KeyboardInterrupt):
        print()
        return None


def show_reading(part: Single) -> None:
    """Print one task with its values and the characters they came from, or the question instead of it."""
    if isinstance(part, Unfitting):
        print_paragraph(printable(part.text), "  ")
        return
    call = part.task if isinstance(part, Understood) else part.call
    if call is not None:
        print(f"  {styled(f'{part.agent_id}.{call.name}', 'bold')}")
        rows = []
        for name, value in call.parameters.items():
            found = [span for span in part.spans if span.field == name]
            earlier = ", kept from an earlier line"
            words = ", ".join(
                f"{span.text!r} at {span.start}{earlier if span.source else ''}"
                for span in found
            )
            rows.append(
                (f"  {name}", printable(_format_value(value)), printable(words))
            )
        if rows:
            print_table(("  FIELD", "VALUE", "WORDS"), rows)
    if isinstance(part, Understood) and part.approver is not None:
        print_paragraph(f"waits for the approval of {part.approver}", "  ", "yellow")
    if isinstance(part, Clarification):
        if part.missing:
            print_paragraph(f"missing: {', '.join(part.missing)}", "  ")
        print_paragraph(printable(part.question), "  ", "yellow")


def _format_value(value: object) -> str:
    if isinstance(value, list | tuple):
        return f"[{'; '.join(map(_format_value, value))}]"
    if isinstance(value, dict) and "value" in value:
        return f"{value['value']} {value.get('unit', '')}".rstrip()
    return str(value)


def _answer(part: Single, now: datetime) -> ChatTurn:
    if isinstance(part, Unfitting):
        return _turn(now, speaker="assistant", text=part.text)
    text, call = (
        ("Done.", part.task)
        if isinstance(part, Understood)
        else (part.question, part.call)
    )
    return _turn(now, speaker="assistant", text=text, agent_id=part.agent_id, task=call)


def _turn(now: datetime, **fields: object) -> ChatTurn:
    turn_id = new_id(round(now.timestamp() * 1000))
    return ChatTurn.model_validate(
        {"turn_id": turn_id, "conversation_id": "try", "at": now, **fields}
    )
