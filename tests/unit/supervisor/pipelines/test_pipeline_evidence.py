"""Evidence of failed runs: what is masked in it, how it is written, and restored."""

import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.pipelines import Input, Pipeline
from tasklore.memory.masker import (
    MASK,
    MOST_LEVELS,
    Masker,
    is_secret_name,
)
from tasklore.memory.sessions.pipeline_records import PhaseState, RunRecord
from tasklore.supervisor.pipelines.evidence import (
    FORMAT,
    bundle_of,
    read_bundle,
    restore,
    write_bundle,
)
from tests.fakes.sessions import FakeSessions
from tests.unit.supervisor.pipelines.fake_system import LinkedRuns, a_phase, a_pipeline

NOW = datetime(2026, 11, 21, 10, tzinfo=UTC)


SECRET_NAMES = (
    "password dbPassword PASSWORD api_key apiKey X-Api-Key client_secret Authorization token access_token accessToken "
    "credentials private_key passphrase secret_key"
)


@pytest.mark.parametrize("name", SECRET_NAMES.split())
def test_names_of_secrets_in_any_spelling(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "currentTokenUsage",
        "token_count",
        "max_tokens",
        "tokens",
        "key",
        "keys",
        "author",
        "passes",
        "compass",
        "",
    ],
)
def test_names_that_only_look_like_secrets(name: str) -> None:
    assert not is_secret_name(name)


@pytest.mark.parametrize(
    "text",
    [
        "sk-abcdefghijklmnopqrstuv",
        "Authorization: Bearer abcdefgh12345678",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\ncut off",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc-DEF_1",
        "postgres://ann:hunter2@db.example/x",
        "ghp_abcdefghijklmnopqrstuvwxyz012345",
        "AKIAABCDEFGHIJKLMNOP",
    ],
)
def test_secrets_are_masked_in_values_and_names(text: str) -> None:
    shown, hidden = Masker().mask({"notes": [f"see {text} there"], text: 1})
    assert hidden
    assert text not in json.dumps(shown)
    assert MASK in json.dumps(shown)
    for part in ("hunter2", "MIIE", "abcdefgh12345678", "cut off"):
        assert part not in json.dumps(shown)


@pytest.mark.parametrize(
    "value",
    [
        {
            "text": "ask-me",
            "url": "https://example.org/a:b@c",
            "mail": "ann@example.org",
            "n": 5,
            "ok": True,
            "no": None,
        },
        {
            "has_password": True,
            "password": None,
            "token": "",
            "api_key": "${input.key}",
            "secret": False,
        },
        "the bearer of bad news",
        [],
    ],
)
def test_other_values_are_left_alone(value: Any) -> None:
    assert Masker().mask(value) == (value, False)


def test_everything_below_a_secret_name_is_masked() -> None:
    shown, hidden = Masker().mask(
        {"credentials": {"user": "ann", "pin": 1234, "list": ["x"], "on": True}}
    )
    assert hidden
    assert shown == {
        "credentials": {"user": MASK, "pin": MASK, "list": [MASK], "on": True}
    }


def test_secret_inputs_are_masked_in_texts() -> None:
    masker = Masker.of(
        {"a": "hunter2", "b": "hunter2-more", "c": "ab", "d": ["deep-secret"]},
        frozenset("abcd"),
    )
    assert (
        masker.mask_text("hunter2-more hunter2 ab deep-secret")
        == f"{MASK} {MASK} ab {MASK}"
    )


def test_secret_numbers_are_masked_in_values() -> None:
    masker = Masker.of(
        {"pin": 83451290, "ratio": 0.12345, "on": True},
        frozenset({"pin", "ratio", "on"}),
    )
    value: Any = {
        "a": 83451290,
        "b": [83451290.0, 0.12345],
        "c": "it is 83451290",
        "83451290": 8345129,
        "ok": True,
    }
    shown = {
        "a": MASK,
        "b": [MASK, MASK],
        "c": f"it is {MASK}",
        MASK: 8345129,
        "ok": True,
    }
    assert masker.mask(value) == (shown, True)
    assert Masker.of({"x": 10**5000}, frozenset("x")).mask(10**5000) == (MASK, True)


@pytest.mark.parametrize(
    "secret",
    [
        "pa\"ss\\wo'rd\nline",
        "it's-open",
        'say "open"',
        "ürgent/key + more?",
        "back\\slash\\ok",
    ],
)
def test_a_secret_is_masked_however_it_is_quoted(secret: str) -> None:
    masker = Masker.of({"k": secret}, frozenset("k"))
    either = secret + "\"'"
    for quoted in (
        *(
            repr(secret),
            repr({"k": secret}),
            json.dumps(secret),
            json.dumps(secret, ensure_ascii=False),
        ),
        *(
            repr(f'"{secret}'),
            repr(f"'{secret}"),
            repr(either),
            f"x?{urlencode({'k': secret})}",
            quote(secret),
        ),
    ):
        shown = masker.mask_text(f"cannot use {quoted}!")
        assert MASK in shown
        assert "o" not in shown.removeprefix("cannot use").replace("else", "")


@pytest.mark.parametrize(
    "deep",
    [lambda inner: [inner], lambda inner: {"n": inner}, lambda inner: {"token": inner}],
)
def test_a_value_nested_too_deeply_is_masked_whole(deep: Any) -> None:
    value: Any = 1
    for _ in range(100_000):
        value = deep(value)
    shown, hidden = Masker.of({"a": value}, frozenset("a")).mask(value)
    assert hidden
    assert MASK in json.dumps(shown, indent=1)
    value = True
    for _ in range(MOST_LEVELS):
        value = deep(value)
    assert Masker().mask(value) == (value, False)


#: Texts out of which a pattern could be led to read the same again and again, each to be repeated.
HOSTILE = (
    *(
        "-eyJaaaaaaaa",
        "eyJaaaaaaaa.",
        "-eyJaaaaaaaa.bbbb",
        "://a",
        "://:",
        "://a:",
        "://a:b ",
        "bearer ",
        "bearer\n",
    ),
    *(
        "-----BEGIN PRIVATE KEY",
        "-----BEGIN ",
        "-----BEGIN PRIVATE KEY-----",
        "-----END ",
        "-ghp_aaaaaaa",
        "-sk-",
    ),
    *("a:", " ", "AKIA", "A", "-ghp_aaaaaaaaaaaaaaaaaaaaaaaaa"),
)


def _cpu_s(text: str) -> float:
    """Return what masking *text* costs this thread at least, in seconds of computing."""
    found = []
    for _ in range(3):
        began = time.thread_time()
        Masker().mask_text(text)
        found.append(time.thread_time() - began)
    return min(found)


@pytest.mark.parametrize(
    "start", ["", "://a:", "eyJaaaaaaaa.", "-----BEGIN PRIVATE KEY-----"]
)
@pytest.mark.parametrize("unit", HOSTILE)
def test_masking_takes_linear_time(unit: str, start: str) -> None:
    # Both are within one piece: what it costs from one piece to the next is the same anyway.
    short, long = (start + unit * (size // len(unit)) for size in (4 * 1024, 60 * 1024))
    most_s = 75 * max(_cpu_s(short), 0.0002)
    # The clock of a thread also counts what the machine gave to others meanwhile, and that may be three times in a row.
    assert any(_cpu_s(long) < most_s for _ in range(5))


def test_secrets_across_the_pieces_of_a_long_text_are_masked() -> None:
    token = f"eyJ{'a' * 9_000}.{'b' * 70_000}.c"
    rest = "some words and " * 4_000
    address = "postgres://ann:hunter2@db"
    text = "".join(
        f"{rest}{' ' * shift}{one} "
        for shift in range(0, 4_000, 397)
        for one in (token, address, "eyJ")
    )
    shown = Masker().mask_text(text)
    assert len(text) > 2_000_000
    assert (
        shown.count(MASK),
        "aaaa" in shown,
        "bbbb" in shown,
        "hunter2" in shown,
    ) == (22, False, False, False)
    assert shown.replace(MASK, "") == text.replace(token, "").replace("ann:hunter2", "")
    key = f"-----BEGIN PRIVATE KEY-----{'x' * 2_000_000}-----END PRIVATE KEY-----"
    assert Masker().mask_text(f"{rest}{key}{rest}") == f"{rest}{MASK}{rest}"


def a_record(pipeline: Pipeline, **told: Any) -> RunRecord:
    """Return a run that failed."""
    fields: dict[str, Any] = {
        "session_id": "s1", "state": "running", "pipeline": pipeline, "inputs": {"key": "hunter2!", "x": 1},
        "supervisor_id": "S", "user_id": "ann", "project": "shop", "keep": True, "run": 3, "phases": PHASES,
        "dependencies": {}, "corrected": {}, "created_ms": 1_000, "updated_ms": 2_000,
    }  # fmt: skip
    return RunRecord(**(fields | told))


PHASES = {
    "look": PhaseState("done", 1, "t1", since_ms=1_100, ended_ms=1_500, took_ms=400),
    "login": PhaseState("done", 1, "t2", since_ms=1_200, ended_ms=1_400),
    "use": PhaseState(
        "failed",
        2,
        "t3",
        since_ms=1_600,
        ended_ms=1_900,
        error_type="OSError",
        error="no hunter2!",
    ),
    "late": PhaseState("running", 1, "t4", since_ms=1_700),
}


def a_declaration(**told: Any) -> Pipeline:
    """Return a pipeline of four phases."""
    return a_pipeline(
        a_phase("look", parameters={"x": "${input.x}"} | told),
        a_phase("login", parameters={"k": "${input.key}"}),
        a_phase(
            "use",
            parameters={"x": "${look:results}", "token": "${login:results.token}"},
        ),
        a_phase("late"),
        inputs={"key": Input(type="text", secret=True), "x": Input(default=1)},
    )


def a_bundle(pipeline: Pipeline | None = None) -> dict[str, Any]:
    """Return the evidence of a run that failed."""
    cache = {
        key: {
            "key": key,
            "value": value,
            "created_at": "2026-11-21T10:00:00.000Z",
            "created_by_phase": key.split(":")[0],
        }
        for key, value in {
            "look:results": {"x": 1},
            "login:results": {"token": "abc"},
            "login:cookie": "y",
        }.items()
    }
    session = {
        "version": "2.0.0", "session_id": "s1", "domain": "data", "created_at": "2026-11-21T10:00:00.000Z",
        "updated_at": "2026-11-21T10:00:00.000Z", "ttl_ms": 3_600_000, "cache": cache,
    }  # fmt: skip
    record = a_record(pipeline or a_declaration())
    bundle = bundle_of(
        record,
        PHASES,
        {},
        session,
        {"look": {"f:a.py": "1:2:3"}},
        error="phase 'use': no hunter2!",
        made_at=NOW,
    )
    return json.loads(json.dumps(bundle))


def test_a_bundle_has_everything_but_secrets() -> None:
    bundle = a_bundle()
    assert bundle["masked"] == {
        "inputs": ["key"],
        "entries": ["login:results", "login:cookie"],
        "pipeline": [],
    }
    assert bundle["inputs"] == {"key": MASK, "x": 1}
    assert bundle["session"]["cache"]["look:results"]["value"] == {"x": 1}
    assert bundle["phases"]["use"]["error"] == f"no {MASK}"
    assert "hunter2" not in json.dumps(bundle)
    assert [(one["phase"], one["what"]) for one in bundle["timeline"]] == [
        ("", "the run was accepted"), ("look", "began its run 1"), ("login", "began its run 1"), ("login", "done"),
        ("look", "done"), ("use", "began its run 2"), ("late", "began its run 1"), ("use", f"failed: no {MASK}"),
    ]  # fmt: skip
    assert (bundle["format"], bundle["run"], bundle["seen"]) == (
        FORMAT,
        3,
        {"look": {"f:a.py": "1:2:3"}},
    )


def test_evidence_is_written_atomically_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "evidence" / "s1-failed.json"
    write_bundle(path, {"format": FORMAT, "run": 1})
    write_bundle(path, {"format": FORMAT, "run": 2})
    assert read_bundle(path)["run"] == 2
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("text", ["", "[]", '{"format": "other"}', "[" * 100_000])
def test_a_file_that_is_no_evidence_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(InvalidInput, match=r"x\.json"):
        read_bundle(path)
    with pytest.raises(InvalidInput, match=r"none\.json"):
        read_bundle(tmp_path / "none.json")


async def restored(
    bundle: dict[str, Any], **inputs: Any
) -> tuple[LinkedRuns, FakeSessions]:
    sessions = FakeSessions()
    runs = LinkedRuns(sessions)
    await restore(bundle, runs, sessions, inputs, supervisor_id="S", now=lambda: NOW)  # type: ignore[arg-type]
    return runs, sessions


async def test_a_run_is_restored_as_failed() -> None:
    runs, sessions = await restored(a_bundle(), key="hunter2!")
    record = await runs.read("s1")
    assert record is not None
    assert (record.state, record.run, record.user_id, record.project) == (
        "failed",
        3,
        "ann",
        "shop",
    )
    assert record.inputs == {"key": "hunter2!", "x": 1}
    assert {name: state.status for name, state in record.phases.items()} == {
        "look": "done", "login": "done", "use": "failed", "late": "pending",
    }  # fmt: skip
    assert record.phases["late"].run == 1
    assert [entry.key for entry in await sessions.entries("s1")] == ["look:results"]
    # What was seen serves here too, but for the times of files.
    assert await runs.seen("s1") == {"look": {"f:a.py": "1::3"}}


async def test_restoring_twice_does_no_harm() -> None:
    runs, sessions = await restored(a_bundle(), key="hunter2!")
    told = {"supervisor_id": "S", "now": lambda: NOW}
    await sessions.delete("s1", "look:results")
    await restore(a_bundle(), runs, sessions, {"key": "hunter2!"}, **told)  # type: ignore[arg-type]
    assert [entry.key for entry in await sessions.entries("s1")] == ["look:results"]
    with pytest.raises(InvalidInput, match="without the evidence"):
        await restore(
            a_bundle() | {"run": 4}, runs, sessions, {"key": "hunter2!"}, **told
        )  # type: ignore[arg-type]


async def test_restoring_needs_the_masked_inputs() -> None:
    with pytest.raises(InvalidInput, match="--input key="):
        await restored(a_bundle())
    with pytest.raises(InvalidInput, match="x cannot change"):
        await restored(a_bundle(), key="hunter2!", x=2)
    with pytest.raises(InvalidInput, match="text"):
        await restored(a_bundle(), key=5)


async def test_a_declaration_with_a_secret_cannot_be_restored() -> None:
    bundle = a_bundle(a_declaration(api_key="abcd-efgh"))
    assert bundle["masked"]["pipeline"] == ["phase look: parameters.api_key"]
    assert "abcd-efgh" not in json.dumps(bundle)
    with pytest.raises(InvalidInput, match="secret = true"):
        await restored(bundle, key="hunter2!")


@pytest.mark.parametrize(
    "part", ["session_id", "pipeline", "inputs", "phases", "session", "masked", "run"]
)
async def test_a_broken_bundle_is_refused(part: str) -> None:
    for broken in (
        {name: one for name, one in a_bundle().items() if name != part},
        a_bundle() | {part: 5.5},
    ):
        if part == "run" and "run" in broken:
            broken["run"] = "x"
        with pytest.raises(InvalidInput):
            await restored(broken, key="hunter2!")


@pytest.mark.parametrize(
    "tampered",
    [
        *(
            {"user_id": 5},
            {"user_id": ""},
            {"project": ["x"]},
            {"run": 10**400},
            {"run": -5},
            {"run": 1.5},
        ),
        *(
            {"run": True},
            {"corrected": {"look": 5}},
            {"corrected": [["look", "use"]]},
            {"user_id": "x" * 300},
        ),
    ],
)
async def test_a_tampered_bundle_is_refused(tampered: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="the evidence is broken"):
        await restored(a_bundle() | tampered, key="hunter2!")


@pytest.mark.parametrize(
    "tampered",
    [
        {"run": "x"},
        {"run": 2**60},
        {"status": "weird"},
        {"took_ms": "q"},
        {"error": ["x"]},
        {"why": 5},
    ],
)
async def test_a_tampered_phase_is_refused(tampered: dict[str, Any]) -> None:
    bundle = a_bundle()
    bundle["phases"]["look"] |= tampered
    with pytest.raises(InvalidInput, match="the evidence is broken"):
        await restored(bundle, key="hunter2!")


async def test_an_entry_keeps_the_rest_of_its_time_to_live() -> None:
    bundle = a_bundle()
    bundle["session"]["cache"]["look:results"] |= {
        "created_at": "2026-11-21T09:59:50.000Z",
        "ttl_ms": 60_000,
    }
    _, sessions = await restored(bundle, key="hunter2!")
    [entry] = await sessions.entries("s1")
    assert (entry.key, entry.ttl_ms) == ("look:results", 50_000)
    assert entry.expires_ms == entry.created_ms + 50_000
