"""The console without keys, as `tasklore up` serves it: its forms count as a browser sends them."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.acceptance.system import Served, running_system
from tests.browser.conftest import Window

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def keyless(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with running_system(tmp_path_factory.mktemp("system")) as system:
        supervisor = system.supervisor(llm_base_url="", llm_api_key="")
        supervisor.ready()
        yield supervisor


def test_a_form_of_our_own_page_counts(keyless: Served, window: Window) -> None:
    """Whatever the policy of the page has its browser say about where it comes from."""
    page = window.page
    page.goto(f"{keyless.api}/console/money/limit")
    page.get_by_label("Its name").fill("openai")
    page.get_by_label("At most").fill("20")
    page.get_by_label("In each").select_option(index=1)
    page.get_by_role("button", name="Set the limit").click()
    expect(page).to_have_url(f"{keyless.api}/console/money/limits")
    expect(page.get_by_text("openai", exact=True).first).to_be_visible()
