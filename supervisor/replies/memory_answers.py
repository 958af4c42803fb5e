"""Answers of the agent that keeps memories, as sentences: programs read its results, people these."""

from collections.abc import Mapping, Sequence
from typing import Any

from tasklore.contracts.messages import CompletionReport, TaskCall
from tasklore.supervisor.replies.notices import MEMORY_AGENT

#: Categories of an overview whose name is a sentence's beginning, or its end.
_SAID = "said"
_MORE = "more"


def word_memory_answer(report: CompletionReport, call: TaskCall | None) -> str | None:
    """Return the result of *report*, of *call*, in sentences; None of another agent, or in a form that is not known."""
    result = report.result
    if report.agent_id != MEMORY_AGENT or not isinstance(result, Mapping):
        return None
    if report.task_name == "recall":
        answer = result.get("answer")
        return answer if isinstance(answer, str) and answer else None
    if report.task_name == "about_me":
        return _tell_known(result)
    if report.task_name == "keep_turns" and isinstance(result.get("is_on"), bool):
        return _say_kept(is_on=result["is_on"], days=result.get("days"))
    if report.task_name == "change_item":
        return _say_changed(call.parameters if call is not None else {})
    if report.task_name == "undo":
        return "I have taken that back."
    if report.task_name == "forget_me" and isinstance(result.get("left"), Mapping):
        return _say_forgotten(result["left"], result.get("elsewhere"))
    return None


def _tell_known(known: Mapping[str, Any]) -> str | None:
    """Return the known facts by category, and the person's own words; None where a category is no list of texts."""
    if not all(
        isinstance(texts, Sequence) and all(isinstance(text, str) for text in texts)
        for texts in known.values()
    ):
        return None
    noted = [
        f"- {category[:1].upper()}{category[1:]}: {', '.join(texts)}"
        for category, texts in known.items()
        if category not in (_SAID, _MORE)
    ]
    noted += [f"- And {text}" for text in known.get(_MORE, ())]
    said = [f'- "{text}"' for text in known.get(_SAID, ())]
    if noted and said:
        between = "And you said:"
        return "\n".join(["This I know about you:", *noted, between, *said])
    if noted:
        return "\n".join(["This I know about you:", *noted])
    if said:
        return "\n".join(["You said:", *said])
    return "I know nothing about you yet."


def _say_kept(*, is_on: bool, days: object) -> str:
    if not is_on:
        return (
            "From now on I keep nothing of what you say. What I have kept so far stays"
            " until it is forgotten."
        )
    how_long = f", for {days} days" if isinstance(days, int) else ""
    return f"From now on I keep what you say, word for word{how_long}."


def _say_changed(asked: Mapping[str, Any]) -> str:
    if asked.get("operation") == "delete":
        return "I have removed that."
    done = "noted" if asked.get("operation") == "add" else "changed"
    value = asked.get("value")
    return f"I have {done} that: {value}." if value else f"I have {done} that."


def _say_forgotten(left: Mapping[str, Any], elsewhere: object) -> str:
    rest = [
        f"{count} {kind.replace('_', ' ')}" for kind, count in left.items() if count
    ]
    text = "I have forgotten everything that I knew about you."
    if rest:
        text = f"I have forgotten what I could reach. Still there: {', '.join(rest)}."
    if isinstance(elsewhere, str) and elsewhere:
        text = f"{text} Not reached from here: {elsewhere}."
    return text
