"""Asking in plain words over the API, and printing the answer and what stands beside it."""

import sys
from collections.abc import Mapping
from typing import Any

from tasklore.commands.ask.asked_request import AskedRequest
from tasklore.commands.operations.run import draw
from tasklore.commands.operations.transport import Json
from tasklore.commands.render.screen import print_exactly, print_json, say
from tasklore.commands.render.spinner import show_patience
from tasklore.contracts.errors import TaskloreError
from tasklore.contracts.manifest import OperationEntry

#: Characters of the place where a task failed that are shown.
PLACE_WIDTH = 2000


def ask_and_print(entry: OperationEntry, typed: Mapping[str, Any]) -> int:
    """Ask as *typed* by the names of the parameters, print the answer (its view as JSON), and return the exit code.

    On a terminal the words of the task are printed as they come. Verbose, what was asked of which task and how
    the answer came about follow on stderr.

    Raises:
        InvalidInput: a value cannot be used; names the option and the cure.
        Unreachable: no API answers.
        Aborted: the API refuses.
    """
    is_json = bool(typed.get("is_json"))
    question = AskedRequest(entry, typed)
    is_live = sys.stdout.isatty() and not is_json and question.is_remote
    try:
        if is_live:
            # Programs get the answer whole, and do without a second connection.
            from tasklore.commands.ask.live import hear_live

            view = hear_live(question)
        else:
            with show_patience("asking"):
                view = question.hear()
    except KeyboardInterrupt:
        say(f"it may still be running; {question.tell_how_to_fetch()}")
        raise
    except TaskloreError:
        if question.is_taken:
            say(f"it may still be running; {question.tell_how_to_fetch()}")
        raise
    if is_json:
        print_json(view)
    else:
        _print_answer(entry, view, is_live=is_live)
        _print_about(question, view, is_verbose=bool(typed.get("verbose")))
    return question.code_of(view)


def _print_answer(entry: OperationEntry, view: Json, *, is_live: bool) -> None:
    reply = view.get("reply")
    if reply is None:
        draw(entry, view)
        return
    # What came live is there already, but for the end of its line.
    print_exactly("" if is_live else str(reply["text"]))


def _print_about(question: AskedRequest, view: Json, *, is_verbose: bool) -> None:
    """Say on stderr what stands beside the answer, and how to go on."""
    reply = view.get("reply") or {}
    answers = reply.get("parts") or ([reply] if reply else [])
    for one in answers:
        _say_about(one, is_verbose=is_verbose)
    if reply.get("read_by_rules"):
        say(f"No model read that, rules did: {reply['read_by_rules']}")
    failed = [
        str(report["task_id"])
        for one in answers
        if (report := one.get("report")) and report["status"] == "failed"
    ]
    if failed:
        for place in question.find_places(failed):
            say(f"it failed at {place[:PLACE_WIDTH]}")
    if reply.get("kind") == "question":
        say(question.tell_how_to_answer(str(reply["conversation_id"])))
    elif not reply or any(one["kind"] == "pending" for one in answers):
        say(question.tell_how_to_fetch())


def _say_about(answer: Json, *, is_verbose: bool) -> None:
    """Say heading and origin of *answer* where its text is the task's own and has neither."""
    heading = answer.get("heading")
    origin = answer.get("origin")
    if heading is None or origin is None or origin in answer["text"]:
        return
    if is_verbose:
        say(f"{heading}. {origin}")
    elif answer.get("taken"):
        say(f"I took {answer['taken']}.")
