"""The end of a run as it is printed, and `tasklore pipelines status`; nothing here needs pydantic."""

import json
import shlex
from collections.abc import Mapping
from typing import Any

from tasklore.commands.exits import FAILED, OK
from tasklore.commands.operations.local import LocalApi
from tasklore.commands.pictures.run import (
    LONGEST_ERROR,
    code_of,
    draw,
    error_of,
    hints_of,
    name_absent,
    summarise,
)
from tasklore.commands.pipelines.follow import RunFollower, hint_when_stopped
from tasklore.commands.render.screen import print_error, print_json, printable, say
from tasklore.commands.render.words import one_line


def print_status(
    session_id: str, *, is_followed: bool, as_json: bool, api: str | None = None
) -> int:
    """Print a run, a line for each phase, and return the exit code; *is_followed* waits for its end and prints that.

    Raises:
        ApiRefused, Unreachable: as `LocalApi.ask`.
    """
    asked = LocalApi("pipelines", api)
    view = asked.ask("status", session_id=session_id)
    if is_followed:
        with hint_when_stopped(session_id):
            for line in name_absent(view["without_worker"]):
                say(line)
            follower = RunFollower(asked, session_id)
            return print_end(follower.show(is_silent=as_json), as_json=as_json)
    if as_json:
        print_json(view)
    else:
        print(draw(view))
        for hint in hints_of(view):
            say(hint)
    return code_of(view)


def print_started(session_id: str, *, as_json: bool) -> int:
    """Print the id of a run that is not waited for, and return the exit code."""
    if as_json:
        print_json({"session_id": session_id})
    else:
        print(session_id, flush=True)
        say(f"it runs; `tasklore pipelines status {session_id} --follow` shows it")
    return OK


def print_end(view: Mapping[str, Any], *, as_json: bool) -> int:
    """Print the end of a run, and return the exit code.

    The result goes to stdout, everything else to stderr; *as_json* prints the whole outcome instead.
    """
    session_id = view["session_id"]
    state = view["state"]
    outcome = view.get("outcome") or {
        "session_id": session_id,
        "state": state,
        "result": None,
        "phases": [],
    }
    whole = {**view, "outcome": outcome}
    if as_json:
        print_json(outcome)
        return OK if state == "completed" else FAILED
    if state != "completed":
        say(summarise(whole))
        _say_failure(whole)
        return FAILED
    result = outcome.get("result")
    text = (
        result
        if isinstance(result, str)
        else json.dumps(result, indent=2, ensure_ascii=False)
    )
    print(printable(text), flush=True)
    for key in outcome.get("missing") or ():
        print_error(
            f"{printable(key)} is missing in it: it expired before the run ended"
        )
    say(summarise(whole))
    if view.get("phases"):
        say(f"the session is kept: `tasklore sessions show {session_id}`")
    return OK


def _say_failure(view: Mapping[str, Any]) -> None:
    session_id = view["session_id"]
    outcome = view["outcome"]
    failed = [one for one in outcome.get("phases") or () if one["status"] == "failed"]
    for one in failed:
        print_error(f"{one['phase']}: {one_line(error_of(one), LONGEST_ERROR)}")
    if not failed and outcome.get("error"):
        print_error(printable(str(outcome["error"])))
    evidence = outcome.get("evidence")
    if evidence:
        say(f"evidence is in {printable(str(evidence))}, where the supervisor runs")
    if view.get("phases"):
        say(f"resume with: tasklore pipelines resume {session_id}")
        say(f"correct the file? `tasklore pipelines resume {session_id} --file FILE`")
    elif evidence:
        say(
            "its session is gone; resume with: tasklore pipelines restore "
            f"{shlex.quote(str(evidence))}"
        )
