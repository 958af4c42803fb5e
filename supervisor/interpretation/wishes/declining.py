"""Sentences that ask for nothing to be done: "don't check my budget", "cancel that", and what asks what can be done."""

import re

from supervisor.interpretation.values.scene import Scene
from supervisor.interpretation.wishes.routing import Choice, Prepared
from supervisor.interpretation.words import stem, stems_of, word_set

_OPENING = r"^\W*(?:(?:and|but|so|then|also|please|no|ok|okay|oh|well|actually|wait|sorry|whatever you do)\b\W*)*"
#: "Do not" in other words: what follows is the verb ("should not send") or its form with -ing ("avoid sending").
_NOT_TO = (
    r"do not|don't|don\u2019t|dont|never|you (?:do not|don't) (?:need|have) to|(?:there is |there's )?no need to"
    r"|(?:you )?(?:should|must|shall|may|ought|need)(?: not|n't)(?: to)?|let's not|let us not|under no circumstances"
    r"|(?:i|we)(?:'d| would) (?:rather|prefer) (?:you )?(?:not|didn't)(?: to)?|i (?:ask|told|tell) you not to"
    r"|(?:please )?(?:refrain from|avoid|hold off(?: on)?)"
)
#: An order not to: whatever verb follows, but those that make it something else.
_DO_NOT = re.compile(
    rf"{_OPENING}(?:{_NOT_TO})\s+"
    r"(?:(?:please|ever|even)\s+)?"
    r"(?!(?:forget|hesitate|worry|mind|miss|let|i|you|we|they|know|be|think|understand|believe|care)\b)(?P<verb>[\w']+)",
    re.IGNORECASE,
)
_NOT_WANTED = re.compile(
    rf"{_OPENING}(?:i|we) (?:do not|don't|no longer) (?:want|need|wish)\s+"
    r"(?:you to\s+|to\s+|an?\s+|the\s+|any\s+|my\s+)(?P<verb>[\w']+)",
    re.IGNORECASE,
)
#: The same after other words: "I changed my mind, don't send it". Its first letters are looked at first.
_DO_NOT_LATER = re.compile(
    r"\b(?=[dmn])(?<!\bi )(?<!\bwe )(?<!\bthey )(?<!\bif you )"
    r"(?:do not|don't|don\u2019t|dont|never|must not|mustn't|not to)\s+(?:(?:please|ever|even)\s+)?(?P<verb>[\w']+)",
    re.IGNORECASE,
)
#: "Don't spend more than 50k" says a value.
_MORE_THAN = re.compile(
    r"\s+(?:(?:any|much|a lot|anything) )?(?:more|less|fewer|over|above|beyond|below|under|past)\b", re.IGNORECASE
)
#: "Did you send 50 euros" asks what was done, "have you got a table" does not.
_WAS_DONE = re.compile(
    rf"{_OPENING}(?:(?:why|when|how|where|what)\s+)?(?:did(?:n't)?|have(?:n't)?|had(?:n't)?)\s+you\s+"
    r"(?:(?:already|just|really|ever|actually|not|even)\s+)*(?P<verb>[\w']+)",
    re.IGNORECASE,
)
#: "I sent 50 to Anna" tells what was done, unless more follows that may be a wish.
_TOLD_DONE = re.compile(
    rf"{_OPENING}(?:i|we)(?:'ve|\u2019ve| have| had|'d)?\s+"
    r"(?:(?:just|already|also|only|once|recently)\s+)*(?P<verb>\w+)\b",
    re.IGNORECASE,
)
_DONE = word_set("sent paid bought sold gave took made ran told kept lent wrote drove flew built got")
_MAY_WISH = re.compile(
    r"\?|\b(?:please|pls|plz|but|can|could|would|will|should|let's|now|instead|need|want|make|change|check|tell|show)\b",
    re.IGNORECASE,
)
#: Words that are orders to end something, unless they are what an agent does.
_ENDING = re.compile(
    rf"{_OPENING}(?P<verb>stop|cancel|skip|forget|abort|scrap|never ?mind)\b"
    r"(?!\s+(?:at|when|if|by|in|after|before)\b)"
    # "Never mind, greet Bob" leaves what was before.
    r"(?!(?<=mind)\s*[,.;:!-]+\s*(?!(?:i|we|you|it|that|this|the|thanks?|no|do|don't|dont)\b|(?:please|then)\W*$)\w)",
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
        return task is None or not (_says_value(scene, task, match) or _is_usual(task, _DO_NOT))
    if task is not None and (_is_first_denied(scene, task) or _asks_what_was_done(scene, task)):
        return True
    if task is not None and _tells_what_was_done(scene, task):
        return True
    if match := _NOT_WANTED.match(scene.text):
        is_for_somebody = " you to " in f" {match[0].lower()} "
        is_of_task = task is not None and stem(match["verb"].lower()) in task.names
        return (is_for_somebody or is_of_task) and not (task is not None and _is_usual(task, _NOT_WANTED))
    match = _ENDING.match(scene.text)
    if match is None or task is None:
        return match is not None
    return stem(match["verb"].lower()) not in task.names and not _is_usual(task, _ENDING)


def _tells_what_was_done(scene: Scene, task: Prepared) -> bool:
    """True for "I sent 50 to Anna yesterday", where nothing else is said that may be a wish."""
    match = _TOLD_DONE.match(scene.text)
    verb = match["verb"].lower() if match is not None else ""
    if not (verb.endswith("ed") or verb in _DONE) or _is_usual(task, _TOLD_DONE):
        return False
    return stem(verb) == stems_of(task.offer.task.name)[0] and not _MAY_WISH.search(scene.text)


def begins_declined(text: str) -> bool:
    """Return whether *text* begins as what is declined does, whatever it is about."""
    return any(beginning.match(text) for beginning in (_DO_NOT, _NOT_WANTED, _ENDING))


def asks_for_abilities(scene: Scene, choice: Choice | None) -> bool:
    """Return whether *scene* asks what can be done, and no agent is there for just that."""
    return choice is None and _ABILITIES.fullmatch(scene.text) is not None


def _is_usual(task: Prepared, beginning: re.Pattern[str]) -> bool:
    return any(beginning.match(example) for example in task.offer.task.examples)


def _says_value(scene: Scene, task: Prepared, denied: re.Match[str]) -> bool:
    """True for "don't use any history" and "don't spend more than 50k", false for "don't send 50 euros"."""
    place, end = denied.span("verb")
    fields = [cue.field for cue in task.cues.find(scene.tokens) if scene.tokens[cue.first].start == place]
    if any(field.is_list or field.kind in {"boolean", "choice"} for field in fields):
        return True
    is_bounded = _MORE_THAN.match(scene.text, end) is not None and not _is_action(task, denied["verb"])
    return is_bounded and any(field.is_numeric for field in fields)


def _is_action(task: Prepared, verb: str) -> bool:
    """True for a word of the task's own name: what it does, and not what its fields are called."""
    return stem(verb.lower()) in stems_of(task.offer.task.name)


def _is_first_denied(scene: Scene, task: Prepared) -> bool:
    """True when the first word for *task* is what shall not be done ("I changed my mind, don't send 50 euros")."""
    match = _DO_NOT_LATER.search(scene.text)
    if match is None or not _is_action(task, match["verb"]) or _is_usual(task, _DO_NOT):
        return False
    place = scene.index_at(match.start("verb"))
    return not any(token.stem in task.names for token in scene.tokens[:place])


def _asks_what_was_done(scene: Scene, task: Prepared) -> bool:
    match = _WAS_DONE.match(scene.text)
    return match is not None and _is_action(task, match["verb"]) and not _is_usual(task, _WAS_DONE)
