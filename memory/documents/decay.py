"""How sure one may still be of something, by how long ago it was said: computed when it is read, never written back."""

from datetime import date, timedelta

from pydantic import JsonValue

from tasklore.memory.documents.items import Durability, Item

#: Days until half of the confidence is gone, None for never.
#: permanent: a birthday or a blood group is as true in ten years; only a correction changes it.
#: long_term: tastes, work and homes last for years and seldom many; two years unsaid is a reason to ask again.
#: short_term: "this month", a diet, a guest: gone within weeks, so that after two months a quarter is left.
#: momentary: hungry, tired, in a hurry: tomorrow a coin's throw, next week nothing.
HALF_LIVES: dict[Durability, timedelta | None] = {
    "permanent": None,
    "long_term": timedelta(days=730),
    "short_term": timedelta(days=30),
    "momentary": timedelta(days=1),
}
#: Below this share of certainty an item is stale: two half-lives after it was said for sure.
STALE_BELOW = 0.25


def confidence_now(item: Item | JsonValue, today: date) -> float:
    """Return how sure one may be of *item* on *today*, 0 to 1; an item without a date of addition keeps its confidence.

    A value that is no item (an imported string) is as sure as on its first day. An expiry has no part in this.
    """
    read = item if isinstance(item, Item) else Item.read(item)
    if read is None:
        return 1.0
    half_life = HALF_LIVES[read.durability]
    if half_life is None or read.added is None or read.added >= today:
        return read.confidence
    return float(read.confidence * 0.5 ** ((today - read.added) / half_life))


def is_stale(item: Item | JsonValue, today: date) -> bool:
    """Tell whether so much time has passed that *item* should be asked for again."""
    return confidence_now(item, today) < STALE_BELOW
