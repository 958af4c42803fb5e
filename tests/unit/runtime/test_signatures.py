"""Who published a message: the reach of a signature, and the messages accepted without one."""

import json
import os
from pathlib import Path

import pytest

from tasklore.contracts import subjects
from tasklore.contracts.errors import ConfigurationError
from tasklore.runtime.access import ServerCredentials
from tasklore.runtime.messaging.signatures import (
    Publishers,
    Sign,
    Unproven,
    is_signed,
    open_publishers,
    open_signer,
)
from tests.role_keys import make_role_keys

SUBJECT = "turns.3.YW5u"
MESSAGE_ID = "turn-1"
BODY = b'{"text": "I am allergic to peanuts"}'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a key for each role, and the list of those that publish."""
    return make_role_keys(tmp_path_factory.mktemp("keys"))


def _signer(folder: Path, role: str) -> Sign:
    sign = open_signer(ServerCredentials(role, folder / role / "nats.nkey"))
    assert sign is not None
    return sign


def _headers(signature: str, message_id: str = MESSAGE_ID) -> dict[str, str]:
    return {
        subjects.MESSAGE_ID_HEADER: message_id,
        subjects.SIGNATURE_HEADER: signature,
    }


def test_those_who_may_publish_are_believed(folder: Path) -> None:
    """Supervisor and operator pass turns on, the memory worker finds facts, a program speaks as itself."""
    known = Publishers(folder / "publishers.json")
    said = (
        ("supervisor", SUBJECT),
        ("operator", SUBJECT),
        ("memory", "facts.3.YW5u"),
        ("program", "messages.3.YW5u.cHJvZ3JhbQ"),
    )
    for role, subject in said:
        known.check(
            subject, _headers(_signer(folder, role)(subject, MESSAGE_ID, BODY)), BODY
        )


@pytest.mark.parametrize(
    ("role", "subject"),
    [
        ("worker-budget", SUBJECT),
        ("program", SUBJECT),
        ("memory", SUBJECT),
        ("supervisor", "facts.3.YW5u"),
        ("operator", "messages.3.YW5u.cHJvZ3JhbQ"),
        ("program", "messages.3.YW5u.Qm9i"),
        ("bootstrap", "facts.3.YW5u"),
    ],
)
def test_those_who_may_not_are_refused_with_a_good_signature(
    folder: Path, role: str, subject: str
) -> None:
    """What the declaration does not grant, a key does not either."""
    signature = _signer(folder, role)(subject, MESSAGE_ID, BODY)
    with pytest.raises(Unproven, match="does not publish to"):
        Publishers(folder / "publishers.json").check(subject, _headers(signature), BODY)


def test_a_signature_holds_for_one_subject_id_body_and_role(folder: Path) -> None:
    known = Publishers(folder / "publishers.json")
    signature = _signer(folder, "supervisor")(SUBJECT, MESSAGE_ID, BODY)
    known.check(SUBJECT, _headers(signature), BODY)
    forged = [
        ("turns.3.Ym9i", _headers(signature), BODY),
        (SUBJECT, _headers(signature, "turn-2"), BODY),
        (SUBJECT, {subjects.SIGNATURE_HEADER: signature}, BODY),
        (SUBJECT, _headers(signature), BODY + b" "),
        (SUBJECT, _headers(signature.replace("supervisor", "operator")), BODY),
        (SUBJECT, _headers(signature[:-4]), BODY),
        (SUBJECT, _headers("supervisor no-base64"), BODY),
        (SUBJECT, _headers("supervisor"), BODY),
        (SUBJECT, {}, BODY),
        (SUBJECT, None, BODY),
    ]
    for subject, headers, body in forged:
        with pytest.raises(Unproven):
            known.check(subject, headers, body)


def test_a_role_that_is_added_is_known_without_a_restart(
    folder: Path, tmp_path: Path
) -> None:
    file = tmp_path / "publishers.json"
    whole = json.loads((folder / "publishers.json").read_text("utf-8"))
    file.write_text(json.dumps({"memory": whole["memory"]}), "utf-8")
    os.utime(file, ns=(1, 1))
    known = Publishers(file)
    headers = _headers(_signer(folder, "supervisor")(SUBJECT, MESSAGE_ID, BODY))
    with pytest.raises(Unproven):
        known.check(SUBJECT, headers, BODY)
    file.write_text(json.dumps(whole), "utf-8")
    known.check(SUBJECT, headers, BODY)


def test_a_key_that_was_replaced_counts_at_once_and_the_old_one_no_more(
    folder: Path, tmp_path: Path
) -> None:
    file = tmp_path / "publishers.json"
    whole = json.loads((folder / "publishers.json").read_text("utf-8"))
    stolen = whole | {"supervisor": whole["operator"]}
    file.write_text(json.dumps(stolen), "utf-8")
    os.utime(file, ns=(1, 1))
    known = Publishers(file)
    new = _headers(_signer(folder, "supervisor")(SUBJECT, MESSAGE_ID, BODY))
    old = _headers(
        _signer(folder, "operator")(SUBJECT, MESSAGE_ID, BODY).replace(
            "operator", "supervisor"
        )
    )
    known.check(SUBJECT, old, BODY)
    file.write_text(json.dumps(whole), "utf-8")
    known.check(SUBJECT, new, BODY)
    with pytest.raises(Unproven):
        known.check(SUBJECT, old, BODY)


def test_only_what_people_say_is_signed() -> None:
    """Tasks and reports are not: programs of others send them as they are."""
    assert all(map(is_signed, (SUBJECT, "facts.1.x", "messages.1.x.y")))
    assert not any(
        map(is_signed, ("tasks.A.t", "reports.S.t.1", "dead.turns.1.x", "$KV.agents.A"))
    )


def test_without_keys_nothing_is_signed_or_checked(tmp_path: Path) -> None:
    assert open_signer(ServerCredentials()) is None
    assert open_publishers(ServerCredentials()) is None
    seed = tmp_path / "nats.nkey"
    broken = tmp_path / "publishers.json"
    broken.write_text("[]", "utf-8")
    with pytest.raises(ConfigurationError, match="--renew"):
        open_publishers(ServerCredentials("memory", seed))
    with pytest.raises(ConfigurationError, match="--renew"):
        open_publishers(ServerCredentials("memory", seed, publishers_file=broken))
