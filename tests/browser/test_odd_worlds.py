"""The page when something is wrong: a server that goes and comes back, agents who wish it ill, tiny worlds."""

import json
import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Window
from tests.browser.scripted import HOSTILE, HOSTILE_NAMES
from tests.browser.worlds import scripted

pytestmark = pytest.mark.browser


def test_a_page_whose_world_has_gone_says_so_and_finds_it_again(window: Window) -> None:
    """It goes on by itself where the next world of that address is, with what was said in the old one forgotten."""
    with scripted("few", "--interval-ms", "100") as world:
        page = window.open(world.url)
        expect(page.locator("#log li").first).to_be_visible()
        page.wait_for_function(
            "() => Number(document.getElementById('step').textContent) > 10"
        )
        # By its key: whoever clicks where it was may find that somebody else has come there.
        page.locator(".token").nth(1).press("Enter")
        assert window.complaints == []

        world.kill()
        expect(page.locator("#status")).to_have_text("Connection lost, trying again")
        expect(page.locator("#run")).to_have_attribute("aria-disabled", "true")
        page.locator("#log li").evaluate_all(
            "(all) => all.forEach((one) => one.classList.add('old'))"
        )
        world.again()
        expect(page.locator("#status")).to_have_text("Running")
        expect(page.locator("#log li.old")).to_have_count(0)
        expect(page.locator("#chosen-title")).to_contain_text("Bob")
        expect(page.locator("#prompt")).to_contain_text("I am Bob at")
    # That nobody answers is told by the browser itself; the page has nothing to complain of.
    assert [
        one for one in window.complaints if "Failed to load resource" not in one
    ] == []


def test_hostile_names_and_texts_stay_text(window: Window) -> None:
    """Markup, scripts and paths are shown letter by letter, and nothing of them runs, loads or lies elsewhere."""
    with scripted("hostile", "--interval-ms", "300") as world:
        page = window.open(world.url)
        page.locator(".bubble.shown", has_text="<img src=").first.wait_for()
        expect(page.locator("#log li", has_text=HOSTILE).first).to_be_visible()
        for row, name in enumerate(HOSTILE_NAMES):
            page.locator("#list li").nth(row).click()
            expect(page.locator("#chosen-title")).to_contain_text(name)
            expect(page.locator("#prompt")).to_contain_text(f"I am {name} at")
            page.locator(".token").nth(row).press("Enter")

        made = page.evaluate(
            "[...document.querySelectorAll('img, script, a, iframe')].map((one) => one.outerHTML)"
        )
        assert [one for one in made if "harmed" in one or "alert" in one] == []
        assert page.evaluate("window.harmed") is None
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert window.origins() == {world.url.rstrip("/")}
    assert window.complaints == []


def test_the_page_itself_cannot_make_html_of_text(window: Window) -> None:
    """Should somebody write that into it one day, the browser refuses; nor would it run or load what is foreign."""
    with scripted("alone") as world:
        page = window.open(world.url)
        refused = page.evaluate(
            """() => {
                try { document.body.innerHTML = "<b>x</b>"; return ""; } catch (error) { return error.name; }
            }"""
        )
        assert refused == "TypeError"
        with page.expect_console_message(
            lambda said: "Content Security Policy" in said.text
        ) as said:
            page.evaluate("""() => {
                const image = new Image();
                image.src = "https://example.org/pixel.png";
                document.body.append(image);
            }""")
        assert "img-src" in said.value.text


def test_the_smallest_world_is_shown_to_its_end(window: Window) -> None:
    """One agent in a world of four places takes its coins, and then there is nothing left to press."""
    with scripted("alone", "--interval-ms", "50") as world:
        page = window.open(world.url)
        expect(page.locator("#status")).to_have_text("All coins are taken")
        row = page.locator("#list li")
        expect(row).to_have_attribute(
            "aria-label", re.compile("Robinson, 2 coins, took the coin at ")
        )
        for name in ("Play", "One step"):
            expect(page.get_by_role("button", name=name)).to_be_disabled()
    assert window.complaints == []


def test_who_does_not_answer_in_time_is_marked(window: Window) -> None:
    """In the head of the page, in the list, and with the reason when it is chosen."""
    with scripted("waiting", "--interval-ms", "400") as world:
        page = window.open(world.url)
        expect(page.locator("#status")).to_have_text("Running, 1 not heard of")
        row = page.locator("#list li", has_text="Godot")
        expect(row).to_have_attribute(
            "aria-label", "Godot, 0 coins, was not heard of in time"
        )
        row.click()
        expect(page.locator("#why")).to_have_text(
            "Nothing was decided: it did not report in time"
        )
    assert window.complaints == []


def test_another_page_cannot_order_this_world_about(window: Window) -> None:
    """A page of the same machine at another port neither reads the world nor moves it."""
    with scripted("few", "--paused") as ours, scripted("alone", "--paused") as theirs:
        page = window.open(theirs.url)
        outcome = page.evaluate(
            """async (url) => {
                const tries = [
                    () => fetch(url + "state"),
                    () => fetch(url + "control", {method: "POST", mode: "no-cors", body: '{"action": "play"}'}),
                ];
                return Promise.all(tries.map((one) => one().then(() => "went", () => "refused")));
            }""",
            ours.url,
        )
        state = window.page.request.get(ours.url + "state")

        assert outcome == ["refused", "refused"]
        assert json.loads(state.text())["running"] is False
