"""Fixtures of the browser tests: Debian's Chromium, and pages that note whatever is wrong with them.

The tests are left out unless asked for by `-m browser`; `tests/browser/install.sh` installs what they need.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.browser.chromium import launched

#: Milliseconds in which the page shows what has happened; it takes far less unless the machine does other things.
PATIENCE_MS = 60_000


@dataclass
class Window:
    """A page at a world's address; `complaints` is what the console said, `addresses` what was asked for."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    addresses: list[str] = field(default_factory=list)

    def open(self, url: str) -> Page:
        """Go there, and return the page once it shows agents."""
        self.page.goto(url)
        self.page.locator(".token").first.wait_for()
        return self.page

    def origins(self) -> set[str]:
        """Return from where anything was asked for."""
        return {
            f"{split.scheme}://{split.netloc}"
            for split in map(urlsplit, self.addresses)
        }


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Run the browser for the tests of a module."""
    # What is expected has five seconds by default, whatever the pages are given.
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        started = launched(playwright)
        yield started
        started.close()


@pytest.fixture
def context(
    browser: Browser, request: pytest.FixtureRequest
) -> Iterator[BrowserContext]:
    """Open a browser window; a test says by a parameter what is special about it."""
    options = {"viewport": {"width": 1280, "height": 800}} | getattr(
        request, "param", {}
    )
    opened = browser.new_context(**options)
    opened.set_default_timeout(PATIENCE_MS)
    yield opened
    opened.close()


@pytest.fixture
def window(context: BrowserContext) -> Window:
    """Open an empty page that notes complaints and requests from its beginning on."""
    window = Window(context.new_page())
    window.page.on(
        "console", lambda said: window.complaints.append(f"{said.type}: {said.text}")
    )
    window.page.on(
        "pageerror", lambda error: window.complaints.append(f"uncaught: {error}")
    )
    window.page.on("request", lambda request: window.addresses.append(request.url))
    return window
