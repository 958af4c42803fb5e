"""How many values a body of JSON may hold: the cost to read or refuse it grows with their number."""

import re
from typing import Final

from tasklore.contracts.errors import MessageTooLarge

#: Values of one body; to tell of one that is wrong takes some 10 us and 1 KB.
MOST_VALUES: Final = 20_000

#: A string, also one that nothing closes: no byte is looked at twice.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)


def demand_few_values(body: bytes) -> None:
    """Return when *body* holds no more values than are read.

    Raises:
        MessageTooLarge: there are more.
    """
    if (
        body.count(b",") >= MOST_VALUES
        and _STRING.sub(b"", body).count(b",") >= MOST_VALUES
    ):
        raise MessageTooLarge(
            f"the body may hold {MOST_VALUES:,} values; send fewer, or a reference to where they are"
        )
