"""The last part of `tasklore demo`: ten agents read a story, and a prompt gets a few lines instead of its files."""

import shutil
import time
from pathlib import Path

from nats.aio.client import Client

from tasklore.commands.analysis.documents import stores_on
from tasklore.commands.analysis.run import AnalysisOptions, ResponseLines, source_tokens
from tasklore.commands.analysis.views import print_overview
from tasklore.commands.analysis.watch import AGENTS, Analysed, Watch
from tasklore.commands.render.screen import print_paragraph, styled
from tasklore.commands.render.words import count_of, duration
from tasklore.commands.stories.example import FOLDER
from tasklore.commands.stories.files import read_response, read_story, responses_in
from tasklore.memory.rendering.prompt_context import BUDGET_TOKENS, within
from tasklore.runtime.servers.valkey import Valkey

AGENT = AGENTS

#: Responses that are analysed, the last one of them in full: as many as alerts look back on.
_LAST = 5
#: Seconds for one of them: some hundredths, on a busy machine more.
_TIMEOUT_S = 30.0


async def analyse(client: Client, valkey: Valkey, folder: Path) -> bool:
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
    stores = stores_on(valkey)
    await stores.stories.load(base)
    watch = Watch(client, stores, base.settings)
    began = time.perf_counter()
    done = list[Analysed]()
    responses = [read_response(file, story) for file in files]
    lines = ResponseLines(
        max(len(response.source) for response in responses), BUDGET_TOKENS
    )
    for response in responses:
        request = AnalysisOptions(folder=story, wait_s=_TIMEOUT_S).request(
            watch.story_id, response
        )
        done.append(await watch.analyse(request, response, lambda _document: None))
        lines.print(done[-1])
    took_ms = int((time.perf_counter() - began) * 1000)
    document = done[-1].document
    if document is None:
        return False
    print()
    _print_command("show", watch.story_id)
    print_overview(document)
    context = within(document)
    print_paragraph(
        f"\n{count_of(len(done), 'response')} in {duration(took_ms)}: {source_tokens(base):,} tokens of files -> "
        f"{context.tokens} tokens\n\n",
        style="green",
    )
    _print_command("context", watch.story_id)
    print_paragraph(context.text, "  ")
    print()
    return all(one.is_whole for one in done) and 0 < context.tokens <= BUDGET_TOKENS


def _print_command(*words: str) -> None:
    typed = " ".join(("tasklore analysis", *words))
    print(f"{styled('>', 'cyan')} {styled(typed, 'bold')}", flush=True)
