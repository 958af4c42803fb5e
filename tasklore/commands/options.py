"""What the definitions of the commands share: how help looks, and options that many of them take."""

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from datetime import date, datetime
from types import MappingProxyType
from typing import Annotated, Any

from typer import Context, Exit, Option, echo
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from tasklore.commands.extras import without
from tasklore.contracts.errors import InvalidInput

#: Characters of one sentence, none of which is cut off.
_WHOLE = 1_000


class AsTyped:
    """The type of a value for typer: text that stays as it was typed, or a flag.

    Typer's own reading is by pydantic, the import of which costs more than a whole command.
    """

    parameter_info = None
    file_annotation = None
    choices = None
    case_sensitive = True
    envvar_list_splitter = None
    is_list = False
    is_tuple = False
    is_datetime = False
    is_ranged = False
    is_path = False
    is_choice = False
    is_file = False

    def __init__(self, annotation: type) -> None:
        self.annotation = annotation

    def coerce(self, value: Any, **_where: Any) -> Any:
        """Return *value*."""
        return value


class TypedOption(TyperOption):
    """An option whose value stays as it was typed."""

    def get_runtime_param(self) -> Any:
        """Return what reads the value."""
        return self.type_descriptor


class TypedArgument(TyperArgument):
    """An argument whose value stays as it was typed."""

    def get_runtime_param(self) -> Any:
        """Return what reads the value."""
        return self.type_descriptor


class _LightHelp:
    """A command whose option for help is light."""

    add_help_option: bool
    _help: TypedOption | None = None

    def get_help_option(self, ctx: Any) -> TypedOption | None:
        """Return the option that prints the help."""
        names = [one for one in ctx.help_option_names if self.add_help_option]
        if self._help is None and names:
            self._help = TypedOption(
                param_decls=names,
                type_descriptor=AsTyped(bool),  # type: ignore[arg-type]  # as much of it as is used
                is_flag=True,
                is_eager=True,
                expose_value=False,
                callback=_print_help,
                help="Show this message and exit.",
            )
        return self._help


def _print_help(context: Any, _option: object, is_given: object) -> None:
    if is_given and not context.resilient_parsing:
        echo(context.get_help())
        context.exit()


class _Offered(MutableMapping[str, Any]):
    """Commands by name, each made when it is looked at: help lists a hundred, and a call needs one."""

    def __init__(
        self, makers: Mapping[str, Callable[[], Any]], made: Mapping[str, Any]
    ) -> None:
        self._makers = dict(makers)
        self._made = dict(made)

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            self._made[name] = self._makers[name]()
        return self._made[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._made[name] = command

    def __delitem__(self, name: str) -> None:
        self._makers.pop(name, None)
        del self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self._makers, *self._made)))

    def __len__(self) -> int:
        return len({*self._makers, *self._made})


class CommandGroup(_LightHelp, TyperGroup):
    """A group of commands that is listed with its first sentence whole; some are made only when one is called."""

    _sentences: Mapping[str, str] = MappingProxyType({})

    def offer(
        self, makers: Mapping[str, Callable[[], Any]], sentences: Mapping[str, str]
    ) -> None:
        """Have the commands that *makers* make, in their order, beside those there are; help lists *sentences*."""
        self.commands = _Offered(makers, self.commands)
        self._sentences = sentences

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands in their order, none of which is made for that."""
        del ctx
        return list(self.commands)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands, of those that are not made the sentence that is known."""
        if not self._sentences:
            super().format_commands(ctx, formatter)
            return
        rows = [
            (name, sentence)
            for name in self.list_commands(ctx)
            if (sentence := self._sentences.get(name))
        ]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)

    def get_short_help_str(self, limit: int = 0) -> str:
        """Return the first sentence of the help whole."""
        del limit
        return super().get_short_help_str(_WHOLE)


#: Plain help, the same on every terminal and in the manual; a crash of ours shows an ordinary traceback.
SETTLED: dict[str, Any] = {
    "cls": CommandGroup,
    "rich_markup_mode": None,
    "pretty_exceptions_enable": False,
    "add_completion": False,
    "context_settings": {
        "max_content_width": 100,
        "help_option_names": ["--help", "-h"],
    },
}


class Command(_LightHelp, TyperCommand):
    """A command whose help shows arguments by name alone, as its usage does."""

    def get_short_help_str(self, limit: int = 0) -> str:
        """Return the first sentence of the help whole: a list of commands folds it, where others cut it off."""
        del limit
        return super().get_short_help_str(_WHOLE)

    def invoke(self, ctx: Any) -> object:
        """Run the command, with a structlog that leaves rich alone."""
        with without("rich"):
            import structlog  # noqa: F401
        return super().invoke(ctx)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the sections of arguments and options."""
        shown: list[Any] = [
            one for one in self.get_params(ctx) if one.get_help_record(ctx) is not None
        ]
        arguments = [
            (one.metavar or one.name, one.help)
            for one in shown
            if one.param_type_name == "argument"
        ]
        options = [
            one.get_help_record(ctx) for one in shown if one.param_type_name == "option"
        ]
        for title, rows in (("Arguments", arguments), ("Options", options)):
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


#: What options say that commands made from the manifest take as well.
JSON_HELP = "Print JSON for programs."
API_HELP = "API URL (overrides TASKLORE_API_URL)."

Json = Annotated[bool, Option("--json", help=JSON_HELP)]
Api = Annotated[str | None, Option("--api", metavar="URL", help=API_HELP)]
AgentId = Annotated[
    str | None, Option("--agent", metavar="AGENT", help="Only of this agent.")
]
Tenant = Annotated[
    str | None, Option("--tenant", metavar="TENANT", help="Only of this tenant.")
]
User = Annotated[
    str | None, Option("--user", metavar="USER", help="Only of this user.")
]


def show_help_alone(context: Context) -> None:
    """Print the help of a group that was called without a command."""
    if context.invoked_subcommand is None:
        echo(context.get_help())
        raise Exit


def example(*lines: str) -> str:
    """Return the end of a help page that shows *lines* as they are typed."""
    return "\b\nExample:\n" + "\n".join(f"  {line}" for line in lines)


def day_of(text: str, option: str) -> date:
    """Return the day that *text* names: an ISO date, or words such as "3 May 2026", "last Friday", "yesterday".

    Raises:
        InvalidInput: it names none, or several; the message names *option*.
    """
    from tasklore.contracts.quantities.times import find_moments

    found = find_moments(text, datetime.now().astimezone(), lean="past")
    value = (
        found[0].value if len(found) == 1 and found[0].text == text.strip() else None
    )
    if value is None:
        raise InvalidInput(
            f"{option} {text!r} names no one day; say one such as 2026-05-01, or 'last Friday'"
        )
    return value.date() if isinstance(value, datetime) else value
