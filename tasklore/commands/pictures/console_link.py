"""The link that signs a browser in to the console; at a terminal of a desktop the browser is opened as well."""

import os
import sys
import webbrowser
from typing import Any

from tasklore.commands.render.screen import printable

#: What says that somebody sits before a screen, beside macOS and Windows.
_SCREENS = ("DISPLAY", "WAYLAND_DISPLAY")


def draw(view: dict[str, Any]) -> str:
    """Return the link of *view* with its use and life, and open it where there is a browser."""
    url = printable(str(view.get("url")))
    opened = _has_screen() and _open(url)
    said = "It was opened in the browser" if opened else "Open it in a browser"
    return f"{said}; it signs in once, within five minutes.\n{url}"


def _has_screen() -> bool:
    if not sys.stdout.isatty():
        return False
    is_desktop = sys.platform in ("darwin", "win32")
    return is_desktop or any(os.environ.get(name) for name in _SCREENS)


def _open(url: str) -> bool:
    """Return whether a browser took *url*: the address of an API, never a file or a program."""
    if not url.startswith(("http://", "https://")):
        return False
    try:
        return webbrowser.open(url)
    except (OSError, webbrowser.Error):
        return False
