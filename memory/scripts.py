"""Lua functions inside Redis: each store keeps its own in `.lua` files, with their keys and arguments at the head.

A line `-- include NAME` stands for the text of `NAME.lua`, by a path from the folder of the file that includes it.
"""

import hashlib
import re
from pathlib import Path
from typing import Final, Literal

WhenFull = Literal["read", "finish", "refuse"]

#: What the server does with a script while its memory is used up, by the word that each declares: it may run, as it
#: writes nothing; it may run, as it frees memory or ends what has begun, and adds no key; it is refused as a whole.
_FLAGS: Final = {"read": "'no-writes'", "finish": "'allow-oom'", "refuse": ""}

#: The library of each function, by the name of both.
LIBRARIES: Final[dict[str, str]] = {}


def load(folder: Path, name: str, when_full: WhenFull) -> str:
    """Register the script `name.lua` of *folder* and return the name of its function."""
    return register(read(folder / f"{name}.lua"), when_full)


def read(path: Path) -> str:
    """Return the Lua of *path* with the files that it includes, without lines of comments."""
    lines = []
    for line in path.read_text("utf-8").splitlines():
        if included := re.fullmatch(r"-- include (\S+)", line):
            lines.append(read(path.parent / f"{included[1]}.lua"))
        elif not line.lstrip().startswith("--"):
            lines.append(line)
    return "\n".join(lines)


def register(source: str, when_full: WhenFull) -> str:
    """Return the name of the function that runs *source*; a digest of it, so that versions stand side by side."""
    flags = _FLAGS[when_full]
    name = (
        "tl_"
        + hashlib.sha1(f"{flags}{source}".encode(), usedforsecurity=False).hexdigest()[
            :20
        ]
    )
    callback = f"function(KEYS, ARGV)\n{source}\nend"
    registered = f"redis.register_function{{function_name='{name}', flags={{{flags}}}, callback={callback}}}"
    LIBRARIES[name] = f"#!lua name={name}\n{registered}\n"
    return name
