"""The browser of this machine, never one that playwright brings."""

import os
import shutil

from playwright.async_api import Browser as AsyncBrowser
from playwright.async_api import Playwright as AsyncPlaywright
from playwright.sync_api import Browser, Playwright

#: Milliseconds for its start; it takes one second, and many beside others that start.
_STARTS_WITHIN_MS = 120_000


def launched(playwright: Playwright) -> Browser:
    """Start Debian's Chromium without a window."""
    return playwright.chromium.launch(
        executable_path=_find(), args=_choose_arguments(), timeout=_STARTS_WITHIN_MS
    )


async def launch_beside(playwright: AsyncPlaywright) -> AsyncBrowser:
    """Start it for a program that does other things meanwhile."""
    return await playwright.chromium.launch(
        executable_path=_find(), args=_choose_arguments(), timeout=_STARTS_WITHIN_MS
    )


def _find() -> str:
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    assert path is not None, "there is no chromium; run tests/browser/install.sh"
    return path


def _choose_arguments() -> list[str]:
    # Chromium refuses its sandbox to root, who is alone on a build machine.
    return ["--no-sandbox"] if os.geteuid() == 0 else []
