"""Refusals of the API in the words of the command line: each fault names its option, each end has its exit code."""

import re
import shlex
from collections.abc import Sequence
from urllib.parse import unquote

from tasklore.commands.exits import FAILED, UNREACHABLE, USAGE, Aborted
from tasklore.commands.operations.entries import (
    load_manifest,
    name_options,
    spell_command,
    spell_name,
)
from tasklore.commands.operations.target import (
    OPERATIONS_VARIABLE,
    Target,
)
from tasklore.commands.operations.transport import HttpAnswer, Json
from tasklore.contracts.manifest import OperationEntry

#: What a status means for whoever typed the command; others end as a failure.
_CODES = {
    **dict.fromkeys((400, 401, 403, 404, 405, 409, 412, 413, 415, 422), USAGE),
    **dict.fromkeys((502, 503, 504), UNREACHABLE),
}
_PLACES = ("path.", "query.", "header.", "cookie.", "body.")
#: A route in a sentence of the API, which a person of the command line does not type.
_ROUTE = r"\b(GET|POST|PUT|PATCH|DELETE) (/v1/[\w/{}.%~-]*[\w}])(?:\?[\w=&-]*)?"
_WORDS = 300
#: The type of a refusal for want of a role; a 403 of another type is cured otherwise.
_LACKS_ROLE = "urn:tasklore:problem:role"


class ApiRefused(Aborted):
    """The API refused: *body* is its problem, for programs; the message is for people."""

    def __init__(self, message: str, code: int, body: Json) -> None:
        super().__init__(message, code, body)
        self.body = body


def refuse(
    answer: HttpAnswer, target: Target, entry: OperationEntry | None
) -> ApiRefused:
    """Return the refusal *answer*, of at least 300, as an error of a command; *entry* was asked for."""
    code = _CODES.get(answer.status, FAILED)
    if 300 <= answer.status < 400:
        place = answer.headers.get("location", "elsewhere")[:_WORDS]
        return _refuse_plainly(
            f"{target.url} redirects to {place!r}, which is not followed, as your key is not for others; correct "
            f"{target.source}",
            USAGE,
        )
    problem = _read_problem(answer)
    if problem is None:
        return _refuse_plainly(_name_proxy(answer, target), code)
    return ApiRefused(_word(problem, answer, target, entry), code, problem)


def _refuse_plainly(message: str, code: int) -> ApiRefused:
    return ApiRefused(message, code, {"problems": [message]})


def _read_problem(answer: HttpAnswer) -> Json | None:
    """Return the problem in *answer*, None when it is none of ours, such as the page of a proxy."""
    if not answer.is_json:
        return None
    found = answer.read_json()
    if not isinstance(found, dict) or not isinstance(found.get("detail"), str):
        return None
    return found


def _name_proxy(answer: HttpAnswer, target: Target) -> str:
    media = answer.headers.get("content-type", "").partition(";")[0][:_WORDS]
    what = f"a page ({media})" if media else "something"
    return (
        f"{target.url} answers {answer.status} with {what} that is not an answer of "
        f"Tasklore's API but of a proxy or another program; correct {target.source}, or "
        "retry when it is up"
    )


def _word(
    problem: Json, answer: HttpAnswer, target: Target, entry: OperationEntry | None
) -> str:
    detail = name_commands(str(problem["detail"]))
    if entry is not None:
        detail = name_options(detail, entry)
    if answer.status == 401:
        cure = (
            f"correct {target.key_variable}"
            if target.key is not None
            else f"set {target.key_variable} to a key that `tasklore api-key` printed"
        )
        return f"{target.url} rejected the API key (401): {detail}; {cure}"
    if problem.get("type") == _LACKS_ROLE and entry is not None:
        return f"{detail}; {_name_right(entry)}"
    is_unknown = detail.startswith("there is no such path")
    if answer.status == 404 and is_unknown and entry is not None:
        if entry["mounted"] == "operations":
            return f"{target.url} does not serve this: {_name_right(entry)}"
        version = answer.headers.get("tasklore-version", "an older one")
        return (
            f"the API at {target.url} does not know this operation: it is {version[:_WORDS]}; upgrade the supervisor, "
            f"or correct {target.source}"
        )
    faults = problem.get("problems")
    if entry is not None and isinstance(faults, Sequence) and faults:
        told = [
            _word_fault(entry, one)
            for one in faults
            if isinstance(one, dict) and isinstance(one.get("message"), str)
        ]
        return "; ".join(told) or detail
    return detail


def _name_right(entry: OperationEntry) -> str:
    roles = " or ".join(repr(one) for one in entry["roles"])
    need = f"this needs a key with the role {roles}"
    if entry["mounted"] != "operations":
        return need
    return f"{need}, at a supervisor that runs with --operations that {OPERATIONS_VARIABLE} names"


def _word_fault(entry: OperationEntry, fault: Json) -> str:
    """Return a fault behind the option whose value it is about, and the place in that."""
    message = name_options(name_commands(fault["message"]), entry)
    where = str(fault.get("where", ""))
    for prefix in _PLACES:
        where = where.removeprefix(prefix)
    for field in entry["fields"]:
        if where == field["name"] or where.lower() == field["name"].lower():
            return f"{spell_name(field)}: {message}"
        if where.startswith(f"{field['name']}."):
            inner = where.removeprefix(f"{field['name']}.")
            return f"{spell_name(field)} {inner}: {message}"
    return f"{where}: {message}" if where else message


def name_commands(text: str) -> str:
    """Return *text* with each route that is a command named as that."""

    def name(found: re.Match[str]) -> str:
        command = _find_command(found[1], found[2])
        return found[0] if command is None else f"`tasklore {command}`"

    return re.sub(_ROUTE, name, text)


def _find_command(method: str, path: str) -> str | None:
    """Return what to type in place of a route, with the ids that stand in it; None when no command asks that."""
    for entry in load_manifest()["operations"]:
        pattern = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]+)", re.escape(entry["path"]))
        found = re.fullmatch(pattern, path)
        if entry["method"] == method and found is not None:
            ids = [unquote(one) for one in found.groups() if not one.startswith("{")]
            return " ".join((spell_command(entry), *map(shlex.quote, ids)))
    return None
