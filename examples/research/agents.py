"""Research: one agent has papers read by another one, which has tools, and writes a report of its notes, word by word.

    tasklore up --agents examples/research/agents.py

Both are agents of pydantic-ai (the extra `agents`). The reader fetches over HTTP and looks terms up in a glossary, an
MCP server; each request to a model and each call of a tool is a step that a crash does not repeat.
"""

import asyncio
import sys
import urllib.request
from pathlib import Path

import pydantic_ai
from pydantic import BaseModel

from tasklore import Agent, Context, Field, Parameters
from tasklore.workers.pydantic_agents import RoleModel, mcp_server, run

#: Seconds for one paper, and bytes of it that are read.
_FETCH_S = 20.0
_MOST_BYTES = 200_000

glossary = mcp_server(
    "glossary", command=[sys.executable, str(Path(__file__).with_name("glossary.py"))]
)


class Note(BaseModel):
    """What a paper says about the question."""

    title: str
    finding: str


class Report(BaseModel):
    """A report, and the titles of the papers that it rests on."""

    text: str
    papers: list[str]


reader: pydantic_ai.Agent[None, Note] = pydantic_ai.Agent(
    RoleModel("reader"),
    name="reader",
    output_type=Note,
    toolsets=[glossary],
    instructions="Fetch the paper, look up terms that you do not know, and note what it says about the question.",
)
writer: pydantic_ai.Agent[None, str] = pydantic_ai.Agent(
    RoleModel("writer"),
    name="writer",
    instructions="Write a short report of the notes.",
)


@reader.tool_plain
async def fetch(url: str) -> str:
    """Fetch the text of a paper."""

    def read() -> str:
        if not url.startswith(("http://", "https://")):
            raise pydantic_ai.ModelRetry(
                f"{url!r} is no address; it begins with http:// or https://"
            )
        with urllib.request.urlopen(url, timeout=_FETCH_S) as reply:  # noqa: S310 - checked above
            return str(reply.read(_MOST_BYTES).decode(errors="replace"))

    return await asyncio.to_thread(read)


class Paper(Parameters):
    """One paper, and the question to read it for."""

    url: str = Field(description="the address of its text")
    question: str


class Question(Parameters):
    """A question, and the papers to read for it."""

    question: str
    papers: list[str] = Field(description="addresses of their texts")


reading = Agent("ReaderAgent", description="Reads a paper for a question.")
research = Agent(
    "ResearchAgent", description="Reads papers for a question and writes a report."
)


@reading.task(uses=("llm",), in_words=False)
async def read(paper: Paper, context: Context) -> Note:
    """Read one paper and note what it says about a question."""
    return (
        await run(reader, f"{paper.question}\n\nThe paper: {paper.url}", context)
    ).output


@research.task(uses=("llm",), in_words=False)
async def report(question: Question, context: Context) -> Report:
    """Read papers for a question and write a report."""
    notes = await context.map(
        read,
        [Paper(url=url, question=question.question) for url in question.papers],
        at_once=4,
    )
    listed = "\n".join(f"- {note.title}: {note.finding}" for note in notes)
    written = await run(
        writer,
        f"{question.question}\n\nNotes:\n{listed}",
        context,
        on_text=context.emit,
    )
    return Report(text=written.output, papers=[note.title for note in notes])
