"""`tasklore analysis run`: read a story's folder, have responses analysed, and tell what was found."""

import asyncio
import contextlib
import itertools
import signal
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from contracts.analysis.stories import StoryBase, StoryResponse
from contracts.errors import InvalidInput
from contracts.messages import AnalysisRequest
from tasklore.analysis.board import board
from tasklore.analysis.sources import STATE_FILE
from tasklore.analysis.state_file import leave_in
from tasklore.analysis.stores import open_stores
from tasklore.analysis.summary import Lines, rules_text, tell, tell_sum
from tasklore.analysis.watch import Analysed, Watch
from tasklore.exits import FAILED, OK, Interrupted
from tasklore.pipeline.client import print_problems
from tasklore.pipeline.stores import open_nats
from tasklore.render.screen import patience, print_json, say
from tasklore.story.files import InvalidStory, read_response, read_story, responses_in
from tasklore.story.responses import FOLDER as RESPONSES


@dataclass(frozen=True, slots=True)
class Wish:
    """What was typed at `run`; `until` and `wait_s` are as in `AnalysisRequest`, `tokens` are those of the context."""

    folder: Path
    files: tuple[Path, ...] = ()
    everything: bool = False
    refresh: bool = False
    until: Literal["immediate", "all"] = "all"
    wait_s: float = 60.0
    tokens: int = 350
    as_json: bool = False

    def request(self, story_id: str, response: StoryResponse) -> AnalysisRequest:
        """Return what is sent for *response*."""
        return AnalysisRequest(
            story_id=story_id,
            response_number=response.number,
            chapter=response.chapter,
            text=response.text,
            until=self.until,
            wait_ms=int(self.wait_s * 1000),
            refresh=self.refresh,
        )


async def run_aloud(wish: Wish) -> int:
    """Have the responses of *wish* analysed, show it as it goes, print what was found and return the exit code.

    Raises:
        InvalidInput: there is no response, two have the same number, or the supervisor refuses.
        Unreachable: a server does not answer, or nobody takes the request.
        Interrupted: whoever read what is printed has heard enough; what was found by then lies in the folder.
    """
    try:
        return await _run(wish)
    except BrokenPipeError as error:
        raise Interrupted(signal.SIGPIPE) from error


async def _run(wish: Wish) -> int:
    try:
        base, responses = read_story(wish.folder), responses_of(wish)
    except InvalidStory as error:
        return print_problems(error.problems, as_json=wish.as_json)
    async with open_nats() as client, open_stores() as stores:
        await stores.stories.load(base)
        watch = Watch(client, stores, base.settings)
        if wish.everything or len(responses) > 1:
            return await _several(watch, responses, base, wish)
        return await _one(watch, responses[0], wish)


def responses_of(wish: Wish) -> list[StoryResponse]:
    """Return which responses are meant, in the order of their numbers.

    Raises:
        InvalidStory: one cannot be read.
        InvalidInput: there is none, or two have the same number.
    """
    if wish.files and wish.everything:
        raise InvalidInput("--all means every response; leave it out, or the names of files")
    files = list(wish.files) or responses_in(wish.folder)
    if not files:
        raise InvalidInput(f"{wish.folder / RESPONSES} has no response; name a file, or write Ch1-R001.md there")
    chosen = [_found(file, wish.folder) for file in files] if wish.files or wish.everything else files[-1:]
    responses = sorted((read_response(file, wish.folder) for file in chosen), key=lambda response: response.number)
    for one, other in itertools.pairwise(responses):
        if one.number == other.number:
            raise InvalidInput(f"two of the files are response {one.number}; name one of them")
    return responses


def _found(file: Path, folder: Path) -> Path:
    """Return *file*, or the one of its name among the responses of the story in *folder*."""
    beside = folder / RESPONSES / file
    return beside if not file.exists() and beside.exists() else file


async def _one(watch: Watch, response: StoryResponse, wish: Wish) -> int:
    with (
        _told_when_left(watch.story_id, response),
        board(response.source, watch.seats, is_silent=wish.as_json) as shown,
    ):
        analysed = await watch.analysed(wish.request(watch.story_id, response), response, shown)
    # Whoever reads what is printed may leave: the document is there before.
    later = _leave(wish, analysed)
    if wish.as_json:
        print_json(analysed.document.body() if analysed.document is not None else None)
    else:
        tell(analysed, wish.tokens)
    _say_what_stays(wish, later)
    _say_whether_rules([analysed])
    if not analysed.is_done:
        say(f"not finished after {wish.wait_s:g} s; the agents go on, and {_look_text(watch.story_id, response)}")
    return OK if analysed.is_whole else FAILED


async def _several(watch: Watch, responses: Sequence[StoryResponse], base: StoryBase, wish: Wish) -> int:
    """Analyse one after the other: what is found in one is what the next begins with."""
    began, later = time.monotonic(), None
    lines = Lines(max(len(response.source) for response in responses), wish.tokens)
    done: list[Analysed] = []
    for response in responses:
        with _told_when_left(watch.story_id, response):
            async with patience(f"analysing {response.source}"):
                with board(response.source, watch.seats, is_silent=True) as silent:
                    analysed = await watch.analysed(wish.request(watch.story_id, response), response, silent)
        done.append(analysed)
        later = _leave(wish, analysed) if analysed.document is not None else later
        if not wish.as_json:
            lines.tell(analysed)
        if analysed.document is None:
            say(f"nothing came of {response.source} within {wish.wait_s:g} s; those after it were not begun")
            break
    if wish.as_json:
        print_json([one.document.body() for one in done if one.document is not None])
    else:
        tell_sum(done, base, int((time.monotonic() - began) * 1000), wish.tokens)
    _say_what_stays(wish, later)
    _say_whether_rules(done)
    return OK if all(one.is_whole for one in done) else FAILED


def _leave(wish: Wish, analysed: Analysed) -> int | None:
    """Leave what there is in the folder of the story; return the later response whose document stays there."""
    return leave_in(wish.folder, analysed.document) if analysed.document is not None else None


def _say_what_stays(wish: Wish, later: int | None) -> None:
    if later is not None:
        say(f"{wish.folder / STATE_FILE} stays: it is of response {later}, a later one")


def _say_whether_rules(done: Sequence[Analysed]) -> None:
    if (told := rules_text(done)) is not None:
        say(told)


@contextlib.contextmanager
def _told_when_left(story_id: str, response: StoryResponse) -> Iterator[None]:
    """Tell whoever stops the command that the agents go on, and how to look at what they find."""
    try:
        yield
    except asyncio.CancelledError:
        say(f"the agents go on; {_look_text(story_id, response)}")
        raise


def _look_text(story_id: str, response: StoryResponse) -> str:
    return f"`tasklore analysis show {story_id} --response {response.number}` looks at what they found"
