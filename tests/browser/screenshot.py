"""Take the picture in docs/guide/run-a-world.md: `python -m tests.browser.screenshot ADDRESS FILE` of a running one."""

import sys

from playwright.sync_api import sync_playwright

from tests.browser.chromium import launched

#: Pixels of the picture.
WIDTH = 1280
HEIGHT = 800


def shoot(url: str, file: str) -> None:
    """Choose the first agent that speaks, and take the picture when there are four bubbles."""
    with sync_playwright() as playwright:
        browser = launched(playwright)
        page = browser.new_page(
            viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light"
        )
        page.goto(url)
        page.locator(".token.speaking").first.click(force=True)
        page.locator(".bubble.shown").nth(3).wait_for()
        page.get_by_role("button", name="Pause").click()
        page.locator("#status[data-state=paused]").wait_for()
        page.locator("#prompt pre").first.wait_for()
        page.mouse.move(WIDTH - 1, HEIGHT - 1)
        # Agents on their way arrive.
        page.wait_for_function(
            "() => document.getAnimations().every((one) => one.playState !== 'running')"
        )
        page.screenshot(path=file)
        browser.close()


if __name__ == "__main__":
    shoot(*sys.argv[1:3])
