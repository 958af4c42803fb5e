"""Utterances that are no task of any card: thanks, questions about memory, JSON, and what is to be cancelled."""

import json
import re
from collections.abc import Sequence

from supervisor.understanding.conversation import Past
from supervisor.understanding.routing import Choice, Router
from supervisor.understanding.utterance import Utterance, stem

HOW_TO_SEND = (
    "That is JSON and no sentence: nothing was started. Say it in words; a program sends a task with its parameters to"
    " /v1/tasks of the HTTP API."
)
_MEMORY = (
    "That is about what I remember of you, and no task: nothing was changed. `tasklore memory show` shows it, and"
    " `tasklore memory forget` removes it; over HTTP both are under /v1/memory."
)
_CANCELLING = (
    "I cannot cancel that by a sentence: nothing was cancelled. `tasklore cancel TASK` cancels a task that waits or"
    " runs, and so does DELETE /v1/tasks/TASK over HTTP."
)
_FENCE = re.compile(r"\A\s{0,99}```[a-z]{0,9}\s|```\s{0,99}\Z", re.IGNORECASE)
_REQUEST = re.compile(
    r"""[{,]\s{0,99}(["']?)(?:agent|agent_id|task|task_name|tool|function|parameters|arguments|params)\1\s{0,9}:""",
    re.IGNORECASE,
)
_ABOUT_MEMORY = re.compile(
    r"\W*(?:please |can you |could you )*(?:forget|delete|erase|remove) (?:everything|all|anything)(?: that)?"
    r"(?: you know| you remember)? (?:about|of) me\b.*"
    r"|.{0,40}\bwhat (?:do|did|else do) you (?:know|remember|learn(?:ed)?) (?:about|of) me\b.*",
    re.IGNORECASE | re.DOTALL,
)
_CANCEL = re.compile(
    r"\W*(?:(?:please|can you|could you|i want to|i'd like to|i would like to|ok|okay|no|wait)\W+)*"
    r"(?P<verb>cancel|call off|abort|stop|undo)\b",
    re.IGNORECASE,
)
_DENIED = re.compile(
    r"\W*(?:(?:please|no|oh|and|but)\W+)*(?:(?:i )?(?:don't|do not|never|don\u2019t)\s+(?!forget|worry|you\b)"
    r"(?:want\s+(?:you\s+)?to\s+)?(?P<verb>[a-z]+)|no need to\b|never mind\b|forget about\b)",
    re.IGNORECASE,
)
_COURTESY = (
    r"(?:ok(?:ay)?|great|perfect|nice|cool|good|well done|that's all|bye|good ?bye|thanks?(?: you)?|thx|cheers|a lot"
    r"|very much|so much|there|hi|hello|hey|good (?:morning|afternoon|evening)|for (?:that|now|everything|your help))"
)
_THANKS = re.compile(rf"\W*{_COURTESY}(?:\W+{_COURTESY})*\W*", re.IGNORECASE)
_GREETING = re.compile(r"\W*(?:hi|hello|hey|good (?:morning|afternoon|evening))\b", re.IGNORECASE)
_ABILITIES = re.compile(
    r"\W*(?:(?:hi|hello|hey)\W+)?(?:what (?:can|could|do) you (?:do|offer)|help|how (?:can|could) you help"
    r"|how does this work|what is this)\b.{0,20}",
    re.IGNORECASE,
)


def is_json(text: str) -> bool:
    """Return whether *text* is an object or a list of JSON, or has a program's request in it."""
    if "{" not in text:
        return False
    bare = _FENCE.sub("", text).strip()
    if _REQUEST.search(text):
        return True
    try:
        return bare[0] in "{[" and isinstance(json.loads(bare), dict | list)
    except (ValueError, RecursionError):
        return False


def reply_without_task(
    utterance: Utterance, choice: Choice | None, router: Router, pasts: Sequence[Past]
) -> str | None:
    """Return what to say to an utterance that no task is for by its kind, None for any other."""
    text = utterance.text
    if is_json(text):
        return HOW_TO_SEND
    if choice is None:
        if _THANKS.fullmatch(text[:200]):
            return f"Hello. {router.catalogue.abilities()}" if _GREETING.match(text) else "You are welcome."
        if _ABILITIES.fullmatch(text[:200]):
            return router.catalogue.abilities()
    if len(text) < 400 and _ABOUT_MEMORY.fullmatch(text) and not _does(choice, "forget"):
        return _MEMORY
    if (match := _CANCEL.match(text)) and not _does(choice, match["verb"].split()[0]):
        started = [past for past in pasts if past.task.key][:1]
        last = f" The last task of this conversation was {started[0].task.offer.label}." if started else ""
        return f"{_CANCELLING}{last}"
    return None


def is_denied(utterance: Utterance, choice: Choice | None) -> bool:
    """Return whether *utterance* says what shall not be done; "don't spend more than 50k" is a value."""
    match = _DENIED.match(utterance.text)
    if match is None or choice is None or _does(choice, "not"):
        return False
    verb = stem((match["verb"] or "").lower())
    return not any(phrase.stems == (verb,) for slot in choice.task.schema.slots for phrase in slot.phrases)


def _does(choice: Choice | None, verb: str) -> bool:
    return choice is not None and stem(verb.lower()) in choice.task.names | choice.task.known
