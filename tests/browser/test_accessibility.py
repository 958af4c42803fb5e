"""The page for everybody: by name and role, by contrast, by keys, on a narrow screen, in the dark, without motion."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Window
from tests.browser.worlds import Shown, scripted

pytestmark = pytest.mark.browser

CHECKS = Path(__file__).with_name("checks.js").read_text("utf-8")
SCHEMES = [{"color_scheme": "light"}, {"color_scheme": "dark"}]
SMALL = {
    "viewport": {"width": 320, "height": 640},
    "has_touch": True,
    "is_mobile": True,
}


@pytest.fixture(scope="module")
def crowd() -> Iterator[Shown]:
    """Run a world of fifty agents and a hundred and twenty coins, a step each second and a half."""
    with scripted("crowd", "--interval-ms", "1500") as shown:
        yield shown


def _with_everything(window: Window, world: Shown) -> Page:
    """Open the page, and have somebody speak, and an agent chosen that is marked as one with the most coins."""
    page = window.open(world.url)
    page.locator(".bubble.shown").first.wait_for()
    page.locator("#list li", has=page.locator(".most")).first.click()
    expect(page.locator("#prompt pre").first).to_be_visible()
    return page


@pytest.mark.parametrize(
    "context", SCHEMES, indirect=True, ids=lambda options: options["color_scheme"]
)
def test_everything_can_be_told_from_its_ground_and_has_its_place(
    crowd: Shown, window: Window
) -> None:
    """Text has a contrast of 4.5, agents and coins one of 3, and nothing else that a machine can find is wrong."""
    page = _with_everything(window, crowd)

    assert page.evaluate(CHECKS) == []


def test_whatever_can_be_reached_says_what_it_is(crowd: Shown, window: Window) -> None:
    """As the browser tells it to assistive programs: a role, a name, and no two agents alike."""
    page = _with_everything(window, crowd)
    tree: dict[str, Any] = page.context.new_cdp_session(page).send(
        "Accessibility.getFullAXTree"
    )
    reached = [
        node
        for node in tree["nodes"]
        if not node["ignored"] and _holds(node, "focusable")
    ]
    names = [
        (node["role"]["value"], node["name"]["value"])
        for node in reached
        if node["role"]["value"] != "RootWebArea"
    ]

    assert [role for role, name in names if not name.strip()] == []
    kinds = {"link", "button", "combobox", "option", "list", "region", "generic"}
    assert {role for role, _ in names} - {"MenuListOption"} <= kinds, names
    assert len(set(names)) == len(names)
    assert len([role for role, _ in names if role == "option"]) >= 50
    roles = {node["role"]["value"] for node in tree["nodes"] if not node["ignored"]}
    assert {"banner", "main", "status", "listbox", "region", "heading"} <= roles


def _holds(node: dict[str, Any], name: str) -> bool:
    return any(
        one["name"] == name and one["value"]["value"]
        for one in node.get("properties", [])
    )


def test_every_stop_of_the_tab_key_is_seen(crowd: Shown, window: Window) -> None:
    """Few stops, each with an outline, from the first to the last and back into the browser."""
    page = _with_everything(window, crowd)
    # The next stop is the first one after what was clicked.
    page.locator("h1").click()
    stops = []
    for _ in range(20):
        page.keyboard.press("Tab")
        stop = page.evaluate(
            """() => {
                const here = document.activeElement;
                const { outlineStyle: style, outlineWidth: width } = getComputedStyle(here);
                return [here === document.body ? "" : here.id || here.className || here.role, style, width];
            }"""
        )
        if not stop[0]:
            break
        stops.append(stop)

    assert {(style, width) for _, style, width in stops} == {("solid", "3px")}, stops
    assert len(stops) <= 10
    assert {"run", "once", "pace", "log", "prompt", "close"} <= {
        name for name, _, _ in stops
    }


def test_arrow_keys_reach_everybody_in_the_crowd(window: Window) -> None:
    """From the first agent, in a world that stands still: each key leads to the next one in its direction."""
    with scripted("crowd", "--paused") as world:
        page = window.open(world.url)
        tokens = page.locator(".token")
        waiting = [0]
        reached = {0}
        index = (
            "[...document.querySelectorAll('.token')].indexOf(document.activeElement)"
        )
        while waiting:
            here = waiting.pop()
            for key in ("ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"):
                tokens.nth(here).focus()
                page.keyboard.press(key)
                there = page.evaluate(index)
                if there not in reached:
                    reached.add(there)
                    waiting.append(there)

    assert len(reached) == 50


@pytest.mark.parametrize("context", [SMALL], indirect=True, ids=["phone"])
def test_a_narrow_screen_shows_all_below_one_another(
    crowd: Shown, window: Window
) -> None:
    page = window.open(crowd.url)
    page.locator("#list li").nth(2).tap()

    expect(page.locator("#chosen-title")).to_contain_text("Agent 3")
    assert page.evaluate("document.documentElement.scrollWidth") == 320
    assert page.evaluate(CHECKS) == []


@pytest.mark.parametrize(
    "context", [{"reduced_motion": "reduce"}], indirect=True, ids=["still"]
)
def test_who_wants_no_motion_gets_none(crowd: Shown, window: Window) -> None:
    page = _with_everything(window, crowd)

    assert (
        page.locator(".token").first.evaluate(
            "(token) => getComputedStyle(token).transitionDuration"
        )
        == "0s"
    )
    assert page.evaluate(
        "document.getAnimations().every((one) => one.effect.getComputedTiming().endTime <= 2)"
    )


def test_fifty_agents_can_all_be_seen(crowd: Shown, window: Window) -> None:
    """No token hides more than a part of another, and bubbles cover neither one another nor the edge."""
    page = _with_everything(window, crowd)
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("#status")).to_have_text("Paused")
    # Agents and bubbles on their way arrive.
    page.wait_for_function(
        "() => !document.getAnimations().some((one) => one instanceof CSSTransition)"
    )
    boxes = page.locator(".token").evaluate_all(
        "(all) => all.map((one) => one.getBoundingClientRect()).map(({x, y, width}) => [x + width / 2, y + width / 2])"
    )
    apart = [
        abs(complex(*one) - complex(*other))
        for at, one in enumerate(boxes)
        for other in boxes[:at]
    ]
    assert min(apart) >= 10

    bubbles = page.locator(".bubble.shown").evaluate_all(
        """(all) => all.map((one) => one.getBoundingClientRect())
            .map(({left, top, right, bottom}) => [left, top, right, bottom])"""
    )
    for at, (left, top, right, bottom) in enumerate(bubbles):
        for other in bubbles[:at]:
            assert (
                left >= other[2]
                or right <= other[0]
                or top >= other[3]
                or bottom <= other[1]
            )
