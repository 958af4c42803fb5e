"""Where each page of the repository stands on the site, and what its links become there.

A link to a page of the site leads to it, one to another file of the repository becomes
its text: the site holds no code.
"""

import posixpath
import re
from collections.abc import Callable
from pathlib import PurePosixPath

#: The folder of pages, whose paths are those of the site.
DOCS = "docs"
#: Pages beside it, and the index of it, by where they stand on the site.
PLACED = {
    "README.md": "index.md",
    "docs/README.md": "pages.md",
    "CHANGELOG.md": "CHANGELOG.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "SECURITY.md": "SECURITY.md",
    "benchmarks/README.md": "benchmarks.md",
    "contracts/quantities/README.md": "quantities.md",
    "examples/README.md": "examples.md",
}

#: A block of code, a link, and code in a line, whichever comes first: a link may have code in its text.
_FENCE = re.compile(r"^(```|~~~).*?^\1$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(
    r"`[^`\n]+`|(?<!!)\[(?P<text>(?:[^\[\]]|\[[^\]]*\])+)\]\((?P<target>[^)\s]+)\)"
)
_IMAGE = re.compile(r"(!\[[^\]]*\]\()([^)\s]+)(\))")
_SOURCE = re.compile(r'(\b(?:src|srcset|href)=")([^"]+)(")')


def make_anchor(heading: str, separator: str) -> str:
    """Return the anchor of *heading* as GitHub makes it; *separator* is that of MkDocs, a dash."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", separator)


def place_of(path: str) -> str | None:
    """Return where the file *path* of the repository stands on the site; None where it does not."""
    if path in PLACED:
        return PLACED[path]
    return path.removeprefix(f"{DOCS}/") if path.startswith(f"{DOCS}/") else None


def place_links(markdown: str, origin: str) -> str:
    """Return *markdown*, the page *origin* of the repository, with links as the site has them; code stays as it is."""

    def placed(target: str) -> str | None:
        return _place_target(target, origin)

    def link(found: re.Match[str]) -> str:
        if found["target"] is None:
            return found[0]
        target = placed(found["target"])
        return found["text"] if target is None else f"[{found['text']}]({target})"

    def source(found: re.Match[str]) -> str:
        return f"{found[1]}{placed(found[2]) or found[2]}{found[3]}"

    def changed(text: str) -> str:
        text = _LINK.sub(link, text)
        text = _IMAGE.sub(source, text)
        return _SOURCE.sub(source, text)

    return _outside_fences(markdown, changed)


def _place_target(target: str, origin: str) -> str | None:
    if re.match(r"[a-z]+:|//|#", target):
        return target
    path, mark, anchor = target.partition("#")
    folder = posixpath.dirname(origin)
    place = place_of(posixpath.normpath(posixpath.join(folder, path)))
    if place is None:
        return None
    here = PurePosixPath(place_of(origin) or origin).parent
    return posixpath.relpath(place, str(here)) + mark + anchor


def _outside_fences(text: str, change: Callable[[str], str]) -> str:
    """Return *text*, changed everywhere but in blocks of code."""
    parts = []
    end = 0
    for found in _FENCE.finditer(text):
        parts += [change(text[end : found.start()]), found[0]]
        end = found.end()
    return "".join([*parts, change(text[end:])])
