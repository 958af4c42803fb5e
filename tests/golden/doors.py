"""The same case at each door: over HTTP, in this process, and as a command."""

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock
from urllib.parse import parse_qsl, unquote, urlsplit

import httpx2
from starlette.types import ASGIApp

from tasklore.commands.memory_hands import lend_hands
from tasklore.commands.operations.entries import (
    load_manifest,
    name_options,
    spell_name,
)
from tasklore.commands.operations.problems import name_commands
from tasklore.commands.operations.transport import HttpAnswer
from tasklore.commands.operations.values import read_value
from tasklore.contracts.callers import Caller
from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.handed_requests import HandedRequest
from tasklore.contracts.manifest import FieldEntry, OperationEntry
from tasklore.runtime.metrics import Metrics
from tasklore.runtime.settings import Settings
from tasklore.supervisor.http.dependencies import Admission
from tasklore.supervisor.http.in_process import call_in_process
from tasklore.supervisor.operator_process import make_application, open_operator
from tests.golden.command_line import Ended, run
from tests.golden.matrix import Case
from tests.golden.seeded import CALLERS, Seeded
from tests.golden.wrong_inputs import names_by_hand
from tests.servers import PATIENCE_S

Json = Any

#: Commands that are written by hand: they read or write folders of this machine, by requests of their own.
BY_HAND = names_by_hand()
#: What takes a declaration, which a command reads of a TOML file and not of JSON.
DECLARED = frozenset({"POST /v1/pipelines/cost"})
#: What leads to the address of a process that listens, of which one that does not has none.
AT_AN_ADDRESS = frozenset({"POST /v1/stream-tokens", "POST /v1/console/links"})
#: How a command ends by the status of what it asked for; others end as a failure.
_CODES = dict.fromkeys((400, 401, 403, 404, 405, 409, 413, 415, 422), 2) | (
    dict.fromkeys((502, 503, 504), 3)
)
#: Exit codes of a command that got no view.
_REFUSED = frozenset({2, 3})
_FAILED = 1
_ROUTE = re.compile(r"\b(?:GET|POST|PUT|PATCH|DELETE) [./]")
_PROBLEM = "urn:tasklore:problem:"
_JSON = "application/json"


@dataclass(frozen=True)
class Told:
    """An answer as it came, whichever door it came through."""

    status: int
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()

    @property
    def verdict(self) -> dict[str, Any]:
        """How it refuses: status, type and places of faults, and as `detail` the sentence for a person."""
        if self.status < 400:
            return {"status": "2xx"}
        return {"status": self.status, **read_problem(json.loads(self.body))}


def read_problem(told: Json) -> dict[str, Any]:
    """Return what is refused and why, of a problem or of an error as OpenAI has them."""
    if "error" in told:
        error = told["error"]
        where = [error["param"]] if error.get("param") else []
        return {
            "type": f"{error['type']} {error.get('code') or ''}".strip(),
            "where": where,
            "detail": error["message"],
        }
    return {
        "type": told["type"].removeprefix(_PROBLEM),
        "where": [one["where"] for one in told.get("problems", ())],
        "detail": told["detail"],
    }


async def call_over_http(
    client: httpx2.AsyncClient, system: Seeded, case: Case
) -> Told:
    """Return the answer of the API that *client* asks; a stream's body is not read, as it may have no end."""
    headers = dict(case.headers)
    if case.caller is not None:
        headers["Authorization"] = f"Bearer {system.keys[case.caller]}"
    async with client.stream(
        case.method, case.path, content=case.body, headers=headers
    ) as answer:
        is_stream = "event-stream" in answer.headers.get("content-type", "")
        body = b"" if is_stream else await answer.aread()
        return Told(answer.status_code, body, tuple(answer.headers.items()))


class InThisProcess:
    """The application of an operator in this process, as `--direct` calls it, with any caller."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def call(self, case: Case) -> Told:
        """Return the answer to *case*; who has no key is a caller without any role."""
        parts = urlsplit(case.path)
        request = HandedRequest(
            method=case.method,
            path=parts.path,
            query=parts.query,
            headers=tuple((name.lower(), one) for name, one in case.headers.items()),
            caller=_caller_of(case),
            within_s=PATIENCE_S,
            body=case.body,
        )
        answer = await call_in_process(self._app, request, "http://direct.invalid")
        return Told(answer.status, answer.body)


def _caller_of(case: Case) -> Caller:
    if case.caller is None:
        return Caller(name="nobody")
    roles, user, tenant = CALLERS[case.caller]
    return Caller(name=case.caller, roles=frozenset(roles), user=user, tenant=tenant)


@asynccontextmanager
async def open_this_process(system: Seeded) -> AsyncIterator[InThisProcess]:
    """Open the application on the servers of *system* within the block."""
    servers = system.processes.servers
    settings = Settings.load(nats_url=servers.nats_url, redis_url=servers.redis_url)
    metrics = Metrics("doors")
    async with open_operator(settings, "doors", metrics, lend_hands) as opened:
        await opened.cards.load(opened.link)
        yield InThisProcess(make_application(opened, Admission(meter=metrics)))


def compare_in_process(case: Case, over_http: Told, here: Told) -> str:
    """Return how *here* differs from what HTTP answered, "" where it does not."""
    expected = over_http.verdict
    if case.caller is None:
        # Nobody is asked for a key here: without a role nothing is done either.
        found = here.verdict
        is_refused = (found["status"], found.get("type")) == (403, "role")
        return "" if is_refused and expected["status"] == 401 else f"{found}"
    return "" if here.verdict == expected else f"{expected} over HTTP: {here.verdict}"


def compare_without_store(over_http: Told, here: Told) -> str:
    """Return how *here* is refused otherwise than over HTTP, "" where it is not; what a server met is its own."""
    kinds = [
        {name: one for name, one in told.verdict.items() if name != "detail"}
        for told in (over_http, here)
    ]
    return "" if kinds[0] == kinds[1] else f"{kinds[0]} over HTTP: {kinds[1]}"


def entries_by_operation() -> dict[str, OperationEntry]:
    """Return each operation of the manifest by `METHOD /declared/path`."""
    return {
        f"{entry['method']} {entry['path']}": entry
        for entry in load_manifest()["operations"]
    }


def make_words(entry: OperationEntry, case: Case, folder: Path) -> list[str] | None:
    """Return the words of the command that sends *case*; None where none does. Values that are files are in *folder*.

    No words send a body that is no object, or a value that is none of its option's kind. A command reads as many pages
    as it is asked for, so that none is too large.
    """
    values = _read_values(entry, case)
    fields = {field["name"]: field for field in entry["fields"]}
    if values is None or set(values) - set(fields) or name_of(entry) in BY_HAND:
        return None
    options: list[str] = []
    arguments: list[str] = []
    for name, field in fields.items():
        if name not in values:
            continue
        spelled = _spell(field, values[name], folder)
        if spelled is None or (entry["paged"] and _is_beyond(field, values[name])):
            return None
        if field["positional"]:
            arguments += spelled
        elif field["kind"] == "flag":
            options += spelled
        else:
            options += [f"{field['option']}={one}" for one in spelled]
    if entry["confirm"]:
        options.append("--yes")
    if entry["unfinished"] and "wait_seconds" not in fields:
        options.append("--wait=0")
    return [*name_of(entry).split(), *options, "--json", "--", *arguments]


def name_of(entry: OperationEntry) -> str:
    """Return the words of the command; a noun with one operation is a command by itself."""
    is_noun = entry["shortcut"] == entry["noun"]
    return entry["noun"] if is_noun else f"{entry['noun']} {entry['verb']}"


def _is_beyond(field: FieldEntry, value: Json) -> bool:
    is_number = field["name"] == "limit" and str(value).isdecimal()
    return is_number and field["most"] is not None and int(value) > field["most"]


def _read_values(entry: OperationEntry, case: Case) -> dict[str, Json] | None:
    """Return the values of *case* by the names of fields; None where its body is none of an object, or of lines."""
    parts = urlsplit(case.path)
    pattern = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]*)", re.escape(entry["path"]))
    found = re.fullmatch(pattern, parts.path)
    assert found is not None, (entry["path"], parts.path)
    values: dict[str, Json] = {
        name: unquote(text) for name, text in found.groupdict().items()
    }
    values |= dict(parse_qsl(parts.query, keep_blank_values=True))
    headers = dict(case.headers)
    if headers.pop("Content-Type", _JSON) != _JSON:
        return None
    values |= headers
    if not any(field["place"] == "body" for field in entry["fields"]):
        return values if case.body in (b"", b"{}") else None
    lines = [field["name"] for field in entry["fields"] if field["kind"] == "lines"]
    if lines:
        return {**values, lines[0]: case.body.decode()} if case.body else None
    try:
        body = json.loads(case.body)
    except ValueError:
        return None
    return {**values, **body} if isinstance(body, dict) else None


def _spell(field: FieldEntry, value: Json, folder: Path) -> list[str] | None:
    """Return *value* as it is typed; None where the command would send another one."""
    typed: str | list[str]
    match field["kind"]:
        case "flag":
            return _spell_flag(field, value)
        case "lines":
            file = folder / "lines.ndjson"
            file.write_text(value, "utf-8")
            return [str(file)]
        case "file":
            file = folder / "value.json"
            file.write_text(json.dumps(value), "utf-8")
            typed = str(file)
        case "list" if isinstance(value, list):
            typed = [_as_text(one) for one in value]
        case "map" if isinstance(value, dict):
            typed = [f"{name}={json.dumps(one)}" for name, one in value.items()]
        case "json" | "value":
            typed = json.dumps(value)
        case "words":
            typed = [_as_text(value)]
        case _:
            typed = _as_text(value)
    try:
        sent = read_value(field, typed)
    except InvalidInput:
        return None
    if not _is_same(value, sent):
        return None
    return typed if isinstance(typed, list) else [typed]


def _spell_flag(field: FieldEntry, value: Json) -> list[str] | None:
    match str(value).lower():
        case "true":
            return [field["option"]]
        case "false":
            is_off = field["default"] is False
            return [] if is_off else [f"--no-{field['option'].lstrip('-')}"]
    return None


def _as_text(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _is_same(value: Json, sent: Json) -> bool:
    """Return whether *sent* is *value*, whose numbers are sent as they are typed."""
    if isinstance(value, list) and isinstance(sent, list):
        return len(value) == len(sent) and all(map(_is_same, value, sent))
    if isinstance(value, int | float) and isinstance(sent, str):
        return json.dumps(value) == sent
    return bool(value == sent)


def give_answered(words: list[str], answer: Told) -> Ended:
    """Return how the command ends to which the API gives *answer*."""

    def send(*_: object, **__: object) -> HttpAnswer:
        headers = {name.lower(): value for name, value in answer.headers}
        return HttpAnswer(
            answer.status, headers, answer.body, "http://answered.invalid"
        )

    with mock.patch("tasklore.commands.operations.exchange.send", send):
        return run(words)


def compare_command(entry: OperationEntry, over_http: Told, ended: Ended) -> str:
    """Return how a command ended otherwise than what HTTP answered means, "" where it did not.

    It may refuse a value itself, by the name of its option, instead of sending what the API refuses.
    """
    expected = over_http.verdict
    line = ended.stderr.partition("\n")[0]
    told = f"{expected} over HTTP: ended with {ended.code}, {line!r}"
    printed = _read_object(ended.stdout)
    if expected["status"] == "2xx":
        # What was refused of a file is in the view.
        is_refused = printed is None or "type" in printed
        return told if is_refused and ended.code in _REFUSED else ""
    if printed is None or "type" not in printed:
        named = _names_of_faults(entry, expected["where"])
        is_own = bool(named) and ended.code == 2 and any(one in line for one in named)
        return "" if is_own else told
    found = {"status": printed.get("status"), **read_problem(printed)}
    problem = json.loads(over_http.body)
    faults = problem.get("problems") or [{"message": problem["detail"]}]
    is_said = all(
        name_options(name_commands(one["message"]), entry) in line for one in faults
    )
    code = _CODES.get(over_http.status, _FAILED)
    # A person of the command line types no route.
    is_said &= _ROUTE.search(line) is None
    is_same = found == expected and ended.code == code and is_said
    return "" if is_same else f"{told}, and printed {found}"


def _read_object(text: str) -> dict[str, Any] | None:
    """Return the JSON object that a command printed, None for anything else."""
    try:
        printed = json.loads(text)
    except ValueError:
        return None
    return printed if isinstance(printed, dict) else None


def _names_of_faults(entry: OperationEntry, places: list[str]) -> list[str]:
    """Return what a person calls the fields of *places*; of arguments that follow on each other, any."""
    faulty = {place.rpartition(".")[2] for place in places}
    fields = [field for field in entry["fields"] if field["name"] in faulty]
    named = [spell_name(field) for field in fields]
    if any(field["positional"] for field in fields):
        named += [spell_name(one) for one in entry["fields"] if one["positional"]]
    return named
