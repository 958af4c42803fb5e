"""`tasklore pipelines evidence|restore`: a run as one file, and a run made anew from such a file."""

import json
from pathlib import Path
from typing import Any

from tasklore.commands.exits import OK
from tasklore.commands.operations.local import LocalApi
from tasklore.commands.pipelines.check import check_alone, print_problems
from tasklore.commands.pipelines.run import ResumeOptions, go_on
from tasklore.commands.pipelines.sources import read_inputs, read_source
from tasklore.commands.render.screen import printable, say
from tasklore.commands.render.words import count_of
from tasklore.contracts.errors import InvalidInput, InvalidPipeline
from tasklore.supervisor.pipelines.declaration.declarations import pipeline_from
from tasklore.supervisor.pipelines.evidence import read_bundle, write_bundle

#: Bytes of an entry that is restored: the API takes no larger body, and the phase makes it anew.
_LARGEST_ENTRY = 900_000


def restore_run(file: Path, options: ResumeOptions) -> int:
    """Make the run anew whose evidence *file* is, resume it, and return the exit code.

    Raises:
        InvalidInput: the file is no evidence, or an input cannot be used.
        ApiRefused, Unreachable: as `LocalApi.ask`.
    """
    bundle = _read_evidence(file)
    session_id = str(bundle["session_id"])
    try:
        pipeline = pipeline_from(bundle["pipeline"])
        if options.file is not None:
            # Nothing is made anew by a command that then cannot go on.
            check_alone(read_source(options.file), None)
    except InvalidPipeline as error:
        return print_problems(error.problems, as_json=options.as_json)
    inputs = read_inputs(pipeline, options.inputs)
    masked = set((bundle.get("masked") or {}).get("entries") or ())
    session = dict(bundle.get("session") or {})
    entries = [
        {"key": key, "entry": entry}
        for key, entry in (session.pop("cache", None) or {}).items()
        if key not in masked
    ]
    sent = [one for one in entries if len(json.dumps(one)) <= _LARGEST_ENTRY]
    head = {"evidence": {**bundle, "session": session}, "inputs": inputs}
    views = LocalApi("pipelines", options.api).send_lines(
        "restore", [head, *sent], session_id=session_id
    )
    restored = sum(view["entries"] for view in views)
    say(f"session {session_id} is restored with {count_of(restored, 'entry')}")
    if masked:
        say(
            "values with secrets were masked, and are recomputed: "
            f"{printable(', '.join(sorted(masked)))}"
        )
    if len(sent) < len(entries):
        say(
            f"{count_of(len(entries) - len(sent), 'entry')} too large to be sent; it is "
            "recomputed"
        )
    return go_on("resume", session_id, options, is_restored=True)


def write_evidence(
    session_id: str, file: Path | None, *, is_forced: bool, api: str | None = None
) -> int:
    """Write a run to *file*, None to stdout, and return the exit code.

    Raises:
        InvalidInput: the file exists and *is_forced* is False, or it cannot be written.
        ApiRefused, Unreachable: as `LocalApi.ask`.
    """
    if file is not None and file.exists() and not is_forced:
        raise InvalidInput(f"{str(file)!r} exists already; --force overwrites it")
    bundle = LocalApi("pipelines", api).ask("evidence", session_id=session_id)
    if file is None:
        print(json.dumps(bundle, indent=1, ensure_ascii=False), flush=True)
        return OK
    try:
        write_bundle(file, bundle)
    except OSError as error:
        raise InvalidInput(
            f"{str(file)!r} cannot be written ({error.strerror or error}); name another file"
        ) from error
    say(
        f"{count_of(len(bundle['session']['cache']), 'entry')} in {file}, secrets masked"
    )
    return OK


def _read_evidence(file: Path) -> dict[str, Any]:
    bundle = read_bundle(file)
    if not isinstance(bundle.get("session_id"), str) or not isinstance(
        bundle.get("pipeline"), dict
    ):
        raise InvalidInput(
            f"the evidence in {str(file)!r} is damaged; use the file unchanged"
        )
    return bundle
