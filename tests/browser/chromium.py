"""The browser of this machine, never one that playwright brings."""

import os
import shutil

from playwright.sync_api import Browser, Playwright

#: Milliseconds for its start; it takes one second, and many beside others that start.
_STARTS_WITHIN_MS = 120_000


def launched(playwright: Playwright) -> Browser:
    """Start Debian's Chromium without a window."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    assert path is not None, "there is no chromium; run tests/browser/install.sh"
    # Chromium refuses its sandbox to root, who is alone on a build machine.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    return playwright.chromium.launch(
        executable_path=path, args=arguments, timeout=_STARTS_WITHIN_MS
    )
