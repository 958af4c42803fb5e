"""The Redis keys of what owners keep."""

from tasklore.memory import key_parts

#: The keys of what owners keep.
HOLDINGS = key_parts.HoldingKeys(
    *(f"tl:holdings:{{all}}:{part}" for part in key_parts.HoldingKeys._fields)
)
