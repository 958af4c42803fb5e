"""Commands made from the manifest, of the same classes as those that are written by hand: one way of help.

Values stay as they were typed: the server reads them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from signal import SIGPIPE
from typing import Any

from tasklore.commands.exits import Interrupted
from tasklore.commands.operations.entries import (
    WAIT_S,
    WAITS,
    find_options,
    name_options,
    param_name,
)
from tasklore.commands.options import (
    API_HELP,
    JSON_HELP,
    SETTLED,
    AsTyped,
    Command,
    TypedArgument,
    TypedOption,
    example,
)
from tasklore.contracts.manifest import FieldEntry, OperationEntry


@contextmanager
def leaving_when_unread() -> Iterator[None]:
    """End the command as a signal would when the reader of its output has gone: typer says failed.

    Raises:
        Interrupted: it has.
    """
    try:
        yield
    except BrokenPipeError:
        raise Interrupted(SIGPIPE) from None


class OperationCommand(Command):
    """The command of one operation."""

    def __init__(self, entry: OperationEntry, name: str | None = None) -> None:
        settled = {"context_settings": SETTLED["context_settings"]}
        called = name or f"{entry['noun']} {entry['verb']}"
        super().__init__(
            name=name or entry["verb"],
            params=list(_make_params(entry)),
            help=describe(entry),
            epilog=example(*make_examples(entry, called)),
            rich_markup_mode=None,
            **settled,
        )
        self.entry = entry
        self._by_option = {
            option.lstrip("-"): one for option, one in find_options(name or "").items()
        }
        self.params += [
            make_flag(
                [f"--{option}"], f"{one['help']} Requires the role {_spell_roles(one)}."
            )
            for option, one in self._by_option.items()
        ]

    def invoke(self, ctx: Any) -> object:
        """Run the operation; nothing that a client does not need is loaded."""
        from tasklore.commands.operations.run import run_operation

        entry = self.entry
        for option, one in self._by_option.items():
            if ctx.params.get(option):
                entry = one
        with leaving_when_unread():
            return run_operation(entry, ctx.params)


class PlainCommand(Command):
    """`tasklore api`: one request as it is typed."""

    sentence = (
        "Send one request to the API and print the body of the response unchanged."
    )

    def __init__(self) -> None:
        words = (
            ("METHOD", "GET, POST, PUT, PATCH or DELETE."),
            (
                "PATH",
                "A path such as /v1/agents; /docs lists all.",
            ),
        )
        super().__init__(
            name="api",
            params=[
                *(_argument(name, text) for name, text in words),
                _text(
                    ["--body", "body"],
                    "JSON|@FILE",
                    "A body; @- is the standard input.",
                ),
                _text(
                    ["--query", "query"],
                    "NAME=VALUE",
                    "A parameter, repeatable.",
                    many=True,
                ),
                _text(["--api", "api"], "URL", API_HELP),
            ],
            help=f"{self.sentence}\n\nEnds with 1 if the API refuses the request; the "
            "body says why.",
            epilog=example(
                "tasklore api GET /v1/agents",
                "tasklore api POST /v1/schedules --body @nightly.json",
            ),
            rich_markup_mode=None,
            context_settings=SETTLED["context_settings"],
        )

    def invoke(self, ctx: Any) -> object:
        """Send the request."""
        from tasklore.commands.operations.plain import send_plainly

        given = ctx.params
        with leaving_when_unread():
            return send_plainly(
                given["method"],
                given["path"],
                body=given["body"],
                query=given["query"] or (),
                api=given["api"],
            )


def describe(entry: OperationEntry) -> str:
    """Return the help of *entry*: its sentence, its description, and the role that it needs."""
    where = (
        " Served by a supervisor that runs with --operations."
        if entry["mounted"] == "operations"
        else ""
    )
    roles = _spell_roles(entry)
    need = f"Requires an API key with the role {roles} if API keys are enabled.{where}"
    told = (entry["help"], entry["description"])
    spelled = [name_options(text, entry) for text in told if text]
    return "\n\n".join([*spelled, need])


def _spell_roles(entry: OperationEntry) -> str:
    return " or ".join(entry["roles"])


def _make_params(entry: OperationEntry) -> Iterator[Any]:
    fields = entry["fields"]
    for field in fields:
        if field["positional"]:
            yield _make_argument(entry, field)
    for field in fields:
        if not field["positional"]:
            yield _make_option(entry, field)
    taken = {field["option"] for field in fields if not field["positional"]}
    for option in _common_options(entry):
        if not taken.intersection(option.opts):
            yield option


def _make_argument(entry: OperationEntry, field: FieldEntry) -> TypedArgument:
    is_many = field["kind"] in ("words", "list", "map")
    return TypedArgument(
        param_decls=[param_name(field)],
        type_descriptor=AsTyped(str),  # type: ignore[arg-type]  # as much of it as is used
        required=field["required"],
        nargs=-1 if is_many else 1,
        metavar=field["metavar"],
        help=_describe_field(entry, field),
        show_default=False,
    )


def _make_option(entry: OperationEntry, field: FieldEntry) -> TypedOption:
    is_flag = field["kind"] == "flag"
    name = field["option"]
    if is_flag and field["default"] is not False:
        # None is neither, and true needs a way to say no.
        name = f"{name}/--no-{name.lstrip('-')}"
    spelled = [name, *([field["short"]] if field["short"] else []), param_name(field)]
    return TypedOption(
        param_decls=spelled,
        type_descriptor=AsTyped(bool if is_flag else str),  # type: ignore[arg-type]
        required=field["required"] and not is_flag,
        is_flag=is_flag,
        multiple=field["kind"] in ("list", "map", "words"),
        metavar=None if is_flag else field["metavar"],
        help=_describe_field(entry, field),
    )


def _describe_field(entry: OperationEntry, field: FieldEntry) -> str:
    text = name_options(field["help"], entry, field["name"])
    if field["choices"]:
        text = f"{text} One of {', '.join(field['choices'])}.".strip()
    if field["kind"] in ("list", "map") and "repeatable" not in text:
        text = f"{text} Repeatable.".strip()
    default = field["default"]
    if default not in (None, "", False, [], {}) and not field["required"]:
        is_span = field["metavar"] == "SPAN" and isinstance(default, int | float)
        spelled = "true" if default is True else f"{default:g}s" if is_span else default
        text = f"{text}  [default: {spelled}]"
    return text


def _common_options(entry: OperationEntry) -> Iterator[TypedOption]:
    if entry["confirm"]:
        yield make_flag(["--yes", "-y", "is_sure"], "Do not ask.")
    has_own = any(field["name"] in WAITS for field in entry["fields"])
    if entry["unfinished"] and not has_own:
        yield _text(
            ["--wait", "wait"],
            "SPAN",
            f"How long to wait for the end, such as 30s or 5m; 0 is not at all.  [default: {WAIT_S:.0f}s]",
        )
    yield _text(["--api", "api"], "URL", API_HELP)
    yield make_flag(["--json", "is_json"], JSON_HELP)


def make_flag(names: list[str], text: str) -> TypedOption:
    """Return an option without a value, by its *names*: those that are typed, and that of the parameter."""
    return TypedOption(
        param_decls=names,
        type_descriptor=AsTyped(bool),  # type: ignore[arg-type]
        is_flag=True,
        default=False,
        help=text,
    )


def _argument(name: str, text: str) -> TypedArgument:
    return TypedArgument(
        param_decls=[name.lower()],
        type_descriptor=AsTyped(str),  # type: ignore[arg-type]
        required=True,
        metavar=name,
        help=text,
        show_default=False,
    )


def _text(
    names: list[str], metavar: str, text: str, *, many: bool = False
) -> TypedOption:
    return TypedOption(
        param_decls=names,
        multiple=many,
        type_descriptor=AsTyped(str),  # type: ignore[arg-type]
        metavar=metavar,
        help=text,
    )


def make_examples(entry: OperationEntry, called: str) -> list[str]:
    """Return lines as they are typed: those of the manifest, else one of the values that must be given."""
    if entry["examples"]:
        own = f"{entry['noun']} {entry['verb']}"
        return [f"tasklore {one.replace(own, called, 1)}" for one in entry["examples"]]
    words = ["tasklore", called]
    words += [
        field["metavar"] if field["positional"] else f"{field['option']} {field['metavar']}"
        for field in entry["fields"]
        if field["required"] and field["kind"] != "flag"
    ]  # fmt: skip
    return [" ".join(words)]
