"""The program of a child process that compiles the JSON schemas of others: it answers each line of JSON with one.

The library compiles a schema, and checks a value, in one call that nothing interrupts; both may take any time and
memory. Therefore the system limits both for this process, which serves one caller at a time.
"""

import json
import os
import resource
import signal
import sys
from collections.abc import Mapping
from typing import Any

import jsonschema_rs

#: Bytes of memory that it may have; it has 32 MB when it begins.
_MOST_MEMORY = 192 * 1024**2
#: Bytes that one pattern may compile to, and steps that it may go back.
_MOST_COMPILED = 1024**2
_MOST_STEPS = 100_000
#: How far its parent, which serves, goes before it.
_NICE = 5
#: Characters of a place and of a fault, which quotes what it is about.
_LONGEST = 300


def answer(job: Mapping[str, Any]) -> dict[str, str]:
    """Return the `fault` of the `value` of *job*, and the `place` in it; neither when it fits, or there is no value.

    Raises:
        ValueError: `schema` cannot be checked.
    """
    patterns = jsonschema_rs.FancyRegexOptions(
        backtrack_limit=_MOST_STEPS,
        size_limit=_MOST_COMPILED,
        dfa_size_limit=_MOST_COMPILED,
    )
    # Which draft it names is not asked: that could be looked up on the network.
    schema = {name: part for name, part in job["schema"].items() if name != "$schema"}
    validator = jsonschema_rs.Draft202012Validator(
        schema, offline=True, pattern_options=patterns
    )
    if "value" not in job:
        return {}
    fault = next(validator.iter_errors(job["value"]), None)
    if fault is None:
        return {}
    place = ".".join(map(str, fault.instance_path))
    return {"place": place[:_LONGEST], "fault": fault.message[:_LONGEST]}


def describe_refusal(error: ValueError) -> dict[str, str]:
    """Return the answer about a schema that cannot be checked."""
    text = str(error).partition("\n")[0]
    return {
        "refused": text if len(text) <= _LONGEST else f"{text[:200]} ... {text[-80:]}"
    }


def main() -> None:
    """Answer jobs from stdin until it ends; a job over its `seconds` of processor time ends it."""
    os.nice(_NICE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # macOS maps more than this before the first line runs, and refuses; the time stays bounded.
    if sys.platform != "darwin":
        resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
    for line in sys.stdin.buffer:
        job = json.loads(line)
        signal.setitimer(signal.ITIMER_PROF, job["seconds"])
        try:
            answered = answer(job)
        except ValueError as error:
            answered = describe_refusal(error)
        signal.setitimer(signal.ITIMER_PROF, 0)
        print(json.dumps(answered), flush=True)  # noqa: T201  # its answer


if __name__ == "__main__":
    main()
