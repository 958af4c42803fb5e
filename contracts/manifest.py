"""The manifest of the API: each operation with its fields, as the command line and completions read it.

Made from the OpenAPI document by `tasklore.supervisor.http.manifest`; plain JSON, which needs no pydantic to be read.
"""

from typing import Any, Literal, TypedDict

#: The header of each request and each answer with the version of whoever wrote it.
VERSION_HEADER = "Tasklore-Version"
#: The media type of JSON lines.
LINES = "application/x-ndjson"

#: How the text of a field is read before it is sent: `text` as it was typed; `words` several arguments joined by
#: spaces; `flag` yes or no; `list` repeatable; `map` repeatable NAME=VALUE; `value` JSON or text; `json` JSON, or
#: @FILE; `file` the content of a local file; `pipeline` the declaration in a local file, with those that it names, or
#: of an installed name; `lines` NDJSON of a local file, sent in parts.
FieldKind = Literal[
    "text",
    "words",
    "flag",
    "list",
    "map",
    "value",
    "json",
    "file",
    "pipeline",
    "lines",
]
FieldPlace = Literal["path", "query", "header", "body"]


class FieldEntry(TypedDict):
    """An argument or an option of an operation.

    `most` is the largest number that the server takes, of a page for example; `option` the long name with its dashes,
    `short` one letter behind a dash or "". `name` is that of the OpenAPI document, a header's own included.
    """

    name: str
    place: FieldPlace
    kind: FieldKind
    required: bool
    positional: bool
    choices: list[str]
    default: Any
    most: float | None
    option: str
    short: str
    metavar: str
    help: str


class OperationEntry(TypedDict):
    """An operation: the roles that may call it, where it is, and how a person calls and sees it.

    `help` is one sentence, `description` the paragraphs behind it. `paged` has an `after` that leads to the next page
    of `rows`; `continued` works for some seconds a call, and answers with an `after` and a `bound` that go on.
    `unfinished` may be answered by 202 and the place of the end; `streamed` answers with lines of JSON; `waits` may
    take minutes. Of `roles` one is enough.
    """

    noun: str
    verb: str
    roles: list[str]
    mounted: str
    method: str
    path: str
    help: str
    description: str
    examples: list[str]
    rows: str
    columns: list[str]
    confirm: str
    picture: str
    shortcut: str
    paged: bool
    continued: bool
    unfinished: bool
    streamed: bool
    waits: bool
    fields: list[FieldEntry]


class Manifest(TypedDict):
    """Every operation of one version of the API, in the order of its document."""

    version: str
    operations: list[OperationEntry]
