"""The declaration of rights against what the code does: no key and no command is forgotten."""

import re

import pytest

from deploy.privileges.roles import Cast
from deploy.privileges.valkey_users import valkey_users, with_passwords
from memory import keys
from memory.scripts import SOURCES

ROLES = {role.name: role for role in Cast().roles()}


def test_every_kind_of_key_is_somebodys() -> None:
    """A new kind of key needs an owner among the processes, or none could use it where rights are held to roles."""
    kinds = set(re.findall(r"`(tl:[a-z-]+:)\{", keys.__doc__ or ""))
    owned = {pattern for name, role in ROLES.items() if name != "operator" for pattern in role.owns}
    assert len(kinds) > 20
    assert {kind for kind in kinds if not any(pattern.startswith(kind) for pattern in owned)} == set()


def test_every_command_of_every_script_may_be_used() -> None:
    """What a script calls is held to the user who runs it."""
    called = {
        word.lower() for source in SOURCES.values() for word in re.findall(r"redis\.p?call\(['\"]([A-Za-z]+)", source)
    }
    assert len(called) > 20
    assert called <= set(ROLES["supervisor"].commands)


def test_a_role_without_a_password_is_refused() -> None:
    """A user that anybody could be is never written."""
    roles = tuple(ROLES.values())
    with pytest.raises(ValueError, match="no password for memory"):
        with_passwords(valkey_users(roles), {role.name: "x" for role in roles if role.name != "memory"})
