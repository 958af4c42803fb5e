"""Declared rights cover every key, command and subject."""

import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.privileges.nats_accounts import nats_accounts, services_of, streams_of
from deploy.privileges.roles import Cast
from deploy.privileges.valkey_users import valkey_users, with_passwords
from tasklore.contracts import subjects
from tasklore.contracts.errors import ConfigurationError
from tasklore.memory.functions import LIBRARIES
from tasklore.memory.ledger import scripts
from tasklore.memory.stores import STORES
from tasklore.memory.tombstones import scripts as tombstones

ROLES = {role.name: role for role in Cast().roles()}
#: The rights of each role, and the workers that they were written down for.
RIGHTS = Path(__file__).parents[2] / "golden" / "valkey_rights.json"
WORKERS = {"budget": ("BudgetTrackerAgent",), "caller": ("CallerAgent", "OtherAgent")}
CALLS = {"caller": ("PriceAgent",)}


def test_every_kind_of_key_has_an_owner() -> None:
    """A new kind of key needs an owner among the processes, or none could use it where rights are held to roles."""
    kinds = {
        f"tl:{kind}:"
        for store in STORES
        for key in store.keys
        if key.type != "channel"
        for kind in key.kinds
    }
    owned = {
        pattern
        for name, role in ROLES.items()
        if name != "operator"
        for pattern in role.owns
    }
    assert len(kinds) > 20
    assert {
        kind for kind in kinds if not any(pattern.startswith(kind) for pattern in owned)
    } == set()


def test_rights_on_keys_are_as_they_were_before_stores_declared_them() -> None:
    """In both layouts of the ledger, of each kind of key that there was."""
    frozen = json.loads(RIGHTS.read_text("utf-8"))
    kinds = {_kind(one) for rights in _each_right(frozen) for one in rights}
    cast = {
        f"ledger {layout}": {
            role.name: {
                "owns": [one for one in sorted(role.owns) if _kind(one) in kinds],
                "reads": [one for one in sorted(role.reads) if _kind(one) in kinds],
                "channels": sorted(role.channels),
            }
            for role in Cast(WORKERS, calls=CALLS, ledger=layout).roles()
            if role.has_store
        }
        for layout in (1, 2)
    }
    assert len(kinds) > 40
    assert cast == frozen


def _each_right(
    frozen: dict[str, dict[str, dict[str, list[str]]]],
) -> Iterator[list[str]]:
    for roles in frozen.values():
        for role in roles.values():
            yield from (role["owns"], role["reads"])


def _kind(pattern: str) -> str:
    """Return the kind of the keys that *pattern* matches."""
    return pattern.split(":")[1]


def test_a_program_has_no_right_at_valkey() -> None:
    program = ROLES["program"]
    assert (program.commands, program.owns, program.reads) == ((), (), ())
    assert "user program " not in valkey_users(tuple(ROLES.values()))


def test_commands_of_scripts_are_allowed() -> None:
    """To whoever calls them: the operator alone moves the ledger, and hides memories beside those who keep them."""
    called = {
        name: {
            word.lower()
            for word in re.findall(r"redis\.p?call\(['\"]([A-Za-z]+)", source)
        }
        for name, source in LIBRARIES.items()
    }
    moving = called.pop(scripts.CONVERT)
    assert moving <= set(ROLES["operator"].commands)
    hides = (tombstones.HIDE, tombstones.HIDE_TALK)
    for script in (*hides, tombstones.BRING_BACK, tombstones.SHOW_TALK):
        hiding = called.pop(script)
        for role in ("memory", "operator"):
            assert hiding <= set(ROLES[role].commands)
    assert len(used := set().union(*called.values())) > 20
    assert used <= set(ROLES["supervisor"].commands)


def test_a_worker_publishes_tasks_of_the_agents_alone_that_it_may_call() -> None:
    cast = Cast(
        {"reader": ("ReaderAgent",), "other": ("OtherAgent",)},
        {},
        {"reader": ("PaperFinder",)},
    )
    publish = {
        role.name: {one for one in role.publish if one.startswith("tasks.")}
        for role in cast.roles()
    }
    assert (publish["worker-reader"], publish["worker-other"]) == (
        {"tasks.PaperFinder.*"},
        set(),
    )
    with pytest.raises(ConfigurationError, match="--calls names nobody"):
        Cast({}, {}, {"nobody": ("PaperFinder",)}).roles()


def test_a_program_answers_questions_for_the_persons_alone_that_it_stands_for() -> None:
    cast = Cast(
        {},
        {"chat": ("chat",), "other": ("other",)},
        {},
        {"chat": ("role:finance", "user:ana")},
    )
    publish = {
        role.name: {one for one in role.publish if one.startswith("approvals.")}
        for role in cast.roles()
    }
    own = {
        subjects.approvals("SupervisorAgent", who)
        for who in ("role:finance", "user:ana")
    }
    assert (publish["chat"], publish["other"], publish["memory"]) == (own, set(), set())
    with pytest.raises(ConfigurationError, match="--approver names nobody"):
        Cast({}, {}, {}, {"nobody": ("role:finance",)}).roles()


def test_a_role_without_a_password_is_refused() -> None:
    roles = tuple(ROLES.values())
    with pytest.raises(ValueError, match="no password for memory"):
        with_passwords(
            valkey_users(roles),
            {role.name: "x" for role in roles if role.name != "memory"},
        )


@pytest.mark.parametrize("name", ROLES)
def test_what_a_role_publishes_is_imported_once(name: str) -> None:
    _demand_apart(list(services_of(ROLES[name], {})))


@pytest.mark.parametrize("name", ROLES)
def test_what_a_role_hears_of_another_is_imported_once(name: str) -> None:
    by_account: dict[str, list[str]] = {}
    for one in streams_of(ROLES[name], ROLES.values()):
        by_account.setdefault(one.account, []).append(one.subject)
    for imported in by_account.values():
        _demand_apart(imported)


def _demand_apart(wanted: list[str]) -> None:
    overlapping = [
        (one, other)
        for one, other in itertools.combinations(wanted, 2)
        if subjects.overlap(one, other)
    ]
    assert overlapping == []


def test_the_account_of_streams_has_no_user() -> None:
    text = nats_accounts(tuple(ROLES.values()))
    (streams,) = re.findall(
        rf"^  {subjects.ACCOUNT} {{$.*?^  }}$", text, re.MULTILINE | re.DOTALL
    )
    assert "jetstream: enabled" in streams
    assert "users" not in streams
    assert text.count("jetstream") == 1
    assert (
        len(set(re.findall(r"nkey: (\$\w+)", text)))
        == text.count("nkey:")
        == len(ROLES) + 1
    )
