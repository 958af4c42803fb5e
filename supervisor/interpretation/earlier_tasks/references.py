"""What a sentence leaves to the conversation: "same history", "again with spent 45000", "everything else the same"."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from contracts.messages import ChatTurn, TaskCall
from supervisor.catalogue import Catalogue, Offer
from supervisor.interpretation.questions import asks_which_task
from supervisor.interpretation.values.cues import Cue
from supervisor.interpretation.values.scene import Scene
from supervisor.interpretation.words import LIGHT

_SAME = frozenset({"same", "previous", "earlier", "prior", "identical", "unchanged", "last", "old"})
#: What may stand between "same" and the field, beside names of fields ("the same limit and history").
_BETWEEN = frozenset({"my", "old", "and", "or", "of", "the", "as", "values", "value", "for"})
_AFTER_SAME = frozenset({"same", "unchanged", "identical"})
_AS_BEFORE = re.compile(
    r"\b(?:the\s+)?(?:same\s+)?(?:as|like)\s+(?:before|last time|above|earlier|previously)\b", re.IGNORECASE
)
_EVERYTHING = re.compile(
    r"\b(?:same (?:again|with|but|numbers|values|figures|question|thing|everything"
    r"|as (?:before|last time|above|earlier))"
    r"|(?:everything|all|the) (?:else|rest) (?:is |stays |remains )?(?:the )?(?:same|unchanged)"
    r"|(?:the )?rest (?:is |stays )?(?:the )?(?:same|unchanged))\b",
    re.IGNORECASE,
)
#: Another day, place or number follows: "the same on Saturday".
_SAME_ON = re.compile(
    r"^\W*(?:(?:and|then|now|please)\W+)*(?:do )?(?:the )?same (?:thing )?(?:on|at|for|in|tomorrow|next)\b",
    re.IGNORECASE,
)
#: Without a field's name before it ("history as before"), it means all of them.
_BEFORE = re.compile(r"\b(?:as|like) (?:before|last time)\b", re.IGNORECASE)
_AGAIN = re.compile(
    r"\b(?:again|once more|one more time|repeat|redo|re-?run|re-?check|re-?do|instead)\b", re.IGNORECASE
)
_AGAIN_BUT = re.compile(
    r"\b(?:again|once more|this time|now)[\s,;:\u2013\u2014-]*(?:but|with|using|for|and|this time|only)\b|\binstead\b",
    re.IGNORECASE,
)
_FOLLOW_UP = re.compile(
    r"^\W*(?:(?:and|but|now|ok|okay|so|then)\W+)*(?:what about|how about|what if|and if|with|but with|if)\b"
    r"|^\W*(?:and|but|now)\b(?!(?:\W+(?:many|very|so|thanks?|you|much|a|lot|ok|okay|good|great|bye|please))*\W*$)",
    re.IGNORECASE,
)
#: "Raise the limit to 60k": all else stays as it was.
_SET_ANEW = re.compile(
    r"\b(?:raise|increase|lower|reduce|decrease|cut|set|change|bump|drop|move)\b[^.;!?\n]{1,60}?\bto\b", re.IGNORECASE
)
#: "Sorry, the limit was 55k" says a part of the last task anew; a bare "no" or "sorry to bother you" does not.
_CORRECTION = re.compile(
    r"^\W*(?:no|nope|sorry|oops|wait|actually|correction|my mistake|wrong|i mean|i meant|i should have said)\b"
    r"(?P<mark>,)?\W*",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Past:
    """A task of the conversation: its offer (as the catalogue has it now), the call, and the turn that holds it."""

    offer: Offer
    call: TaskCall
    turn: ChatTurn


@dataclass(frozen=True, slots=True)
class Reference:
    """What a sentence refers back to.

    *fields* maps a field's name to the words that ask for its earlier value; *everything* is the words that ask for all
    of them; `is_again` says that the earlier task is meant, if only for what the sentence leaves out.
    """

    fields: dict[str, tuple[int, int]]
    everything: tuple[int, int] | None
    again: tuple[int, int] | None

    def __bool__(self) -> bool:
        return bool(self.fields or self.everything or self.again)


def reference_in(scene: Scene, cues: tuple[Cue, ...]) -> Reference:
    """Return what *scene* refers back to; empty for a sentence that stands alone."""
    text = scene.text
    cued = frozenset(place for cue in cues for place in range(cue.first, cue.end))
    # The "on" of "the same on Saturday" announces a day, and names none.
    naming = [cue for cue in cues if any(token.text not in LIGHT for token in scene.tokens[cue.first : cue.end])]
    fields = {cue.field.name: span for cue in naming if (span := _same_span(scene, cue, cued))}
    everything = _EVERYTHING.search(text)
    if everything is None and not fields:
        everything = _BEFORE.search(text) or _AGAIN_BUT.search(text) or _SAME_ON.search(text)
    again = _AGAIN.search(text) or _FOLLOW_UP.search(text) or _SET_ANEW.search(text)
    again = again or _correction(scene, cues)
    return Reference(fields, everything.span() if everything else None, again.span() if again else None)


def _correction(scene: Scene, cues: tuple[Cue, ...]) -> re.Match[str] | None:
    """Return the words that take back a part of what was said before: an amount follows them, or at once a field."""
    match = _CORRECTION.match(scene.text)
    if match is None:
        return None
    follows = any(scene.tokens[cue.first].start == match.end() for cue in cues)
    is_amount = bool(scene.items) and (bool(cues) or scene.items[0].start == match.end())
    return match if is_amount or (match["mark"] and follows) else None


#: Light words between a cue and "as before"; more of them say something else, and cost a look each for every cue.
_LIGHTEST = 8


def _same_span(scene: Scene, cue: Cue, cued: frozenset[int]) -> tuple[int, int] | None:
    """Return the words "same history" or "history as before" around *cue*, or None."""
    tokens = scene.tokens
    for place in range(cue.first - 1, max(cue.first - 4, -1), -1):
        if tokens[place].text in _SAME:
            return tokens[place].start, tokens[cue.end - 1].end
        if place not in cued and tokens[place].text not in _BETWEEN:
            break
    place, last = cue.end, min(len(tokens), cue.end + _LIGHTEST)
    while place < last and (tokens[place].text in LIGHT - {"as"} or tokens[place].text in {":", "="}):
        place += 1
    if place < len(tokens):
        if match := _AS_BEFORE.match(scene.text, tokens[place].start):
            return tokens[cue.first].start, match.end()
        if tokens[place].text in _AFTER_SAME and (place + 1 == len(tokens) or not tokens[place + 1].is_word):
            return tokens[cue.first].start, tokens[place].end
    return None


def past_tasks(previous: Sequence[ChatTurn], catalogue: Catalogue) -> list[Past]:
    """Return the tasks that the assistant's turns hold, latest first; those of retired agents are left out."""
    past = []
    for turn in reversed(previous):
        if turn.speaker == "assistant" and turn.task is not None and turn.agent_id is not None:
            offer = catalogue.find(turn.agent_id, turn.task.name)
            if offer is not None:
                past.append(Past(offer, turn.task, turn))
    return past


def unanswered_choice(previous: Sequence[ChatTurn]) -> ChatTurn | None:
    """Return what the person had said before the last turn asked which task is meant, or None.

    What did not choose ("yes") was answered by the same question again, and is no wish.
    """
    if not previous or previous[-1].speaker != "assistant" or not asks_which_task(previous[-1]):
        return None
    turns = [
        turn
        for before, turn in zip((None, *previous), previous[:-1], strict=False)
        if turn.speaker == "person" and (before is None or before.text != previous[-1].text)
    ]
    return turns[-1] if turns else None
