"""A part of a sentence that may be a wish of its own, and what its words are: a request, a name, other amounts."""

import re
from dataclasses import dataclass

from supervisor.interpretation.earlier_tasks.references import reference_in
from supervisor.interpretation.values.fields import FieldShape
from supervisor.interpretation.values.scene import Scene
from supervisor.interpretation.wishes.declining import is_declined
from supervisor.interpretation.wishes.orders import ASKING, TELLING, WISHING
from supervisor.interpretation.wishes.routing import Choice, Prepared
from supervisor.interpretation.words import STOP, stems_of

#: Words of a clause that is but a name.
_MOST_IN_NAME = 4
#: "What about 70k?" asks the same with another amount.
_VARYING = re.compile(r"(?:(?:what|how) (?:about|if)|with|if)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, eq=False)
class Stretch:
    """A part of a sentence from *start* on: *scene* is made of it alone, *choice* is the router's for it.

    With *order*, it wants the task before it once more, and has the values of these fields in their order: "limit 50k,
    spent 42k; then for food 5k and 4.5k".
    """

    start: int
    end: int
    scene: Scene
    choice: Choice | None
    order: tuple[FieldShape, ...] = ()

    @property
    def is_declined(self) -> bool:
        """Whether it says that its task shall not be done."""
        return is_declined(self.scene, self.choice)


def is_mere_name(stretch: Stretch) -> bool:
    """Return whether *stretch* is a few words that ask for nothing by themselves: "Oslo" of "Lima and Oslo"."""
    words = [token for token in stretch.scene.tokens if token.is_word]
    return stretch.choice is None and 0 < len(words) <= _MOST_IN_NAME and words[0].text not in ASKING | TELLING


def varies(stretch: Stretch) -> bool:
    """True for "with 70k?" and "what about 70k": other amounts, and no word of whose they are."""
    scene = stretch.scene
    if not scene.items or _VARYING.match(scene.text) is None:
        return False
    said = [(item.start, item.end) for item in scene.items]
    return all(
        token.text in STOP or any(start <= token.start < end for start, end in said)
        for token in scene.tokens
        if token.is_word
    )


def refers_back(stretch: Stretch, task: Prepared) -> bool:
    """Return whether *stretch* wants *task* again, or takes a value of it: "again with 45k", "the same history"."""
    reference = reference_in(stretch.scene, task.cues.find(stretch.scene.tokens))
    return reference.again is not None or reference.everything is not None or bool(reference.fields)


def is_other(stretch: Stretch, task: Prepared) -> bool:
    """True for a question about something that no agent does, where it says nothing of the *task* before it."""
    words = [token for token in stretch.scene.tokens if token.is_word]
    if len(words) < 2 or words[0].text not in ASKING or words[0].text == "please":
        return False
    if stretch.scene.quoted or all(word.text in STOP for word in words) or task.cues.find(stretch.scene.tokens):
        return False
    return not stretch.scene.items and not reference_in(stretch.scene, ())


def names_its_task(stretch: Stretch) -> bool:
    """Return whether a word of *stretch* names the task that it chooses; True when it chooses none."""
    return stretch.choice is None or any(token.stem in stretch.choice.task.names for token in stretch.scene.tokens)


def says_enough(stretch: Stretch) -> bool:
    """Return whether *stretch*, which has no value, names its task, or begins as its examples or a question do."""
    if names_its_task(stretch) or stretch.choice is None:
        return True
    words = [token for token in stretch.scene.tokens if token.is_word]
    if sum(token.text not in STOP for token in words) < 2:
        return False
    first = words[0].text
    examples = (example.lower().split() for example in stretch.choice.task.offer.task.examples)
    return first in ASKING or first in {"i", "we"} or any(said[:1] == [first] for said in examples)


def is_request(stretch: Stretch, task: Prepared) -> bool:
    """Return whether *stretch* begins like a request: a question or an order, and no value or account of something."""
    tokens = [token for token in stretch.scene.tokens if token.is_word]
    if not tokens:
        return False
    first = tokens[0].text
    if first in {"i", "we", "i'd", "we'd"}:
        return len(tokens) > 1 and tokens[1].text in WISHING
    if first in ASKING:
        return True
    # "Send 20 euros to Bob" is an order, although "send" also announces its amount.
    is_order = tokens[0].stem in stems_of(task.offer.task.name)[:1]
    starts_with_field = not is_order and any(cue.first == 0 for cue in task.cues.find(stretch.scene.tokens))
    return not (first in TELLING or first[0].isdigit() or starts_with_field)
