"""The slots of a cluster, and for every key a companion that lies in its slot though it has a tag of its own.

A cluster takes a script whose keys lie in one slot, whatever their tags are. So a script over one task can count in the
same breath, and the counters are 16,384 instead of one a task: few enough to be read whole.
"""

from binascii import crc_hqx
from collections.abc import Iterator
from functools import lru_cache

#: Slots of every cluster, by the specification of Redis Cluster: CRC16 (XMODEM) of the tag, modulo this.
SLOTS = 16_384
#: Binary digits of a tag of ours: 2**14 of them are as many as there are slots, and no two lie in one.
_DIGITS = 14


def slot_of(tag: str) -> int:
    """Return the slot in which every key with *tag* in its braces lies."""
    return crc_hqx(tag.encode(), 0) % SLOTS


def companion(tag: str) -> str:
    """Return the tag of ours in the slot of *tag*: 14 binary digits, the same for every key of that slot."""
    return _companions()[slot_of(tag)]


def companions() -> Iterator[str]:
    """Yield the tag of ours in each slot."""
    return (f"{number:0{_DIGITS}b}" for number in range(SLOTS))


@lru_cache(maxsize=1)
def _companions() -> tuple[str, ...]:
    """Return, by slot, the binary digits that lie there: 1 MB of text, looked up for every task.

    Turning one digit always turns the same bits of a CRC, so that 14 of them tell about all 16,384 numbers: 2 ms.
    """
    slots = [slot_of("0" * _DIGITS)]
    for place in range(_DIGITS):
        turned = slot_of(f"{1 << place:0{_DIGITS}b}") ^ slots[0]
        slots += [slot ^ turned for slot in slots]
    digits = [""] * SLOTS
    for slot, tag in zip(slots, companions(), strict=True):
        digits[slot] = tag
    return tuple(digits)
