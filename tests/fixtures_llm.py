"""Fixtures around the scripted language model; list this module in `pytest_plugins` to have them."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest

from tasklore.runtime.models import dialects
from tasklore.runtime.models.llm import Llm, LlmSettings, Meter
from tests.llm_double import ScriptedLlm
from tests.llm_questions import KEY, Opener, Pauses


@pytest.fixture
async def scripted_llm(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ScriptedLlm]:
    """A language model that says what the test queues, of which this process knows nothing yet."""
    # The port may have been that of another model, of which its process was told things.
    monkeypatch.setattr(dialects, "_FOUND", {})
    async with ScriptedLlm() as model:
        yield model


@pytest.fixture
def pauses() -> Pauses:
    """A clock that only the code under test moves."""
    return Pauses()


@pytest.fixture
async def open_llm(scripted_llm: ScriptedLlm, pauses: Pauses) -> AsyncIterator[Opener]:
    """Open clients of the scripted model; keywords go into the settings, and jitter is always the most there is."""
    async with AsyncExitStack() as stack:

        def open_one(*, meter: Meter | None = None, **settings: Any) -> Llm:
            merged = LlmSettings(
                **{"base_url": scripted_llm.base_url, "api_key": KEY, **settings}
            )
            llm = Llm(
                merged,
                meter=meter,
                monotonic=pauses.monotonic,
                sleep=pauses.sleep,
                uniform=lambda _low, high: high,
            )
            stack.push_async_exit(llm)
            return llm

        yield open_one
