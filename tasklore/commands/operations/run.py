"""One operation from the words that were typed to the view that is shown."""

import contextlib
import re
import sys
import time
from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

from tasklore.commands.exits import FAILED, OK
from tasklore.commands.operations.entries import (
    WAIT_S,
    WAITS,
    client_version,
    param_name,
)
from tasklore.commands.operations.exchange import (
    Exchange,
    OperationOutcome,
    add_views,
    describe_place,
)
from tasklore.commands.operations.target import find_target
from tasklore.commands.operations.transport import HttpAnswer, Json, Request
from tasklore.commands.operations.values import fill_request, read_values
from tasklore.commands.render.durations import parse_span
from tasklore.commands.render.screen import (
    confirm,
    print_exactly,
    print_json,
    printable,
    say,
)
from tasklore.commands.render.spinner import show_patience
from tasklore.commands.render.views import print_view
from tasklore.contracts.errors import InvalidInput, Unreachable
from tasklore.contracts.manifest import VERSION_HEADER, OperationEntry

#: Only such a number is a limit that this side counts by; anything else is the server's to refuse.
_NUMBER = re.compile(r"[1-9]\d{0,6}")
#: Fields that bind a change to what was tried: what came later is left alone, what changed is refused.
_BINDING = frozenset({"bound", "digest", "version"})
_MINOR = re.compile(r"(\d+)\.(\d+)")


class CommonOptions(NamedTuple):
    """What every command of an operation takes beside its fields; `wait_s` is None where nothing is waited for."""

    is_json: bool
    is_sure: bool
    wait_s: float | None
    api: str | None


def run_operation(entry: OperationEntry, typed: Mapping[str, Any]) -> int:
    """Run *entry* with the values *typed* by the names of its parameters, print its view, and return the exit code.

    Raises:
        InvalidInput: a value cannot be used; names the option and the cure.
        ConfigurationError: an address or a file of the environment cannot be used.
        Unreachable: no server answers.
        Aborted: the API refuses, or the person says no.
    """
    options = CommonOptions(
        is_json=bool(typed.get("is_json")),
        is_sure=bool(typed.get("is_sure")),
        wait_s=read_wait(entry, typed),
        api=typed.get("api"),
    )
    given: Mapping[str, Any] = read_values(
        entry,
        {field["name"]: typed.get(param_name(field)) for field in entry["fields"]},
    )
    request = fill_request(entry, given)
    target = find_target(_find_mounted(entry), options.api)
    exchange = Exchange(target, entry, VersionWatch().hear)
    if entry["confirm"] and not options.is_sure:
        tried = _try(exchange, given)
        if tried is not None and (given.get("dry_run") or _is_nothing(tried)):
            return show_outcome(entry, OperationOutcome(tried), is_json=options.is_json)
        _ask_person(entry, given, tried, is_json=options.is_json)
        given = _bind(entry, given, tried)
        request = fill_request(entry, given)
    if entry["streamed"]:
        exchange.pour(request, write_lines)
        return OK
    with show_patience(_name_work(entry)):
        outcome = _perform(exchange, request, given, options.wait_s)
    return show_outcome(entry, outcome, is_json=options.is_json)


def _find_mounted(entry: OperationEntry) -> str:
    """Return whose address is asked: of both that serve the console, that of the one which serves every page of it."""
    if entry["noun"] != "console":
        return entry["mounted"]
    try:
        find_target("operations")
    except Unreachable:
        return entry["mounted"]
    return "operations"


def _name_work(entry: OperationEntry) -> str:
    noun = entry["noun"].replace("-", " ")
    return f"reading {noun}" if entry["method"] == "GET" else f"{entry['verb']}: {noun}"


def read_wait(entry: OperationEntry, typed: Mapping[str, Any]) -> float | None:
    """Return how long an end is waited for; an operation with such a field of its own is waited for as that says.

    None where there is no end to wait for: neither is the operation ever unfinished, nor does the server wait.
    """
    for field in entry["fields"]:
        if field["name"] in WAITS:
            text = typed.get(param_name(field)) or field["default"]
            unit = WAITS[field["name"]]
            return (
                None
                if text is None
                else _read_seconds(str(text), field["option"], unit)
            )
    if not entry["unfinished"]:
        return None
    text = typed.get("wait")
    return WAIT_S if text is None else _read_seconds(text, "--wait", 1.0)


def _read_seconds(text: str, option: str, unit_s: float) -> float:
    """Return the seconds of *text*: a span, or a number of units of *unit_s* seconds."""
    try:
        seconds = float(text) * unit_s
    except ValueError:
        return parse_span(text, option).total_seconds()
    if not 0 <= seconds < float("inf"):
        raise InvalidInput(
            f"{option} {text!r} is not a valid time span; write one such as 30s"
        )
    return seconds


def _perform(
    exchange: Exchange,
    request: Request,
    given: Mapping[str, Any],
    wait_s: float | None,
) -> OperationOutcome:
    entry = exchange.entry
    for field in entry["fields"]:
        if field["kind"] == "lines":
            return OperationOutcome(
                exchange.send_lines(request, field, given[field["name"]])
            )
    if entry["paged"]:
        return OperationOutcome(exchange.read_pages(request, _count_rows(entry, given)))
    if entry["continued"]:
        return OperationOutcome(_work_through(exchange, given))
    began = time.monotonic()
    answer = exchange.ask(request, waits_s=wait_s)
    if wait_s is None or not entry["unfinished"]:
        return OperationOutcome(exchange.read_view(answer))
    # The server may have waited for a part of it.
    return exchange.follow(answer, wait_s - (time.monotonic() - began))


def _count_rows(entry: OperationEntry, given: Mapping[str, Any]) -> int | None:
    """Return how many rows of a list are wanted; None where the server alone says that, or refuses it."""
    for field in entry["fields"]:
        if field["name"] == "limit":
            typed = given.get("limit")
            limit = str(field["default"] if typed is None else typed)
            return int(limit) if _NUMBER.fullmatch(limit) else None
    return None


def _work_through(exchange: Exchange, given: Mapping[str, Any]) -> object:
    """Return the views of all calls as one: each goes on where the one before ended, with nothing that came later."""
    whole: Json = {}
    seen: set[str] = set()
    while True:
        request = fill_request(exchange.entry, given)
        view = exchange.read_view(exchange.ask(request))
        if not isinstance(view, dict):
            return view
        whole = add_views(whole, view)
        after = view.get("after")
        if not isinstance(after, str) or after in seen:
            return whole
        seen.add(after)
        given = {**given, "bound": view.get("bound"), "after": after}


def _try(exchange: Exchange, given: Mapping[str, Any]) -> object:
    """Return the view of an operation that can be tried, changing nothing; None of another one."""
    entry = exchange.entry
    if not any(field["name"] == "dry_run" for field in entry["fields"]):
        return None
    tried = {**given, "dry_run": True}
    with show_patience(_name_work(entry)):
        if entry["continued"]:
            return _work_through(exchange, tried)
        return exchange.read_view(exchange.ask(fill_request(entry, tried)))


def _is_nothing(view: object) -> bool:
    """Return whether a trial concerns nothing, so that there is nothing to ask about."""
    return isinstance(view, dict) and view.get("concerns") == 0


def _bind(
    entry: OperationEntry, given: Mapping[str, Any], tried: object
) -> Mapping[str, Any]:
    """Return *given* with the bounds of the view that was *tried*, where it names none."""
    seen = tried if isinstance(tried, dict) else {}
    names = {field["name"] for field in entry["fields"]} & _BINDING
    bounds = {
        name: seen[name]
        for name in names
        if seen.get(name) is not None and given.get(name) is None
    }
    return {**given, **bounds}


def _ask_person(
    entry: OperationEntry, given: Mapping[str, Any], tried: object, *, is_json: bool
) -> None:
    """Return when the person, who is shown the view that was *tried*, says yes.

    Raises:
        Aborted: there is no terminal, or the answer is no.
    """
    if tried is not None:
        # With --json stdout has one document, that of what is done.
        with contextlib.redirect_stdout(sys.stderr if is_json else sys.stdout):
            draw(entry, tried)
    confirm(
        fill_question(entry, given, tried),
        unasked="not a terminal: pass --yes to confirm",
        declined="nothing was done",
    )


def fill_question(
    entry: OperationEntry, given: Mapping[str, Any], tried: object = None
) -> str:
    """Return the question of *entry*: each `{field}` as *given*, else as the view that was *tried* has it."""
    seen = tried if isinstance(tried, dict) else {}

    def fill(found: re.Match[str]) -> str:
        name = found[1]
        value = given.get(name)
        if value is None:
            value = seen.get(name)
        return found[0] if value is None else printable(str(value))

    return re.sub(r"\{(\w+)\}", fill, entry["confirm"])


def write_lines(piece: bytes) -> None:
    """Write a piece of lines of JSON to stdout byte for byte, on a terminal without what would steer it."""
    if sys.stdout.isatty():
        print(printable(piece.decode(errors="replace")), end="", flush=True)
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(piece)


def show_outcome(
    entry: OperationEntry, outcome: OperationOutcome, *, is_json: bool
) -> int:
    """Print the view of *outcome*, on stderr how to go on, and return the exit code."""
    view = outcome.view
    if isinstance(view, str):
        print_exactly(view.removesuffix("\n"))
    elif is_json:
        print_json(view)
    else:
        draw(entry, view)
    if outcome.place is not None:
        say(
            f"it is not finished yet; look by {printable(describe_place(outcome.place))}"
        )
        return FAILED
    if entry["paged"] and not is_json and isinstance(view, dict) and view.get("after"):
        say(f"there may be more: continue with --after {printable(str(view['after']))}")
    return code_of_view(entry, view)


def draw(entry: OperationEntry, view: Any) -> None:
    """Print *view* by the picture of *entry*, else as a table or facts."""
    if entry["picture"]:
        print(load_picture(entry["picture"]).draw(make_harmless(view)))
        return
    rows = entry["rows"]
    is_empty = isinstance(view, dict) and bool(rows) and view.get(rows) == []
    if is_empty and not view.get("after"):
        kind = entry["noun"] if entry["verb"] == "list" else rows
        print(f"There are no {kind.replace('-', ' ')}.")
        return
    print_view(view, rows, entry["columns"])


def make_harmless(view: object) -> object:
    """Return *view* without what would steer a terminal: a picture may put colours around its texts."""
    if isinstance(view, str):
        return printable(view)
    if isinstance(view, list):
        return [make_harmless(one) for one in view]
    if isinstance(view, dict):
        return {printable(name): make_harmless(one) for name, one in view.items()}
    return view


def code_of_view(entry: OperationEntry, view: Any) -> int:
    """Return the exit code that *view* means: 0, unless the picture of *entry* knows better."""
    if not entry["picture"]:
        return OK
    picture = load_picture(entry["picture"])
    return int(picture.code_of(view)) if hasattr(picture, "code_of") else OK


def load_picture(name: str) -> ModuleType:
    """Return the module that draws the picture *name*."""
    return import_module(f"tasklore.commands.pictures.{name}")


class VersionWatch:
    """Warns once when client and server are of different minor versions."""

    def __init__(self) -> None:
        self._has_warned = False

    def hear(self, answer: HttpAnswer) -> None:
        """Look at the version of *answer*."""
        theirs = answer.headers.get(VERSION_HEADER.lower(), "")
        ours = client_version()
        there = _MINOR.match(theirs)
        here = _MINOR.match(ours)
        if self._has_warned or there is None or here is None or there[0] == here[0]:
            return
        self._has_warned = True
        say(
            f"this command is of {here[0]} and the API of {there[0]}: some of it may be missing there; use one version"
        )
