"""Words that the memory worker looks for itself, where no pattern reads a fact; they are data, in `cues.toml`."""

import tomllib
from functools import cache
from pathlib import Path

_CUES = Path(__file__).with_name("cues.toml")


@cache
def cue_words(name: str) -> frozenset[str]:
    """Return the words or phrases under *name* in `cues.toml`."""
    return frozenset(str(word) for word in tomllib.loads(_CUES.read_text("utf-8"))[name])
