"""The last part of `tasklore demo`: ten agents read a story, and a prompt gets a few lines instead of its files."""

import asyncio
import shutil
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from tasklore.commands.analyses.follow import AGENTS, Analysed, analyse
from tasklore.commands.analyses.run import ResponseLines, source_tokens
from tasklore.commands.analyses.views import print_overview
from tasklore.commands.operations.entries import operations_of
from tasklore.commands.operations.exchange import Exchange
from tasklore.commands.operations.target import Target
from tasklore.commands.operations.values import fill_request
from tasklore.commands.render.screen import print_paragraph, styled
from tasklore.commands.render.words import count_of, duration
from tasklore.commands.stories.example import FOLDER
from tasklore.commands.stories.files import read_response, read_story, responses_in
from tasklore.memory.rendering.prompt_context import BUDGET_TOKENS, within

AGENT = AGENTS

#: Responses that are analysed, the last one of them in full: as many as alerts look back on.
_LAST = 5
#: Seconds for one of them: some hundredths, on a busy machine more.
_TIMEOUT_S = 30.0


async def read_a_story(target: Target, folder: Path) -> bool:
    """Have the last responses of the example story analysed, copied to *folder*; return whether all went well."""
    story = folder / "lighthouse"
    shutil.copytree(FOLDER, story)
    base = read_story(story)
    files = responses_in(story)[-_LAST:]
    print_paragraph(
        "Ten agents read a story side by side, and leave what its next response needs\n\n",
        style="bold",
    )
    _print_command("run", story.name, *(file.name for file in files))
    beginning = base.model_dump(mode="json")
    await asyncio.to_thread(_ask, target, "stories", "load", beginning)
    story_id = base.settings.story_id
    began = time.perf_counter()
    done = list[Analysed]()
    responses = [read_response(file, story) for file in files]
    lines = ResponseLines(
        max(len(response.source) for response in responses), BUDGET_TOKENS
    )
    for response in responses:
        one = partial(
            analyse,
            story_id,
            response,
            lambda _view: None,
            wait_s=_TIMEOUT_S,
            ask=partial(_ask, target, "analyses"),
        )
        done.append(await asyncio.to_thread(one))
        lines.print(done[-1])
    took_ms = int((time.perf_counter() - began) * 1000)
    document = done[-1].document
    if document is None:
        return False
    print()
    _print_command("show", story_id)
    print_overview(document)
    context = within(document)
    print_paragraph(
        f"\n{count_of(len(done), 'response')} in {duration(took_ms)}: {source_tokens(base):,} tokens of files -> "
        f"{context.tokens} tokens\n\n",
        style="green",
    )
    _print_command("context", story_id)
    print_paragraph(context.text, "  ")
    print()
    return all(one.is_whole for one in done) and 0 < context.tokens <= BUDGET_TOKENS


def _print_command(*words: str) -> None:
    typed = " ".join(("tasklore analyses", *words))
    print(f"{styled('>', 'cyan')} {styled(typed, 'bold')}", flush=True)


def _ask(
    target: Target, noun: str, verb: str, values: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Return the view of an operation at *target*."""
    entry = next(one for one in operations_of(noun) if one["verb"] == verb)
    exchange = Exchange(target, entry, lambda _answer: None)
    view = exchange.read_view(exchange.ask(fill_request(entry, values)))
    return view if isinstance(view, dict) else {}
