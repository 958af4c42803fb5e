"""Sentences that ask for nothing to be done: "don't check my budget", "cancel that", and what asks what can be done."""

import re

from supervisor.interpretation.values.scene import Scene
from supervisor.interpretation.wishes.routing import Choice, Prepared
from supervisor.interpretation.words import stem

_OPENING = r"^\W*(?:(?:and|but|so|then|also|please|no|ok|okay|oh|well|actually|wait|sorry)\b\W*)*"
#: An order not to: whatever verb follows, but those that make it something else.
_DO_NOT = re.compile(
    rf"{_OPENING}(?:do not|don't|dont|never|you (?:do not|don't) (?:need|have) to|(?:there is |there's )?no need to)\s+"
    r"(?:(?:please|ever|even)\s+)?"
    r"(?!(?:forget|hesitate|worry|mind|miss|let|i|you|we|they|know|be|think|understand|believe|care)\b)(?P<verb>[\w']+)",
    re.IGNORECASE,
)
_NOT_WANTED = re.compile(
    rf"{_OPENING}(?:i|we) (?:do not|don't|no longer) (?:want|need|wish)\s+"
    r"(?:you to\s+|to\s+|an?\s+|the\s+|any\s+|my\s+)(?P<verb>[\w']+)",
    re.IGNORECASE,
)
#: Words that are orders to end something, unless they are what an agent does.
_ENDING = re.compile(
    rf"{_OPENING}(?P<verb>stop|cancel|skip|forget|abort|scrap|nevermind|never mind)\b"
    r"(?!\s+(?:at|when|if|by|in|after|before)\b)",
    re.IGNORECASE,
)
_ABILITIES = re.compile(
    r"\W*(?:please\W+|hi\W+|hello\W+|hey\W+|so\W+)*"
    r"(?:what (?:else )?(?:can|could|do) you (?:do|offer|know|help with)(?: for me)?"
    r"|what (?:else )?can i (?:ask|do)(?: you| here| for)*|how (?:can|could) you help(?: me)?|help(?: me)?"
    r"|what are you able to do|what are your (?:abilities|capabilities|skills)"
    r"|(?:list|show)(?: me)? (?:your|all|the) (?:abilities|capabilities|skills|tasks|agents)"
    r"|(?:what|which) (?:tasks|agents|skills|abilities) (?:are there|do you have|can i use))(?:\W+please)?\W*",
    re.IGNORECASE,
)


def is_declined(scene: Scene, choice: Choice | None) -> bool:
    """Return whether *scene* says that what it speaks of shall not be done.

    Told by its beginning alone: "no history" and "not 42000 but 45000" deny a value, and nothing else. What an agent's
    own examples begin with is what it does.
    """
    task = choice.task if choice is not None else None
    if match := _DO_NOT.match(scene.text):
        # "Don't spend more than 50k" says a value.
        return task is None or not (_speaks_of_field(scene, task, match.start("verb")) or _is_usual(task, _DO_NOT))
    if match := _NOT_WANTED.match(scene.text):
        is_for_somebody = " you to " in f" {match[0].lower()} "
        is_of_task = task is not None and stem(match["verb"].lower()) in task.names
        return (is_for_somebody or is_of_task) and not (task is not None and _is_usual(task, _NOT_WANTED))
    match = _ENDING.match(scene.text)
    if match is None or task is None:
        return match is not None
    return stem(match["verb"].lower()) not in task.names and not _is_usual(task, _ENDING)


def begins_declined(text: str) -> bool:
    """Return whether *text* begins as what is declined does, whatever it is about."""
    return any(beginning.match(text) for beginning in (_DO_NOT, _NOT_WANTED, _ENDING))


def asks_for_abilities(scene: Scene, choice: Choice | None) -> bool:
    """Return whether *scene* asks what can be done, and no agent is there for just that."""
    return choice is None and _ABILITIES.fullmatch(scene.text) is not None


def _is_usual(task: Prepared, beginning: re.Pattern[str]) -> bool:
    return any(beginning.match(example) for example in task.offer.task.examples)


def _speaks_of_field(scene: Scene, task: Prepared, place: int) -> bool:
    return any(scene.tokens[cue.first].start == place for cue in task.cues.find(scene.tokens))
