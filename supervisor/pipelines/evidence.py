"""The evidence of a run that failed: one JSON file with all that it had, secrets masked, enough to go on from.

    {"format", "made_at", "session_id", "state", "run", "error", "pipeline", "inputs", "user_id", "caller", "project",
     "keep", "phases", "corrected", "seen", "timeline", "session", "masked"}

`session` is the session with its entries in the form of its own files. `masked` names the parts that are not there in
full: `inputs` by name, `entries` by key, which count as missing, `pipeline` as places in the declaration.
"""

import asyncio
import json
import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    Field,
    JsonValue,
    StrictInt,
    StrictStr,
    ValidationError,
)

from tasklore.contracts.callers import Caller
from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.faults import fault_of
from tasklore.contracts.identifiers import checked_name
from tasklore.contracts.pipelines import Pipeline
from tasklore.memory.masker import MASK, Masker
from tasklore.memory.projects.project import ProjectMemory
from tasklore.memory.projects.records import Record
from tasklore.memory.sessions import files as session_files
from tasklore.memory.sessions.entries import MAX_VALUE_BYTES, SessionRoot
from tasklore.memory.sessions.pipeline_records import NewRun, PhaseState, RunRecord
from tasklore.memory.sessions.pipeline_runs import PipelineRuns
from tasklore.memory.sessions.session import SessionCache
from tasklore.supervisor.pipelines.declaration.declarations import pipeline_from
from tasklore.supervisor.pipelines.declaration.graph import Graph
from tasklore.supervisor.pipelines.declaration.inputs import (
    fill_defaults,
    problems_in_inputs,
)
from tasklore.supervisor.pipelines.declaration.marks import without_times

FORMAT = "tasklore-evidence/1"
#: Records of the pipeline's history that are looked through for earlier ends of a run: one page.
MOST_ENDS = 100
#: The store's scripts keep smaller numbers exactly.
_MOST_RUNS = 2**53


def _rest(state: PhaseState) -> PhaseState:
    """Return *state* as nothing runs any more."""
    if not 0 <= state.run < _MOST_RUNS:
        raise ValueError("run has to be a count")
    return (
        state
        if state.status != "running"
        else PhaseState(run=state.run, why="it was running")
    )


_Text = Annotated[StrictStr, Field(min_length=1, max_length=256)]


class _MaskedParts(BaseModel):
    inputs: list[str]
    entries: list[str]
    pipeline: list[str]


class _Bundle(BaseModel):
    """The parts of a file that make a run: files are changed by hand."""

    session_id: StrictStr
    pipeline: dict[str, Any]
    inputs: dict[str, Any]
    phases: dict[str, Annotated[PhaseState, AfterValidator(_rest)]]
    session: dict[str, Any]
    cache: dict[str, Any]
    masked: _MaskedParts
    run: Annotated[StrictInt, Field(ge=0, lt=_MOST_RUNS)]
    user_id: _Text | None = None
    caller: Caller | None = None
    project: _Text | None = None
    keep: bool | None = None
    corrected: dict[str, StrictStr] | None = None
    seen: dict[str, dict[str, str]] = Field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Restored:
    """A run that was made anew: how many `entries` came back, and the keys of those that have to be computed anew.

    These are `masked`, or their own time to live is over.
    """

    session_id: str
    entries: int
    masked: tuple[str, ...] = ()
    expired: tuple[str, ...] = ()


def bundle_of(
    record: RunRecord,
    phases: Mapping[str, PhaseState],
    corrected: Mapping[str, str],
    session: Mapping[str, Any],
    seen: Mapping[str, Mapping[str, str]],
    *,
    error: str,
    made_at: datetime,
    earlier: Sequence[Record] = (),
) -> dict[str, Any]:
    """Return the evidence of *record*, whose phases are as in *phases*; *session* is its exported session.

    *earlier* is the result of `earlier_ends`.
    """
    masker = _masker_of(record)
    inputs, masked_inputs = _mask_inputs(record, masker)
    entries = {}
    masked_entries = []
    for key, entry in session.get("cache", {}).items():
        # Its data type names the value as any other name does: `login:token` is one.
        found, hidden = _mask_parts(
            masker, {key.split(":")[1] if ":" in key else key: entry.get("value")}
        )
        entries[key] = {**entry, "value": next(iter(found.values()))}
        masked_entries += [key for _ in hidden]
    pipeline, places = _mask_pipeline(masker, record.pipeline)
    return {
        "format": FORMAT,
        "made_at": made_at.isoformat(),
        "session_id": record.session_id,
        "state": "failed" if record.state == "running" else record.state,
        "run": record.run,
        "error": masker.mask_text(error),
        "pipeline": pipeline,
        "inputs": inputs,
        "user_id": record.user_id,
        "caller": None
        if record.caller is None
        else record.caller.model_dump(mode="json"),
        "project": record.project,
        "keep": record.keep,
        "phases": {
            name: asdict(state)
            | {"error": None if state.error is None else masker.mask_text(state.error)}
            for name, state in phases.items()
        },
        "corrected": dict(corrected),
        "seen": {phase: dict(marks) for phase, marks in seen.items()},
        "timeline": _timeline(record, phases, earlier, masker),
        "session": {**session, "cache": entries},
        "masked": {
            "inputs": sorted(masked_inputs),
            "entries": masked_entries,
            "pipeline": places,
        },
    }


def show_inputs(record: RunRecord) -> dict[str, JsonValue]:
    """Return the inputs of *record* with masks where they are secret, or look as if they were."""
    return _mask_inputs(record, _masker_of(record))[0]


def _masker_of(record: RunRecord) -> Masker:
    return Masker.of(record.inputs, _secret_inputs(record))


def _secret_inputs(record: RunRecord) -> frozenset[str]:
    return frozenset(name for name, one in record.pipeline.inputs.items() if one.secret)


def _mask_inputs(
    record: RunRecord, masker: Masker
) -> tuple[dict[str, JsonValue], set[str]]:
    """Return the inputs of *record* masked, and the names of those that were."""
    inputs, masked = _mask_parts(masker, record.inputs)
    hidden = _secret_inputs(record) & record.inputs.keys()
    for name in hidden:
        inputs[name] = MASK
    return inputs, {*masked, *hidden}


def write_bundle(path: Path, bundle: Mapping[str, Any]) -> None:
    """Write *bundle* to *path* for this user alone, at once or not at all; its folder is made.

    Raises:
        OSError: it cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        # Half of a surrogate pair, which is no UTF-8, becomes what JSON escapes it as.
        with os.fdopen(
            descriptor, "w", encoding="utf-8", errors="backslashreplace"
        ) as file:
            json.dump(bundle, file, indent=1, ensure_ascii=False)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def read_bundle(path: Path) -> dict[str, Any]:
    """Return the evidence in the file *path*.

    Raises:
        InvalidInput: it cannot be read, or is none.
    """
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        msg = f"cannot read evidence {str(path)!r} ({type(error).__name__}); name a file '...-failed.json'"
        raise InvalidInput(msg) from error
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        msg = f"{str(path)!r} is not evidence of the format {FORMAT!r}; name a file '...-failed.json'"
        raise InvalidInput(msg)
    return found


async def _create(
    runs: PipelineRuns, new: NewRun, may_see: Callable[[RunRecord], bool]
) -> None:
    """Create *new*, unless the same failed run is there, and *may_see* holds for it.

    Raises:
        InvalidInput: the session is there with another run, or in another state.
    """
    if await runs.create(new):
        return
    known = await runs.read(new.session_id)
    is_same = (
        known is not None
        and may_see(known)
        and (known.pipeline, known.run, known.user_id)
        == (new.pipeline, new.run, new.user_id)
    )
    if known is None or known.state != "failed" or not is_same:
        raise InvalidInput(
            f"session {new.session_id!r} is there, with another run or another state than in the evidence; resume "
            "it without the evidence, or remove it first"
        )


def _read_run(
    bundle: Mapping[str, Any],
    inputs: Mapping[str, JsonValue],
    *,
    supervisor_id: str,
    now_ms: int,
) -> tuple[NewRun, session_files.SessionFile, _MaskedParts]:
    """Return the run in *bundle*, its session, and the parts that are masked in it."""
    try:
        session = bundle.get("session")
        read = _Bundle.model_validate(
            {
                "cache": session.get("cache") if isinstance(session, dict) else None,
                **bundle,
            }
        )
    except ValidationError as error:
        wrong = error.errors(
            include_url=False, include_input=False, include_context=False
        )[0]
        raise InvalidInput(
            f"the evidence is broken ({fault_of(wrong)}); take the file as it was written"
        ) from error
    pipeline = pipeline_from(read.pipeline)
    masked = read.masked
    if masked.pipeline:
        raise InvalidInput(
            "the declaration held secrets, which are masked in the evidence "
            f"({', '.join(masked.pipeline)}); make them inputs with `secret = true`, "
            "and run the pipeline again"
        )
    new = NewRun(
        session_id=checked_name(read.session_id, "session id"),
        pipeline=pipeline,
        supervisor_id=supervisor_id,
        inputs=_give_inputs(pipeline, read.inputs, inputs, masked.inputs),
        dependencies=Graph.of(pipeline).dependencies,
        user_id=read.user_id,
        caller=read.caller,
        project=read.project,
        keep=bool(read.keep),
        state="failed",
        phases=read.phases,
        corrected=read.corrected or {},
        seen={phase: without_times(marks) for phase, marks in read.seen.items()},
        run=read.run,
    )
    entries = {
        key: entry for key, entry in read.cache.items() if key not in masked.entries
    }
    file = session_files.read(
        read.session | {"cache": entries}, new.session_id, now_ms, MAX_VALUE_BYTES
    )
    return new, file, masked


async def restore(
    bundle: Mapping[str, Any],
    runs: PipelineRuns,
    cache: SessionCache,
    inputs: Mapping[str, JsonValue],
    *,
    supervisor_id: str,
    may_see: Callable[[RunRecord], bool] = lambda _record: True,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Restored:
    """Make the run in *bundle* anew, as failed, so that resuming it runs only phases that failed or are missing.

    *inputs* are given for those that were masked. Uses of entries are counted anew. Doing so twice does no harm:
    a run that is there is written to when it is the same one, of the same user, and *may_see* holds for it.

    Raises:
        InvalidInput: the bundle is broken, a masked input is not given, or the session is there with another run.
        MemoryUnavailable: the store did not answer.
    """
    now_ms = int(now().timestamp() * 1000)
    new, file, masked = await asyncio.to_thread(
        _read_run, bundle, inputs, supervisor_id=supervisor_id, now_ms=now_ms
    )
    await _create(runs, new, may_see)
    await _put(file, cache, now_ms)
    return Restored(
        new.session_id,
        len(file.entries),
        tuple(masked.entries),
        (*file.expired, *file.refused),
    )


async def restore_entries(
    root: SessionRoot,
    entries: Mapping[str, Any],
    cache: SessionCache,
    *,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Restored:
    """Put *entries*, by key in the form of evidence, into the session of *root*; doing so twice does no harm.

    Raises:
        InvalidInput: they have not that form.
        UnknownSession: the session is gone.
        MemoryUnavailable: the store did not answer.
    """
    now_ms = int(now().timestamp() * 1000)
    document = session_files.document_of(root, ()) | {"cache": entries}
    file = await asyncio.to_thread(
        session_files.read, document, root.session_id, now_ms, MAX_VALUE_BYTES
    )
    await _put(file, cache, now_ms)
    return Restored(
        root.session_id, len(file.entries), expired=(*file.expired, *file.refused)
    )


async def _put(
    file: session_files.SessionFile, cache: SessionCache, now_ms: int
) -> None:
    for one in file.entries:
        left = (
            None
            if one.expires_ms is None
            else timedelta(milliseconds=one.expires_ms - now_ms)
        )
        entry = one.entry if left is None else replace(one.entry, ttl=left)
        # One by one: each may be as large as one round trip allows.
        await cache.set_many(file.session_id, [entry])


async def earlier_ends(projects: ProjectMemory, record: RunRecord) -> list[Record]:
    """Return the ends of *record* before it went on, out of the project's history, as far as they are near.

    Raises:
        MemoryUnavailable: the store did not answer.
    """
    if record.run == 1:
        return []
    found = await projects.search(
        record.project,
        kind="history",
        tags=(record.pipeline.name,),
        since_ms=record.created_ms,
        limit=MOST_ENDS,
    )
    return [
        one
        for one in found
        if one.session_id == record.session_id
        and one.data.get("run") in range(record.run)
    ]


def _give_inputs(
    pipeline: Pipeline,
    known: Mapping[str, JsonValue],
    given: Mapping[str, JsonValue],
    masked: list[str],
) -> dict[str, JsonValue]:
    missing = [name for name in masked if name not in given]
    if missing:
        flags = " ".join(f"--input {name}=..." for name in missing)
        raise InvalidInput(
            f"inputs {', '.join(missing)} are secret and not in the evidence; pass them "
            f"again: {flags}"
        )
    changed = [
        name
        for name, value in given.items()
        if name not in masked and known.get(name) != value
    ]
    if changed:
        raise InvalidInput(
            f"inputs {', '.join(changed)} cannot change when a run is resumed; start a "
            "new run with them instead"
        )
    inputs = fill_defaults(pipeline, {**known, **given})
    if problems := problems_in_inputs(pipeline, inputs):
        raise InvalidInput("; ".join(one.text for one in problems))
    return inputs


def _mask_parts(
    masker: Masker, values: Mapping[str, JsonValue]
) -> tuple[dict[str, JsonValue], list[str]]:
    """Return *values* masked as the parts of one object, and the names of those that were."""
    shown: dict[str, JsonValue] = {}
    masked = []
    for name, value in values.items():
        found, is_hidden = masker.mask({name: value})
        shown[name] = next(iter(found.values())) if isinstance(found, dict) else found
        if is_hidden:
            masked.append(name)
    return shown, masked


def _mask_pipeline(
    masker: Masker, pipeline: Pipeline
) -> tuple[dict[str, Any], list[str]]:
    """Return the declaration with masks in its parameters and defaults, and the places of those."""
    declaration = pipeline.model_dump(mode="json", exclude_defaults=True)
    places = []
    for phase in declaration["phases"]:
        phase["parameters"], masked = _mask_parts(masker, phase.get("parameters", {}))
        places += [f"phase {phase['name']}: parameters.{name}" for name in masked]
    for name, declared in declaration.get("inputs", {}).items():
        if "default" not in declared:
            continue
        found, masked = _mask_parts(masker, {name: declared["default"]})
        is_secret = declared.get("secret", False)
        # The default of a secret input is asked for again as the input itself.
        declared["default"] = None if is_secret else found[name]
        places += [f"inputs.{name}.default" for _ in masked if not is_secret]
    return declaration, places


def _timeline(
    record: RunRecord,
    phases: Mapping[str, PhaseState],
    earlier: Sequence[Record],
    masker: Masker,
) -> list[dict[str, str]]:
    """Return what happened when, in order: of phases that ran again only the last time, of the runs before each end."""
    seen = [(record.created_ms, "", "the run was accepted")]
    seen += [
        (one.at_ms, "", f"run {one.data['run']} ended: {masker.mask_text(one.text)}")
        for one in earlier
    ]
    for name, state in phases.items():
        if state.since_ms is not None:
            seen.append((state.since_ms, name, f"began its run {state.run}"))
        if state.late_ms is not None:
            seen.append((state.late_ms, name, record.lateness(name)))
        if state.ended_ms is not None:
            why = state.error or state.why
            seen.append(
                (
                    state.ended_ms,
                    name,
                    f"{state.status}{f': {masker.mask_text(why)}' if why else ''}",
                )
            )
    return [
        {
            "at": datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(),
            "phase": phase,
            "what": what,
        }
        for at_ms, phase, what in sorted(seen)
    ]
