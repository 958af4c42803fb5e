"""The nouns of the command line: a group of the operations of each, beside local commands written by hand."""

from collections.abc import Callable
from typing import Any

from typer import echo
from typer.core import TyperCommand

from tasklore.commands.operations.commands import OperationCommand, make_examples
from tasklore.commands.operations.entries import name_options, operations_of
from tasklore.commands.options import SETTLED, CommandGroup, example
from tasklore.contracts.manifest import OperationEntry


class NounGroup(CommandGroup):
    """The operations of a noun, and its local commands."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Print the help when no command follows, as of any group."""
        if not args and not ctx.resilient_parsing:
            echo(ctx.get_help())
            ctx.exit()
        return super().parse_args(ctx, args)


def make_noun(name: str, sentence: str, local: CommandGroup | None) -> CommandGroup:
    """Return the group of the noun *name*: its operations, and the commands of *local*, which win over them."""
    entries = operations_of(name)
    if not entries and local is not None:
        return local
    made: dict[str, Callable[[], Any]] = {
        entry["verb"]: _maker(entry) for entry in entries
    }
    sentences = {entry["verb"]: name_options(entry["help"], entry) for entry in entries}
    if local is not None:
        for verb, command in local.commands.items():
            made[verb] = _give(command)
            sentences[verb] = command.get_short_help_str()
    first = next(iter(entries), None)
    group = NounGroup(
        name=name,
        help=sentence,
        epilog=example(*make_examples(first, f"{name} {first['verb']}"))
        if first is not None
        else None,
        rich_markup_mode=None,
        context_settings=SETTLED["context_settings"],
    )
    group.offer(made, sentences)
    return group


def make_command(entry: OperationEntry, name: str | None = None) -> OperationCommand:
    """Return the command of *entry*, called *name* at the top, its verb below its noun."""
    if (entry["noun"], entry["verb"]) == ("requests", "ask"):
        from tasklore.commands.ask.command import AskCommand

        return AskCommand(entry, name)
    return OperationCommand(entry, name)


def _maker(entry: OperationEntry) -> Callable[[], TyperCommand]:
    return lambda: make_command(entry)


def _give(command: Any) -> Callable[[], Any]:
    return lambda: command
