"""The parts that keys are made of: each is checked or percent-escaped, so that none can pass for another."""

import re
from typing import NamedTuple
from urllib.parse import quote

from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.identifiers import NAME_PATTERN, user_token

#: Characters of a free text id: far above any id of ours, far below what makes a key costly.
MAX_FREE_ID = 512

_NAME = re.compile(NAME_PATTERN)
_TOKEN = re.compile(r"[A-Za-z0-9_-]+\Z")


class LongTermKey(NamedTuple):
    """The parts of a long-term memory key; `user_token` is None for a shared entry."""

    agent_id: str
    version: str
    user_token: str | None
    question: str

    @property
    def task_name(self) -> str:
        """The task that the question asks."""
        return self.question.partition(":")[0]


class ConversationKeys(NamedTuple):
    """The keys of one conversation, all of one tag; the last two are of what its agent senses and does."""

    said: str
    ids: str
    inbox: str
    state: str
    digest: str
    observed: str
    observed_in: str


class RequestKeys(NamedTuple):
    """The keys of one request over HTTP, all of one tag: its record, who works on it, and its reply."""

    record: str
    held: str
    reply: str


class QueueKeys(NamedTuple):
    """The keys of one user's rows in a queue, all of one tag."""

    rows: str
    pending: str
    state: str
    closed: str
    lease: str
    fence: str


class EpisodeKeys(NamedTuple):
    """The keys of one owner's episodes, all of one tag."""

    turns: str
    ids: str
    words: str
    meta: str
    vectors: str
    settings: str

    @classmethod
    def under(cls, turns: str) -> "EpisodeKeys":
        """Return the keys beside that of the turns."""
        return cls(turns, *(f"{turns}:{part}" for part in cls._fields[1:]))


class RunKeys(NamedTuple):
    """The keys of the list of an agent's runs, all of one tag: all of them, their rows, and those that are open."""

    listed: str
    rows: str
    open: str

    def of_user(self, user_token: str) -> str:
        """Return the key that lists the runs of a user."""
        return f"{self.listed}:user:{check_token(user_token)}"


class SessionKeys(NamedTuple):
    """The keys of one session, all of one tag."""

    root: str
    entries: str
    hits: str
    uses: str
    phases: str
    tasks: str
    corrected: str
    seen: str
    lease: str


class StoryKeys(NamedTuple):
    """The keys of one story, all of one tag, but for what its responses changed; the last three are of its analyses."""

    base: str
    entities: str
    responses: str
    written: str
    documents: str
    records: str
    folded: str


def check_resource(resource_id: str) -> str:
    """Return *resource_id*, the name of a document of a user."""
    # These would be taken for what lies beside the documents.
    if not _NAME.fullmatch(resource_id) or resource_id in {"plans", "reads"}:
        raise InvalidInput(
            f"resource id {resource_id!r} must be 1 to 64 letters, digits, '_' or '-', not 'plans' or 'reads'"
        )
    return resource_id


def check_queue(name: str) -> str:
    """Return *name*, that of a queue."""
    if name not in {"turns", "facts"}:
        raise InvalidInput(f"queue {name!r} must be 'turns' or 'facts'")
    return name


def escape(text: str, what: str) -> str:
    """Return any *text* as it stands in a key; *what* it is, an error says."""
    if not 1 <= len(text) <= MAX_FREE_ID:
        raise InvalidInput(
            f"{what} must have 1 to {MAX_FREE_ID} characters, this has {len(text)}"
        )
    try:
        return quote(text, safe="")
    except UnicodeEncodeError as error:
        raise InvalidInput(
            f"{what} {text!r} contains an unpaired surrogate, which is invalid Unicode; "
            "send valid Unicode"
        ) from error


def is_name(text: str) -> bool:
    """Return whether *text* may name an agent."""
    return _NAME.fullmatch(text) is not None


def check_name(name: str, what: str = "agent id") -> str:
    """Return *name* when it is one; *what* names the field in the error."""
    if not _NAME.fullmatch(name):
        raise InvalidInput(
            f"{what} {name!r} must be 1 to 64 letters, digits, '_' or '-'"
        )
    return name


def check_token(token: str) -> str:
    """Return *token*, which stands for a user."""
    if not _TOKEN.match(token):
        raise InvalidInput(
            f"user token {token!r} must be unpadded base64url, as `tasklore.contracts.identifiers.user_token` makes it"
        )
    return token


def check_owner(owner: str) -> str:
    """Return *owner*, the token of a user, or of what no user's is: that begins with `=`."""
    if owner == "=":
        return owner
    check_token(owner.removeprefix("=").removeprefix("~"))
    return owner


def token_of(owner: str, cure: str) -> str:
    """Return the token of *owner*; *cure* is the message of the error when it is empty.

    Raises:
        InvalidInput: it is empty, or no text.
    """
    if not owner:
        raise InvalidInput(cure)
    try:
        return user_token(owner)
    except UnicodeEncodeError as error:
        raise InvalidInput(
            f"{owner!r} contains an unpaired surrogate, which is invalid Unicode; send "
            "valid Unicode"
        ) from error


class RecordKeys(NamedTuple):
    """The keys of owned records, of one tag: records and states by id, when to look at each, its owner, its maker."""

    records: str
    state: str
    due: str
    owned: str
    made: str

    @classmethod
    def under(cls, records: str) -> "RecordKeys":
        """Return the keys beside that of the records."""
        return cls(records, *(f"{records}:{part}" for part in cls._fields[1:]))


class WebhookKeys(NamedTuple):
    """The keys of the outbox of webhooks, all of one tag.

    `records` and `states` are by webhook id; `queue` is what waits, by host and time, `hosts` when to look at each,
    `failed` tasks given up. `callbacks` are the addresses of tasks that have not ended. `owned` names both by user,
    and `expiry` when to drop an address, or the id of a delivered webhook; `made` what waits, by who named its address.
    """

    records: str
    states: str
    queue: str
    hosts: str
    failed: str
    callbacks: str
    owned: str
    expiry: str
    made: str


class HoldingKeys(NamedTuple):
    """The keys of the things of owners, of one tag: `things` by name, `until` when each ends, `sums` of their bytes."""

    things: str
    until: str
    sums: str
