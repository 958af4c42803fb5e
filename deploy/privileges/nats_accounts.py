"""The roles as accounts of nats-server: one account and one user a role, known by the public half of its nkey.

Nobody has a user in the account of the streams. A role reaches it through imports alone, where the server gives each
request a reply subject of its own: an answer goes back into the account of whoever asked, and nowhere else.

What a role says and another hears, the other imports from the account in which it is said. Out of the account of the
streams it would not come: a message that got there by a service import is not passed on to subscribers of a stream
import on the server that it was published on.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from deploy.privileges.operations import ANSWERS, USER_INFO
from deploy.privileges.roles import ServerRole
from tasklore.contracts.subjects import (
    ACCOUNT,
    JETSTREAM_INFO,
    covers,
    overlap,
    said_in,
)
from tasklore.runtime.messaging.streams import StreamSizes, stream_configurations

#: The account in which the server speaks of itself.
SYSTEM_ACCOUNT = "SYS"
#: Who may look at the server itself, and at nothing that is in it.
SYSTEM_USER = "sys"

#: What a role publishes inside its own account: answers, whose way back the server knows, and who it is.
_LOCAL = {ANSWERS, USER_INFO}
#: What the account of the streams takes: requests to JetStream, and all that is stored.
_TAKEN = (
    "$JS.>",
    *(
        subject
        for stream in stream_configurations(StreamSizes())
        for subject in stream["subjects"]
    ),
)
#: Requests with more than one answer; each answer prolongs the way back, which else would end with the first.
_STREAMED = re.compile(
    r"\$JS\.(API\.CONSUMER\.MSG\.NEXT\..+|API\.DIRECT\.GET\.[^.]+|ACK\..+)"
)
#: How long a way back stays open without an answer: a pull request stands for 30 s and shows signs of life, and each
#: takes half a kilobyte of the server's memory; what a supervisor is asked may take as long as a person waits.
_STREAMED_FOR = "30s"
_ASKED_FOR = "1h"

_HEADING = """\
# Made by `python -m deploy.privileges`; change deploy/privileges/roles.py instead.
# The public half of each role's nkey comes from the environment: deploy/credentials.py, docs/reference/security.md.
# Nobody is a user of the streams' account: through an import, a reply subject is rewritten, and nobody can have the
# server publish somewhere for them. Hence one account a role, and no user in two of them.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamImport:
    """A subject that a role hears from *account*, below *prefix*, which is "" for its own name."""

    account: str
    subject: str
    prefix: str = ""

    def __str__(self) -> str:
        under = f', prefix: "{self.prefix}"' if self.prefix else ""
        return (
            f'{{stream: {{account: {self.account}, subject: "{self.subject}"}}{under}}}'
        )


def key_variable(role: str) -> str:
    """Return the environment variable in which nats-server finds the public nkey of *role*."""
    return f"TASKLORE_NKEY_{role.upper().replace('-', '_')}"


def nats_accounts(roles: Sequence[ServerRole]) -> str:
    """Return the configuration file.

    Raises:
        ValueError: two roles would share a variable.
    """
    variables = [key_variable(role.name) for role in roles]
    if len({*variables, key_variable(SYSTEM_USER)}) <= len(roles):
        msg = f"names of roles must differ in more than case, '-' and '_': {', '.join(role.name for role in roles)}"
        raise ValueError(msg)
    serving = {subject: role.account for role in roles for subject in role.serve}
    services = {role.account: services_of(role, serving) for role in roles}
    streams = {role.account: list(streams_of(role, roles)) for role in roles}
    exports = [
        _service(one)
        for one in _each(
            subject
            for imported in services.values()
            for subject, account in imported.items()
            if account == ACCOUNT
        )
    ]
    exports += _exported(ACCOUNT, streams.values())
    accounts = "\n".join(
        _account(
            role,
            services[role.account],
            streams[role.account],
            _exported(role.account, streams.values()),
        )
        for role in roles
    )
    return (
        f"{_HEADING}\nsystem_account: {SYSTEM_ACCOUNT}\n\naccounts {{\n"
        f"  {SYSTEM_ACCOUNT} {{\n    users: [{{nkey: ${key_variable(SYSTEM_USER)}}}]\n  }}\n"
        f"  {ACCOUNT} {{\n    jetstream: enabled\n    exports: [\n{_lines(exports, 6)}    ]\n  }}\n\n{accounts}}}\n"
    )


def publishers(roles: Iterable[ServerRole], keys: Mapping[str, str]) -> str:
    """Return the file of public keys that readers verify signatures with; *keys* has nkeys by their variable."""
    known = {
        role.name: {"key": keys[key_variable(role.name)], "publishes": role.sign}
        for role in roles
        if role.sign
    }
    return json.dumps(known, indent=2) + "\n"


def services_of(role: ServerRole, serving: Mapping[str, str]) -> dict[str, str]:
    """Return the account in which each subject is imported that *role* publishes to; *serving* has those of roles."""
    asked = {
        one: account
        for one in role.publish
        for served, account in serving.items()
        if covers(served, one)
    }
    taken = [
        one
        for one in role.publish
        if one not in _LOCAL and any(overlap(one, other) for other in _TAKEN)
    ]
    # One subject within another would be two imports of one message, which would be stored twice.
    distinct = [
        one
        for one in taken
        if not any(other != one and covers(other, one) for other in taken)
    ]
    # Without this import the server answers requests to JetStream in the role's own account too: it has none.
    stored = dict.fromkeys([*distinct, JETSTREAM_INFO], ACCOUNT)
    return asked | stored


def streams_of(role: ServerRole, roles: Iterable[ServerRole]) -> Iterator[StreamImport]:
    """Yield the subjects that *role* hears from the accounts of others, and the advisories of the server."""
    roles = tuple(roles)
    elsewhere = said_in("*") + "."
    below_a_prefix = {
        one.removeprefix(elsewhere) for one in role.hear if one.startswith(elsewhere)
    }
    for subject in role.hear:
        if subject.startswith(elsewhere):
            continue
        saying = [
            one
            for one in roles
            if any(overlap(subject, other) for other in one.publish)
        ]
        for one in saying:
            if one.account != role.account:
                prefix = said_in(one.account) if subject in below_a_prefix else ""
                yield StreamImport(account=one.account, subject=subject, prefix=prefix)
        if not saying:
            yield StreamImport(account=ACCOUNT, subject=subject)


def _exported(account: str, imported: Iterable[Iterable[StreamImport]]) -> list[str]:
    """Return the exports of *account* for what others import."""
    return [
        f'{{stream: "{subject}"}}'
        for subject in _each(
            one.subject for own in imported for one in own if one.account == account
        )
    ]


def _account(
    role: ServerRole,
    services: Mapping[str, str],
    streams: Iterable[StreamImport],
    exported: Iterable[str],
) -> str:
    imports = [
        f'{{service: {{account: {account}, subject: "{one}"}}}}'
        for one, account in services.items()
    ]
    imports += map(str, streams)
    exports = [
        f'{{service: "{one}", response_threshold: "{_ASKED_FOR}"}}'
        for one in role.serve
    ]
    exports += exported
    shown = f"    exports: [\n{_lines(exports, 6)}    ]\n" if exports else ""
    return (
        f"  # {role.name}: {role.purpose}\n"
        f"  {role.account} {{\n{shown}    imports: [\n{_lines(imports, 6)}    ]\n"
        f"    users: [{{\n      nkey: ${key_variable(role.name)}\n      permissions: {{\n"
        f"        publish: {{allow: [\n{_lines(_quoted(role.publish), 10)}        ]}}\n"
        f"        subscribe: {{allow: [\n{_lines(_quoted(role.subscribe), 10)}        ]}}\n"
        "      }\n    }]\n  }\n"
    )


def _service(subject: str) -> str:
    if not _STREAMED.fullmatch(subject):
        return f'{{service: "{subject}"}}'
    return f'{{service: "{subject}", response_type: stream, response_threshold: "{_STREAMED_FOR}"}}'


def _each(subject_patterns: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(subject_patterns))


def _quoted(subject_patterns: Iterable[str]) -> list[str]:
    return [f'"{subject}"' for subject in subject_patterns]


def _lines(words: Iterable[str], depth: int) -> str:
    return "".join(f"{' ' * depth}{word}\n" for word in words)
