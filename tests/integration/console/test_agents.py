"""Pages of agents: what they have to do, to whom, and the form of a task's schema that starts it."""

import re
from collections.abc import AsyncIterator
from html import unescape
from pathlib import Path

import pytest
from redis.asyncio import Redis

from tasklore.contracts.messages import AgentCard, TaskCard
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.catalogue import Catalogue
from tests.integration.console.browsing import (
    PAYLOADS,
    ConsoleStand,
    console_stand,
    list_runs,
    row,
)
from tests.integration.http_stand import CARD

#: A task with a parameter of each kind, of which words stand wherever an agent can put some.
FORM = {
    "type": "object",
    "additionalProperties": False,
    "required": ["count", "word"],
    "$defs": {"Colour": {"enum": ["red", "blue"], "type": "string"}},
    "properties": {
        "word": {"type": "string", "description": "What is said."},
        "count": {"type": "integer", "minimum": 1},
        "part": {"anyOf": [{"type": "number"}, {"type": "null"}], "default": None},
        "loud": {"type": "boolean", "default": False},
        "colour": {"anyOf": [{"$ref": "#/$defs/Colour"}, {"type": "null"}]},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
}
AGENTS = (
    CARD,
    AgentCard(
        agent_id="FormAgent",
        description=" ".join(PAYLOADS),
        tasks=(
            TaskCard(name="fill", parameters=FORM, description=PAYLOADS[0]),
            TaskCard(
                name="hostile",
                parameters={
                    "properties": {
                        payload: {
                            "type": "string",
                            "description": payload,
                            "default": payload,
                            "enum": [payload],
                        }
                        for payload in PAYLOADS
                    }
                },
            ),
        ),
        digest="d",
    ),
)


@pytest.fixture
async def console(
    servers: EmbeddedServers, redis: Redis, tmp_path: Path
) -> AsyncIterator[ConsoleStand]:
    known = Catalogue(AGENTS)
    async with console_stand(
        servers, redis, tmp_path, catalogue=lambda: known
    ) as found:
        yield found


async def test_agents_have_their_open_and_failed_tasks(
    console: ConsoleStand, redis: Redis
) -> None:
    """A key of a tenant counts its own alone."""
    await list_runs(
        redis,
        row("t1", tenant="acme"),
        row("t2", tenant="rival"),
        row("t3", tenant="rival", state="completed", error=None, run_ms=1_500),
        row("t4", tenant="rival", state="accepted", error=None, ended_ms=None),
    )
    for name, failed, opened in (("admin", "2 of 3", "1"), ("acme", "1 of 1", "0")):
        async with console.tab(name) as tab:
            text = await tab.open("/console/agents")
            assert failed in text
            assert f">{opened}<span" in text
            assert ("1.5 s" in text) == (name == "admin")
            assert "FormAgent" in text
            text = await tab.open("/console/agents/EchoAgent")
            assert f"the last {failed[-1]}" in text
    async with console.tab("reader") as tab:
        text = await tab.open("/console/agents/FormAgent")
        assert "Start…" not in text
        await tab.open("/console/agents/FormAgent/fill", 403)
        await tab.open("/console/agents/NoAgent", 404)
    async with console.tab("asker") as tab:
        text = await tab.open("/console/agents/FormAgent/nope", 404)
        assert "it has fill" in text


async def test_a_form_of_the_schema_starts_the_task(console: ConsoleStand) -> None:
    """Values have their kinds, what is empty is left out, and the same form sent twice starts one task."""
    async with console.tab("asker") as tab:
        text = await tab.open("/console/agents/FormAgent/fill")
        key = re.search(r'name="key" value="([^"]+)"', text)
        assert key is not None
        fields = {
            "agent_id": "FormAgent",
            "task": "fill",
            "key": key[1],
            "parameter.word": "two\r\nlines",
            "parameter.count": "3",
            "parameter.part": "",
            "parameter.loud": "true",
            "parameter.colour": '"blue"',
            "parameter.tags": '["a"]',
            "user": "zoe",
        }
        text = await tab.send("/console/agents/start", **fields)
        assert "It is started." in text
        shown = unescape(text)
        for said in ('"word": "two\\nlines"', '"count": 3', '"loud": true'):
            assert said in shown, said
        assert '"colour": "blue"' in shown
        assert "part" not in re.findall(r'"(\w+)":', shown)
        assert "zoe" in shown
        first = re.search(r"/console/runs/([\w-]+)/output", text)
        await tab.open("/console/agents/FormAgent/fill")
        again = await tab.send("/console/agents/start", **fields)
        assert first is not None
        assert f"/console/runs/{first[1]}" in again


async def test_a_form_that_does_not_fit_stays_as_it_was_typed(
    console: ConsoleStand,
) -> None:
    """Each field says what is wrong with it, and nothing is started."""
    async with console.tab("asker") as tab:
        await tab.open("/console/agents/FormAgent/fill")
        fields = {"agent_id": "FormAgent", "task": "fill", "parameter.word": "hello"}
        for wrong, said in (
            ({}, "is needed"),
            ({"parameter.count": "many"}, "must be a whole number"),
            ({"parameter.count": "1.5"}, "must be a whole number"),
            ({"parameter.count": "1", "parameter.part": "NaN"}, "must be a number"),
            ({"parameter.count": "1", "parameter.tags": "[a"}, "must be JSON"),
            ({"parameter.count": "1", "parameter.tags": "[" * 9_000}, "must be JSON"),
            ({"parameter.count": "1", "parameter.colour": '"pink"'}, "in the list"),
            ({"parameter.count": "1", "after": "soon"}, "after: must be a span"),
        ):
            text = await tab.send("/console/agents/start", 200, **fields, **wrong)
            assert said in text, wrong
            assert "hello" in text
        assert "There are no runs yet." in await tab.open("/console/runs")


async def test_a_key_of_a_user_starts_nothing_as_another(console: ConsoleStand) -> None:
    """It is offered no such field, and a form that has one is refused."""
    async with console.tab("ana") as tab:
        text = await tab.open("/console/agents/EchoAgent/echo")
        assert 'name="user"' not in text
        fields = {"agent_id": "EchoAgent", "task": "echo", "parameter.word": "hi"}
        await tab.send("/console/agents/start", 403, user="ben", **fields)


async def test_what_an_agent_says_of_itself_is_text(console: ConsoleStand) -> None:
    """Descriptions, names of parameters, choices and defaults, and what a person typed."""
    async with console.tab("admin") as tab:
        for path in ("", "/FormAgent", "/FormAgent/fill", "/FormAgent/hostile"):
            text = await tab.open(f"/console/agents{path}")
            assert not re.search(r'<script(?! src="/console/static)|<img|<svg on', text)
        for payload in PAYLOADS:
            text = await tab.send(
                "/console/agents/start",
                200,
                agent_id="FormAgent",
                task="fill",
                after=payload,
                **{"parameter.word": payload, "parameter.count": payload},
            )
            assert not re.search(r'<script(?! src="/console/static)|<img|<svg on', text)
            assert payload in unescape(text)
