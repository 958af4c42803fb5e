"""The roles as users of Valkey: commands by name, keys by pattern, `default` switched off."""

from collections.abc import Mapping, Sequence
from hashlib import sha256

from deploy.privileges.roles import ServerRole

_HEADING = """\
# Made by `python -m deploy.privileges`; change deploy/privileges/roles.py or the declaration of a store instead.
# Valkey takes no comments and no variables here: `python -m deploy.credentials` leaves these lines out, and puts the
# SHA-256 of each role's password in place of @NAME@.
"""


def valkey_users(roles: Sequence[ServerRole]) -> str:
    """Return the file as it is shipped, passwords left open."""
    return (
        _HEADING
        + "\n".join(
            ["user default off", *(_user(role) for role in roles if role.has_store)]
        )
        + "\n"
    )


def with_passwords(text: str, passwords: Mapping[str, str]) -> str:
    """Return the file as Valkey loads it, with the password of each role.

    Raises:
        ValueError: a role has none.
    """
    return _with_hashes(
        text, {name: _hash(password) for name, password in passwords.items()}
    )


def renewed(
    loaded: str, roles: Sequence[ServerRole], passwords: Mapping[str, str] | None = None
) -> str:
    """Return *loaded*, a file that Valkey loads, with the rights of *roles* as they are declared now.

    Who is in it keeps the password, and who is none of *roles* keeps the line; *passwords* has those of new roles. One
    of *roles* that is no user of Valkey any more loses it.

    Raises:
        ValueError: a role is neither in *loaded* nor in *passwords*.
    """
    users = {
        words[1]: words
        for words in map(str.split, loaded.splitlines())
        if words[:1] == ["user"]
    }
    hashes = {
        name: word[1:]
        for name, words in users.items()
        for word in words
        if word.startswith("#")
    }
    hashes |= {name: _hash(password) for name, password in (passwords or {}).items()}
    declared = {"default", *(role.name for role in roles)}
    others = [
        " ".join(words) + "\n" for name, words in users.items() if name not in declared
    ]
    return _with_hashes(valkey_users(roles), hashes) + "".join(others)


def _with_hashes(text: str, hashes: Mapping[str, str]) -> str:
    for name, digest in hashes.items():
        text = text.replace(f"#{_mark(name)}", f"#{digest}")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    bare = [line.split()[1] for line in lines if "#@" in line]
    if bare:
        msg = f"no password for {', '.join(bare)}"
        raise ValueError(msg)
    return "\n".join(lines) + "\n"


def _hash(password: str) -> str:
    return sha256(password.encode()).hexdigest()


def _user(role: ServerRole) -> str:
    words = [
        "user",
        role.name,
        "on",
        f"#{_mark(role.name)}",
        "sanitize-payload",
        "resetchannels",
        *(f"&{channel}" for channel in role.channels),
        *(f"~{pattern}" for pattern in role.owns),
        *(f"%R~{pattern}" for pattern in role.reads),
        "-@all",
        *(f"+{command}" for command in sorted(role.commands)),
    ]
    return " ".join(words)


def _mark(name: str) -> str:
    return f"@{name}@"
