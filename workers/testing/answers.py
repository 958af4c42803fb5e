"""What a kit remembers: its own answers, and which of them is near to a question, as the long-term memory finds it."""

from memory import keys
from memory.long_term.entries import Remembered
from workers.execution.job import Order
from workers.execution.near_matches import neighbour_at


class KitAnswers:
    """Answers by entry key, for as long as the kit is there."""

    def __init__(self) -> None:
        self._answers: dict[str, Remembered] = {}
        self._places: dict[tuple[str, str], dict[str, str]] = {}

    def keep(self, order: Order, answer: Remembered) -> None:
        """Keep *answer* unless nothing is remembered of the task."""
        if order.memory_key is None:
            return
        self._answers[order.memory_key] = answer
        if order.neighbourhood is not None:
            frame = keys.near_of(order.memory_key), order.neighbourhood.frame
            self._places.setdefault(frame, {})[order.neighbourhood.place] = order.memory_key

    def find(self, order: Order) -> Remembered | None:
        """Return the answer to *order*, else to its nearest neighbour, which is then its `near`; None without one."""
        key, near = order.memory_key, order.neighbourhood
        if order.outcome != "miss" or key is None:
            return None
        if key in self._answers or near is None:
            return self._answers.get(key)
        places = self._places.get((keys.near_of(key), near.frame), {})
        for place in near.nearest(list(places), 1):
            answer = self._answers[places[place]]
            order.near = neighbour_at(order.parameters, near, place, places[place], answer)
            return answer
        return None
