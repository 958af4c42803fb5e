"""`tasklore api`: one request as it is typed, and its answer as it comes."""

import json
import re
import sys
from collections.abc import Sequence
from urllib.parse import parse_qsl

from tasklore.commands.exits import FAILED, OK
from tasklore.commands.operations.problems import refuse
from tasklore.commands.operations.run import VersionWatch
from tasklore.commands.operations.target import find_target
from tasklore.commands.operations.transport import Request, send
from tasklore.commands.operations.values import read_text
from tasklore.commands.render.screen import print_error, print_exactly, print_json
from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.manifest import FieldEntry

_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
#: What can stand in the first line of a request; anything else would have to be quoted.
_PATH = re.compile(r"/[!-~]*")
_BODY = FieldEntry(
    name="body",
    place="body",
    kind="json",
    required=False,
    positional=False,
    choices=[],
    default=None,
    most=None,
    option="--body",
    short="",
    metavar="JSON|@FILE",
    help="",
)


def send_plainly(
    method: str, path: str, *, body: str | None, query: Sequence[str], api: str | None
) -> int:
    """Send one request, print the body of the answer, and return the exit code.

    Raises:
        InvalidInput: an argument is none of its kind; names it.
        ConfigurationError, Unreachable, TaskloreError: as `send`.
    """
    if method.upper() not in _METHODS:
        raise InvalidInput(
            f"METHOD {method!r} is unknown; use one of {', '.join(_METHODS)}"
        )
    if not _PATH.fullmatch(path) or path.startswith("//"):
        raise InvalidInput(
            f"PATH {path!r} is not a valid path; write one such as /v1/agents, and "
            "percent-encode other characters as %20"
        )
    bare, _, typed = path.partition("?")
    request = Request(
        method=method.upper(),
        path=bare,
        query=(
            *parse_qsl(typed, keep_blank_values=True),
            *(_read_pair(one) for one in query),
        ),
        body=_read_body(body),
    )
    target = find_target("supervisor", api)
    answer = send(target, request)
    VersionWatch().hear(answer)
    if 300 <= answer.status < 400:
        raise refuse(answer, target, None)
    if answer.body:
        if sys.stdout.isatty() and answer.is_json:
            print_json(answer.read_json())
        else:
            print_exactly(answer.body.decode(errors="replace").removesuffix("\n"))
    if answer.status < 400:
        return OK
    print_error(str(refuse(answer, target, None)))
    return FAILED


def _read_pair(text: str) -> tuple[str, str]:
    name, found, value = text.partition("=")
    if not found or not name:
        raise InvalidInput(
            f"--query {text!r} is not NAME=VALUE; write one such as limit=5"
        )
    return name, value


def _read_body(text: str | None) -> bytes | None:
    if text is None:
        return None
    content = read_text(_BODY, text[1:]) if text.startswith("@") else text
    try:
        json.loads(content)
        return content.encode()
    except (ValueError, RecursionError) as error:
        raise InvalidInput(
            f"--body is not valid JSON ({error}); write one such as '{{\"a\": 1}}', or "
            "@FILE"
        ) from error
