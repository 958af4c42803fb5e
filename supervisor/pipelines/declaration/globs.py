"""Patterns of file paths as `reads_files` has them: `src/**/*.py`, relative to the pipeline's root.

Within a step they are those of `fnmatch`, upper and lower case apart; `**` as a whole step stands for any number of
folders, also none. Patterns come from clients: neither `fnmatch` nor the walk over the steps goes back behind the last
`*`, so that matching takes the length of the path times that of the pattern at most.
"""

import re
from fnmatch import translate
from functools import lru_cache

#: Characters of one pattern, steps between its `/`, and patterns of one pipeline: far above what anybody writes.
LONGEST = 1_000
MOST_STEPS = 50
MOST_GLOBS = 1_000


def matches(glob: str, path: str) -> bool:
    """Return whether *path*, relative and with `/` between its steps, fits *glob*."""
    if path.startswith("/"):
        return False
    steps = _compile(glob)
    names = path.split("/")
    step = name = 0
    # The step behind the latest `**`, and the name up to which that one reaches.
    resume: tuple[int, int] | None = None
    while name < len(names):
        if step < len(steps) and steps[step] is None:
            step += 1
            resume = step, name
        elif (
            step < len(steps)
            and (pattern := steps[step])
            and pattern.match(names[name])
        ):
            step = step + 1
            name = name + 1
        elif resume is not None:
            step = resume[0]
            name = resume[1] + 1
            resume = step, name
        else:
            return False
    return all(one is None for one in steps[step:])


@lru_cache(500)
def _compile(glob: str) -> tuple[re.Pattern[str] | None, ...]:
    """Return the pattern of each step of *glob*, None for `**`."""
    # Everything below a folder is something below it.
    steps = f"{glob}/*".split("/") if glob.split("/")[-1] == "**" else glob.split("/")
    return tuple(
        None if step == "**" else re.compile(translate(step)) for step in steps
    )


def reason_against(glob: str) -> str | None:
    """Return why *glob* can name no file below a root, and the cure; None when it can."""
    if len(glob) > LONGEST:
        return f"has {len(glob):,} characters, at most {LONGEST:,} are taken; write a shorter pattern"
    steps = glob.split("/")
    if not glob.strip():
        return "is empty; write a path or a pattern such as '**/*.py'"
    if "\\" in glob:
        return f"must have '/' between its steps; write {glob.replace(chr(92), '/')[:100]!r}"
    if "\0" in glob:
        return "holds a NUL, which no path has; leave it out"
    if glob.startswith(("/", "~")) or (
        glob[1:2] == ":" and glob[0].isascii() and glob[0].isalpha()
    ):
        return "must be relative to the pipeline's root; leave out what leads there"
    if ".." in steps:
        return "must not lead out of the pipeline's root; set `root` to a folder above all of them"
    if glob.endswith("/"):
        return f"names a folder; write {glob[-100:] + '**'!r} for everything in it"
    if "." in steps or "" in steps:
        return f"has an empty step; write {'/'.join(step for step in steps if step not in ('', '.'))[:100]!r}"
    if len(steps) > MOST_STEPS:
        return f"has {len(steps)} steps, at most {MOST_STEPS} are taken; set `root` to a folder nearer to the files"
    return None
