"""A prompt on a conversation, on past senses and actions, and on the present: three sections, never mixed.

All of it keeps a hard budget of tokens. The oldest of the past is left out first, senses and messages in turns;
then new messages are shortened, then the oldest of them are left out, with a note. The present is left out last of all.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tasklore.contracts.conversations import History, Utterance
from tasklore.contracts.observations import AgentTarget, Observation, SensoryData
from tasklore.memory.rendering.narration import (
    MOST_TOLD,
    Narrator,
    at_time,
    by_whom,
    list_words,
    say_message,
    say_texted,
    short,
    speech,
)
from tasklore.memory.rendering.quoting import MAX_SHOWN, plain
from tasklore.memory.rendering.tokens import Count, counter, estimate, exact

#: Tokens of a whole question about what to do next.
BUDGET_TOKENS = 1_200

#: Characters of a new message that are shown, the most first: the next is tried when not all of them fit.
_SHOWN = (2_000, MAX_SHOWN, 120)
#: How many of a kind are told of what is sensed now, the most first.
_TOLD = (MOST_TOLD, 6, 3, 1, 0)
#: And of what was sensed before: where the coins lay matters less once they may be gone.
_TOLD_OF_PAST = 4
#: Observations among which it is looked up to whom the agent said something: as far back as messages ever fit.
_LOOKED_AT = 150
#: Lines of one list that are looked at, tokens of the shortest line, and characters of a token, rather too many.
_MOST_LINES = 300
_LEAST_LINE = 4
_LONGEST_TOKEN = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class _SituationParts:
    """The text in parts: each line on its own, so that some can be left out; the past runs from the oldest."""

    said: tuple[str, ...]
    new: tuple[str, ...]
    seen: tuple[str, ...]
    now: tuple[str, ...]
    earlier: str = ""
    hidden: int = 0

    def text(self) -> str:
        """Return what a prompt shows."""
        lines = [
            "# Conversation",
            *filter(None, (self.earlier,)),
            *(f"- {line}" for line in self.said),
        ]
        if not self.earlier and not self.said and not self.new and not self.hidden:
            lines.append("Nothing was said yet.")
        lines += ["New messages:" if self.new or self.hidden else "No new messages."]
        if self.hidden:
            lines.append(
                f"({self.hidden} more new {'message' if self.hidden == 1 else 'messages'} left out)"
            )
        lines += [f"- {line}" for line in self.new]
        if self.seen:
            lines += ["# Observations", *(f"- {line}" for line in self.seen)]
        return "\n".join((*lines, "# Current situation", *self.now))


def situation(
    history: History,
    observations: Sequence[Observation],
    now: SensoryData,
    time: float,
    allowed: Sequence[str],
    *,
    name: str | None = None,
    budget_tokens: int = BUDGET_TOKENS,
    count: Count | None = None,
    narrator: Narrator | None = None,
) -> str:
    """Return what an agent called *name* knows at *time*, in seconds of its world, within *budget_tokens*.

    Past messages and *observations*, oldest first, are worded in the past tense with their time; *allowed* are the
    actions it may choose from. No message stands among the observations: the words of its own messages are in the
    conversation. A message of another speaker under the agent's name is marked as that. Empty when not even the budget
    of a few lines is given. None as *count* counts exactly where the extra `tokens` is installed, and errs on the safe
    side elsewhere.
    """
    fits = _Budget(budget_tokens, count)
    telling = _Telling(history, observations, name, narrator or Narrator())
    parts = _current(telling, now=now, time=time, allowed=allowed, fits=fits)
    return _with_past(telling, parts, fits) if parts is not None else ""


class _Budget:
    """The tokens that a text may have; called with one, it returns whether it fits.

    Our counters cut a text at the end of each line at least, and begin anew behind it: what lines count together they
    count apart, so that each is counted once. Of another counter nothing is known, and it is given the whole.
    """

    def __init__(self, tokens: int, count: Count | None) -> None:
        self.tokens = tokens
        self._count = count or counter()
        self._counts_lines = self._count in (exact(), estimate)
        self._known: dict[str, int] = {}

    def __call__(self, text: str, share: float = 1) -> bool:
        allowed = int(self.tokens * share)
        # What is many times too long is not counted at all.
        return len(text) <= _LONGEST_TOKEN * allowed and self.of(text) <= allowed

    def of(self, text: str) -> int:
        """Return how many tokens *text* is."""
        return (
            sum(map(self.of_line, text.split("\n")))
            if self._counts_lines
            else self._count(text)
        )

    def of_line(self, line: str) -> int:
        """Return how many tokens *line* is with its end."""
        known = self._known.get(line)
        if known is None:
            known = self._known[line] = self._count(f"{line}\n")
        return known

    @property
    def most_lines(self) -> int:
        """Lines that can fit at most."""
        return min(self.tokens // _LEAST_LINE, _MOST_LINES)


class _Telling:
    """The lines of a history and observations, each made when it is asked for: most of a long past never is."""

    def __init__(
        self,
        history: History,
        observations: Sequence[Observation],
        name: str | None,
        narrator: Narrator,
    ) -> None:
        self.name = name
        self.history = history
        self.past = history.past
        self.current = history.current
        self._speakers = Counter([one.speaker for one in self.past])
        names = {*self._speakers, *(one.speaker for one in self.current)}
        self._my_names = {
            one for one in names if name is not None and _fold(one) == _fold(name)
        }
        self.narrator = narrator
        self._then = narrator.telling(min(narrator.most, _TOLD_OF_PAST)).then
        self._observations = observations
        self._recipients = _recipients(observations[-_LOOKED_AT:])

    def now(
        self, narrator: Narrator, now: SensoryData, time: float, allowed: Sequence[str]
    ) -> tuple[str, ...]:
        """Return the lines of the present, in the words of *narrator*."""
        me = f" I am {plain(self.name)}." if self.name is not None else ""
        may = f"I may: {list_words([plain(action) for action in allowed])}"
        return f"It is time {short(time)}s.{me}", narrator.now(now), may

    def new(self, limit: int, last: int = _MOST_LINES) -> list[str]:
        """Return the *last* of the new messages, at most *limit* characters of each."""
        return [
            self._message(one, limit)
            for one in self.current[max(len(self.current) - last, 0) :]
        ]

    def messages(self) -> Iterator[str]:
        """Yield past messages, the latest first."""
        return (
            at_time(one.time, self._message(one, MAX_SHOWN))
            for one in reversed(self.past[-_MOST_LINES:])
        )

    def observations(self) -> Iterator[str]:
        """Yield past senses and actions, the latest first."""
        for one in reversed(self._observations[-_MOST_LINES:]):
            if one.did is not None:
                # The words are in the conversation, once.
                did = one.did.model_copy(update={"utterance": None})
                yield at_time(one.time, self.narrator.action(did))
            if one.sensed is not None:
                yield at_time(one.time, self._then(one.sensed))

    def earlier(self, shown: int) -> str:
        """Return what there was before the last *shown* past messages, empty when nothing was."""
        digest = self.history.earlier
        gone = self.past[: len(self.past) - shown]
        number = digest.count + len(gone)
        if not number:
            return ""
        said = Counter([one.speaker for one in self.past[len(gone) :]])
        speakers = Counter(digest.speakers) + (self._speakers - said)
        since = (
            digest.since if digest.since is not None else gone[0].time if gone else None
        )
        until = gone[-1].time if gone else digest.until
        when = (
            f" from {short(since)}s to {short(until)}s"
            if since is not None and until is not None
            else ""
        )
        summary = f". In short: {speech(digest.summary)}" if digest.summary else ""
        whom = f": {by_whom(speakers)}" if speakers else ""
        return f"Before: {number} {'message' if number == 1 else 'messages'}{when}{whom}{summary}"

    def _message(self, one: Utterance, limit: int) -> str:
        if one.speaker not in self._my_names:
            return say_message(one.speaker, one.message, limit)
        if not one.own:
            # Whoever sends a message chooses under which name.
            return say_message(
                f"somebody calling itself {plain(one.speaker)}", one.message, limit
            )
        to = self._recipients.get((one.time, one.message))
        return (
            f"I said: {speech(one.message, limit)}"
            if to is None
            else say_texted(to, one.message, limit)
        )


def _fold(name: str) -> str:
    """Return the form by which shown names are compared."""
    return plain(name).casefold()


def _recipients(observations: Sequence[Observation]) -> Mapping[tuple[float, str], str]:
    """Return the recipients of the agent's own messages, by time and text."""
    return {
        (one.time, one.did.utterance): one.did.target.agent
        for one in observations
        if one.did is not None
        and one.did.utterance is not None
        and isinstance(one.did.target, AgentTarget)
    }


def _current(
    telling: _Telling,
    now: SensoryData,
    time: float,
    allowed: Sequence[str],
    fits: "_Budget",
) -> _SituationParts | None:
    """Return new messages and the present without the past; None when not even the present fits."""
    full = telling.narrator
    for narrator in (
        *(full.telling(most) for most in _TOLD),
        replace(full, most=0, senses={}),
    ):
        parts = _SituationParts(
            said=(), new=(), seen=(), now=telling.now(narrator, now, time, allowed)
        )
        if len(telling.current) <= fits.most_lines:
            for limit in _SHOWN:
                whole = replace(
                    parts, new=tuple(telling.new(limit)), earlier=telling.earlier(0)
                )
                if fits(whole.text()):
                    return whole
        # The tenth coin gives way to a message; where the agent is, and that there are coins, does not.
        if narrator.most <= 1 and fits(parts.text(), share=0.5):
            break
    return _shorten(telling, parts, fits)


def _shorten(
    telling: _Telling, parts: _SituationParts, fits: "_Budget"
) -> _SituationParts | None:
    """Return *parts* with the latest of the new messages that fit, and how many do not."""
    number = len(telling.current)
    lines = telling.new(_SHOWN[-1], last=fits.most_lines)
    low = 0
    high = len(lines)
    found = None
    while low <= high:
        shown = (low + high) // 2
        tried = replace(
            parts, new=tuple(lines[len(lines) - shown :]), hidden=number - shown
        )
        if fits(tried.text()):
            found = tried
            low = shown + 1
        else:
            high = shown - 1
    return found


def _with_past(telling: _Telling, parts: _SituationParts, fits: "_Budget") -> str:
    """Return *parts* as text with as much of the past as fits: a message and an observation in turns, latest first."""
    if parts.hidden:
        return parts.text()
    left = fits.tokens - fits.of(parts.text())
    kept: dict[str, list[str]] = {"said": [], "seen": []}
    sources = {"said": telling.messages(), "seen": telling.observations()}
    while sources:
        for name in tuple(sources):
            line = next(sources[name], None)
            cost = fits.of_line(f"- {line}") if line is not None else 0
            if line is None or cost > left:
                del sources[name]
            else:
                left -= cost
                kept[name].append(line)
    while True:
        said, seen = (tuple(reversed(lines)) for lines in kept.values())
        text = replace(
            parts, said=said, seen=seen, earlier=telling.earlier(len(said))
        ).text()
        if fits(text):
            return text
        if not (said or seen):
            return parts.text()
        # There is a heading more, and another counter may count lines together as more than one by one.
        max(kept.values(), key=len).pop()
