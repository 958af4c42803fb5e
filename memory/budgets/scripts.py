"""The Lua of budgets: all keys are in one slot, since a call is held against accounts of different owners at once."""

from pathlib import Path

from tasklore.memory.scripts import load

_HERE = Path(__file__).parent

RESERVE = load(_HERE, "reserve", "refuse")
SETTLE = load(_HERE, "settle", "finish")
RENEW = load(_HERE, "renew", "finish")
CHANGE = load(_HERE, "change", "refuse")
WAKE = load(_HERE, "wake", "finish")
SETTLE_WAKE = load(_HERE, "settle_wake", "finish")
