"""The sums of a story: tiers and points, countdowns, ids, tokens saved, rhythm. Pure, and no model is asked for one."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal, localcontext
from itertools import takewhile
from typing import Literal

from tasklore.contracts.analysis.pieces import MOST_TOKENS, Reduction
from tasklore.contracts.analysis.stories import StoryThread, Tastes, Tier

Pace = Literal["slow", "medium", "fast"]
ThreadStatus = Literal["active", "on_track", "critical", "resolved"]

#: Digits behind the point that points keep: what is beyond them is the noise of binary fractions.
_DIGITS = 6
#: So many times its cost an analysis saves at most, as far as it is told.
_MOST_TIMES = Decimal(10**12)
#: Scenes that are looked at for variety, and how many of one type are too many.
VARIETY_WINDOW = 5
VARIETY_LIMIT = 4
#: Responses of one tension from which on the rhythm stands still.
STEADY = 3
#: Mean words of a sentence up to which a text reads fast, and from which on it reads slowly.
FAST_WORDS = 9
SLOW_WORDS = 18


@dataclass(frozen=True, slots=True)
class TierPosition:
    """Where a score stands among the tiers; `next_tier` and `points_needed` are None in the highest."""

    tier: str
    next_tier: str | None = None
    points_needed: float | None = None


def plain(number: float) -> float:
    """Return *number* as it is written: without the noise of binary fractions, and whole when it is whole."""
    rounded = round(float(number), _DIGITS)
    return int(rounded) if rounded.is_integer() else rounded


def tier_of(score: float, tiers: Sequence[Tier]) -> TierPosition:
    """Return the highest of *tiers* that *score* has reached, the lowest when it has reached none.

    *tiers* are in the order of their thresholds, as `tasklore.contracts.analysis.stories.Relations` demands.
    """
    reached = plain(score)
    place = max(
        (at for at, tier in enumerate(tiers) if plain(tier.threshold) <= reached),
        default=0,
    )
    if place + 1 == len(tiers):
        return TierPosition(tiers[place].name)
    above = tiers[place + 1]
    return TierPosition(
        tiers[place].name, above.name, plain(plain(above.threshold) - reached)
    )


def points_for(trait: str, who: str, tastes: Mapping[str, Tastes]) -> float:
    """Return the points of a display of *trait* for the character *who*: negative for a dislike.

    A trait or a character that the story says nothing of is worth none. Case does not count, nor how words are joined.
    """
    said = _folded(trait)
    return plain(
        sum(
            points * sign
            for name, taste in tastes.items()
            if _folded(name) == _folded(who)
            for sign, table in ((1, taste.likes), (-1, taste.dislikes))
            for liked, points in table.items()
            if _folded(liked) == said
        )
    )


def countdown(at: int, number: int) -> int:
    """Return how many responses after *number* are left until response *at*; 0 when it has come."""
    return max(0, at - number)


def countdowns(thread: StoryThread, number: int) -> tuple[int | None, int | None]:
    """Return responses left until a thread's consequence and until it is due, after response *number*; None: never."""
    consequence = thread.consequence_at
    due = thread.due_at
    return (
        None if consequence is None else countdown(consequence, number),
        None if due is None else countdown(due, number),
    )


def thread_status(
    thread: StoryThread, number: int, *, critical: int, is_open: bool = True
) -> ThreadStatus:
    """Return how a thread stands after response *number*.

    It is critical when *critical* or fewer responses are left until its consequence, on track when it is due some time,
    and active otherwise. A due date makes nothing critical: it has no consequence.
    """
    if not is_open:
        return "resolved"
    consequence, due = countdowns(thread, number)
    if consequence is not None and consequence <= critical:
        return "critical"
    return "on_track" if due is not None else "active"


def resolve_id(said: str, ids: Iterable[str]) -> str | None:
    """Return the one of *ids* that *said* names, in whole or as a beginning such as `MEM-120`; None unless it is one.

    A whole id wins over the longer ones that begin with it. Case counts only where it makes the difference.
    """
    known = tuple(dict.fromkeys(ids))
    said = said.strip()
    if said in known:
        return said
    low = said.casefold()
    whole = [one for one in known if one.casefold() == low]
    found = whole or [
        one for one in known if low and one.casefold().startswith(f"{low}-")
    ]
    return found[0] if len(found) == 1 else None


def reduction(before: int, after: int) -> Reduction:
    """Return what condensing *before* tokens to *after* saved; the percentage is rounded half up, 0 of nothing."""
    return Reduction(before=before, after=after, percent=_percent(before, after))


def total(reductions: Iterable[Reduction]) -> Reduction | None:
    """Return the sum of *reductions*, with the tokens it saved; None when there is none."""
    parts = tuple(reductions)
    if not parts:
        return None
    before = min(MOST_TOKENS, sum(one.before for one in parts))
    after = min(MOST_TOKENS, sum(one.after for one in parts))
    return Reduction(
        before=before,
        after=after,
        percent=_percent(before, after),
        saved=before - after,
    )


def roi(
    saved_tokens: int, usd_per_million: float, cost_usd: Decimal | float
) -> float | None:
    """Return how many times its cost an analysis saves the model that reads its context, to one decimal.

    *usd_per_million* is what a million input tokens cost that model. None when the analysis cost nothing, or its
    cost is no number; a trillion stands for any more.
    """
    cost = Decimal(str(cost_usd))
    price = Decimal(str(usd_per_million))
    if not cost or not cost.is_finite() or not price.is_finite():
        return None
    # Without traps what is too large is infinite, and cut below.
    with localcontext(Context(traps=[])):
        times = Decimal(saved_tokens) * price / 1_000_000 / cost
        return float(
            max(-_MOST_TIMES, min(_MOST_TIMES, times)).quantize(
                Decimal("0.1"), ROUND_HALF_UP
            )
        )


def variety_alert(scene_types: Sequence[str | None]) -> str | None:
    """Return the alert that four of the last five scenes are of one type; None before there are five.

    *scene_types* begin with the latest; None stands for a scene without a name.
    """
    last = scene_types[:VARIETY_WINDOW]
    if len(last) < VARIETY_WINDOW:
        return None
    for kind in dict.fromkeys(last):
        if kind and last.count(kind) >= VARIETY_LIMIT:
            return f"Last {last.count(kind)}/{VARIETY_WINDOW} {kind}-heavy"
    return None


def pacing_alert(tensions: Sequence[float | None]) -> str | None:
    """Return the alert that the tension, from 0 to 10, has not changed for three responses or more.

    *tensions* begin with the latest, and the alert counts as far back as they go.
    """
    if not tensions or tensions[0] is None:
        return None
    now = plain(tensions[0])
    steady = sum(
        1
        for _ in takewhile(lambda one: one is not None and plain(one) == now, tensions)
    )
    return (
        f"Tension steady at {now}/10 for {steady} responses"
        if steady >= STEADY
        else None
    )


def dialogue_share(quoted_words: int, words: int) -> float:
    """Return the share of *words* that stand in quotation marks, from 0 to 1 with two digits; 0 of no words."""
    return round(min(1.0, quoted_words / words), 2) if words else 0.0


def pace(words: int, sentences: int) -> Pace:
    """Return how fast a text reads by the mean length of its sentences: short ones are fast."""
    if not words or not sentences:
        return "medium"
    mean = words / sentences
    if mean <= FAST_WORDS:
        return "fast"
    return "slow" if mean >= SLOW_WORDS else "medium"


def _percent(before: int, after: int) -> int:
    return (200 * (before - after) + before) // (2 * before) if before else 0


def _folded(words: str) -> str:
    return " ".join(words.casefold().replace("_", " ").replace("-", " ").split())
