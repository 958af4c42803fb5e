"""Evidence: what is masked in it, how it is written, and what may be made of it again."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from contracts.errors import InvalidInput
from contracts.pipelines import Input, Pipeline
from memory.fake_session import FakeSessions
from memory.pipeline_records import PhaseState, RunRecord
from supervisor.pipelines.evidence import FORMAT, bundle_of, read_bundle, restore, write_bundle
from supervisor.pipelines.masking import MASK, Masker, is_secret_name
from tests.unit.pipeline_house import LinkedRuns, a_phase, a_pipeline

NOW = datetime(2026, 11, 21, 10, tzinfo=UTC)


SECRET_NAMES = (
    "password dbPassword PASSWORD api_key apiKey X-Api-Key client_secret Authorization token access_token accessToken "
    "credentials private_key passphrase secret_key"
)


@pytest.mark.parametrize("name", SECRET_NAMES.split())
def test_names_of_secrets_are_known_in_any_spelling(name: str) -> None:
    """Snake, camel, kebab and shouting."""
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    ["currentTokenUsage", "token_count", "max_tokens", "tokens", "key", "keys", "author", "passes", "compass", ""],
)
def test_names_that_only_look_like_secrets_are_none(name: str) -> None:
    """An analysis may well count tokens."""
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
def test_what_looks_like_a_secret_is_masked_wherever_it_stands(text: str) -> None:
    """In a list in an object, in the middle of a sentence, and as a name."""
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
        {"has_password": True, "password": None, "token": "", "api_key": "${input.key}", "secret": False},
        "the bearer of bad news",
        [],
    ],
)
def test_what_is_no_secret_is_left_alone(value: Any) -> None:
    """References name a secret, and are none."""
    assert Masker().mask(value) == (value, False)


def test_all_below_a_secret_name_is_masked() -> None:
    """Numbers too, and whatever is nested."""
    shown, hidden = Masker().mask({"credentials": {"user": "ann", "pin": 1234, "list": ["x"], "on": True}})
    assert hidden
    assert shown == {"credentials": {"user": MASK, "pin": MASK, "list": [MASK], "on": True}}


def test_secret_inputs_are_found_in_other_texts() -> None:
    """The longest first; a short one is looked for nowhere, but still masked itself."""
    masker = Masker.of({"a": "hunter2", "b": "hunter2-more", "c": "ab", "d": ["deep-secret"]}, frozenset("abcd"))
    assert masker.mask_text("hunter2-more hunter2 ab deep-secret") == f"{MASK} {MASK} ab {MASK}"


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
    "use": PhaseState("failed", 2, "t3", since_ms=1_600, ended_ms=1_900, error_type="OSError", error="no hunter2!"),
    "late": PhaseState("running", 1, "t4", since_ms=1_700),
}


def a_declaration(**told: Any) -> Pipeline:
    """Return a pipeline of four phases."""
    return a_pipeline(
        a_phase("look", parameters={"x": "${input.x}"} | told),
        a_phase("login", parameters={"k": "${input.key}"}),
        a_phase("use", parameters={"x": "${look:results}", "token": "${login:results.token}"}),
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
        for key, value in {"look:results": {"x": 1}, "login:results": {"token": "abc"}, "login:cookie": "y"}.items()
    }
    session = {
        "version": "2.0.0", "session_id": "s1", "domain": "data", "created_at": "2026-11-21T10:00:00.000Z",
        "updated_at": "2026-11-21T10:00:00.000Z", "ttl_ms": 3_600_000, "cache": cache,
    }  # fmt: skip
    record = a_record(pipeline or a_declaration())
    bundle = bundle_of(
        record, PHASES, {}, session, {"look": {"f:a.py": "1:2:3"}}, error="phase 'use': no hunter2!", made_at=NOW
    )
    return json.loads(json.dumps(bundle))


def test_the_bundle_tells_all_but_its_secrets() -> None:
    """Inputs, entries, phases, errors, times and what was seen; masked parts are named."""
    bundle = a_bundle()
    assert bundle["masked"] == {"inputs": ["key"], "entries": ["login:results", "login:cookie"], "pipeline": []}
    assert bundle["inputs"] == {"key": MASK, "x": 1}
    assert bundle["session"]["cache"]["look:results"]["value"] == {"x": 1}
    assert bundle["phases"]["use"]["error"] == f"no {MASK}"
    assert "hunter2" not in json.dumps(bundle)
    assert [(one["phase"], one["what"]) for one in bundle["timeline"]] == [
        ("", "the run was accepted"), ("look", "began its run 1"), ("login", "began its run 1"), ("login", "done"),
        ("look", "done"), ("use", "began its run 2"), ("late", "began its run 1"), ("use", f"failed: no {MASK}"),
    ]  # fmt: skip
    assert (bundle["format"], bundle["run"], bundle["seen"]) == (FORMAT, 3, {"look": {"f:a.py": "1:2:3"}})


def test_it_is_written_at_once_for_one_user_alone(tmp_path: Path) -> None:
    """Over an older one too, and nothing is left beside it."""
    path = tmp_path / "deep" / "evidence" / "s1-failed.json"
    write_bundle(path, {"format": FORMAT, "run": 1})
    write_bundle(path, {"format": FORMAT, "run": 2})
    assert read_bundle(path)["run"] == 2
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": "other"}'])
def test_what_is_no_evidence_is_refused(tmp_path: Path, text: str) -> None:
    """With the file and what to name instead."""
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(InvalidInput, match=r"x\.json"):
        read_bundle(path)
    with pytest.raises(InvalidInput, match=r"none\.json"):
        read_bundle(tmp_path / "none.json")


async def restored(bundle: dict[str, Any], **inputs: Any) -> tuple[LinkedRuns, FakeSessions]:
    """Restore *bundle* on empty stores."""
    sessions = FakeSessions()
    runs = LinkedRuns(sessions)
    await restore(bundle, runs, sessions, inputs, supervisor_id="S", now=lambda: NOW)  # type: ignore[arg-type]
    return runs, sessions


async def test_a_run_is_made_again_as_failed() -> None:
    """Masked entries are missing, what ran runs no more, and the run's number goes on."""
    runs, sessions = await restored(a_bundle(), key="hunter2!")
    record = await runs.read("s1")
    assert record is not None
    assert (record.state, record.run, record.user_id, record.project) == ("failed", 3, "ann", "shop")
    assert record.inputs == {"key": "hunter2!", "x": 1}
    assert {name: state.status for name, state in record.phases.items()} == {
        "look": "done", "login": "done", "use": "failed", "late": "pending",
    }  # fmt: skip
    assert record.phases["late"].run == 1
    assert [entry.key for entry in await sessions.entries("s1")] == ["look:results"]
    # What was seen serves here too, but for the times of files.
    assert await runs.seen("s1") == {"look": {"f:a.py": "1::3"}}


async def test_doing_it_again_does_no_harm() -> None:
    """As after a crash in the middle; over another run of that id it is refused."""
    runs, sessions = await restored(a_bundle(), key="hunter2!")
    told = {"supervisor_id": "S", "now": lambda: NOW}
    await sessions.delete("s1", "look:results")
    await restore(a_bundle(), runs, sessions, {"key": "hunter2!"}, **told)  # type: ignore[arg-type]
    assert [entry.key for entry in await sessions.entries("s1")] == ["look:results"]
    with pytest.raises(InvalidInput, match="without the evidence"):
        await restore(a_bundle() | {"run": 4}, runs, sessions, {"key": "hunter2!"}, **told)  # type: ignore[arg-type]


async def test_masked_inputs_are_asked_for() -> None:
    """By name, as they are given; others cannot change."""
    with pytest.raises(InvalidInput, match="--input key="):
        await restored(a_bundle())
    with pytest.raises(InvalidInput, match="x cannot change"):
        await restored(a_bundle(), key="hunter2!", x=2)
    with pytest.raises(InvalidInput, match="text"):
        await restored(a_bundle(), key=5)


async def test_a_declaration_that_held_a_secret_cannot_go_on() -> None:
    """It says which, and how to declare it."""
    bundle = a_bundle(a_declaration(api_key="abcd-efgh"))
    assert bundle["masked"]["pipeline"] == ["phase look: parameters.api_key"]
    assert "abcd-efgh" not in json.dumps(bundle)
    with pytest.raises(InvalidInput, match="secret = true"):
        await restored(bundle, key="hunter2!")


@pytest.mark.parametrize("part", ["session_id", "pipeline", "inputs", "phases", "session", "masked", "run"])
async def test_a_broken_bundle_is_refused(part: str) -> None:
    """Whichever part is gone, or is something else."""
    for broken in ({name: one for name, one in a_bundle().items() if name != part}, a_bundle() | {part: 5.5}):
        if part == "run" and "run" in broken:
            broken["run"] = "x"
        with pytest.raises(InvalidInput):
            await restored(broken, key="hunter2!")
