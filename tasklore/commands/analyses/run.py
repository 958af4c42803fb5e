"""`tasklore analyses run`: read a story's folder, have responses analysed, and print the sections and the context."""

import contextlib
import itertools
import os
import signal
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from tasklore.commands.analyses.documents import (
    STATE_FILE,
    document_in,
    write_state,
)
from tasklore.commands.analyses.findings import DONE, section_steps
from tasklore.commands.analyses.follow import (
    Analysed,
    OnLook,
    View,
    analyse,
    awaited_in,
    sections_of,
)
from tasklore.commands.analyses.views import counts_text, dollars, print_sections
from tasklore.commands.exits import FAILED, OK, USAGE, Interrupted
from tasklore.commands.operations.local import LocalApi
from tasklore.commands.render.board import board
from tasklore.commands.render.screen import (
    print_error,
    print_json,
    print_paragraph,
    printable,
    say,
    styled,
)
from tasklore.commands.render.spinner import show_patience
from tasklore.commands.render.words import count_of, duration
from tasklore.commands.stories.files import (
    InvalidStory,
    read_response,
    read_story,
    responses_in,
)
from tasklore.commands.stories.responses import FOLDER as RESPONSES
from tasklore.contracts.analysis.document import AnalysisDocument
from tasklore.contracts.analysis.stories import StoryBase, StoryResponse
from tasklore.contracts.errors import InvalidInput
from tasklore.memory.rendering.prompt_context import within
from tasklore.memory.rendering.tokens import counter

#: One of these has a model asked.
_MODEL_VARIABLES = ("TASKLORE_LLM_BASE_URL", "TASKLORE_LLM_API_KEY")
_RULES = "rules"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysisOptions:
    """The arguments of `run`; `tokens` are those of the context."""

    folder: Path
    files: tuple[Path, ...] = ()
    everything: bool = False
    refresh: bool = False
    until: Literal["immediate", "all"] = "all"
    wait_s: float = 60.0
    tokens: int = 350
    as_json: bool = False

    def analyse(
        self, story_id: str, response: StoryResponse, on_look: OnLook
    ) -> Analysed:
        """Have *response* analysed as they say."""
        return analyse(
            story_id,
            response,
            on_look,
            until=self.until,
            wait_s=self.wait_s,
            refresh=self.refresh,
        )


def run_analysis(options: AnalysisOptions) -> int:
    """Have responses analysed, show that as it goes, print the sections and return the exit code.

    Raises:
        InvalidInput: there is no response, or two have the same number.
        ApiRefused: the API refuses.
        Unreachable: no API answers.
        Interrupted: stdout was closed; the sections so far lie in the folder.
    """
    try:
        base = read_story(options.folder)
        responses = responses_of(options)
    except InvalidStory as error:
        return _print_problems(error.problems, as_json=options.as_json)
    LocalApi("stories").ask("load", **base.model_dump(mode="json"))
    try:
        if options.everything or len(responses) > 1:
            return _analyse_several(responses, base, options)
        return _analyse_one(base.settings.story_id, responses[0], options)
    except BrokenPipeError as error:
        raise Interrupted(signal.SIGPIPE) from error


def _print_problems(problems: Sequence[str], *, as_json: bool) -> int:
    """Print a line for each problem of a folder, and return the exit code."""
    if as_json:
        print_json({"problems": list(problems)})
    for problem in problems:
        print_error(printable(problem))
    if len(problems) > 1:
        print_error(f"{count_of(len(problems), 'problem')}; nothing was run")
    return USAGE


def responses_of(options: AnalysisOptions) -> list[StoryResponse]:
    """Return the responses to analyse, in the order of their numbers.

    Raises:
        InvalidStory: one cannot be read.
        InvalidInput: there is none, or two have the same number.
    """
    if options.files and options.everything:
        raise InvalidInput(
            "--all means every response; leave it out, or the names of files"
        )
    folder = options.folder / RESPONSES
    if options.files:
        # A file may be named as it is called among the responses.
        files = [
            folder / one if not one.exists() and (folder / one).exists() else one
            for one in options.files
        ]
    else:
        files = responses_in(options.folder)
        files = files if options.everything else files[-1:]
    if not files:
        raise InvalidInput(
            f"{folder} has no response; name a file, or write Ch1-R001.md there"
        )
    responses = sorted(
        (read_response(file, options.folder) for file in files),
        key=lambda response: response.number,
    )
    for one, other in itertools.pairwise(responses):
        if one.number == other.number:
            raise InvalidInput(
                f"two of the files are response {one.number}; name one of them"
            )
    return responses


def _analyse_one(
    story_id: str, response: StoryResponse, options: AnalysisOptions
) -> int:
    live = board(is_silent=options.as_json, title=response.source, has_lines=False)
    with _hint_when_stopped(story_id, response), live as show:

        def show_sections(view: View) -> None:
            own = sections_of(view)
            steps = section_steps(document_in(view), own, awaited=awaited_in(view))
            show([one for one in steps if one.name in own])

        analysed = options.analyse(story_id, response, show_sections)
    document = analysed.document
    # Written before anything is printed: stdout may be closed.
    later = write_state(options.folder, document) if document is not None else None
    if options.as_json:
        print_json(analysed.view)
    else:
        served = (
            "stored findings returned"
            if analysed.is_served
            else f"in {duration(analysed.took_ms)}"
        )
        counts = counts_text(document, analysed.awaited)
        print_paragraph(f"{response.source}, {counts}, {served}", style="bold")
        if document is not None:
            print_sections(document, analysed.sections, analysed.awaited)
            _print_context(document, options.tokens)
    _say_hints(options, later, [analysed])
    if not analysed.is_done:
        hint = _hint(story_id, response)
        say(f"not finished after {options.wait_s:g} s; the agents continue, and {hint}")
    return OK if analysed.is_whole else FAILED


def _analyse_several(
    responses: Sequence[StoryResponse], base: StoryBase, options: AnalysisOptions
) -> int:
    """Analyse one after the other: each begins with the findings of those before."""
    story_id = base.settings.story_id
    began = time.monotonic()
    later = None
    lines = ResponseLines(
        max(len(response.source) for response in responses), options.tokens
    )
    done: list[Analysed] = []
    for response in responses:
        with (
            _hint_when_stopped(story_id, response),
            show_patience(f"analysing {response.source}"),
        ):
            analysed = options.analyse(story_id, response, lambda _view: None)
        done.append(analysed)
        if analysed.document is not None:
            later = write_state(options.folder, analysed.document)
        if not options.as_json:
            lines.print(analysed)
        if not analysed.has_findings:
            say(
                f"no result of {response.source} within {options.wait_s:g} s; those "
                "after it were not started"
            )
            break
    if options.as_json:
        print_json([one.view for one in done])
    else:
        _print_sum(done, base, int((time.monotonic() - began) * 1000), options.tokens)
    _say_hints(options, later, done)
    return OK if all(one.is_whole for one in done) else FAILED


def _say_hints(
    options: AnalysisOptions, later: int | None, done: Sequence[Analysed]
) -> None:
    """Print that the document of a *later* response stays, and that rules answered although a model is set up here."""
    if later is not None:
        say(
            f"{options.folder / STATE_FILE} stays: it is of response {later}, a later one"
        )
    # Whether the worker has the model cannot be seen from here, nor which agent had nothing to ask it.
    found = [
        one
        for each in done
        for one in section_steps(each.document)
        if one.status == DONE and one.by
    ]
    has_model = any(
        os.environ.get(name, "none") not in ("", "none") for name in _MODEL_VARIABLES
    )
    if found and has_model and all(one.by == _RULES for one in found):
        say(
            "a model is set up here, and rules found all of this; see that the worker is told of it, its log says more"
        )


@contextlib.contextmanager
def _hint_when_stopped(story_id: str, response: StoryResponse) -> Iterator[None]:
    """Print how to look at the sections when the command is stopped while the agents go on."""
    try:
        yield
    except KeyboardInterrupt:
        say(f"the agents continue; {_hint(story_id, response)}")
        raise


def _hint(story_id: str, response: StoryResponse) -> str:
    return f"`tasklore analyses show {story_id} --response {response.number}` shows what they found"


def _print_context(document: AnalysisDocument, budget_tokens: int) -> None:
    context = within(document, budget_tokens)
    if not context.text:
        print_paragraph(
            f"{budget_tokens} tokens are too few for a context; allow 60 or more."
        )
        return
    print_paragraph(
        f"The context of the next response takes {context.tokens} of {budget_tokens} tokens:"
    )
    print(f"\n{context.text}")


class ResponseLines:
    """Prints a line for each of many responses, their sources padded to *width*; an error is printed once."""

    def __init__(self, width: int, budget_tokens: int) -> None:
        self._width = width
        self._budget_tokens = budget_tokens
        self._printed: set[str] = set()
        #: The latest change of an earlier response.
        self._changed_at: datetime | None = None

    def print(self, analysed: Analysed) -> None:
        """Print the line of a response, and below it each new error."""
        print("  ".join(self._cells(analysed)), flush=True)
        steps = section_steps(analysed.document, awaited=analysed.awaited)
        errors = [f"{one.name} {one.text}" for one in steps if one.is_missing]
        for error in errors:
            if error not in self._printed:
                self._printed.add(error)
                print_paragraph(error, "  ", style="red")
        if analysed.document is not None:
            at = _time_of(analysed.document)
            self._changed_at = max(self._changed_at or at, at)

    def _cells(self, analysed: Analysed) -> Iterator[str]:
        document = analysed.document
        word = (
            "whole"
            if analysed.is_whole
            else "partial"
            if analysed.is_done
            else "unfinished"
        )
        yield analysed.response.source.ljust(self._width)
        yield styled(
            word.ljust(len("unfinished")), "green" if word == "whole" else "yellow"
        )
        if document is None:
            return
        waiting = len(analysed.awaited)
        yield f"{document.meta.agents_ok:>2} of {document.meta.agents_run + waiting} ok"
        yield f"{'served' if analysed.is_served else duration(analysed.took_ms):>8}"
        yield f"{within(document, self._budget_tokens).tokens:>5} tokens of context"
        if waiting:
            yield f"{waiting} at work"
        if (
            analysed.is_served
            and self._changed_at is not None
            and _time_of(document) < self._changed_at
        ):
            yield "the story before it changed, --refresh looks again"


def _time_of(document: AnalysisDocument) -> datetime:
    """Return when *document* was written; a time without a zone is in UTC."""
    at = datetime.fromisoformat(document.meta.updated)
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


def _print_sum(
    done: Sequence[Analysed], base: StoryBase, took_ms: int, budget_tokens: int
) -> None:
    documents = [one.document for one in done if one.document is not None]
    missing = sum(
        one.is_missing for document in documents for one in section_steps(document)
    )
    late = sum(not one.is_done for one in done)
    words = [f"{count_of(len(done), 'response')} in {duration(took_ms)}"]
    words += [
        count_of(sum(document.meta.agents_ok for document in documents), "section")
    ]
    words += [f"{missing} missing"] if missing else []
    words += [f"{late} unfinished"] if late else []
    cost = sum(document.stats.total_cost_usd or 0 for document in documents)
    words += [dollars(cost)] if cost else []
    print_paragraph(f"\n{', '.join(words)}.")
    if documents:
        longest = max(within(document, budget_tokens).tokens for document in documents)
        print_paragraph(
            f"{source_tokens(base):,} tokens of files -> at most {longest} tokens of context."
        )


def source_tokens(base: StoryBase) -> int:
    """Return how many tokens a prompt with all files of *base* would take, responses left out."""
    count = counter()
    texts = [memory.text or memory.summary for memory in base.memories]
    texts += [f"{thread.title}\n{thread.text}" for thread in base.threads]
    texts += [f"{fact.subject}: {fact.fact}" for fact in base.knowledge]
    entities = sum(entity.tokens or count(entity.text) for entity in base.entities)
    return entities + sum(map(count, texts))
