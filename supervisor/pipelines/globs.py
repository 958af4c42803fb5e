"""Patterns of file paths as `reads_files` has them: `src/**/*.py`, relative to the pipeline's root.

`*` stands for any characters but `/`, `?` for one, `[abc]` for one of these, `[!abc]` for any other, and `**` as a
whole step for any number of folders, also none. Upper and lower case are told apart, and a leading dot is no exception.
"""

import re
from functools import lru_cache

#: Patterns that are kept translated: those of a few large pipelines.
_KEPT = 4096


def matches(glob: str, path: str) -> bool:
    """Return whether *path*, relative and with `/` between its steps, fits *glob*."""
    return _pattern(glob).fullmatch(path) is not None


def unusable(glob: str) -> str | None:
    """Return why *glob* can name no file below a root, and the cure; None when it can."""
    steps = glob.split("/")
    if not glob.strip():
        return "is empty; write a path or a pattern such as '**/*.py'"
    if "\\" in glob:
        return f"must have '/' between its steps; write {glob.replace(chr(92), '/')!r}"
    if glob.startswith(("/", "~")) or re.match(r"[A-Za-z]:", glob):
        return "must be relative to the pipeline's root; leave out what leads there"
    if ".." in steps:
        return "must not lead out of the pipeline's root; set `root` to a folder above all of them"
    if glob.endswith("/"):
        return f"names a folder; write {glob + '**'!r} for everything in it"
    if "." in steps or "" in steps:
        return f"has an empty step; write {'/'.join(step for step in steps if step not in ('', '.'))!r}"
    return None


@lru_cache(_KEPT)
def _pattern(glob: str) -> re.Pattern[str]:
    # Twice any number of folders is any number of folders, and takes a time that grows with every one.
    while "**/**" in glob:
        glob = glob.replace("**/**", "**")
    steps = glob.split("/")
    text = ""
    for n, step in enumerate(steps):
        last = n == len(steps) - 1
        if step == "**":
            text += ".*" if last else "(?:[^/]+/)*"
        else:
            text += _step(step) + ("" if last else "/")
    return re.compile(text, re.DOTALL)


def _step(step: str) -> str:
    """Return the pattern of one step between two `/`."""
    text = ""
    for part in re.findall(r"\*+|\?|\[!?\]?[^\]]*\]|.", step, re.DOTALL):
        if part[0] == "*":
            text += "[^/]*"
        elif part == "?":
            text += "[^/]"
        elif part[0] == "[" and len(part) > 1:
            text += _choice(part[1:-1])
        else:
            text += re.escape(part)
    return text


def _choice(inside: str) -> str:
    """Return the pattern of one character out of *inside*, or none of it after `!`; only `-` keeps its meaning."""
    sign, inside = ("^", inside[1:]) if inside.startswith("!") else ("", inside)
    body = re.sub(r"([\\\[\]^&~|])", r"\\\1", inside)
    try:
        re.compile(f"[{body}]")
    except re.error:
        # A range the wrong way round, such as [z-a], means its characters.
        body = body.replace("-", r"\-")
    return f"(?!/)[{sign}{body}]"
